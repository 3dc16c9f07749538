//! Shared pieces of Tau's tests: the vector runner, comparisons of JSON documents, a scripted model
//! server, and a sandbox to run the program in.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "only tests use this crate; a panic is how they fail"
)]

pub mod answers;
pub mod clouds;
pub mod compare;
pub mod drive;
pub mod editor;
pub mod masks;
pub mod messages;
pub mod outline;
pub mod page;
pub mod play;
pub mod program;
pub mod pty;
pub mod server;
pub mod splits;
pub mod talk;
pub mod terminal;
pub mod text_spec;
pub mod tool_driver;
pub mod tool_files;
pub mod tool_real;
pub mod trace;
pub mod tree;
pub mod usage;
pub mod vectors;
pub mod wire_rules;
