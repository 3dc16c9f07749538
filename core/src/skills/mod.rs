//! Skills: task instructions that a model loads when it needs them (spec 50 §9).

pub mod command;
pub mod frontmatter;
mod yaml;
mod yaml_flow;
mod yaml_scalar;

use alloc::string::String;

/// A skill that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skill {
    /// Name.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// Its file.
    pub file_path: String,
    /// Folder of the file.
    pub base_dir: String,
    /// Only people may start it.
    pub disable_model_invocation: bool,
}
