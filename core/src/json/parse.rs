//! A strict parser for whole documents from outside.
//!
//! It differs from `serde_json` where outside data needs it: an unpaired surrogate escape is dropped instead of
//! failing the document, nesting is bounded by [`MAX_DEPTH`] without recursion, and an error says where.

use alloc::string::String;
use alloc::vec::Vec;
use core::mem;

use serde_json::{Map, Value};
use thiserror::Error;

use super::scan::{MAX_DEPTH, Units, find_special, hex4, number, number_len, simple_escape};

/// Why a text is no JSON document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{reason} at byte {at}")]
pub struct JsonError {
    /// What was expected or is wrong.
    pub reason: &'static str,
    /// Offset in the text, bytes.
    pub at: usize,
}

/// Parses one document, with nothing but whitespace around it.
///
/// Duplicate keys: the last one wins, at the place of the first.
///
/// # Errors
/// Where and why the text is no JSON, or that it is nested deeper than [`MAX_DEPTH`].
pub fn parse(text: &str) -> Result<Value, JsonError> {
    let mut parser = Parser { text, at: 0, stack: Vec::new() };
    let value = parser.document()?;
    parser.space();
    if parser.at < text.len() {
        return Err(parser.error("text after the value"));
    }
    Ok(value)
}

enum Frame {
    Array(Vec<Value>),
    /// The members so far, and the key whose value is being read.
    Object(Map<String, Value>, String),
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    stack: Vec<Frame>,
}

impl Parser<'_> {
    fn error(&self, reason: &'static str) -> JsonError {
        JsonError { reason, at: self.at }
    }

    fn rest(&self) -> &[u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn space(&mut self) {
        self.at += self.rest().iter().take_while(|c| matches!(c, b' ' | b'\n' | b'\r' | b'\t')).count();
    }

    /// The next byte after whitespace.
    fn peek(&mut self) -> Option<u8> {
        self.space();
        self.rest().first().copied()
    }

    fn document(&mut self) -> Result<Value, JsonError> {
        loop {
            if let Some(value) = self.begin_value()?
                && let Some(root) = self.attach(value)?
            {
                return Ok(root);
            }
        }
    }

    /// Reads a scalar or an empty container whole; opens a frame for everything else.
    fn begin_value(&mut self) -> Result<Option<Value>, JsonError> {
        let Some(first) = self.peek() else { return Err(self.error("unexpected end, expected a value")) };
        let value = match first {
            b'{' => {
                self.open()?;
                if self.peek() != Some(b'}') {
                    let key = self.key()?;
                    self.stack.push(Frame::Object(Map::new(), key));
                    return Ok(None);
                }
                self.at += 1;
                Value::Object(Map::new())
            }
            b'[' => {
                self.open()?;
                if self.peek() != Some(b']') {
                    self.stack.push(Frame::Array(Vec::new()));
                    return Ok(None);
                }
                self.at += 1;
                Value::Array(Vec::new())
            }
            b'"' => Value::String(self.string()?),
            b't' => self.literal("true", Value::Bool(true))?,
            b'f' => self.literal("false", Value::Bool(false))?,
            b'n' => self.literal("null", Value::Null)?,
            b'-' | b'0'..=b'9' => self.number()?,
            _ => return Err(self.error("expected a value")),
        };
        Ok(Some(value))
    }

    fn open(&mut self) -> Result<(), JsonError> {
        if self.stack.len() >= MAX_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        self.at += 1;
        Ok(())
    }

    /// Puts a finished value into its container, closing as many containers as end here. The root comes back.
    fn attach(&mut self, mut value: Value) -> Result<Option<Value>, JsonError> {
        loop {
            let next = self.peek();
            let Some(frame) = self.stack.last_mut() else { return Ok(Some(value)) };
            let close = match frame {
                Frame::Array(items) => {
                    items.push(value);
                    b']'
                }
                Frame::Object(map, key) => {
                    map.insert(mem::take(key), value);
                    b'}'
                }
            };
            if next == Some(b',') {
                self.at += 1;
                if close == b'}' {
                    let new_key = self.key()?;
                    if let Some(Frame::Object(_, key)) = self.stack.last_mut() {
                        *key = new_key;
                    }
                }
                return Ok(None);
            }
            if next != Some(close) {
                return Err(self.error(match (next, close) {
                    (None, _) => "unexpected end, a container is open",
                    (_, b']') => "expected ',' or ']'",
                    _ => "expected ',' or '}'",
                }));
            }
            self.at += 1;
            value = match self.stack.pop() {
                Some(Frame::Array(items)) => Value::Array(items),
                Some(Frame::Object(map, _)) => Value::Object(map),
                None => return Ok(None),
            };
        }
    }

    /// A key and its colon.
    fn key(&mut self) -> Result<String, JsonError> {
        if self.peek() != Some(b'"') {
            return Err(self.error("expected a key in double quotes"));
        }
        let key = self.string()?;
        if self.peek() != Some(b':') {
            return Err(self.error("expected ':'"));
        }
        self.at += 1;
        Ok(key)
    }

    /// A string; the parser stands at its quote.
    fn string(&mut self) -> Result<String, JsonError> {
        self.at += 1;
        let mut out = String::new();
        let mut units = Units::default();
        loop {
            let Some(len) = find_special(self.rest()) else {
                self.at = self.text.len();
                return Err(self.error("unexpected end inside a string"));
            };
            if len > 0 {
                units.reset();
            }
            let span = self.text.get(self.at..self.at + len).unwrap_or_default();
            let found = self.rest().get(len).copied();
            self.at += len;
            match found {
                Some(b'"') => {
                    self.at += 1;
                    if out.is_empty() {
                        return Ok(span.into());
                    }
                    out.push_str(span);
                    return Ok(out);
                }
                Some(b'\\') => {
                    out.push_str(span);
                    self.escape(&mut out, &mut units)?;
                }
                _ => return Err(self.error("control character inside a string")),
            }
        }
    }

    fn escape(&mut self, out: &mut String, units: &mut Units) -> Result<(), JsonError> {
        let letter = self.rest().get(1).copied();
        if let Some(c) = letter.and_then(simple_escape) {
            units.reset();
            out.push(c);
            self.at += 2;
            return Ok(());
        }
        let unit = self.rest().get(2..).and_then(hex4).filter(|_| letter == Some(b'u'));
        units.push(unit.ok_or_else(|| self.error("invalid escape inside a string"))?, out);
        self.at += 6;
        Ok(())
    }

    fn literal(&mut self, word: &str, value: Value) -> Result<Value, JsonError> {
        if !self.rest().starts_with(word.as_bytes()) {
            return Err(self.error("expected a value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let (len, integer) = number_len(self.rest()).ok_or_else(|| self.error("invalid number"))?;
        let text = self.text.get(self.at..self.at + len).unwrap_or_default();
        let number = number(text, integer).ok_or_else(|| self.error("number out of range"))?;
        self.at += len;
        Ok(Value::Number(number))
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString as _;

    use super::*;
    use crate::json::to_string;

    #[test]
    fn agrees_with_serde_json() {
        for text in [
            "null",
            " [ ] ",
            "{}",
            "[1,-2,3.5,1e3,-0,0,18446744073709551615,18446744073709551616,-9223372036854775808,1E-2]",
            r#"{"a":{"b":[true,false,null,{"c":"\"\\\/\b\f\n\r\té😀\u00e9\ud83d\ude00"}]},"a":2,"":[]}"#,
            "\"\"",
            "\n\t\r \"x\" ",
        ] {
            assert_eq!(parse(text).unwrap(), serde_json::from_str::<Value>(text).unwrap(), "{text}");
        }
        for text in [
            "",
            " ",
            "{",
            "[",
            "[1",
            "[1,",
            "[1,]",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":1",
            "{a:1}",
            "nul",
            "truex",
            "01",
            "1.",
            "1e",
            "-",
            "+1",
            ".5",
            "\"",
            "\"\\",
            "\"\\x\"",
            "\"\\u12\"",
            "\"a\nb\"",
            "1 2",
            "\u{feff}{}",
            "[1}",
            "{\"a\":1]",
            "'x'",
            "NaN",
            "1e999",
            "{\"a\" 1}",
            "]",
            ",",
        ] {
            assert!(parse(text).is_err(), "{text}");
            assert!(serde_json::from_str::<Value>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn unpaired_surrogates_are_dropped() {
        for (text, expected) in [
            (r#""a\ud83db""#, "ab"),
            (r#""\ude00""#, ""),
            (r#""\ud83d\ud83d\ude00""#, "😀"),
            (r#""\ud83dx\ude00""#, "x"),
            (r#""\ud83d\n\ude00""#, "\n"),
            (r#""\uD83D\uDE00\u0041""#, "😀A"),
        ] {
            assert_eq!(parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn depth_is_bounded_and_safe_at_the_bound() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        for text in [nested(MAX_DEPTH), objects(MAX_DEPTH)] {
            let value = parse(&text).unwrap();
            assert_eq!(to_string(&value), text);
            assert_eq!(value.clone(), value);
        }
        assert_eq!(parse(&nested(MAX_DEPTH + 1)).unwrap_err().reason, "nested too deeply");
        assert!(parse(&"[".repeat(1_000_000)).is_err());
        assert!(parse(&"{\"a\":".repeat(1_000_000)).is_err());
    }

    #[test]
    fn errors_tell_where() {
        assert_eq!(parse("{\"a\": x}").unwrap_err().to_string(), "expected a value at byte 6");
    }
}
