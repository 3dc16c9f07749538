//! The short hash that ids derived from other ids use (spec 30 §2).

use alloc::string::String;

/// Two 32-bit lanes over the UTF-16 units of a text, written in base 36. Not for security.
#[must_use]
pub fn short_hash(text: &str) -> String {
    let (mut h1, mut h2) = (0xdead_beef_u32, 0x41c6_ce57_u32);
    for unit in text.encode_utf16() {
        h1 = (h1 ^ u32::from(unit)).wrapping_mul(2_654_435_761);
        h2 = (h2 ^ u32::from(unit)).wrapping_mul(1_597_334_677);
    }
    h1 = mix(h1, 16, 2_246_822_507) ^ mix(h2, 13, 3_266_489_909);
    h2 = mix(h2, 16, 2_246_822_507) ^ mix(h1, 13, 3_266_489_909);
    let mut out = String::new();
    push_base36(&mut out, h2);
    push_base36(&mut out, h1);
    out
}

const fn mix(lane: u32, shift: u32, factor: u32) -> u32 {
    (lane ^ (lane >> shift)).wrapping_mul(factor)
}

fn push_base36(out: &mut String, number: u32) {
    if number >= 36 {
        push_base36(out, number / 36);
    }
    out.extend(char::from_digit(number % 36, 36));
}
