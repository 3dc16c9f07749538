//! Pieces that the strict and the streaming parser share: fast scanning, escapes, numbers.

use alloc::string::String;

use serde_json::Number;

/// Nesting that the parsers accept. Values are dropped, cloned and written recursively, so it is bounded; real
/// documents stay far below (spec 30 §4 asks for a cap).
pub const MAX_DEPTH: usize = 1200;

/// Whether a byte of a string needs an escape.
const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Marks the bytes of a word that need an escape. The lowest mark is exact; higher ones may be borrow artefacts.
#[inline(always)]
const fn special(x: u64) -> u64 {
    let quote = x ^ (ONES * 0x22);
    let backslash = x ^ (ONES * 0x5c);
    let control = x.wrapping_sub(ONES * 0x20) & !x;
    (control | quote.wrapping_sub(ONES) & !quote | backslash.wrapping_sub(ONES) & !backslash) & HIGH
}

/// Position of the first quote, backslash or control character. Four words are looked at together: this does not
/// depend on what an optimiser makes of a loop over bytes.
#[inline]
pub(super) fn find_special(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 32;
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let mut plain = 0;
    for block in blocks {
        let (words, _) = block.as_chunks::<8>();
        let [a, b, c, d] = words else { break };
        let word = |bytes: &[u8; 8]| special(u64::from_le_bytes(*bytes));
        let marks = [word(a), word(b), word(c), word(d)];
        if marks.iter().fold(0, |all, mark| all | mark) != 0 {
            let first = |(index, mark): (usize, &u64)| {
                (*mark != 0).then(|| plain + index * 8 + (mark.trailing_zeros() / 8) as usize)
            };
            return marks.iter().enumerate().find_map(first);
        }
        plain += BLOCK;
    }
    find_in_words(bytes.get(plain..)?).map(|at| plain + at)
}

/// The same for what is short: eight bytes a step, exact at the end.
#[inline]
fn find_in_words(bytes: &[u8]) -> Option<usize> {
    let (chunks, rest) = bytes.as_chunks::<8>();
    for (index, word) in chunks.iter().enumerate() {
        let found = special(u64::from_le_bytes(*word));
        if found != 0 {
            return Some(index * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    let at = chunks.len() * 8;
    rest.iter().position(|&byte| is_special(byte)).map(|i| at + i)
}

/// What a simple escape (`\n` and the like) stands for.
pub(super) const fn simple_escape(letter: u8) -> Option<char> {
    Some(match letter {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        _ => return None,
    })
}

/// Value of a hexadecimal digit.
pub(super) fn hex(digit: u8) -> Option<u16> {
    char::from(digit).to_digit(16).and_then(|d| u16::try_from(d).ok())
}

/// Four hexadecimal digits at the start of `bytes`.
pub(super) fn hex4(bytes: &[u8]) -> Option<u16> {
    bytes.get(..4)?.iter().try_fold(0, |value, &digit| Some(value << 4 | hex(digit)?))
}

/// Joins UTF-16 units to characters; an unpaired surrogate gives nothing (spec 30 §2 item 9).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Units {
    high: Option<u16>,
}

impl Units {
    /// One `\uXXXX` unit.
    pub(super) fn push(&mut self, unit: u16, out: &mut String) {
        match (self.high.take(), unit) {
            (_, 0xd800..=0xdbff) => self.high = Some(unit),
            (Some(high), 0xdc00..=0xdfff) => {
                let code = 0x1_0000 + ((u32::from(high) - 0xd800) << 10) + (u32::from(unit) - 0xdc00);
                out.extend(char::from_u32(code));
            }
            _ => out.extend(char::from_u32(u32::from(unit))),
        }
    }

    /// Something else than an escape follows: a high half without partner is dropped.
    pub(super) const fn reset(&mut self) {
        self.high = None;
    }
}

/// Length of the JSON number at the start of `bytes` and whether it is a plain integer; `None` if there is none.
pub(super) fn number_len(bytes: &[u8]) -> Option<(usize, bool)> {
    let digits =
        |from: usize| bytes.get(from..).unwrap_or_default().iter().take_while(|c| c.is_ascii_digit()).count();
    let sign = usize::from(bytes.first() == Some(&b'-'));
    let whole = if bytes.get(sign) == Some(&b'0') { 1 } else { digits(sign) };
    if whole == 0 {
        return None;
    }
    let mut end = sign + whole;
    let mut integer = true;
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        if fraction == 0 {
            return None;
        }
        end += 1 + fraction;
        integer = false;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent == 0 {
            return None;
        }
        end += 1 + sign + exponent;
        integer = false;
    }
    Some((end, integer))
}

/// The number that a text of JSON number form stands for; `None` beyond the range of a double.
pub(super) fn number(text: &str, integer: bool) -> Option<Number> {
    if integer && text != "-0" {
        if let Ok(value) = text.parse::<u64>() {
            return Some(value.into());
        }
        if let Ok(value) = text.parse::<i64>() {
            return Some(value.into());
        }
    }
    Number::from_f64(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn special_bytes_are_found_at_every_place() {
        for len in [0, 1, 7, 8, 9, 31, 32, 33, 40, 64, 100] {
            let plain = vec![0x7f_u8; len];
            assert_eq!(find_special(&plain), None);
            for at in 0..len {
                for byte in [0, 0x1f, b'"', b'\\'] {
                    let mut bytes = plain.clone();
                    bytes[at] = byte;
                    assert_eq!(find_special(&bytes), Some(at), "{byte} at {at} of {len}");
                    bytes[len - 1] = b'"';
                    assert_eq!(find_special(&bytes), Some(at));
                }
                for byte in [0x20, b'!', b'#', b'[', b']', 0x80, 0xa2, 0xdc, 0xff] {
                    let mut bytes = plain.clone();
                    bytes[at] = byte;
                    assert_eq!(find_special(&bytes), None, "{byte} at {at} of {len}");
                }
            }
        }
    }
}
