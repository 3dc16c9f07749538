//! Text from elsewhere, made harmless for a terminal (decision D71).

use std::borrow::Cow;

/// Control characters become visible ones; line feeds and tabs stay, CR LF becomes LF.
#[must_use]
pub fn harmless(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            c if !is_unsafe(c) => out.push(c),
            '\u{7f}' => out.push('␡'),
            c if c < ' ' => out.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('�')),
            c => out.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(out)
}

/// One harmless line: blanks of any kind and number become one.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&harmless(word));
    }
    out
}

/// JSON text with escapes for what a terminal would obey. It means the same: such characters occur in strings only.
#[must_use]
pub fn harmless_json(json: &str) -> Cow<'_, str> {
    let is_odd = |c: char| is_unsafe(c) && c != '\n';
    if !json.chars().any(is_odd) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_odd(c) {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// C0 (but line feed and tab), DEL, C1, and the marks that reorder or hide text.
const fn is_unsafe(c: char) -> bool {
    matches!(c,
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_lose_their_power() {
        assert!(matches!(harmless("plain ✓\n\ttext"), Cow::Borrowed(_)));
        assert_eq!(harmless("\u{1b}]0;title\u{7}"), "␛]0;title␇");
        assert_eq!(harmless("a\r\nb\rc\u{7f}"), "a\nb␍c␡");
        assert_eq!(harmless("\u{9b}31m"), "\\u{9b}31m");
        assert_eq!(harmless("\u{202e}x"), "\\u{202e}x");
        assert_eq!(one_line(" a\n\t b\u{1b}c "), "a b␛c");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let text = "a\u{7f}\u{9b}31m\u{202e}é";
        let json = serde_json::to_string(text).unwrap();
        let harmless = harmless_json(&json);
        assert_eq!(harmless, r#""a\u007f\u009b31m\u202eé""#);
        assert_eq!(serde_json::from_str::<String>(&harmless).unwrap(), text);
    }
}
