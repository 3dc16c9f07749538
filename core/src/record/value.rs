//! Small readers and writers that the kinds of records share.

use alloc::string::String;
use alloc::vec::Vec;

use crate::json::{Value, Writer};
use crate::message::{Block, write_blocks};
use crate::text::base64;

/// Writes bytes: as text where they are text, else as base64.
pub(super) fn write_bytes(bytes: &[u8], w: &mut Writer) {
    match core::str::from_utf8(bytes) {
        Ok(text) => w.field_str("s", text),
        Err(_) => w.field_str("b", &base64::encode(bytes)),
    }
}

pub(super) fn read_bytes(value: &Value) -> Option<Vec<u8>> {
    match (value.get("s").and_then(Value::as_str), value.get("b").and_then(Value::as_str)) {
        (Some(text), _) => Some(text.as_bytes().to_vec()),
        (None, Some(base64)) => base64::decode(base64),
        (None, None) => None,
    }
}

pub(super) fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(String::from)
}

pub(super) fn count(value: &Value, key: &str) -> Option<u64> {
    value.get(key)?.as_u64()
}

pub(super) fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

pub(super) fn blocks(value: &Value, key: &str) -> Vec<Block> {
    let items = value.get(key).and_then(Value::as_array).into_iter().flatten();
    items.map(Block::from_value).collect()
}

pub(super) fn write_images(images: &[Block], w: &mut Writer) {
    w.key("images");
    write_blocks(images, w);
}

/// Writes pairs of names and texts; `None` stays `null`.
pub(super) fn write_pairs<'a>(
    key: &'static str,
    pairs: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
    w: &mut Writer,
) {
    w.key(key);
    w.begin_array();
    for (name, value) in pairs {
        w.begin_array();
        w.str(name);
        match value {
            Some(value) => w.str(value),
            None => w.null(),
        }
        w.end_array();
    }
    w.end_array();
}

pub(super) fn pairs(value: &Value, key: &str) -> Vec<(String, Option<String>)> {
    let items = value.get(key).and_then(Value::as_array).into_iter().flatten();
    let pair = |item: &Value| {
        let text = |at: usize| item.get(at).and_then(Value::as_str).map(String::from);
        Some((text(0)?, text(1)))
    };
    items.filter_map(pair).collect()
}

/// Pairs that all have values.
pub(super) fn full_pairs(value: &Value, key: &str) -> Vec<(String, String)> {
    pairs(value, key).into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

pub(super) fn texts(value: &Value, key: &str) -> Vec<String> {
    let items = value.get(key).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(String::from).collect()
}

pub(super) fn write_texts<'a>(key: &'static str, texts: impl IntoIterator<Item = &'a str>, w: &mut Writer) {
    w.key(key);
    w.begin_array();
    texts.into_iter().for_each(|text| w.str(text));
    w.end_array();
}
