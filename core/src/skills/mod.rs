//! Skills: task instructions that a model loads when it needs them (spec 50 §9).

pub mod command;
pub mod diagnostic;
pub mod discover;
pub mod disk;
mod entries;
pub mod frontmatter;
mod glob;
mod ignore;
mod load;
mod places;
mod registry;
mod scan;
mod yaml;
mod yaml_flow;
mod yaml_scalar;

use alloc::string::String;

pub use diagnostic::{Diagnostic, Problem, Resource};
pub use discover::{Configured, Lookup, Resources, Roots, discover, load_skills, scan_folder};

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
    /// Where it comes from.
    pub source: SourceInfo,
}

/// Where a skill or a template comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceInfo {
    /// Why it was looked at.
    pub kind: SourceKind,
    /// For whom it counts.
    pub scope: SourceScope,
    /// The folder to which its place belongs.
    pub base_dir: String,
}

/// Why a place was searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceKind {
    /// Somebody named it.
    #[default]
    Local,
    /// It is where such things are.
    Auto,
}

/// For whom something counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceScope {
    /// The user, everywhere.
    User,
    /// The project.
    Project,
    /// This run.
    #[default]
    Temporary,
}

impl SourceKind {
    /// The name in protocols.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Auto => "auto",
        }
    }
}

impl SourceScope {
    /// The name in protocols.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Temporary => "temporary",
        }
    }
}
