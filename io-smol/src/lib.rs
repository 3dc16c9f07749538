//! Async backend of Tau on smol: everything `tau-io-std` does, for any number of agents on one thread.
//!
//! [`Agent`] is an agent inside another program, made from the options that `tau-io-std` documents. Below it,
//! [`drive`] makes a machine a future; [`engine::Engine`] puts that on a thread behind the face of the blocking engine.
//! Requests and processes are futures inside it; files, search, credentials,
//! hooks and host tools run on smol's pool for blocking work, through the functions of `tau-io-std`. A cancel reaches
//! every op, and every op answers exactly once.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod agent;
pub mod driver;
pub mod engine;
pub mod http;
mod process;

pub use agent::{Agent, Run};
pub use driver::replies::Replies;
pub use driver::{Control, drive};
pub use smol::block_on;
pub use tau_io_std::machine::{EventSink, Handlers, Machine, SinkFlow};
