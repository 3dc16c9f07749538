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

/// C0 (but line feed and tab), DEL, C1, and the marks that reorder or hide text.
const fn is_unsafe(c: char) -> bool {
    matches!(c,
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn sequences_lose_their_power() {
        assert!(matches!(harmless("plain ✓\n\ttext"), std::borrow::Cow::Borrowed(_)));
        assert_eq!(harmless("\u{1b}]0;title\u{7}"), "␛]0;title␇");
        assert_eq!(harmless("a\r\nb\rc\u{7f}"), "a\nb␍c␡");
        assert_eq!(harmless("\u{9b}31m"), "\\u{9b}31m");
        assert_eq!(harmless("\u{202e}x"), "\\u{202e}x");
    }
}
