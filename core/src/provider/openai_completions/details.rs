//! `reasoning_details` of OpenRouter: collected from the stream, replayed in later requests.

use alloc::string::String;
use alloc::vec::Vec;

use crate::json::{Map, Value, Writer};

/// Key that holds the text of a kind; `None` for kinds that we do not know.
fn text_key(kind: &str) -> Option<&'static str> {
    match kind {
        "reasoning.text" => Some("text"),
        "reasoning.summary" => Some("summary"),
        "reasoning.encrypted" => Some("data"),
        _ => None,
    }
}

/// Whether a value is a detail that can be sent back.
pub(super) fn is_valid(value: &Value) -> bool {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    text_key(kind).is_some_and(|key| value.get(key).is_none_or(Value::is_string))
}

/// The details of a reply in order.
#[derive(Debug, Default)]
pub(super) struct Details(Vec<Map<String, Value>>);

impl Details {
    /// Whether nothing was collected.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the details of one delta. Neighbouring texts (or summaries) of one block are joined.
    pub(super) fn add(&mut self, list: Vec<Value>) {
        for value in list.into_iter().filter(is_valid) {
            if let Value::Object(detail) = value
                && let Some(detail) = self.join(detail)
            {
                self.0.push(detail);
            }
        }
    }

    /// Joins a detail with the last one; gives it back when it is one of its own.
    fn join(&mut self, detail: Map<String, Value>) -> Option<Map<String, Value>> {
        let kind = detail.get("type").and_then(Value::as_str).unwrap_or_default();
        let key = text_key(kind).filter(|key| *key != "data");
        let index = |map: &Map<String, Value>| map.get("index").filter(|v| !v.is_null()).cloned();
        let last = self.0.last_mut().filter(|last| last.get("type") == detail.get("type"));
        let (Some(key), Some(last)) = (key, last) else { return Some(detail) };
        if let (Some(a), Some(b)) = (index(last), index(&detail))
            && a != b
        {
            return Some(detail);
        }
        for (name, value) in detail {
            match last.get_mut(&name) {
                Some(Value::String(text)) if name == key => text.push_str(value.as_str().unwrap_or_default()),
                Some(Value::Null) | None => {
                    last.insert(name, value);
                }
                Some(_) => {}
            }
        }
        None
    }

    /// The details as JSON text.
    pub(super) fn to_json(&self) -> String {
        let mut w = Writer::new();
        w.begin_array();
        self.0.iter().for_each(|detail| w.map(detail));
        w.end_array();
        w.into_string()
    }
}
