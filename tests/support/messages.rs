//! Messages between JSON and types, and the symbolic texts of the vectors.

use std::sync::Arc;

use serde_json::Value;
use tau_core::convert;
use tau_core::json::Writer;
use tau_core::message::Message;

/// A list of messages; unreadable ones are a failure of the vector.
///
/// # Panics
/// When an item is not a message.
#[must_use]
pub fn read(list: &Value) -> Vec<Arc<Message>> {
    let items = list.as_array().into_iter().flatten();
    items.map(|m| Arc::new(Message::from_value(m).unwrap_or_else(|| panic!("not a message: {m}")))).collect()
}

/// A message as it would be stored.
///
/// # Panics
/// When the writer made something that is not JSON.
#[must_use]
pub fn value(message: &Message) -> Value {
    let mut w = Writer::new();
    message.write(&mut w);
    serde_json::from_str(w.as_str()).unwrap_or_else(|e| panic!("{e}: {}", w.as_str()))
}

/// A list of messages as they would be stored.
#[must_use]
pub fn values(messages: &[Arc<Message>]) -> Value {
    messages.iter().map(|message| value(message)).collect()
}

/// Texts the vectors leave to us, by their token.
const TOKENS: &[(&str, &str)] = &[
    ("<<IMAGE_OMITTED>>", convert::IMAGE_OMITTED),
    ("<<TOOL_IMAGE_OMITTED>>", convert::TOOL_IMAGE_OMITTED),
    ("<<SEE_IMAGE>>", convert::SEE_IMAGE),
    ("<<NO_TOOL_OUTPUT>>", convert::NO_TOOL_OUTPUT),
    ("<<NO_RESULT>>", convert::NO_RESULT),
];

/// The value with every known token replaced by our text, also inside longer strings.
#[must_use]
pub fn fill(value: &Value, more: &[(&str, &str)]) -> Value {
    match value {
        Value::String(text) if text.contains("<<") => {
            let replace = |text: String, (token, own): &(&str, &str)| text.replace(token, own);
            Value::String(TOKENS.iter().chain(more).fold(text.clone(), replace))
        }
        Value::Array(items) => items.iter().map(|item| fill(item, more)).collect(),
        Value::Object(map) => map.iter().map(|(key, item)| (key.clone(), fill(item, more))).collect(),
        other => other.clone(),
    }
}
