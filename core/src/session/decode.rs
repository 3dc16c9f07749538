//! Entries back from their lines.
//!
//! Values are not validated (spec 60 §1.7 rule 8): a field of a wrong type counts as absent.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;

use super::entry::{
    BranchSummaryEntry, Compaction, ContextEdit, Custom, EntryBody, Label, ModelRef, UsageEntry,
};
use crate::json::{self, Value};
use crate::message::{Content, CustomMessage, Message, Text, Usage, parse_message};
use crate::now::Wall;

/// Reads the body of an entry from its complete line. `None` when the line is not a JSON object.
#[must_use]
pub fn parse_body(line: &str) -> Option<EntryBody> {
    let value = parse_line(line)?;
    value.is_object().then(|| body_from_value(&value, line))
}

/// The value of a line: also with unpaired surrogates and deep nesting, which cost a second, slower reading.
pub(super) fn parse_line(line: &str) -> Option<Value> {
    serde_json::from_str(line).ok().or_else(|| json::parse(line).ok())
}

/// Reads a `message` entry whose message starts at `at` and ends one byte before the end of the line.
///
/// This is the way of nearly every line: one pass, no tree in between. `None` when the line is not of that shape.
#[must_use]
pub fn parse_message_at(line: &str, at: usize) -> Option<EntryBody> {
    let end = line.trim_end_matches([' ', '\t', '\r']).strip_suffix('}')?.len();
    parse_message(line.get(at..end)?).map(|message| EntryBody::Message(Arc::new(message)))
}

/// Reads the body of an entry from its value; `line` is kept for kinds that are not known.
#[must_use]
pub fn body_from_value(value: &Value, line: &str) -> EntryBody {
    let unknown = || EntryBody::Unknown(line.trim().into());
    let text = |key: &str| opt_text(value, key);
    match value.get("type").and_then(Value::as_str).unwrap_or_default() {
        "message" => match value.get("message").and_then(Message::from_value) {
            Some(message) => EntryBody::Message(Arc::new(message)),
            None => unknown(),
        },
        "model_change" => EntryBody::ModelChange(Box::new(ModelRef {
            provider: text("provider").unwrap_or_default(),
            model_id: text("modelId").unwrap_or_default(),
        })),
        "thinking_level_change" => match text("thinkingLevel") {
            Some(level) => EntryBody::ThinkingLevelChange(level.into()),
            None => unknown(),
        },
        "compaction" => EntryBody::Compaction(Box::new(Compaction {
            summary: text("summary").map(Text::from).unwrap_or_default(),
            first_kept: text("firstKeptEntryId"),
            tokens_before: value.get("tokensBefore").and_then(Value::as_f64).unwrap_or_default() as u64,
            details: value.get("details").cloned(),
            usage: value.get("usage").and_then(Usage::from_value),
            from_hook: value.get("fromHook").and_then(Value::as_bool),
            system_message: value.get("systemMessage").and_then(Message::from_value).map(Arc::new),
        })),
        "branch_summary" => EntryBody::BranchSummary(Box::new(BranchSummaryEntry {
            from_id: text("fromId").unwrap_or_default(),
            summary: text("summary").map(Text::from).unwrap_or_default(),
            details: value.get("details").cloned(),
            usage: value.get("usage").and_then(Usage::from_value),
            from_hook: value.get("fromHook").and_then(Value::as_bool),
        })),
        "custom_message" => EntryBody::CustomMessage(Box::new(CustomMessage {
            custom_type: text("customType").unwrap_or_default(),
            content: Content::from_value(value.get("content").unwrap_or(&Value::Null)),
            display: value.get("display").and_then(Value::as_bool).unwrap_or_default(),
            details: value.get("details").cloned(),
            timestamp: text("timestamp").and_then(|t| Wall::from_iso(&t)).unwrap_or_default().0,
        })),
        "custom" => EntryBody::Custom(Box::new(Custom {
            custom_type: text("customType").unwrap_or_default(),
            data: value.get("data").cloned(),
        })),
        "label" => match text("targetId") {
            Some(target_id) => {
                let label = text("label").filter(|label| !label.is_empty());
                EntryBody::Label(Box::new(Label { target_id, label }))
            }
            None => unknown(),
        },
        "session_info" => EntryBody::SessionInfo(text("name").map(Into::into)),
        "usage" => EntryBody::Usage(Box::new(UsageEntry {
            kind: text("kind").unwrap_or_default(),
            provider: text("provider").unwrap_or_default(),
            model: text("model").unwrap_or_default(),
            usage: value.get("usage").cloned().unwrap_or_default(),
            note: text("note"),
        })),
        "context_edit" => match (text("targetId"), edit_of(value.get("replacement"))) {
            (Some(target_id), Some(replacement)) => {
                EntryBody::ContextEdit(Box::new(ContextEdit { target_id, replacement }))
            }
            _ => unknown(),
        },
        _ => unknown(),
    }
}

fn opt_text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(String::from)
}

/// `null` (or nothing) omits, `{content}` replaces; anything else is no edit.
fn edit_of(replacement: Option<&Value>) -> Option<Option<Content>> {
    match replacement {
        None | Some(Value::Null) => Some(None),
        Some(value) => match value.get("content")? {
            content @ (Value::String(_) | Value::Array(_)) => Some(Some(Content::from_value(content))),
            _ => None,
        },
    }
}
