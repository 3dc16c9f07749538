//! `/skill:name arguments`: a person starts a skill (spec 50 §9.6).

use alloc::format;
use alloc::string::{String, ToString};

use super::{Skill, frontmatter};

/// What became of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expansion {
    /// It names no skill and stays as it is.
    None,
    /// The message to send instead.
    Message(String),
    /// The skill's file cannot be used; the text stays as it is.
    Failed {
        /// The skill.
        name: String,
        /// Why.
        reason: String,
    },
}

/// Replaces a skill command. `read` gives the text of a file, or why there is none.
pub fn expand(
    text: &str,
    skills: &[Skill],
    read: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Expansion {
    let Some(command) = text.strip_prefix("/skill:") else { return Expansion::None };
    // Only a blank ends the name.
    let (name, arguments) = command.split_once(' ').unwrap_or((command, ""));
    let Some(skill) = skills.iter().find(|skill| skill.name == name) else { return Expansion::None };
    let document =
        read(&skill.file_path).and_then(|text| frontmatter::parse(&text).map_err(|fault| fault.to_string()));
    match document {
        Ok(document) => Expansion::Message(message(skill, document.body.trim(), arguments.trim())),
        Err(reason) => Expansion::Failed { name: name.to_string(), reason },
    }
}

fn message(skill: &Skill, body: &str, arguments: &str) -> String {
    let block = format!(
        "<skill name=\"{}\" location=\"{}\">\nRelative paths in this skill start at {}.\n\n{body}\n</skill>",
        skill.name, skill.file_path, skill.base_dir
    );
    if arguments.is_empty() { block } else { format!("{block}\n\n{arguments}") }
}

/// A stored message that a skill command made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkillBlock<'a> {
    /// Name of the skill.
    pub name: &'a str,
    /// Its file.
    pub location: &'a str,
    /// What was inserted.
    pub content: &'a str,
    /// What the user wrote.
    pub user_message: Option<&'a str>,
}

/// Recognises such a message; the whole text must have its form.
#[must_use]
pub fn parse_block(text: &str) -> Option<SkillBlock<'_>> {
    const CLOSE: &str = "\n</skill>";
    let (name, rest) = text.strip_prefix("<skill name=\"")?.split_once("\" location=\"")?;
    let (location, inner) = rest.split_once("\">\n")?;
    if [name, location].iter().any(|value| value.is_empty() || value.contains('"')) {
        return None;
    }
    // The first closing line after which nothing, or a blank line and a message, stands.
    inner.match_indices(CLOSE).find_map(|(at, _)| {
        let (content, rest) = inner.split_at(at);
        let user_message = match rest.strip_prefix(CLOSE)? {
            "" => None,
            rest => Some(rest.strip_prefix("\n\n").filter(|message| !message.is_empty())?),
        };
        Some(SkillBlock { name, location, content, user_message })
    })
}
