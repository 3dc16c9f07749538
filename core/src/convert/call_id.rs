//! Tool call ids that other protocols accept (spec 30 §2).

use alloc::borrow::Cow;
use alloc::string::String;

/// The id with everything outside `[A-Za-z0-9_-]` replaced by `_`, cut to `max` characters.
#[must_use]
pub fn sanitize_id(id: &str, max: usize) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if id.len() <= max && id.chars().all(fits) {
        return Cow::Borrowed(id);
    }
    Cow::Owned(id.chars().map(|c| if fits(c) { c } else { '_' }).take(max).collect())
}

/// The part of a call id that protocols see: what comes before `|`.
#[must_use]
pub fn wire_id(id: &str) -> &str {
    id.split_once('|').map_or(id, |(call, _)| call)
}

/// A short, stable name for a text: two 32-bit lanes over its UTF-16 units, in base 36 without padding.
#[must_use]
pub fn short_hash(text: &str) -> String {
    let (mut h1, mut h2) = (0xdead_beef_u32, 0x41c6_ce57_u32);
    for unit in text.encode_utf16() {
        h1 = (h1 ^ u32::from(unit)).wrapping_mul(2_654_435_761);
        h2 = (h2 ^ u32::from(unit)).wrapping_mul(1_597_334_677);
    }
    h1 = (h1 ^ (h1 >> 16)).wrapping_mul(2_246_822_507) ^ (h2 ^ (h2 >> 13)).wrapping_mul(3_266_489_909);
    h2 = (h2 ^ (h2 >> 16)).wrapping_mul(2_246_822_507) ^ (h1 ^ (h1 >> 13)).wrapping_mul(3_266_489_909);
    let mut out = String::with_capacity(14);
    push_base36(&mut out, h2);
    push_base36(&mut out, h1);
    out
}

fn push_base36(out: &mut String, mut n: u32) {
    let start = out.len();
    loop {
        out.insert(start, char::from_digit(n % 36, 36).unwrap_or('0'));
        n /= 36;
        if n == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_cut_in_characters() {
        assert!(matches!(sanitize_id("call_1-A", 64), Cow::Borrowed("call_1-A")));
        assert_eq!(sanitize_id("a|b.é😀c", 6), "a_b___");
        assert_eq!(sanitize_id("", 6), "");
    }
}
