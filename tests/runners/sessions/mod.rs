//! Vectors of `sessions/`.

mod cli_args;
mod fork;
mod framing;
mod initial_message;
mod json_event;
mod lists;
mod paths;
pub mod store;

pub use store::{context, stats};

use tau_tests::vectors::{VectorFile, file, list};

/// Files of this area.
#[rustfmt::skip]
pub const FILES: &[VectorFile] = &[
    file("cli-args", cli_args::parse),
    file("json-event", json_event::write),
    file("jsonl-framing", framing::jsonl),
    file("initial-message", initial_message::assemble),
    file("build-context", context),
    file("leaf-tree-labels", store::leaf_tree),
    file("malformed-files", store::malformed),
    file("migration", store::migration),
    file("fork-branch", fork::run),
    file("session-info", lists::picker_info),
    file("session-selection", lists::selection),
    file("session-search", lists::search),
    file("fuzzy", lists::fuzzy_score),
    list("fuzzy", "filterCases", lists::fuzzy_order),
    file("session-id-validation", store::session_id),
    file("cwd-encoding", paths::posix),
    file("cwd-encoding-windows", paths::windows),
];
