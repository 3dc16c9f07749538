//! Tool arguments that arrive as pieces of JSON text (spec 30 §4).
//!
//! [`PartialArgs`] keeps the raw text; a tolerant parser follows it only when somebody looks at the value, and
//! never reads a byte twice. The final value is always a strict parse of the whole text: what was guessed while
//! streaming is shown, never run.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::mem;

use serde_json::{Map, Value};
use thiserror::Error;

use super::parse::{JsonError, parse};
use super::repair::repair;
use super::tolerant::Tolerant;
use crate::text::truncate::excerpt;

/// How much of broken argument text an error repeats, bytes.
const ERROR_EXCERPT_BYTES: usize = 2000;

/// Arguments that are no JSON object. The text is for the model: what is wrong, and what was received.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text}")]
pub struct ArgsError {
    /// Description and the received text, a long one abridged.
    pub text: String,
}

/// The arguments of one call while they stream in.
#[derive(Clone, Debug, Default)]
pub struct PartialArgs {
    raw: String,
    parser: Option<Box<Tolerant>>,
    /// Bytes of `raw` that the tolerant parser has read.
    read: usize,
}

impl PartialArgs {
    /// No text yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a piece of text. Costs a copy of the piece, whatever came before.
    pub fn push(&mut self, delta: &str) {
        self.raw.push_str(delta);
    }

    /// The provider sent the complete text: the missing tail when it continues what was streamed, else `None`
    /// and the parser starts again with the new text.
    pub fn replace<'a>(&mut self, complete: &'a str) -> Option<&'a str> {
        if let Some(tail) = complete.strip_prefix(self.raw.as_str()) {
            self.raw.push_str(tail);
            return Some(tail);
        }
        *self = Self { raw: complete.into(), ..Self::default() };
        None
    }

    /// All text received so far.
    #[must_use]
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// What can be shown now: the object read so far, with open strings and containers as far as they got;
    /// `{}` while there is no object.
    ///
    /// Costs the text that is new since the last look, plus a copy of the value.
    pub fn snapshot(&mut self) -> Value {
        match self.value() {
            Some(object @ Value::Object(_)) => object,
            _ => Value::Object(Map::new()),
        }
    }

    /// Like [`Self::snapshot`] for any kind of value; `None` before a value starts.
    pub fn value(&mut self) -> Option<Value> {
        let parser = self.parser.get_or_insert_default();
        parser.push(self.raw.get(self.read..).unwrap_or_default());
        self.read = self.raw.len();
        parser.value()
    }

    /// The final arguments; the text is taken out.
    ///
    /// Blank text is `{}`. Otherwise strict JSON, once more after [`repair`] when that fails.
    ///
    /// # Errors
    /// When the text is no JSON object. Partial values are not kept.
    pub fn finish(&mut self) -> Result<Value, ArgsError> {
        self.parser = None;
        self.read = 0;
        finish_text(&mem::take(&mut self.raw))
    }
}

/// The final parse of a finished call's argument text, see [`PartialArgs::finish`].
///
/// # Errors
/// When the text is no JSON object.
pub fn finish_text(text: &str) -> Result<Value, ArgsError> {
    if text.trim_matches([' ', '\t', '\n', '\r']).is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let parsed = parse(text).or_else(|error| match repair(text) {
        alloc::borrow::Cow::Owned(repaired) => parse(&repaired).map_err(|_| error),
        alloc::borrow::Cow::Borrowed(_) => Err(error),
    });
    match parsed {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(other) => Err(wrong_kind(&other, text)),
        Err(error) => Err(broken(error, text)),
    }
}

fn wrong_kind(value: &Value, text: &str) -> ArgsError {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    let shown = excerpt(text, ERROR_EXCERPT_BYTES);
    ArgsError { text: format!("The arguments must be a JSON object, not {kind}. Received: {shown}") }
}

fn broken(error: JsonError, text: &str) -> ArgsError {
    let shown = excerpt(text, ERROR_EXCERPT_BYTES);
    ArgsError { text: format!("The arguments are not valid JSON ({error}). Received: {shown}") }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::json::MAX_DEPTH;

    #[test]
    fn deep_text_neither_overflows_nor_fails_below_the_bound() {
        for open in ["[", "{\"a\":"] {
            let mut args = PartialArgs::new();
            args.push("{\"a\":");
            args.push(&open.repeat(1000));
            let value = args.snapshot();
            assert_eq!(depth(&value), 1001);
            args.push(&open.repeat(200_000));
            assert!(depth(&args.snapshot()) <= MAX_DEPTH);
            assert!(args.finish().is_err());
        }
        let text = format!("{{\"a\":{}{}}}", "[".repeat(1000), "]".repeat(1000));
        assert_eq!(depth(&finish_text(&text).unwrap()), 1001);
    }

    fn depth(value: &Value) -> usize {
        let (mut level, mut deepest) = (alloc::vec![value], 0);
        while !level.is_empty() {
            let next: Vec<&Value> = level
                .iter()
                .flat_map(|v| match v {
                    Value::Array(items) => items.iter().collect::<Vec<_>>(),
                    Value::Object(map) => map.values().collect(),
                    _ => Vec::new(),
                })
                .collect();
            if level.iter().any(|v| v.is_array() || v.is_object()) {
                deepest += 1;
            }
            level = next;
        }
        deepest
    }

    #[test]
    fn tolerant_shapes() {
        for (text, shown) in [
            (r#"{"a":[1},"b":2}"#, r#"{"a":[1],"b":2}"#),
            (r#"{"a":NaN,"b":1}"#, r#"{"b":1}"#),
            (r#"{"a":NaN "b":1}"#, r#"{"b":1}"#),
            (r#"{{"x":1},"b":2}"#, r#"{"b":2}"#),
            (r#"text {"a":1}"#, r#"{"a":1}"#),
            (r#"{"a":1,"a":"x"#, r#"{"a":"x"}"#),
            (r#"{"a":1.5.2,"b":-}"#, r#"{}"#),
            (r#"{"a":"\u00"#, r#"{"a":""}"#),
            (r#"{"a":"\u0"}"#, r#"{"a":"\\u0"}"#),
            (r#"{"a":"\ud83dx\ud83d\ud83d\ude00\ude00"#, r#"{"a":"x😀"}"#),
            ("}]{\"a\":[,,1,,]", r#"{"a":[1]}"#),
        ] {
            let mut args = PartialArgs::new();
            args.push(text);
            assert_eq!(crate::json::to_string(&args.snapshot()), shown, "{text}");
            let mut split = PartialArgs::new();
            for c in text.chars() {
                split.push(c.encode_utf8(&mut [0; 4]));
                split.snapshot();
            }
            assert_eq!(split.value(), args.value(), "{text}");
        }
    }

    #[test]
    fn long_numbers_hide_until_they_end() {
        let mut args = PartialArgs::new();
        args.push("{\"a\":");
        args.push(&"1".repeat(65));
        assert_eq!(args.snapshot(), serde_json::json!({}));
        args.push("}");
        assert!(args.snapshot()["a"].is_number());
    }

    #[test]
    fn errors_repeat_a_bounded_text() {
        let text = format!("{{\"a\":\"{}", "é".repeat(1_000_000));
        let error = finish_text(&text).unwrap_err();
        assert!(error.text.len() < 3000 && error.text.contains("{\"a\":\"é"));
    }
}
