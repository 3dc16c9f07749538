//! Vectors of `tools/`.

mod args;
mod prompt;
mod text;

use super::runtime::bash_message;
use tau_tests::vectors::{VectorFile, file};

/// Files of this area.
#[rustfmt::skip]
pub const FILES: &[VectorFile] = &[
    file("ansi", text::ansi),
    file("bash-execution-message", bash_message),
    file("context-files", prompt::context_files),
    file("frontmatter", prompt::frontmatter),
    file("system-prompt", prompt::system_prompt),
    file("truncate", text::truncate),
    file("user-bash", text::user_bash),
    file("tool-args", args::checked),
];
