//! Terminal escape sequences: finding, removing, holding back unfinished ones (spec 50 §10.4).
//!
//! Two grammars. [`strip`] and [`split_unfinished`] remove what user shell commands have always had removed: OSC
//! strings and short CSI or ESC forms. [`sequence`] is the full ECMA-48 grammar that [`super::clean`] uses.

use alloc::borrow::Cow;
use alloc::string::String;

/// Longest unfinished escape that is held back, UTF-16 units.
pub const MAX_HELD_UNITS: usize = 256;

const ESC: char = '\u{1b}';
const CSI: char = '\u{9b}';
const ST: char = '\u{9c}';
const BEL: char = '\u{7}';

/// The text without terminal sequences. Borrows when there is none.
#[must_use]
pub fn strip(text: &str) -> Cow<'_, str> {
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    // Once one OSC string has no end, no later one has.
    let mut osc_may_end = true;
    while let Some(here) = next_intro(text, at) {
        let rest = text.get(here..).unwrap_or_default();
        let osc = if osc_may_end && rest.starts_with("\u{1b}]") { osc_len(rest) } else { None };
        osc_may_end = osc_may_end && (osc.is_some() || !rest.starts_with("\u{1b}]"));
        if let Some(len) = osc.or_else(|| short_len(rest)) {
            out.push_str(text.get(copied..here).unwrap_or_default());
            copied = here + len;
            at = copied;
        } else {
            at = here + rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

/// Splits off an escape at the end that the next piece may finish. Longer than [`MAX_HELD_UNITS`] is not held.
#[must_use]
pub fn split_unfinished(text: &str) -> (&str, &str) {
    let window = text.floor_char_boundary(text.len().saturating_sub(3 * MAX_HELD_UNITS + 8));
    let recent = text.get(window..).unwrap_or_default();
    let mut at = 0;
    while let Some(here) = next_intro(recent, at) {
        let rest = recent.get(here..).unwrap_or_default();
        match unfinished(rest) {
            Some(true) if super::utf16::utf16_len(rest) <= MAX_HELD_UNITS => {
                return text.split_at_checked(window + here).unwrap_or((text, ""));
            }
            _ => at = here + rest.chars().next().map_or(1, char::len_utf8),
        }
    }
    (text, "")
}

/// Whether the escape at the start of `rest` runs to the end of the text without being complete.
fn unfinished(rest: &str) -> Option<bool> {
    let mut chars = rest.chars();
    let intro = chars.next()?;
    let body = chars.as_str();
    let csi = match (intro, chars.next()) {
        (CSI, _) => body,
        (_, None) => return Some(true),
        (_, Some('[')) => chars.as_str(),
        (_, Some(']')) => return Some(osc_len(rest).is_none()),
        // An intermediate (charset selection and the like) wants one more character.
        (_, Some(' '..='/')) => chars.as_str(),
        _ => return Some(false),
    };
    Some(csi.chars().all(|c| matches!(c, ' '..='?')))
}

fn next_intro(text: &str, at: usize) -> Option<usize> {
    text.get(at..)?.find([ESC, CSI]).map(|found| at + found)
}

/// `ESC ] … (BEL | ESC \ | ST)`: its length, with the end.
fn osc_len(rest: &str) -> Option<usize> {
    let mut from = 2;
    loop {
        let found = from + rest.get(from..)?.find([BEL, ESC, ST])?;
        let end = rest.get(found..)?;
        if let Some(c) = end.chars().next().filter(|c| *c != ESC) {
            return Some(found + c.len_utf8());
        }
        if end.starts_with("\u{1b}\\") {
            return Some(found + 2);
        }
        from = found + 1;
    }
}

/// A short form: introducer, marks, numbers of up to four digits, final character.
fn short_len(rest: &str) -> Option<usize> {
    let intro = rest.chars().next()?;
    let bytes = rest.as_bytes();
    let mut at = intro.len_utf8();
    let count = |from: usize, test: fn(u8) -> bool, most: usize| {
        bytes.get(from..).unwrap_or_default().iter().take(most).take_while(|c| test(**c)).count()
    };
    let is_csi = intro == CSI || bytes.get(at) == Some(&b'[');
    at += count(at, |c| matches!(c, b'[' | b']' | b'(' | b')' | b'#' | b';' | b'?'), usize::MAX);
    let private = is_csi && matches!(bytes.get(at), Some(b'<' | b'=' | b'>'));
    let numbers = |start: usize| {
        let first = count(start, |c| c.is_ascii_digit(), 4);
        let mut end = start + first;
        while first > 0 && matches!(bytes.get(end), Some(b';' | b':')) {
            end += 1 + count(end + 1, |c| c.is_ascii_digit(), 4);
        }
        end
    };
    let is_final = |at: usize| bytes.get(at).is_some_and(|c| is_short_final(*c));
    // Like a backtracking match: as much as possible first, then give back until a final character fits.
    let until_final = |start: usize| (start..=numbers(start)).rev().find(|at| is_final(*at)).map(|at| at + 1);
    private.then(|| until_final(at + 1)).flatten().or_else(|| until_final(at))
}

const fn is_short_final(c: u8) -> bool {
    matches!(c, b'0'..=b'9' | b'A'..=b'P' | b'R'..=b'T' | b'Z' | b'c' | b'f'..=b'n' | b'q'..=b'u' | b'y')
        || matches!(c, b'=' | b'>' | b'<' | b'~')
}

/// What stands at an ESC or a C1 introducer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequence {
    /// A complete sequence of so many bytes.
    Whole(usize),
    /// More text is needed to tell.
    Unfinished,
    /// A string (OSC, DCS, SOS, PM, APC) without its end; what it contains is not text.
    OpenString,
    /// No sequence: only the introducer is odd.
    None,
}

/// Finds the extent of the ECMA-48 sequence at the start of `text`.
#[must_use]
pub fn sequence(text: &str) -> Sequence {
    let mut chars = text.chars();
    let Some(intro) = chars.next() else { return Sequence::Unfinished };
    let (kind, body) = match intro {
        ESC => match chars.next() {
            None => return Sequence::Unfinished,
            Some(second) => (second, text.get(1 + second.len_utf8()..).unwrap_or_default()),
        },
        '\u{80}'..='\u{9f}' => (char::from(intro as u8 - 0x40), chars.as_str()),
        _ => return Sequence::None,
    };
    let before = text.len() - body.len();
    match kind {
        '[' => {
            let len = body.bytes().take_while(|c| matches!(c, b' '..=b'?')).count();
            match body.as_bytes().get(len) {
                None => Sequence::Unfinished,
                Some(b'@'..=b'~') => Sequence::Whole(before + len + 1),
                Some(_) => Sequence::Whole(before + len),
            }
        }
        ']' | 'P' | 'X' | '^' | '_' => {
            string_end(body).map_or(Sequence::OpenString, |end| Sequence::Whole(before + end))
        }
        ' '..='/' => {
            let len = body.bytes().take_while(|c| matches!(c, b' '..=b'/')).count();
            match body.as_bytes().get(len) {
                None => Sequence::Unfinished,
                Some(b'0'..=b'~') => Sequence::Whole(before + len + 1),
                Some(_) => Sequence::Whole(before + len),
            }
        }
        '0'..='~' => Sequence::Whole(before),
        _ if intro == ESC => Sequence::Whole(1),
        _ => Sequence::Whole(before),
    }
}

/// Length of a control string up to and with its end. A new line, CAN, SUB or another escape ends a broken one, so
/// that a stray introducer cannot swallow the rest of an output; `None` when no end is there yet.
pub(super) fn string_end(body: &str) -> Option<usize> {
    let found = body.find([BEL, ESC, ST, '\n', '\u{18}', '\u{1a}'])?;
    let end = body.get(found..)?;
    match end.chars().next()? {
        ESC if end.len() == 1 => None,
        ESC if end.starts_with("\u{1b}\\") => Some(found + 2),
        ESC | '\n' => Some(found),
        c => Some(found + c.len_utf8()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents() {
        for (text, expected) in [
            ("\u{1b}[31mx", Sequence::Whole(5)),
            ("\u{1b}[12345mx", Sequence::Whole(8)),
            ("\u{1b}[>4;2mx", Sequence::Whole(7)),
            ("\u{1b}[3", Sequence::Unfinished),
            ("\u{1b}[3\nx", Sequence::Whole(3)),
            ("\u{1b}", Sequence::Unfinished),
            ("\u{1b}(", Sequence::Unfinished),
            ("\u{1b}(Bx", Sequence::Whole(3)),
            ("\u{1b}8y", Sequence::Whole(2)),
            ("\u{1b}Pq#0\u{1b}\\x", Sequence::Whole(7)),
            ("\u{1b}]8;;http", Sequence::OpenString),
            ("\u{1b}]0;t\u{1b}", Sequence::OpenString),
            ("\u{1b}]0;t\u{7}x", Sequence::Whole(6)),
            ("\u{1b}]0;t\nx", Sequence::Whole(5)),
            ("\u{1b}é", Sequence::Whole(1)),
            ("\u{9b}31mx", Sequence::Whole(5)),
            ("\u{9d}0;t\u{9c}x", Sequence::Whole(7)),
            ("\u{85}x", Sequence::Whole(2)),
            ("x", Sequence::None),
        ] {
            assert_eq!(sequence(text), expected, "{text:?}");
        }
    }

    #[test]
    fn private_marks_and_many_open_strings() {
        assert_eq!(strip("\u{1b}[>4;2ma\u{1b}[<0;1;2Mb\u{1b}[=c"), "ab");
        let bad = "\u{1b}]0".repeat(20_000);
        assert_eq!(strip(&bad), "");
    }
}
