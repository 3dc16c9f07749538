//! Base64, for what protocols want in that form. Images never pass here: they stay text.

use alloc::string::String;
use alloc::vec::Vec;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// With padding.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let mut out = digits(STANDARD, bytes);
    while !out.len().is_multiple_of(4) {
        out.push('=');
    }
    out
}

/// The alphabet of addresses, without padding.
#[must_use]
pub fn encode_url(bytes: &[u8]) -> String {
    digits(URL, bytes)
}

fn digits(alphabet: &[u8; 64], bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0u32, |bits, byte| (bits << 8) | u32::from(*byte));
        let bits = bits << (8 * (3 - three.len()));
        for digit in 0..=three.len() {
            let at = (bits >> (18 - 6 * digit)) & 63;
            out.push(char::from(alphabet.get(at as usize).copied().unwrap_or(b'A')));
        }
    }
    out
}

/// Bytes of a text in either alphabet, with or without padding.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let (mut out, mut bits, mut count) = (Vec::with_capacity(text.len()), 0u32, 0u32);
    for c in text.trim_end_matches('=').bytes() {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from((bits >> count) & 255).unwrap_or_default());
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of RFC 4648 §10.
    #[test]
    fn both_ways() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(plain.as_bytes()), coded);
            assert_eq!(encode_url(plain.as_bytes()), coded.trim_end_matches('='));
            assert_eq!(decode(coded).as_deref(), Some(plain.as_bytes()));
        }
        assert_eq!((encode(&[251, 255]).as_str(), encode_url(&[251, 255]).as_str()), ("+/8=", "-_8"));
        assert_eq!(decode("-_8"), decode("+/8="));
        assert_eq!(decode("a b"), None);
    }
}
