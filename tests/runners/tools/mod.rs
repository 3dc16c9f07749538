//! Vectors of `tools/`.

mod args;
mod bash;
mod commands;
mod edit;
mod fs_tools;
mod initial;
mod output;
mod paths;
mod prompt;
mod read;
pub mod selection;
mod skills;
mod text;

use super::runtime::bash_message;
use tau_tests::vectors::{VectorFile, file};

/// Files of this area.
#[rustfmt::skip]
pub const FILES: &[VectorFile] = &[
    file("ansi", text::ansi),
    file("bash", bash::bash),
    file("bash-execution-message", bash_message),
    file("context-files", prompt::context_files),
    file("frontmatter", prompt::frontmatter),
    file("system-prompt", prompt::system_prompt),
    file("diff", edit::diff),
    file("edit", edit::edit),
    file("edit-args", edit::edit_args),
    file("fs-tools", fs_tools::fs_tools),
    file("fuzzy-normalize", edit::fuzzy_normalize),
    file("image", read::image),
    file("output-accumulator", output::output_accumulator),
    file("initial-message", initial::initial_message),
    file("read", read::read),
    file("shell-env", selection::shell_env),
    file("tool-selection", selection::tool_selection),
    file("skills", skills::skills),
    file("skill-command", commands::skill_command),
    file("templates", commands::templates),
    file("truncate", text::truncate),
    file("user-bash", text::user_bash),
    file("tool-args", args::checked),
    file("paths", paths::paths),
];
