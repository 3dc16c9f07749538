//! Number text as ECMAScript writes it (`Number::toString`, radix 10).

use alloc::string::String;
use core::fmt::Write as _;

use serde_json::Number;

/// Appends a double as ECMAScript prints it: `1`, `0.1`, `1e+21`, `1e-7`; `-0` is `0`; NaN and infinities,
/// which JSON cannot carry, are `null` as with `JSON.stringify`.
pub fn write_f64(out: &mut String, value: f64) {
    if !value.is_finite() {
        out.push_str("null");
        return;
    }
    if value == 0.0 {
        out.push('0');
        return;
    }
    // Rust's `{:e}` prints the shortest digits that round-trip, the digits ECMAScript demands as well.
    let mut sci = Short::default();
    // A double has at most 17 digits.
    let _ = write!(sci, "{:e}", value.abs());
    let (mantissa, exponent) = sci.as_str().split_once('e').unwrap_or((sci.as_str(), "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mut digits = Short::default();
    mantissa.split('.').for_each(|part| digits.push(part));
    let digits = digits.as_str();
    let k = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let n = exponent + 1;
    if value < 0.0 {
        out.push('-');
    }
    if (k..=21).contains(&n) {
        out.push_str(digits);
        (k..n).for_each(|_| out.push('0'));
    } else if (1..=21).contains(&n) {
        let (int, frac) = digits.split_at(usize::try_from(n).unwrap_or(0));
        let _ = write!(out, "{int}.{frac}");
    } else if (-5..=0).contains(&n) {
        out.push_str("0.");
        (n..0).for_each(|_| out.push('0'));
        out.push_str(digits);
    } else {
        let (head, tail) = digits.split_at(1);
        out.push_str(head);
        if !tail.is_empty() {
            let _ = write!(out, ".{tail}");
        }
        let _ = write!(out, "e{}{}", if n > 0 { '+' } else { '-' }, (n - 1).abs());
    }
}

/// A text that fits into a few words, so that a number costs no allocation. What is too long is cut.
#[derive(Default)]
struct Short {
    bytes: [u8; 32],
    len: usize,
}

impl Short {
    fn push(&mut self, text: &str) {
        for byte in text.bytes() {
            if let Some(place) = self.bytes.get_mut(self.len) {
                *place = byte;
                self.len += 1;
            }
        }
    }

    fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.len).unwrap_or_default();
        core::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl core::fmt::Write for Short {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.push(text);
        Ok(())
    }
}

/// Appends the digits of an integer.
pub(super) fn push_u64(out: &mut String, mut value: u64) {
    let mut digits = [0; 20];
    let mut from = digits.len();
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        from -= 1;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    let digits = digits.get(from..).unwrap_or_default();
    out.push_str(core::str::from_utf8(digits).unwrap_or_default());
}

/// Appends an integer with its sign.
pub(super) fn push_i64(out: &mut String, value: i64) {
    if value < 0 {
        out.push('-');
    }
    push_u64(out, value.unsigned_abs());
}

/// Appends a JSON number. Integers beyond 2^53 are printed as the double JavaScript would hold.
pub fn write_number(out: &mut String, number: &Number) {
    const SAFE: u64 = 1 << 53;
    match (number.as_u64(), number.as_i64(), number.as_f64()) {
        (Some(u), _, _) if u <= SAFE => push_u64(out, u),
        (None, Some(i), _) if i.unsigned_abs() <= SAFE => push_i64(out, i),
        (_, _, Some(f)) => write_f64(out, f),
        _ => out.push_str("null"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        for value in [0, 1, -1, 9, 10, -10, 1234567890, i64::MAX, i64::MIN] {
            let mut out = String::new();
            push_i64(&mut out, value);
            assert_eq!(out, alloc::format!("{value}"));
        }
        let mut out = String::new();
        push_u64(&mut out, u64::MAX);
        assert_eq!(out, alloc::format!("{}", u64::MAX));
    }

    #[test]
    fn ecmascript_numbers() {
        for (value, text) in [
            (1.0, "1"),
            (-0.0, "0"),
            (0.1, "0.1"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (1.5e300, "1.5e+300"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.234e-7, "1.234e-7"),
            (-12.5, "-12.5"),
            (123_456.789, "123456.789"),
            (1.234_567_890_123_456_8e20, "123456789012345680000"),
            (f64::NAN, "null"),
        ] {
            let mut out = String::new();
            write_f64(&mut out, value);
            assert_eq!(out, text);
        }
        let mut out = String::new();
        write_number(&mut out, &Number::from(u64::MAX));
        assert_eq!(out, "18446744073709552000");
    }
}
