//! What the model has been told about tools, and the changes it still has to hear of (spec 10 §2.5).

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::convert::{tool_changes, tool_name};
use crate::json::{Map, Value};
use crate::message::{Message, SystemMessage};
use crate::tools::Tool;

/// The declared tools, kept up to date message by message so that no history is replayed per turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Declared {
    tools: Vec<Value>,
}

/// A change of the tool list, as a system message carries it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolDelta {
    /// Declarations that are new or changed.
    pub added: Vec<Value>,
    /// `{name}` of tools that are gone or changed.
    pub removed: Vec<Value>,
}

/// What the model is told about a tool: name, description, parameters.
#[must_use]
pub fn declaration(tool: &Tool) -> Value {
    let mut map = Map::new();
    map.insert("name".into(), tool.name.as_str().into());
    map.insert("description".into(), tool.description.as_str().into());
    map.insert("parameters".into(), (*tool.parameters).clone());
    Value::Object(map)
}

impl Declared {
    /// The state after replaying the system messages of a transcript.
    pub fn replay<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Self {
        let mut state = Self::default();
        for message in messages {
            if let Message::System(system) = message {
                state.apply(system);
            }
        }
        state
    }

    /// Takes in one system message: removals first, then additions; a redefinition keeps its place.
    pub fn apply(&mut self, message: &SystemMessage) {
        for name in message.tools_removed.iter().flatten().map(tool_name) {
            self.tools.retain(|known| tool_name(known) != name);
        }
        for tool in message.tools_added.iter().flatten() {
            match self.tools.iter_mut().find(|known| tool_name(known) == tool_name(tool)) {
                Some(known) => known.clone_from(tool),
                None => self.tools.push(tool.clone()),
            }
        }
    }

    /// What must be said so that the model knows exactly `current` ([`tool_changes`]). `None` = nothing.
    #[must_use]
    pub fn delta(&self, current: &[Value]) -> Option<ToolDelta> {
        let changes = tool_changes(&self.tools, current);
        let name_only = |tool: &&Value| {
            let name = Value::from(tool_name(tool));
            Value::Object([(String::from("name"), name)].into_iter().collect())
        };
        let added = changes.added.into_iter().cloned().collect();
        let removed = changes.removed.iter().map(name_only).collect();
        let delta = ToolDelta { added, removed };
        (delta != ToolDelta::default()).then_some(delta)
    }

    /// Puts the needed declaration among `pending` messages: onto the last system message if there is one, else as
    /// a message of its own before the first other one.
    #[must_use]
    pub fn declare(
        &self,
        mut pending: Vec<Arc<Message>>,
        current: &[Value],
        now_ms: i64,
    ) -> Vec<Arc<Message>> {
        let carrier = pending.iter().rposition(|m| matches!(**m, Message::System(_)));
        let mut state = self.clone();
        for (i, message) in pending.iter().enumerate() {
            if let (Message::System(system), true) = (&**message, Some(i) != carrier) {
                state.apply(system);
            }
        }
        let delta = state.delta(current);
        if let Some(slot) = carrier.and_then(|i| pending.get_mut(i)) {
            if let Message::System(old) = &**slot {
                let had = old.tools_added.is_some() || old.tools_removed.is_some();
                if delta.is_some() || had {
                    *slot = Arc::new(Message::System(with_delta(old.clone(), delta)));
                }
            }
        } else if delta.is_some() {
            let message = SystemMessage { timestamp: now_ms, ..SystemMessage::default() };
            let at = pending.iter().position(|m| !matches!(**m, Message::System(_))).unwrap_or(pending.len());
            pending.insert(at, Arc::new(Message::System(with_delta(message, delta))));
        }
        pending
    }
}

fn with_delta(mut message: SystemMessage, delta: Option<ToolDelta>) -> SystemMessage {
    let delta = delta.unwrap_or_default();
    message.tools_added = (!delta.added.is_empty()).then_some(delta.added);
    message.tools_removed = (!delta.removed.is_empty()).then_some(delta.removed);
    message
}
