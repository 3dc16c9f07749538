//! Vectors of `sessions/`.

mod cli_args;
mod json_event;

use tau_tests::vectors::{VectorFile, file};

/// Files of this area.
pub const FILES: &[VectorFile] = &[file("cli-args", cli_args::parse), file("json-event", json_event::write)];
