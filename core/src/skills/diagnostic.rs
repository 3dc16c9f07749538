//! What people should know about skills and templates that were found, or not.

use alloc::string::String;
use core::fmt;

/// What a diagnostic is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A skill.
    Skill,
    /// A prompt template.
    Template,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What it is about.
    pub resource: Resource,
    /// The file or folder.
    pub path: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What can be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A skill without a description is not registered.
    DescriptionMissing,
    /// The description is too long.
    DescriptionTooLong,
    /// The name is too long.
    NameTooLong,
    /// The name has letters that it should not have.
    NameInvalidChars,
    /// The name begins or ends with a hyphen.
    NameEdgeHyphen,
    /// The name has two hyphens in a row.
    NameDoubleHyphen,
    /// The front matter is not YAML; why.
    FrontmatterInvalid(String),
    /// The file cannot be read; why.
    Unreadable(String),
    /// There is nothing at a path that somebody gave.
    PathMissing,
    /// A path that somebody gave leads to a file that is not Markdown.
    PathNotMarkdown,
    /// There is too much in the folder; the rest was not looked at.
    TooMuch,
    /// The name is taken.
    Collision {
        /// The name.
        name: String,
        /// The file that keeps it.
        winner: String,
    },
}

impl Problem {
    /// A stable name.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::DescriptionMissing => "description_missing",
            Self::DescriptionTooLong => "description_too_long",
            Self::NameTooLong => "name_too_long",
            Self::NameInvalidChars => "name_invalid_chars",
            Self::NameEdgeHyphen => "name_edge_hyphen",
            Self::NameDoubleHyphen => "name_double_hyphen",
            Self::FrontmatterInvalid(_) => "frontmatter_invalid",
            Self::Unreadable(_) => "unreadable",
            Self::PathMissing => "path_missing",
            Self::PathNotMarkdown => "path_not_markdown",
            Self::TooMuch => "too_much",
            Self::Collision { .. } => "collision",
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.resource {
            Resource::Skill => "Skill",
            Resource::Template => "Prompt template",
        };
        write!(f, "{what} {}: ", self.path)?;
        match &self.problem {
            Problem::DescriptionMissing => f.write_str("has no description and is left out"),
            Problem::DescriptionTooLong => f.write_str("the description is longer than 1024 units"),
            Problem::NameTooLong => f.write_str("the name is longer than 64 units"),
            Problem::NameInvalidChars => f.write_str("the name should have only a-z, 0-9 and hyphens"),
            Problem::NameEdgeHyphen => f.write_str("the name should not begin or end with a hyphen"),
            Problem::NameDoubleHyphen => f.write_str("the name should not have two hyphens in a row"),
            Problem::FrontmatterInvalid(why) => write!(f, "the front matter is not valid: {why}"),
            Problem::Unreadable(why) => write!(f, "cannot be read: {why}"),
            Problem::PathMissing => f.write_str("does not exist"),
            Problem::PathNotMarkdown => f.write_str("is not a Markdown file"),
            Problem::TooMuch => f.write_str("holds too many files and folders; some were not looked at"),
            Problem::Collision { name, winner } => write!(f, "the name {name} is taken by {winner}"),
        }
    }
}
