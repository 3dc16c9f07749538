//! System messages as a log: replayed, they give the current prompt and the current tools (spec 30 §1.10).

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::json::{self, Value};
use crate::message::{Message, SystemMessage, Text};

/// The state after all system messages of a list; borrows from them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fold<'a> {
    /// Contents in order, empty ones left out.
    pub contents: Vec<&'a Text>,
    /// Named sections in their current order.
    pub sections: Vec<(&'a str, &'a Text)>,
    /// Declared tools in their current order.
    pub tools: Vec<&'a Value>,
    /// Time of the first system message; `None` = there is none.
    pub timestamp: Option<i64>,
}

/// Replays the system messages of a list; other messages do not matter.
#[must_use]
pub fn fold(messages: &[Arc<Message>]) -> Fold<'_> {
    let mut state = Fold::default();
    for message in messages {
        if let Message::System(system) = &**message {
            state.apply(system);
        }
    }
    state
}

impl<'a> Fold<'a> {
    /// Plays one message: a section that is set again keeps its place, one that was removed comes last; a tool
    /// that is declared again likewise.
    pub fn apply(&mut self, system: &'a SystemMessage) {
        self.timestamp.get_or_insert(system.timestamp);
        if !system.content.is_empty() {
            self.contents.push(&system.content);
        }
        for (name, text) in &system.sections {
            let place = self.sections.iter().position(|(known, _)| known == name);
            match (place.and_then(|at| self.sections.get_mut(at)), text) {
                (Some(section), Some(text)) => section.1 = text,
                (None, Some(text)) => self.sections.push((name, text)),
                (_, None) => self.sections.retain(|(known, _)| known != name),
            }
        }
        for name in system.tools_removed.iter().flatten().map(tool_name) {
            self.tools.retain(|tool| tool_name(tool) != name);
        }
        for tool in system.tools_added.iter().flatten() {
            match self.tools.iter_mut().find(|known| tool_name(known) == tool_name(tool)) {
                Some(known) => *known = tool,
                None => self.tools.push(tool),
            }
        }
    }

    /// The parts of the prompt in order, none of them empty.
    pub fn prompt_parts(&self) -> impl Iterator<Item = &'a str> + '_ {
        let contents = self.contents.iter().map(|text| text.as_str());
        let sections = self.sections.iter().map(|(_, text)| text.as_str());
        contents.chain(sections).filter(|part| !part.is_empty())
    }

    /// The prompt: its parts joined by blank lines; empty when there is nothing but blanks, which some services refuse.
    #[must_use]
    pub fn prompt(&self) -> String {
        if self.prompt_parts().all(|part| part.trim().is_empty()) {
            return String::new();
        }
        join(self.prompt_parts())
    }

    /// The one system message that says the same as all of them; `None` when there was none.
    #[must_use]
    pub fn message(&self) -> Option<SystemMessage> {
        let content = match &*self.contents {
            [one] => (*one).clone(),
            many => join(many.iter().map(|text| text.as_str())).into(),
        };
        Some(SystemMessage {
            content,
            sections: self
                .sections
                .iter()
                .map(|(name, text)| ((*name).into(), Some((*text).clone())))
                .collect(),
            tools_added: (!self.tools.is_empty()).then(|| self.tools.iter().copied().cloned().collect()),
            tools_removed: None,
            timestamp: self.timestamp?,
        })
    }
}

fn join<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for part in parts {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(part);
    }
    text
}

/// The name in a declaration; empty when it has none.
#[must_use]
pub fn tool_name(tool: &Value) -> &str {
    tool.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// What a system message must say so that a model that knows one tool list knows another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolChanges<'a> {
    /// Tools that are new or changed.
    pub added: Vec<&'a Value>,
    /// Tools that are gone or changed.
    pub removed: Vec<&'a Value>,
}

/// Compares two tool lists by what a model is told: name, description, parameters (key order counts) and
/// constrained sampling. The order of the tools does not matter.
#[must_use]
pub fn tool_changes<'a>(previous: &'a [Value], current: &'a [Value]) -> ToolChanges<'a> {
    let missing_in = |list: &'a [Value], tool: &&'a Value| {
        !list.iter().any(|other| tool_name(other) == tool_name(tool) && is_same_declaration(other, tool))
    };
    ToolChanges {
        added: current.iter().filter(|tool| missing_in(previous, tool)).collect(),
        removed: previous.iter().filter(|tool| missing_in(current, tool)).collect(),
    }
}

fn is_same_declaration(a: &Value, b: &Value) -> bool {
    ["description", "parameters", "constrainedSampling"].iter().all(|key| match (a.get(key), b.get(key)) {
        (None, None) => true,
        // As text, because the order of keys is part of what is sent.
        (Some(a), Some(b)) => json::to_string(a) == json::to_string(b),
        _ => false,
    })
}
