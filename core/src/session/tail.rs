//! The end of a `message` line: when the message was said, without reading what it says.

use memchr::memrchr;

/// What follows the content of a message is short: a signature of a model, a duration.
const LOOK_AT: usize = 1 << 10;

const KEY: &[u8] = b"\"timestamp\"";

/// The `timestamp` of the message of a line that ends as lines do: the field, scalars behind it, `}}`.
///
/// `None` says that the line must be read. A quote inside a text is escaped, so the name of the field with both of its
/// quotes is no text; and what stands behind the field to the end shows which object it belongs to.
pub(super) fn time_at_end(line: &[u8]) -> Option<i64> {
    let line = line.trim_ascii_end();
    let tail = line.get(line.len().saturating_sub(LOOK_AT)..)?;
    let at = last_key(tail)?;
    let before = tail.get(..at)?.trim_ascii_end();
    let mut rest = Rest(tail.get(at + KEY.len()..)?);
    if before.last() != Some(&b',') || !rest.takes(b':') {
        return None;
    }
    let time = rest.integer()?;
    while rest.takes(b',') {
        rest.string()?;
        if !rest.takes(b':') {
            return None;
        }
        rest.scalar()?;
    }
    (rest.takes(b'}') && rest.takes(b'}') && rest.0.is_empty()).then_some(time)
}

/// Where the last name of the field stands. It is nearly always the last quoted text of the line, or one of the last.
fn last_key(tail: &[u8]) -> Option<usize> {
    let mut end = tail.len();
    loop {
        end = memrchr(b'"', tail.get(..end)?)?;
        let at = (end + 1).checked_sub(KEY.len())?;
        if tail.get(at..=end)? == KEY {
            return Some(at);
        }
    }
}

/// What is left of the line.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn takes(&mut self, byte: u8) -> bool {
        self.0 = self.0.trim_ascii_start();
        let rest = self.0.strip_prefix(&[byte]);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// A number or a name.
    fn plain(&mut self) -> Option<&'a [u8]> {
        let text = self.0.trim_ascii_start();
        let end =
            text.iter().position(|c| !matches!(c, b'0'..=b'9' | b'a'..=b'z' | b'-' | b'+' | b'.' | b'E'))?;
        let (plain, rest) = text.split_at_checked(end)?;
        self.0 = rest;
        (!plain.is_empty()).then_some(plain)
    }

    fn integer(&mut self) -> Option<i64> {
        core::str::from_utf8(self.plain()?).ok()?.parse().ok()
    }

    fn string(&mut self) -> Option<()> {
        if !self.takes(b'"') {
            return None;
        }
        let mut escaped = false;
        let end = self.0.iter().position(|c| {
            let ends = *c == b'"' && !escaped;
            escaped = *c == b'\\' && !escaped;
            ends
        })?;
        self.0 = self.0.get(end + 1..)?;
        Some(())
    }

    fn scalar(&mut self) -> Option<()> {
        if self.0.trim_ascii_start().first() == Some(&b'"') { self.string() } else { self.plain().map(drop) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_of_the_message_only() {
        let long = alloc::format!(r#"{{"message":{{"timestamp":1,"x":"{}"}}}}"#, "y".repeat(LOOK_AT));
        for (line, time) in [
            (r#"{"message":{"role":"user","timestamp":17}}"#, Some(17)),
            (r#"{"message":{"role":"user", "timestamp" : -17 } } "#, Some(-17)),
            (r#"{"message":{"a":1,"timestamp":17,"level":"a\"}}","ms":1.5e3,"end":true}}"#, Some(17)),
            (r#"{"message":{"a":1,"timestamp":17,"timestamp":18}}"#, Some(18)),
            // Of the entry, of something inside the message, of something behind it.
            (r#"{"message":{"role":"user"},"timestamp":17}"#, None),
            (r#"{"message":{"a":1,"timestamp":17,"x":{"b":1,"timestamp":18}}}"#, None),
            (r#"{"message":{"a":1,"timestamp":17,"x":[{"b":1,"timestamp":18}]}}"#, None),
            (r#"{"message":{"a":1,"timestamp":17},"x":{}}"#, None),
            // Part of a text, of another kind, or not there.
            (r#"{"message":{"content":"say \"timestamp\":17}}"}}"#, None),
            (r#"{"message":{"content":"x","is":"timestamp"}}"#, None),
            (r#"{"message":{"role":"user","timestamp":"17"}}"#, None),
            (r#"{"message":{"role":"user","timestamp":17.5}}"#, None),
            (r#"{"message":{"role":"user","timestamp":17"#, None),
            (&long, None),
            ("", None),
        ] {
            assert_eq!(time_at_end(line.as_bytes()), time, "{line}");
        }
    }
}
