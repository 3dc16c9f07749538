//! A push writer for compact JSON.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use serde_json::{Map, Value};

use super::number::{push_i64, push_u64, write_f64, write_number};
use super::scan::find_special;

/// Writes compact JSON straight into one buffer: no tree in between, commas placed by itself.
///
/// The caller keeps calls balanced; the writer does not check nesting.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    out: String,
    /// Whether the next item needs a comma before it.
    comma: bool,
}

impl Writer {
    /// An empty writer.
    #[must_use]
    pub const fn new() -> Self {
        Self { out: String::new(), comma: false }
    }

    /// A writer that appends to `out`. The first item gets no comma.
    #[must_use]
    pub const fn append_to(out: String) -> Self {
        Self { out, comma: false }
    }

    /// The text so far.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.out
    }

    /// Bytes written so far.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether nothing was written yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// The finished text.
    #[must_use]
    pub fn into_string(self) -> String {
        self.out
    }

    /// The finished text as bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.out.into_bytes()
    }

    #[inline]
    fn item(&mut self) {
        if self.comma {
            self.out.push(',');
        }
        self.comma = true;
    }

    /// `{`
    pub fn begin_object(&mut self) {
        self.item();
        self.out.push('{');
        self.comma = false;
    }

    /// `}`
    pub fn end_object(&mut self) {
        self.out.push('}');
        self.comma = true;
    }

    /// `[`
    pub fn begin_array(&mut self) {
        self.item();
        self.out.push('[');
        self.comma = false;
    }

    /// `]`
    pub fn end_array(&mut self) {
        self.out.push(']');
        self.comma = true;
    }

    /// Writes a key of our own, which needs no escapes; the next call writes its value.
    pub fn key(&mut self, key: &'static str) {
        debug_assert!(find_special(key.as_bytes()).is_none(), "use `name` for {key}");
        self.item();
        self.out.reserve(key.len() + 3);
        self.out.push('"');
        self.out.push_str(key);
        self.out.push_str("\":");
        self.comma = false;
    }

    /// Writes a key that may hold anything; the next call writes its value.
    pub fn name(&mut self, name: &str) {
        self.item();
        quote(&mut self.out, name);
        self.out.push(':');
        self.comma = false;
    }

    /// A string.
    pub fn str(&mut self, text: &str) {
        self.item();
        quote(&mut self.out, text);
    }

    /// A string built from pieces, without joining them first.
    pub fn str_parts<'a>(&mut self, parts: impl IntoIterator<Item = &'a str>) {
        self.item();
        self.out.push('"');
        for part in parts {
            escape(&mut self.out, part);
        }
        self.out.push('"');
    }

    /// An unsigned integer.
    pub fn u64(&mut self, value: u64) {
        self.item();
        push_u64(&mut self.out, value);
    }

    /// A signed integer.
    pub fn i64(&mut self, value: i64) {
        self.item();
        push_i64(&mut self.out, value);
    }

    /// A double, as ECMAScript prints it.
    pub fn f64(&mut self, value: f64) {
        self.item();
        write_f64(&mut self.out, value);
    }

    /// `true` or `false`.
    pub fn bool(&mut self, value: bool) {
        self.item();
        self.out.push_str(if value { "true" } else { "false" });
    }

    /// `null`
    pub fn null(&mut self) {
        self.item();
        self.out.push_str("null");
    }

    /// JSON text that is already written; must be one complete value (or the inside of an array).
    pub fn raw(&mut self, json: &str) {
        self.item();
        self.out.push_str(json);
    }

    /// Any value.
    pub fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.null(),
            Value::Bool(b) => self.bool(*b),
            Value::Number(n) => {
                self.item();
                write_number(&mut self.out, n);
            }
            Value::String(s) => self.str(s),
            Value::Array(items) => {
                self.begin_array();
                items.iter().for_each(|item| self.value(item));
                self.end_array();
            }
            Value::Object(map) => self.map(map),
        }
    }

    /// An object from a map.
    pub fn map(&mut self, map: &Map<String, Value>) {
        self.begin_object();
        for (key, value) in map {
            self.member(key, value);
        }
        self.end_object();
    }

    /// A member whose name may hold anything.
    pub fn member(&mut self, name: &str, value: &Value) {
        self.name(name);
        self.value(value);
    }

    /// `"key":"text"`
    pub fn field_str(&mut self, key: &'static str, text: &str) {
        self.key(key);
        self.str(text);
    }

    /// `"key":"text"`, nothing when absent.
    pub fn field_opt_str(&mut self, key: &'static str, text: Option<&str>) {
        if let Some(text) = text {
            self.field_str(key, text);
        }
    }

    /// `"key":123`
    pub fn field_u64(&mut self, key: &'static str, value: u64) {
        self.key(key);
        self.u64(value);
    }

    /// `"key":-123`
    pub fn field_i64(&mut self, key: &'static str, value: i64) {
        self.key(key);
        self.i64(value);
    }

    /// `"key":0.5`
    pub fn field_f64(&mut self, key: &'static str, value: f64) {
        self.key(key);
        self.f64(value);
    }

    /// `"key":true`
    pub fn field_bool(&mut self, key: &'static str, value: bool) {
        self.key(key);
        self.bool(value);
    }

    /// `"key":<value>`
    pub fn field_value(&mut self, key: &'static str, value: &Value) {
        self.key(key);
        self.value(value);
    }
}

fn quote(out: &mut String, text: &str) {
    out.push('"');
    escape(out, text);
    out.push('"');
}

/// Escapes exactly what `JSON.stringify` escapes: quote, backslash, controls below 0x20.
fn escape(out: &mut String, text: &str) {
    let bytes = text.as_bytes();
    out.reserve(text.len());
    let mut start = 0;
    while let Some(len) = bytes.get(start..).and_then(find_special) {
        let at = start + len;
        out.push_str(&text[start..at]);
        match bytes[at] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            c => {
                let _ = write!(out, "\\u{c:04x}");
            }
        }
        start = at + 1;
    }
    out.push_str(&text[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_like_json_stringify() {
        for text in [
            "",
            "plain",
            "a\"b\\c\n\r\t\u{8}\u{c}\u{1}\u{7f}\u{2028}é😀",
            "1234567\"",
            "12345678\"x",
            "é\u{1f}é12345678",
        ] {
            let mut w = Writer::new();
            w.str(text);
            assert_eq!(w.as_str(), serde_json::to_string(text).unwrap());
        }
    }

    #[test]
    fn commas_and_nesting() {
        let mut w = Writer::new();
        w.begin_object();
        w.field_u64("a", 1);
        w.key("b");
        w.begin_array();
        w.null();
        w.bool(true);
        w.raw("{}");
        w.begin_object();
        w.end_object();
        w.end_array();
        w.field_f64("c", 1.0);
        w.end_object();
        assert_eq!(w.as_str(), r#"{"a":1,"b":[null,true,{},{}],"c":1}"#);
    }
}
