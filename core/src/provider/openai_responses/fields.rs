//! The members of events, items and responses that we look at, not read yet.
//!
//! One structure for all three: which members mean something depends on the `type`, and an unknown event may hold
//! anything under any name. A text is read only when it is used, and borrowed wherever it has no escapes.

use alloc::borrow::Cow;
use alloc::string::String;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{self, Value};
use crate::provider::halves;

/// Any JSON.
pub(super) type Raw<'a> = Option<&'a RawValue>;

/// See the module.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Fields<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Raw<'a>,
    #[serde(borrow)]
    pub(super) output_index: Raw<'a>,
    #[serde(borrow)]
    pub(super) item_id: Raw<'a>,
    #[serde(borrow)]
    pub(super) delta: Raw<'a>,
    #[serde(borrow)]
    pub(super) item: Raw<'a>,
    #[serde(borrow)]
    pub(super) response: Raw<'a>,
    #[serde(borrow)]
    pub(super) error: Raw<'a>,
    #[serde(borrow)]
    pub(super) code: Raw<'a>,
    #[serde(borrow)]
    pub(super) message: Raw<'a>,
    #[serde(borrow)]
    pub(super) id: Raw<'a>,
    #[serde(borrow)]
    pub(super) call_id: Raw<'a>,
    #[serde(borrow)]
    pub(super) name: Raw<'a>,
    #[serde(borrow)]
    pub(super) namespace: Raw<'a>,
    #[serde(borrow)]
    pub(super) arguments: Raw<'a>,
    #[serde(borrow)]
    pub(super) input: Raw<'a>,
    #[serde(borrow)]
    pub(super) phase: Raw<'a>,
    #[serde(borrow)]
    pub(super) summary: Raw<'a>,
    #[serde(borrow)]
    pub(super) content: Raw<'a>,
    #[serde(borrow)]
    pub(super) text: Raw<'a>,
    #[serde(borrow)]
    pub(super) refusal: Raw<'a>,
    #[serde(borrow)]
    pub(super) encrypted_content: Raw<'a>,
    #[serde(borrow)]
    pub(super) status: Raw<'a>,
    #[serde(borrow)]
    pub(super) reason: Raw<'a>,
    #[serde(borrow)]
    pub(super) incomplete_details: Raw<'a>,
    #[serde(borrow)]
    pub(super) usage: Raw<'a>,
    #[serde(borrow)]
    pub(super) service_tier: Raw<'a>,
    #[serde(borrow)]
    pub(super) output: Raw<'a>,
    #[serde(borrow)]
    pub(super) end_turn: Raw<'a>,
    #[serde(borrow)]
    pub(super) input_transformations: Raw<'a>,
}

impl<'a> Fields<'a> {
    /// The members of an object; `None` for anything else.
    pub(super) fn read(json: &'a str) -> Option<Self> {
        // A list would be taken for members in order.
        if !json.starts_with('{') {
            return None;
        }
        serde_json::from_str(json).ok()
    }

    /// The members of a member that is an object.
    pub(super) fn of(raw: Raw<'a>) -> Option<Self> {
        Self::read(raw?.get())
    }
}

/// A JSON string with marks for halves of surrogate pairs, and whether it has any; `None` for anything else.
pub(super) fn piece(raw: Raw<'_>) -> Option<(Cow<'_, str>, bool)> {
    let json = raw?.get();
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some((Cow::Borrowed(inner), false));
    }
    let marked = halves::mark(json);
    let is_marked = matches!(marked, Cow::Owned(_));
    match json::parse(&marked) {
        Ok(Value::String(text)) => Some((Cow::Owned(text), is_marked)),
        _ => None,
    }
}

/// A JSON string that stands alone and is not empty.
pub(super) fn text(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    let (text, marked) = piece(raw)?;
    Some(halves::strip(text, marked)).filter(|text| !text.is_empty())
}

/// Any JSON, read.
pub(super) fn value(raw: Raw<'_>) -> Value {
    raw.and_then(|raw| json::parse(raw.get()).ok()).unwrap_or_default()
}

/// Arguments: their text, or the text of an object that stands in its place (D53).
pub(super) fn arguments(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    match raw?.get() {
        json if json.starts_with('{') => Some(Cow::Borrowed(json)),
        _ => text(raw),
    }
}

/// The texts of parts (refusals too), put together; `None` when there are no parts.
pub(super) fn parts(raw: Raw<'_>, separator: &str) -> Option<String> {
    let mut whole = String::new();
    let mut any = false;
    for part in list(raw) {
        if any {
            whole.push_str(separator);
        }
        any = true;
        whole.push_str(&text(part.text.or(part.refusal)).unwrap_or_default());
    }
    any.then_some(whole)
}

/// The objects of a list.
pub(super) fn list(raw: Raw<'_>) -> impl Iterator<Item = Fields<'_>> {
    let items: alloc::vec::Vec<&RawValue> =
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    items.into_iter().filter_map(|item| Fields::read(item.get()))
}
