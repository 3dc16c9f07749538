//! Command output as text for the model (decision D30): no escape sequences, no control characters, and of a line
//! that was redrawn with CR only its last state.

use alloc::borrow::Cow;
use alloc::string::String;
use core::mem;

use super::ansi::{Sequence, sequence, string_end};

/// A line longer than this is passed on before it ends; a CR then redraws only what came after.
const MAX_LINE_BYTES: usize = 64 << 10;

/// An unfinished sequence longer than this is no sequence.
const MAX_HELD_BYTES: usize = 256;

/// Whether a character is removed from output: controls except tab, LF and CR, and the interlinear marks.
#[must_use]
pub const fn is_unwanted(c: char) -> bool {
    matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fff9}'..='\u{fffb}')
}

/// The text without the characters of [`is_unwanted`]. Borrows when there is none.
#[must_use]
pub fn drop_unwanted(text: &str) -> Cow<'_, str> {
    if text.contains(is_unwanted) {
        Cow::Owned(text.chars().filter(|c| !is_unwanted(*c)).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// Cleans a whole text.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(is_odd) {
        return Cow::Borrowed(text);
    }
    let (mut cleaner, mut out) = (Cleaner::new(), String::with_capacity(text.len()));
    cleaner.push(text, &mut out);
    cleaner.finish(&mut out);
    Cow::Owned(out)
}

/// Bytes that may start something to clean: controls, C1 controls (`C2 ..`), interlinear marks (`EF BF ..`).
const fn is_odd(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\n' && byte != b'\t') || byte == 0xc2 || byte == 0xef
}

/// Streaming cleaner; the split into pieces does not change the result.
#[derive(Clone, Debug, Default)]
pub struct Cleaner {
    /// The current line: only its end makes it final.
    line: String,
    /// The cursor went back to the start of the line; the next character overwrites it.
    returned: bool,
    /// An unfinished escape sequence.
    held: String,
    /// Inside an OSC, DCS or the like whose end has not come yet.
    in_string: bool,
}

impl Cleaner {
    /// A cleaner at the start of a text.
    #[must_use]
    pub const fn new() -> Self {
        Self { line: String::new(), returned: false, held: String::new(), in_string: false }
    }

    /// Cleans a piece; lines that are final are appended to `out`.
    pub fn push(&mut self, text: &str, out: &mut String) {
        if self.held.is_empty() {
            return self.scan(text, out);
        }
        let mut joined = mem::take(&mut self.held);
        joined.push_str(text);
        self.scan(&joined, out);
    }

    /// End of the text: the last line, and nothing of an unfinished sequence.
    pub fn finish(&mut self, out: &mut String) {
        out.push_str(&self.line);
        *self = Self::new();
    }

    fn scan(&mut self, text: &str, out: &mut String) {
        let mut rest = text;
        while !rest.is_empty() {
            if self.in_string {
                match string_end(rest) {
                    Some(end) => {
                        self.in_string = false;
                        rest = rest.get(end..).unwrap_or_default();
                    }
                    None => {
                        if rest.ends_with('\u{1b}') {
                            self.held.push('\u{1b}');
                        }
                        return;
                    }
                }
                continue;
            }
            let plain = rest.bytes().position(is_odd).unwrap_or(rest.len());
            let (span, odd) = rest.split_at_checked(plain).unwrap_or((rest, ""));
            self.text(span, out);
            rest = self.odd(odd, out);
        }
    }

    /// Plain text, tabs and line feeds.
    fn text(&mut self, span: &str, out: &mut String) {
        let Some(first) = span.chars().next() else { return };
        if mem::take(&mut self.returned) && first != '\n' {
            self.line.clear();
        }
        match span.rsplit_once('\n') {
            Some((lines, tail)) => {
                out.push_str(&self.line);
                out.push_str(lines);
                out.push('\n');
                self.line.clear();
                self.line.push_str(tail);
            }
            None => self.line.push_str(span),
        }
        if self.line.len() > MAX_LINE_BYTES {
            out.push_str(&self.line);
            self.line.clear();
        }
    }

    /// Something that is not plain at the start of `text`; returns what follows it.
    fn odd<'a>(&mut self, text: &'a str, out: &mut String) -> &'a str {
        let Some(c) = text.chars().next() else { return text };
        let len = match c {
            '\r' => {
                self.returned = true;
                1
            }
            '\u{8}' => {
                self.line.pop();
                1
            }
            '\u{1b}' | '\u{80}'..='\u{9f}' => match sequence(text) {
                Sequence::Whole(len) => len,
                Sequence::OpenString => {
                    self.in_string = true;
                    if text.ends_with('\u{1b}') {
                        self.held.push('\u{1b}');
                    }
                    text.len()
                }
                Sequence::Unfinished if text.len() <= MAX_HELD_BYTES => {
                    self.held.push_str(text);
                    text.len()
                }
                Sequence::Unfinished | Sequence::None => c.len_utf8(),
            },
            c if is_unwanted(c) => c.len_utf8(),
            c => {
                self.text(text.get(..c.len_utf8()).unwrap_or_default(), out);
                c.len_utf8()
            }
        };
        text.get(len..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_becomes_what_a_terminal_would_show() {
        for (text, expected) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\u{1b}[1;31mred\u{1b}[0m\0!\n", "red!\n"),
            ("10%\r20%\r\u{1b}[Kdone\nnext", "done\nnext"),
            ("a\r\nb\r\r\nc\r", "a\nb\nc"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{7} é€ \u{feff}\u{fff9}x", "link é€ \u{feff}x"),
            ("ab\u{8}c |\u{8}/\u{8}-\n", "ac -\n"),
            ("a\u{1b}]0;never ended\nb", "a\nb"),
            ("a\u{1b}]0;never ended", "a"),
            ("tail\u{1b}[3", "tail"),
            ("a\u{9b}31mb\u{c2}", "ab\u{c2}"),
            ("\u{1b}Pq#0;1\u{1b}\\x", "x"),
        ] {
            assert_eq!(clean(text), expected, "{text:?}");
            for first in (0..=text.len()).filter(|i| text.is_char_boundary(*i)) {
                for second in (first..=text.len()).filter(|i| text.is_char_boundary(*i)) {
                    let (mut cleaner, mut out) = (Cleaner::new(), String::new());
                    cleaner.push(&text[..first], &mut out);
                    cleaner.push(&text[first..second], &mut out);
                    cleaner.push(&text[second..], &mut out);
                    cleaner.finish(&mut out);
                    assert_eq!(out, expected, "{text:?} at {first}, {second}");
                }
            }
        }
    }

    #[test]
    fn endless_lines_and_strings_stay_small() {
        let (mut cleaner, mut out) = (Cleaner::new(), String::new());
        for _ in 0..1000 {
            cleaner.push(&"x".repeat(1000), &mut out);
        }
        assert!(cleaner.line.capacity() < 300_000);
        cleaner.push("\u{1b}P", &mut out);
        for _ in 0..1000 {
            cleaner.push(&"y".repeat(1000), &mut out);
        }
        cleaner.push("\u{7}z", &mut out);
        cleaner.finish(&mut out);
        assert_eq!(out.len(), 1_000_001);
    }
}
