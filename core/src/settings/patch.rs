//! Changes one member in the text of an object that has comments, and leaves everything else as it stands.
//!
//! The text must be one that [`jsonc::parse`](super::jsonc::parse) takes. Where something does not fit, the answer is
//! `None`; callers read the result again and compare before they trust it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use super::jsonc::{after_comment, string_length};
use crate::json::{Map, Value, write_key, write_pretty};

const STEP: &str = "  ";

/// An object as it stands in the text.
struct Object {
    members: Vec<Member>,
    /// Where its bracket closes.
    close: usize,
    /// Whether a comma follows the last member.
    comma: bool,
}

struct Member {
    name: String,
    /// Where its key begins.
    start: usize,
    value: Range<usize>,
}

/// Gives a member a value; objects on the way that are missing or null are made.
pub(super) fn set(text: &str, path: &[String], value: &Value) -> Option<String> {
    let mut open = blank(text, 0)?;
    let mut rest = path;
    loop {
        let (name, deeper) = rest.split_first()?;
        let object = object(text, open)?;
        let Some(member) = object.members.iter().rfind(|member| member.name == *name) else {
            return insert(text, open, &object, name, &nested(deeper, value));
        };
        if deeper.is_empty() || text.get(member.value.clone()) == Some("null") {
            let mut new = String::new();
            write_pretty(&mut new, &nested(deeper, value), &indent_of(text, member.start));
            return splice(text, member.value.clone(), &with_line_ends_of(text, new));
        }
        open = member.value.start;
        rest = deeper;
    }
}

/// Takes a member out, as often as it is there.
pub(super) fn remove(text: &str, path: &[String]) -> Option<String> {
    let (last, parents) = path.split_last()?;
    let mut text = text.to_string();
    loop {
        let mut open = blank(&text, 0)?;
        for name in parents {
            let object = object(&text, open)?;
            open = object.members.iter().rfind(|member| member.name == *name)?.value.start;
        }
        let object = object(&text, open)?;
        let Some(member) = object.members.iter().rfind(|member| member.name == *last) else {
            return Some(text);
        };
        // The comma may stand behind a comment, which stays.
        let after = blank(&text, member.value.end)?;
        let comma = after..after + usize::from(byte(&text, after) == Some(b','));
        let without_comma = splice(&text, comma, "")?;
        text = splice(&without_comma, whole_line(&without_comma, member.start..member.value.end), "")?;
    }
}

/// `value` inside objects of these names.
fn nested(path: &[String], value: &Value) -> Value {
    path.iter().rfold(value.clone(), |inner, name| Value::Object(Map::from_iter([(name.clone(), inner)])))
}

fn insert(text: &str, open: usize, object: &Object, name: &str, value: &Value) -> Option<String> {
    let last = object.members.last();
    let gap_start = text.get(..object.close)?.trim_end().len();
    let in_lines = text.get(open..object.close)?.contains('\n');
    let outer = indent_of(text, open);
    let indent = match object.members.first() {
        Some(first) if in_lines => indent_of(text, first.start),
        _ => [&outer, STEP].concat(),
    };
    let mut new = String::new();
    if in_lines || last.is_none() {
        new.push('\n');
        new.push_str(&indent);
    } else {
        new.push(' ');
    }
    write_key(&mut new, name);
    write_pretty(&mut new, value, &indent);
    let mut new = with_line_ends_of(text, new);
    let gap = text.get(gap_start..object.close)?;
    if gap.contains('\n') {
        new.push_str(gap);
    } else if in_lines || last.is_none() {
        new.push_str(&with_line_ends_of(text, ["\n", &outer].concat()));
    } else {
        new.push_str(gap);
    }
    let mut out = splice(text, gap_start..object.close, &new)?;
    if let Some(last) = last.filter(|_| !object.comma) {
        out.insert(last.value.end, ',');
    }
    Some(out)
}

/// New text with CR LF where the file has that.
fn with_line_ends_of(text: &str, new: String) -> String {
    if text.contains("\r\n") { new.replace('\n', "\r\n") } else { new }
}

/// Reads the members of the object that opens at `open`.
fn object(text: &str, open: usize) -> Option<Object> {
    if byte(text, open)? != b'{' {
        return None;
    }
    let (mut members, mut comma, mut at) = (Vec::new(), false, open + 1);
    loop {
        at = blank(text, at)?;
        match byte(text, at)? {
            b'}' => return Some(Object { members, close: at, comma }),
            b',' => {
                comma = true;
                at += 1;
            }
            b'"' => {
                let start = at;
                at += string_length(text.get(at..)?)?;
                let name = serde_json::from_str(text.get(start..at)?).ok()?;
                at = blank(text, at)?;
                if byte(text, at)? != b':' {
                    return None;
                }
                let value = blank(text, at + 1)?;
                at = value_end(text, value)?;
                members.push(Member { name, start, value: value..at });
                comma = false;
            }
            _ => return None,
        }
    }
}

/// Where the value ends that begins at `start`.
fn value_end(text: &str, start: usize) -> Option<usize> {
    let (mut depth, mut at) = (0usize, start);
    loop {
        let Some(c) = byte(text, at) else { return (depth == 0 && at > start).then_some(at) };
        match c {
            b'"' => at += string_length(text.get(at..)?)?,
            b'/' if depth > 0 => at = blank(text, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' if depth > 0 => {
                depth -= 1;
                at += 1;
            }
            // What ends a number or a word.
            b',' | b'}' | b']' | b'/' | b' ' | b'\t' | b'\r' | b'\n' if depth == 0 => {
                return (at > start).then_some(at);
            }
            _ => {
                at += 1;
                continue;
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The first place from `at` on that is neither blank nor comment.
fn blank(text: &str, mut at: usize) -> Option<usize> {
    loop {
        let rest = text.get(at..)?;
        let solid = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        at += rest.len() - solid.len();
        if !solid.starts_with("//") {
            return Some(at);
        }
        at += solid.len() - after_comment(solid).len();
    }
}

fn byte(text: &str, at: usize) -> Option<u8> {
    text.as_bytes().get(at).copied()
}

/// The blanks at the beginning of the line of `at`; nothing when something else stands there first.
fn indent_of(text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or_default();
    let line = before.rfind('\n').and_then(|end| before.get(end + 1..)).unwrap_or(before);
    let solid = line.trim_start_matches([' ', '\t']);
    line.get(..line.len() - solid.len()).unwrap_or_default().to_string()
}

/// With the rest of its line, if only blanks stand beside it.
fn whole_line(text: &str, range: Range<usize>) -> Range<usize> {
    let (before, after) =
        (text.get(..range.start).unwrap_or_default(), text.get(range.end..).unwrap_or_default());
    let bare_before = before.trim_end_matches([' ', '\t']);
    let bare_after = after.trim_start_matches([' ', '\t', '\r']);
    if bare_before.ends_with('\n') && bare_after.starts_with('\n') {
        let end = text.len() - bare_after.len() + 1;
        return bare_before.len()..end;
    }
    range
}

fn splice(text: &str, range: Range<usize>, new: &str) -> Option<String> {
    Some(format!("{}{new}{}", text.get(..range.start)?, text.get(range.end..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::jsonc;
    use serde_json::json;

    fn path(dotted: &str) -> Vec<String> {
        dotted.split('.').map(str::to_string).collect()
    }

    #[test]
    fn members_are_set_and_comments_stay() {
        for (before, at, value, after) in [
            ("{ // c\n}", "a", json!(1), "{ // c\n  \"a\": 1\n}"),
            ("{\n    \"a\": 1, // one\n}", "b", json!(2), "{\n    \"a\": 1, // one\n    \"b\": 2\n}"),
            ("{\n  \"a\": 1 // one\n}\n", "b", json!(2), "{\n  \"a\": 1, // one\n  \"b\": 2\n}\n"),
            ("{\"a\": 1,}", "b", json!(2), "{\"a\": 1, \"b\": 2}"),
            ("// c\n{\"a\": 1 }", "b", json!(2), "// c\n{\"a\": 1, \"b\": 2 }"),
            ("// c\n{}", "a.b", json!([1]), "// c\n{\n  \"a\": {\n    \"b\": [\n      1\n    ]\n  }\n}"),
            (
                "{\n  // c\n  \"a\": {\"x\": \"}//\"}\n}",
                "a.b",
                json!(true),
                "{\n  // c\n  \"a\": {\"x\": \"}//\", \"b\": true}\n}",
            ),
            ("{\"a\": null, // c\n}", "a.b", json!(1), "{\"a\": {\n  \"b\": 1\n}, // c\n}"),
            ("{\"a\": 1, \"a\": 2, // c\n}", "a", json!("x"), "{\"a\": 1, \"a\": \"x\", // c\n}"),
            ("{ // c\r\n}\r\n", "a.b", json!(1), "{ // c\r\n  \"a\": {\r\n    \"b\": 1\r\n  }\r\n}\r\n"),
            ("{ // c\n  \"a\": 1 }", "b", json!(2), "{ // c\n  \"a\": 1,\n  \"b\": 2\n}"),
        ] {
            let got = set(before, &path(at), &value).unwrap();
            assert_eq!(got, after, "{before}");
            assert!(jsonc::parse(&got).is_ok(), "{got}");
        }
        assert_eq!(set("{\"a\": 1 // c\n}", &path("a.b"), &json!(1)), None);
    }

    #[test]
    fn members_are_taken_out_and_comments_stay() {
        for (before, at, after) in [
            ("{\n  // c\n  \"a\": 1,\n  \"b\": 2\n}", "a", "{\n  // c\n  \"b\": 2\n}"),
            ("{\n  \"a\": 1, // c\n  \"b\": 2\n}", "b", "{\n  \"a\": 1, // c\n}"),
            ("{\"a\": 1, \"a\": 3, \"b\": {\"c\": 2}, // c\n}", "a", "{  \"b\": {\"c\": 2}, // c\n}"),
            ("{\"a\": 1 // c\n, \"b\": 2}", "a", "{ // c\n \"b\": 2}"),
            ("{\"b\": {\"c\": 2, \"d\": 1}, // c\n}", "b.c", "{\"b\": { \"d\": 1}, // c\n}"),
        ] {
            let got = remove(before, &path(at)).unwrap();
            assert_eq!(got, after, "{before}");
            assert!(jsonc::parse(&got).is_ok(), "{got}");
        }
    }
}
