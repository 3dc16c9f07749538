//! The page as it is made. What people, models, tools or files said can only become text of it: markup is written in the
//! program, as its type says.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A piece of a page.
#[derive(Debug, Default)]
pub struct Html(String);

impl Html {
    /// An empty piece with room for `bytes`.
    #[must_use]
    pub fn with_room(bytes: usize) -> Self {
        Self(String::with_capacity(bytes))
    }

    /// What was made so far.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Begins anew; at most `room` bytes stay reserved.
    pub fn clear(&mut self, room: usize) {
        self.0.clear();
        self.0.shrink_to(room);
    }

    /// Appends markup.
    #[inline(never)]
    pub fn markup(&mut self, markup: &'static str) {
        self.0.push_str(markup);
    }

    /// Appends text, fit for content and for quoted attributes. Line ends become LF, which stay, as tabs do. Controls,
    /// marks that turn the direction of writing, and characters that nobody can see become visible ones.
    #[inline(never)]
    pub fn text(&mut self, text: &str) {
        let out = &mut self.0;
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

    /// Appends text between two pieces of markup.
    #[inline(never)]
    pub fn around(&mut self, before: &'static str, text: &str, after: &'static str) {
        self.markup(before);
        self.text(text);
        self.markup(after);
    }

    /// Appends a number between two pieces of markup.
    #[inline(never)]
    pub fn number(&mut self, before: &'static str, number: u32, after: &'static str) {
        self.around(before, &number.to_string(), after);
    }

    /// Appends preformatted text as an element.
    pub fn pre(&mut self, content: &str) {
        self.markup("<pre>");
        self.keep_first_line_feed(content);
        self.text(content);
        self.markup("</pre>");
    }

    /// A line feed right behind the tag of a `pre` element is not shown; one more makes up for it.
    pub fn keep_first_line_feed(&mut self, content: &str) {
        if content.starts_with(['\n', '\r']) {
            self.markup("\n");
        }
    }

    /// Appends bytes as base64.
    pub fn base64(&mut self, bytes: &[u8]) {
        STANDARD.encode_string(bytes, &mut self.0);
    }

    /// Appends what is base64 already; anything else is left out.
    pub fn as_base64(&mut self, data: &str) {
        if is_base64(data) {
            self.0.push_str(data);
        }
    }
}

/// Whether a text has the letters of base64 and no others.
#[must_use]
pub fn is_base64(data: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
    !data.is_empty() && data.bytes().all(fits)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(given: &str) -> String {
        let mut out = Html::default();
        out.text(given);
        out.0
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
        let mut out = Html::default();
        out.pre("\nx");
        assert_eq!(out.as_str(), "<pre>\n\nx</pre>");
    }

    #[test]
    fn only_base64_is_taken_as_it_is() {
        let mut out = Html::default();
        ["", "AA\"", "A A=", "A\n", "AA+/="].iter().for_each(|data| out.as_base64(data));
        assert_eq!(out.as_str(), "AA+/=");
    }
}
