//! Byte order marks and line ends.

use alloc::borrow::Cow;
use alloc::string::String;

use memchr::memchr;

/// The UTF-8 byte order mark as text.
pub const BOM: char = '\u{feff}';

/// Whether a BOM leads the text, and the text without it.
#[must_use]
pub fn split_bom(text: &str) -> (bool, &str) {
    text.strip_prefix(BOM).map_or((false, text), |rest| (true, rest))
}

/// How a text ends its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnd {
    /// LF
    Lf,
    /// CR LF
    CrLf,
    /// A lone CR, in a text without any LF.
    Cr,
}

impl LineEnd {
    /// The characters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
            Self::Cr => "\r",
        }
    }

    /// The end of the first line; CR only where there is no LF at all. A text without line ends has LF.
    #[must_use]
    pub fn of(text: &str) -> Self {
        match text.split_once('\n') {
            Some((line, _)) if line.ends_with('\r') => Self::CrLf,
            Some(_) => Self::Lf,
            None if text.contains('\r') => Self::Cr,
            None => Self::Lf,
        }
    }
}

/// The text with every CRLF and lone CR as LF. Borrows when there is no CR.
#[must_use]
pub fn to_lf(text: &str) -> Cow<'_, str> {
    let Some(first) = memchr(b'\r', text.as_bytes()) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len());
    let (head, mut rest) = text.split_at_checked(first).unwrap_or(("", text));
    out.push_str(head);
    while let Some(tail) = rest.strip_prefix('\r') {
        out.push('\n');
        let tail = tail.strip_prefix('\n').unwrap_or(tail);
        let (span, next) =
            tail.split_at_checked(memchr(b'\r', tail.as_bytes()).unwrap_or(tail.len())).unwrap_or((tail, ""));
        out.push_str(span);
        rest = next;
    }
    Cow::Owned(out)
}

/// A text with LF line ends, written with the line ends given.
#[must_use]
pub fn from_lf(text: &str, end: LineEnd) -> Cow<'_, str> {
    if end == LineEnd::Lf || !text.contains('\n') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace('\n', end.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends() {
        for (text, end, lf) in [
            ("", LineEnd::Lf, ""),
            ("a\nb\r\n", LineEnd::Lf, "a\nb\n"),
            ("a\r\nb\n\r\r\n", LineEnd::CrLf, "a\nb\n\n\n"),
            ("a\rb\r", LineEnd::Cr, "a\nb\n"),
        ] {
            assert_eq!((LineEnd::of(text), to_lf(text).as_ref()), (end, lf));
        }
        assert_eq!(from_lf("a\nb", LineEnd::CrLf), "a\r\nb");
        assert_eq!(split_bom("\u{feff}\u{feff}a"), (true, "\u{feff}a"));
    }
}
