//! Facts that an HTTP head tells: headers by name, how long the server wants us to wait (spec 10 §5.4).

use alloc::string::String;

use crate::now::Wall;

/// The first header of that name; names compare without case.
#[must_use]
pub fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// What the server says about a retry: `x-should-retry: true|false`; other values say nothing.
#[must_use]
pub fn should_retry(headers: &[(String, String)]) -> Option<bool> {
    match header(headers, "x-should-retry")? {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// How long the server wants us to wait, in milliseconds with fractions; never negative.
///
/// `retry-after-ms` (leading number), else `retry-after` as a leading number of seconds, else as an HTTP date
/// minus `now`. What cannot be read says nothing.
#[must_use]
pub fn retry_after_ms(headers: &[(String, String)], now: Wall) -> Option<f64> {
    let delay = header(headers, "retry-after-ms").and_then(leading_number).or_else(|| {
        let text = header(headers, "retry-after")?;
        leading_number(text).map(|seconds| seconds * 1000.0).or_else(|| {
            #[allow(clippy::cast_precision_loss)]
            Wall::from_http_date(text.trim()).map(|at| at.0.saturating_sub(now.0) as f64)
        })
    })?;
    delay.is_finite().then_some(delay.max(0.0))
}

/// The decimal number at the start of a text, after blanks; trailing text does not matter (`250ms` is 250).
fn leading_number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes.iter().skip(from).take_while(|c| c.is_ascii_digit()).count();
    let sign = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let whole = digits(sign);
    let mut end = sign + whole;
    let fraction = if bytes.get(end) == Some(&b'.') { digits(end + 1) } else { 0 };
    if whole + fraction == 0 {
        return None;
    }
    if fraction > 0 {
        end += 1 + fraction;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    text.get(..end)?.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    const NOW: Wall = Wall(1_795_168_800_000);

    fn wait(name: &str, value: &str) -> Option<f64> {
        retry_after_ms(&[(name.into(), value.into())], NOW)
    }

    #[test]
    fn numbers_and_dates() {
        for (name, value, expected) in [
            ("Retry-After-Ms", "250ms", Some(250.0)),
            ("retry-after-ms", "-5", Some(0.0)),
            ("retry-after-ms", "Infinity", None),
            ("retry-after-ms", "1e999", None),
            ("retry-after", ".5", Some(500.0)),
            ("retry-after", "1.", Some(1000.0)),
            ("retry-after", "1e2x", Some(100_000.0)),
            ("retry-after", "2e", Some(2000.0)),
            ("retry-after", "", None),
            ("retry-after", "Fri, 20 Nov 2026 10:00:20 GMT", Some(20_000.0)),
            ("retry-after", "Fri, 20 Nov 2026 09:59:00 GMT", Some(0.0)),
            ("retry-after", "later", None),
        ] {
            assert_eq!(wait(name, value), expected, "{name}: {value}");
        }
    }

    #[test]
    fn the_precise_header_wins() {
        let headers = vec![("retry-after".into(), "3".into()), ("retry-after-ms".into(), "soon".into())];
        assert_eq!(retry_after_ms(&headers, NOW), Some(3000.0));
        assert_eq!(should_retry(&headers), None);
        assert_eq!(should_retry(&[("X-Should-Retry".into(), "false".into())]), Some(false));
    }
}
