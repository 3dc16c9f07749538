//! Lengths and cuts in UTF-16 code units, the unit of every length limit that comes from JavaScript.

use alloc::string::String;

/// Length in UTF-16 code units.
#[must_use]
pub fn utf16_len(text: &str) -> usize {
    // One unit a character, two for those outside the BMP, which are the ones of four bytes.
    text.bytes().map(|b| usize::from((b & 0xc0) != 0x80) + usize::from(b >= 0xf0)).sum()
}

/// Byte offset of the last character boundary at or before UTF-16 offset `units`; the length when beyond the end.
#[must_use]
pub fn byte_offset(text: &str, units: usize) -> usize {
    // A character has at most as many units as bytes, so that this much text is always before the cut.
    let mut left = units;
    for (at, c) in text.char_indices() {
        if c.len_utf16() > left {
            return at;
        }
        left -= c.len_utf16();
    }
    text.len()
}

/// The first `units` UTF-16 units; a pair that would be cut is left out.
#[must_use]
pub fn head(text: &str, units: usize) -> &str {
    if text.len() <= units {
        return text;
    }
    text.get(..byte_offset(text, units)).unwrap_or(text)
}

/// The last `units` UTF-16 units; a pair that would be cut is left out.
#[must_use]
pub fn tail(text: &str, units: usize) -> &str {
    let mut left = units;
    for (at, c) in text.char_indices().rev() {
        if c.len_utf16() > left {
            return text.get(at + c.len_utf8()..).unwrap_or_default();
        }
        left -= c.len_utf16();
    }
    text
}

/// Text of UTF-16 code units without the unpaired surrogates (spec 30 §2 item 9).
#[must_use]
pub fn from_units(units: impl IntoIterator<Item = u16>) -> String {
    char::decode_utf16(units).filter_map(Result::ok).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_cuts() {
        for text in ["", "abc", "a😀b", "é漢😀😀", "😀"] {
            let units: alloc::vec::Vec<u16> = text.encode_utf16().collect();
            assert_eq!(utf16_len(text), units.len());
            for n in 0..=units.len() + 1 {
                let n_cut = n.min(units.len());
                assert_eq!(head(text, n), from_units(units[..n_cut].iter().copied()), "{text} {n}");
                assert_eq!(
                    tail(text, n),
                    from_units(units[units.len() - n_cut..].iter().copied()),
                    "{text} {n}"
                );
            }
        }
    }
}
