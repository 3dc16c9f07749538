//! Comparison with recorded values that hold masks (`<id0>`, `<iso>` …; see the README of the vectors).
//!
//! Numbered masks stand for one value each, the same wherever the mask appears again.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::compare::{brief, difference};

/// What the numbered masks stand for so far.
#[derive(Clone, Debug, Default)]
pub struct Bindings(BTreeMap<String, String>);

impl Bindings {
    /// Compares, and binds masks on the way.
    ///
    /// # Errors
    /// The first difference as text.
    pub fn check(&mut self, path: &str, expected: &Value, got: &Value) -> Result<(), String> {
        match (expected, got) {
            (Value::String(pattern), Value::String(text)) => self.text(path, pattern, text),
            (Value::String(mask), got) => other_mask(path, mask, got),
            (Value::Array(a), Value::Array(b)) => self.arrays(path, a, b),
            (Value::Object(a), got) if a.contains_key("$text") => described(path, &a["$text"], got),
            (Value::Object(a), Value::Object(b)) => self.objects(path, a, b),
            _ => difference(expected, got).map_or(Ok(()), |why| Err(format!("{path}{why}"))),
        }
    }

    fn arrays(&mut self, path: &str, expected: &[Value], got: &[Value]) -> Result<(), String> {
        for (i, (a, b)) in expected.iter().zip(got).enumerate() {
            self.check(&format!("{path}[{i}]"), a, b)?;
        }
        if expected.len() == got.len() {
            return Ok(());
        }
        let extra = if expected.len() > got.len() { &expected[got.len()] } else { &got[expected.len()] };
        Err(format!("{path}: {} expected, {} got; first extra: {}", expected.len(), got.len(), brief(extra)))
    }

    fn objects(
        &mut self,
        path: &str,
        expected: &Map<String, Value>,
        got: &Map<String, Value>,
    ) -> Result<(), String> {
        for (key, value) in expected.iter().filter(|(key, _)| *key != "...") {
            let other =
                got.get(key).ok_or_else(|| format!("{path}.{key}: missing, expected {}", brief(value)))?;
            self.check(&format!("{path}.{key}"), value, other)?;
        }
        let open = expected.contains_key("...");
        match got.iter().find(|(key, _)| !open && !expected.contains_key(*key)) {
            Some((key, value)) => Err(format!("{path}.{key}: unexpected {}", brief(value))),
            None => Ok(()),
        }
    }

    /// Text with masks inside.
    ///
    /// # Errors
    /// The difference as text.
    pub fn text(&mut self, path: &str, pattern: &str, text: &str) -> Result<(), String> {
        let differs = || format!("{path}: expected {pattern:?}, got {text:?}");
        let Some((before, mask, after)) = first_mask(pattern) else {
            return if pattern == text { Ok(()) } else { Err(differs()) };
        };
        let rest = text.strip_prefix(before).ok_or_else(differs)?;
        if let Some(bound) = self.0.get(mask) {
            let rest = rest.strip_prefix(bound.as_str()).ok_or_else(differs)?.to_owned();
            return self.text(path, after, &rest);
        }
        let length = match after.chars().next() {
            None => rest.len(),
            Some(_) => {
                let literal = first_mask(after).map_or(after, |(literal, ..)| literal);
                rest.find(literal).ok_or_else(differs)?
            }
        };
        let (value, rest) = rest.split_at(length);
        if !fits(mask, value) {
            return Err(differs());
        }
        if mask.ends_with(|c: char| c.is_ascii_digit()) {
            self.0.insert(mask.to_owned(), value.to_owned());
        }
        self.text(path, after, rest)
    }
}

/// The text before the first mask, its name, and the text behind it.
fn first_mask(pattern: &str) -> Option<(&str, &str, &str)> {
    const NAMES: [&str; 7] = ["id", "uuid", "iso", "filetime", "tmpfile", "text", "tool result"];
    pattern.match_indices('<').find_map(|(at, _)| {
        let end = at + pattern[at..].find('>')?;
        let name = &pattern[at + 1..end];
        let kind = name.trim_end_matches(|c: char| c.is_ascii_digit());
        NAMES.contains(&kind).then(|| (&pattern[..at], name, &pattern[end + 1..]))
    })
}

fn fits(mask: &str, value: &str) -> bool {
    let digits_like = |shape: &str| {
        value.len() == shape.len()
            && value
                .bytes()
                .zip(shape.bytes())
                .all(|(b, s)| if s == b'0' { b.is_ascii_digit() } else { b == s })
    };
    match mask.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "id" => value.len() == 8 && value.bytes().all(|b| b.is_ascii_hexdigit()),
        "uuid" => {
            let groups: Vec<usize> = value.split('-').map(str::len).collect();
            groups == [8, 4, 4, 4, 12] && value.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit())
        }
        "iso" => digits_like("0000-00-00T00:00:00.000Z"),
        "filetime" => digits_like("0000-00-00T00-00-00-000Z"),
        _ => !value.is_empty(),
    }
}

/// Masks for values that are no text.
fn other_mask(path: &str, mask: &str, got: &Value) -> Result<(), String> {
    let fits = match mask {
        "<ms>" => got.as_i64().is_some_and(|ms| ms > 1_500_000_000_000),
        "<num>" => got.is_number(),
        "<usage>" | "<schema>" => got.is_object(),
        _ => false,
    };
    if fits { Ok(()) } else { Err(format!("{path}: expected {mask}, got {}", brief(got))) }
}

/// `{"$text": {"contains": […]}}`; lines that are no JSON are given as `{"$raw": line}`.
fn described(path: &str, wanted: &Value, got: &Value) -> Result<(), String> {
    let text = got.as_str().or_else(|| got["$raw"].as_str()).unwrap_or_default();
    let parts = wanted["contains"].as_array().cloned().unwrap_or_default();
    let missing = parts.iter().filter_map(Value::as_str).find(|part| !text.contains(part));
    match missing {
        Some(part) => Err(format!("{path}: {part:?} is not in {}", brief(got))),
        None if text.is_empty() => Err(format!("{path}: expected a text, got {}", brief(got))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn masks_bind_and_match() {
        let mut masks = Bindings::default();
        let id = "0123abcd";
        let expected = json!({"id": "<id0>", "at": "<iso>", "n": "<num>", "...": "<declaration>"});
        let got = json!({"id": id, "at": "2025-01-01T00:00:00.000Z", "n": 1.5, "more": true});
        assert_eq!(masks.check("$", &expected, &got), Ok(()));
        assert_eq!(masks.check("$", &json!(["<id0>", null]), &json!([id, null])), Ok(()));
        assert!(masks.check("$", &json!("<id0>"), &json!("ffffffff")).is_err());
        assert!(masks.check("$", &json!({"a": 1}), &json!({"a": 1, "b": 2})).is_err());
        assert!(masks.check("$", &json!("<iso>"), &json!("today")).is_err());
        assert!(
            masks.text("$", "/x/<filetime>_<uuid>.jsonl", "/x/2025-01-01T00-00-00-000Z_x.jsonl").is_err()
        );
        assert_eq!(masks.check("$", &json!({"$text": {"contains": ["b"]}}), &json!({"$raw": "abc"})), Ok(()));
    }
}
