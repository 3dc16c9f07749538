//! Halves of surrogate pairs that a server cut between two events.
//!
//! Servers that slice strings by UTF-16 units escape each half by itself. A `String` cannot hold a half, so [`mark`]
//! replaces unpaired escapes of an event by private characters, and [`Halves`] puts pairs together again; what stays
//! single is dropped (spec 30 §2 rule 9). Only events with such escapes take this way.

use alloc::borrow::Cow;
use alloc::string::String;

/// Private characters that stand for D800–DFFF: the last 2048 code points.
const BASE: u32 = 0x0010_f800;

/// JSON text with unpaired surrogate escapes replaced by marks.
pub(super) fn mark(json: &str) -> Cow<'_, str> {
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    let (mut rest, mut found) = (json, false);
    while let Some(at) = rest.find('\\') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let len = match (unit(from), from.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(half @ 0xd800..=0xdfff), _) => {
                out.extend(char::from_u32(BASE + half - 0xd800));
                rest = from.get(6..).unwrap_or_default();
                found = true;
                continue;
            }
            // Another escape: a backslash and one character, which may be a backslash itself.
            _ => 1 + from.chars().nth(1).map_or(0, char::len_utf8),
        };
        let (escape, after) = from.split_at_checked(len).unwrap_or((from, ""));
        out.push_str(escape);
        rest = after;
    }
    if !found {
        return Cow::Borrowed(json);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The unit of a `\uXXXX` escape at the start of a text.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}

/// The first half of a pair whose second half may come with the next piece of a block.
#[derive(Debug, Default)]
pub(super) struct Halves(Option<u32>);

impl Halves {
    /// A piece of text with its marks resolved; `marked` tells whether it comes from an event that has marks at all.
    pub(super) fn join<'t>(&mut self, text: Cow<'t, str>, marked: bool) -> Cow<'t, str> {
        if !marked {
            self.0 = None;
            return text;
        }
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            let half = u32::from(c).checked_sub(BASE).map(|offset| offset + 0xd800);
            match (self.0.take(), half) {
                (Some(high), Some(low @ 0xdc00..=0xdfff)) => {
                    out.extend(char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)));
                }
                (_, Some(high @ 0xd800..=0xdbff)) => self.0 = Some(high),
                (_, Some(_)) => {}
                (_, None) => out.push(c),
            }
        }
        Cow::Owned(out)
    }
}

/// A text that stands alone, such as a name, without marks.
pub(super) fn strip(text: Cow<'_, str>, marked: bool) -> Cow<'_, str> {
    Halves::default().join(text, marked)
}
