//! Text of anyone as text of a page: it can neither become markup nor hide itself.

use std::fmt::Write as _;

/// Appends text, fit for content and for quoted attributes. Line ends become LF, which stay, as tabs do. Controls, marks
/// that turn the direction of writing, and characters that nobody can see become visible ones.
pub fn text(out: &mut String, text: &str) {
    out.reserve(text.len());
    let mut copied = 0;
    for (at, c) in text.char_indices().filter(|(_, c)| is_odd(*c)) {
        out.push_str(text.get(copied..at).unwrap_or_default());
        copied = at + c.len_utf8();
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\r' if text.as_bytes().get(copied) == Some(&b'\n') => {}
            '\u{7f}' => out.push('␡'),
            c if c < ' ' => out.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}')),
            c => {
                let _ = write!(out, "⟨U+{:04X}⟩", u32::from(c));
            }
        }
    }
    out.push_str(text.get(copied..).unwrap_or_default());
}

/// Whether a character cannot stand for itself.
const fn is_odd(c: char) -> bool {
    if c >= '\u{80}' {
        return is_sly(c);
    }
    matches!(c, '&' | '<' | '>' | '"' | '\'' | '\u{7f}') || c < ' ' && c != '\n' && c != '\t'
}

/// Controls, marks of direction and characters without a shape, beyond ASCII. What joins and varies other characters
/// is not among them: words and pictures of many scripts are made with it.
pub const fn is_sly(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Appends preformatted text as an element; `class` may be empty.
pub fn pre(out: &mut String, class: &str, content: &str) {
    match class {
        "" => out.push_str("<pre>"),
        class => {
            let _ = write!(out, "<pre class={class}>");
        }
    }
    keep_first_line_feed(out, content);
    text(out, content);
    out.push_str("</pre>");
}

/// A line feed right behind the tag of a `pre` element is not shown; one more makes up for it.
pub fn keep_first_line_feed(out: &mut String, content: &str) {
    if content.starts_with(['\n', '\r']) {
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(given: &str) -> String {
        let mut out = String::new();
        text(&mut out, given);
        out
    }

    #[test]
    fn markup_is_text() {
        assert_eq!(shown("plain ✓\n\ttext"), "plain ✓\n\ttext");
        assert_eq!(
            shown("</script><img onerror='x' a=\"b\">&lt;"),
            "&lt;/script&gt;&lt;img onerror=&#39;x&#39; a=&quot;b&quot;&gt;&amp;lt;"
        );
    }

    #[test]
    fn nothing_hides() {
        for (given, wanted) in [
            ("a\0b", "a␀b"),
            ("\u{1b}[31m\u{7f}", "␛[31m␡"),
            ("a\r\nb\rc", "a\nb␍c"),
            ("\u{9b}", "⟨U+009B⟩"),
            ("a\u{202e}b\u{2066}", "a⟨U+202E⟩b⟨U+2066⟩"),
            ("\u{e0041}\u{200b}", "⟨U+E0041⟩⟨U+200B⟩"),
            ("👩\u{200d}👧 ❤\u{fe0f} می\u{200c}خواهم", "👩\u{200d}👧 ❤\u{fe0f} می\u{200c}خواهم"),
        ] {
            assert_eq!(shown(given), wanted);
        }
    }

    #[test]
    fn a_first_line_feed_stays() {
        let mut out = String::new();
        pre(&mut out, "", "\nx");
        assert_eq!(out, "<pre>\n\nx</pre>");
    }
}
