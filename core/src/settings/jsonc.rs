//! JSON with line comments and trailing commas (spec 40 §3.4). Block comments stay errors.

use alloc::format;
use alloc::string::String;

use crate::json::Value;

/// Removes a leading byte order mark.
#[must_use]
pub fn without_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Parses JSON that may have a BOM, `//` comments and trailing commas.
///
/// # Errors
/// What is wrong, with line and column of the given text, without any of its content.
pub fn parse(text: &str) -> Result<Value, String> {
    let text = without_bom(text);
    // Nearly every file is plain JSON: only a failure pays for the second pass.
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    serde_json::from_str(&strip(text)).map_err(|error| {
        let kind = match error.classify() {
            serde_json::error::Category::Eof => "the JSON ends too early",
            serde_json::error::Category::Data => "the JSON has an unexpected shape",
            serde_json::error::Category::Syntax | serde_json::error::Category::Io => "not valid JSON",
        };
        format!("{kind} (line {}, column {})", error.line(), error.column())
    })
}

/// The text without line comments and without commas directly before `]` or `}`. Line breaks stay, so that
/// positions keep their lines.
#[must_use]
pub fn strip(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut strings_close = true;
    while let Some(at) = rest.find(['"', '/', ',']) {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        rest = if tail.starts_with("//") {
            after_comment(tail)
        } else if tail.starts_with('"') && strings_close {
            match string_length(tail) {
                Some(length) => copy(&mut out, tail, length),
                // Where one string does not close, none after it can.
                None => {
                    strings_close = false;
                    copy(&mut out, tail, 1)
                }
            }
        } else if tail.starts_with(',') && closes_next(tail.get(1..).unwrap_or_default()) {
            tail.get(1..).unwrap_or_default()
        } else {
            copy(&mut out, tail, 1)
        };
    }
    out.push_str(rest);
    out
}

fn copy<'a>(out: &mut String, tail: &'a str, length: usize) -> &'a str {
    let (done, rest) = tail.split_at_checked(length).unwrap_or((tail, ""));
    out.push_str(done);
    rest
}

pub(super) fn after_comment(text: &str) -> &str {
    text.find('\n').and_then(|end| text.get(end..)).unwrap_or_default()
}

/// Length of the string that begins with the quote at 0, with both quotes.
pub(super) fn string_length(text: &str) -> Option<usize> {
    let mut bytes = text.bytes().enumerate().skip(1);
    while let Some((index, byte)) = bytes.next() {
        match byte {
            b'"' => return Some(index + 1),
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
    None
}

/// Whether the next thing, blanks and comments aside, closes a list or object.
fn closes_next(mut text: &str) -> bool {
    loop {
        text = text.trim_start();
        if text.starts_with("//") {
            text = after_comment(text);
        } else {
            return text.starts_with(['}', ']']);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_where() {
        let error = parse("{\n \"a\": secret\n}").unwrap_err();
        assert!(error.contains("line 2") && !error.contains("secret"), "{error}");
    }

    #[test]
    fn unclosed_strings_cost_linear_time() {
        let text = "\"\\".repeat(200_000);
        assert_eq!(strip(&text), text);
    }
}
