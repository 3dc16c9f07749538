//! System messages of a transcript as one prompt and one list of tools (spec 30 §1.10).
//!
//! A transcript may hold several system messages: more text, patches of named sections, tools added and withdrawn.
//! APIs that know only one system text get the state at the end.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::json::Value;
use crate::message::{Message, SystemMessage, Text};

/// Prompt and tools in force after all system messages.
#[derive(Clone, Debug, Default)]
pub struct Folded<'a> {
    /// Whether there was any system message.
    pub present: bool,
    /// Texts of all system messages, joined by blank lines.
    pub content: String,
    /// Sections in force.
    pub sections: Vec<(&'a str, &'a Text)>,
    /// Tools in force.
    pub tools: Vec<&'a Value>,
}

impl Folded<'_> {
    /// The whole prompt: content and sections, joined by blank lines, empty parts skipped.
    #[must_use]
    pub fn prompt(&self) -> String {
        let mut prompt = self.content.clone();
        for (_, text) in &self.sections {
            append_paragraph(&mut prompt, text);
        }
        prompt
    }
}

/// Folds the system messages among `messages`.
#[must_use]
pub fn fold(messages: &[Arc<Message>]) -> Folded<'_> {
    let mut folded = Folded::default();
    for message in messages {
        if let Message::System(system) = &**message {
            folded.present = true;
            append_paragraph(&mut folded.content, &system.content);
            patch_sections(&mut folded.sections, system);
            patch_tools(&mut folded.tools, system);
        }
    }
    folded
}

/// A replaced section keeps its place; a removed and added one moves to the end.
fn patch_sections<'a>(sections: &mut Vec<(&'a str, &'a Text)>, system: &'a SystemMessage) {
    for (name, text) in &system.sections {
        let known = sections.iter().position(|(other, _)| other == name);
        match (known.and_then(|at| sections.get_mut(at)), text) {
            (Some(slot), Some(text)) => slot.1 = text,
            (None, Some(text)) => sections.push((name, text)),
            (_, None) => sections.retain(|(other, _)| other != name),
        }
    }
}

/// Removals first, then additions; a redefinition keeps its place.
fn patch_tools<'a>(tools: &mut Vec<&'a Value>, system: &'a SystemMessage) {
    for removed in system.tools_removed.iter().flatten() {
        tools.retain(|tool| tool_name(tool) != tool_name(removed));
    }
    for added in system.tools_added.iter().flatten() {
        match tools.iter_mut().find(|tool| tool_name(tool) == tool_name(added)) {
            Some(slot) => *slot = added,
            None => tools.push(added),
        }
    }
}

/// Name of a tool declaration.
#[must_use]
pub fn tool_name(tool: &Value) -> &str {
    tool.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn append_paragraph(text: &mut String, paragraph: &str) {
    if paragraph.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(paragraph);
}
