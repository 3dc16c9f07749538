//! Scripts of traces: a provider, tools and operations that a case describes, and the events that follow as JSON
//! (format: "Trace script format" of the runtime vectors).

pub mod desk;
pub mod script;
pub mod show;
mod state;
