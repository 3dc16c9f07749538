//! Forms and addresses: percent encoding, query strings, what may be opened in a browser, tokens that carry data.

use alloc::string::String;
use alloc::vec::Vec;

use crate::json::Value;
use crate::text::base64;

/// Name and value pairs as `application/x-www-form-urlencoded`.
#[must_use]
pub fn encode(pairs: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (name, value) in pairs {
        if !out.is_empty() {
            out.push('&');
        }
        escape(&mut out, name);
        out.push('=');
        escape(&mut out, value);
    }
    out
}

fn escape(out: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'*' => out.push(byte.into()),
            b' ' => out.push('+'),
            _ => {
                let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or('0').to_ascii_uppercase();
                out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
}

/// The pairs of a query string; what is not valid stays as it is.
#[must_use]
pub fn decode(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let halves = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    halves.map(|(name, value)| (unescape(name), unescape(value))).collect()
}

fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digit = |at: usize| tail.get(at).and_then(|&c| char::from(c).to_digit(16));
        rest = tail;
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).unwrap_or_default());
                rest = tail.get(2..).unwrap_or_default();
            }
            (b'+', ..) => out.push(b' '),
            (&other, ..) => out.push(other),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The value of a name, the first of several.
#[must_use]
pub fn find<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
}

/// An address that may be shown and opened: `http` or `https`, a host, no blanks or control characters.
#[must_use]
pub fn web_address(text: &str) -> Option<&str> {
    let text = text.trim();
    let scheme = text.split_once("://")?.0;
    let host = host_name(text)?;
    let plain =
        text.chars().all(|c| !c.is_control() && !c.is_whitespace() && !matches!(c, '"' | '<' | '>' | '\\'));
    let known = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    (plain && known && !host.is_empty()).then_some(text)
}

/// The host of an address or of a bare name, in lower case, without user, port and path.
#[must_use]
pub fn host_name(text: &str) -> Option<String> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let host =
        if host.starts_with('[') { host.split_inclusive(']').next()? } else { host.split(':').next()? };
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '[' | ']' | ':');
    (!host.is_empty() && host.chars().all(valid)).then(|| host.to_ascii_lowercase())
}

/// The data inside a JSON web token. Not checked: whoever gave the token knows what it is worth.
#[must_use]
pub fn token_claims(token: &str) -> Option<Value> {
    let payload = token.split('.').nth(1)?;
    crate::json::parse(core::str::from_utf8(&base64::decode(payload)?).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn forms_survive_both_ways() {
        let pairs = [("a b", "c&d=é"), ("x", ""), ("url", "http://h:1/p?q#f")];
        let text = encode(&pairs);
        assert_eq!(text, "a+b=c%26d%3D%C3%A9&x=&url=http%3A%2F%2Fh%3A1%2Fp%3Fq%23f");
        let back = decode(&text);
        assert_eq!(back, pairs.map(|(name, value)| (name.to_string(), value.to_string())));
        assert_eq!(decode("a=%zz%4&&b"), [("a".into(), "%zz%4".into()), ("b".into(), String::new())]);
        assert_eq!(find(&back, "x"), Some(""));
    }

    #[test]
    fn only_addresses_of_the_web_are_opened() {
        for (text, good) in [
            ("https://x.ai/device?code=UC", true),
            (" HTTP://h:8080 ", true),
            ("http://[::1]:80/", true),
            ("javascript:alert(1)", false),
            ("file:///etc/passwd", false),
            ("https://", false),
            ("https:///x", false),
            ("https://h/a b", false),
            ("https://h/\u{1b}]", false),
            ("-https://h", false),
        ] {
            assert_eq!(web_address(text).is_some(), good, "{text}");
        }
        for (text, host) in [
            ("https://Company.ghe.com:8443/path", Some("company.ghe.com")),
            ("user@h", Some("h")),
            ("http://", None),
            ("::::", None),
            ("a b", None),
        ] {
            assert_eq!(host_name(text).as_deref(), host, "{text}");
        }
    }

    #[test]
    fn tokens_tell_their_data() {
        for token in ["h.eyJhIjoiPz8_In0.s", "h.eyJhIjoiPz8/In0=.s"] {
            assert_eq!(token_claims(token).unwrap()["a"], "???", "{token}");
        }
        for token in ["", "a", "a.b.c", "a.%%.c"] {
            assert_eq!(token_claims(token), None, "{token}");
        }
    }
}
