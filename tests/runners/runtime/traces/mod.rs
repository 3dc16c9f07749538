//! Recorded traces: a scripted provider and scripted tools, events in order.

mod agent;
mod desk;
mod script;
mod show;
mod state;

pub use agent::core;
pub use desk::session;
