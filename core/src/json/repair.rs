//! Repairs the two mistakes models make inside JSON strings (spec 30 §4).

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt::Write as _;

use super::scan::{find_special, hex4, simple_escape};

/// Escapes raw control characters inside strings and doubles backslashes that start no valid escape. Borrows when
/// there is nothing to repair.
#[must_use]
pub fn repair(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut at, mut copied, mut in_string) = (0, 0, false);
    while let Some(found) = bytes.get(at..).and_then(find_special) {
        let here = at + found;
        at = here + 1;
        let fix = match bytes.get(here) {
            Some(b'"') => {
                in_string = !in_string;
                continue;
            }
            _ if !in_string => continue,
            Some(b'\\') => {
                if let Some(len) = escape_len(bytes.get(at..).unwrap_or_default()) {
                    at += len;
                    continue;
                }
                None
            }
            other => other.copied(),
        };
        out.push_str(text.get(copied..here).unwrap_or_default());
        match fix {
            Some(control) => push_control(&mut out, control),
            None => out.push_str("\\\\"),
        }
        copied = at;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

/// Length of a valid escape after its backslash.
fn escape_len(rest: &[u8]) -> Option<usize> {
    match rest.first()? {
        b'u' => rest.get(1..).and_then(hex4).map(|_| 5),
        letter => simple_escape(*letter).map(|_| 1),
    }
}

fn push_control(out: &mut String, control: u8) {
    match control {
        b'\n' => out.push_str("\\n"),
        b'\r' => out.push_str("\\r"),
        b'\t' => out.push_str("\\t"),
        0x08 => out.push_str("\\b"),
        0x0c => out.push_str("\\f"),
        _ => {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{control:04x}");
        }
    }
}
