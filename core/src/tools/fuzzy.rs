//! The space in which `edit` compares texts when they are not equal: compatibility forms, typographic quotes, dashes
//! and blanks folded, blanks at line ends dropped (spec 50 §4.2).

use alloc::borrow::Cow;
use alloc::string::String;

use memchr::{memchr, memchr_iter, memmem, memrchr};

use crate::text::normal::nfkc;

/// White space as JavaScript defines it.
#[must_use]
pub const fn is_js_space(c: char) -> bool {
    matches!(
        c,
        '\u{9}'..='\u{d}'
            | ' '
            | '\u{a0}'
            | '\u{1680}'
            | '\u{2000}'..='\u{200a}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{202f}'
            | '\u{205f}'
            | '\u{3000}'
            | '\u{feff}'
    )
}

const fn fold_char(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

/// Appends the folded form of one line, given without its LF.
fn fold_line(line: &str, out: &mut String) {
    if line.is_ascii() {
        return out.push_str(line.trim_end_matches(is_js_space));
    }
    let start = out.len();
    nfkc(line, out);
    let kept = out.get(start..).map_or(0, |line| line.trim_end_matches(is_js_space).len());
    out.truncate(start + kept);
    if out.get(start..).is_some_and(|line| line.chars().any(|c| fold_char(c) != c)) {
        let folded: String = out.get(start..).unwrap_or_default().chars().map(fold_char).collect();
        out.truncate(start);
        out.push_str(&folded);
    }
}

/// The folded form of a text. LFs keep their number and order, so lines correspond.
#[must_use]
pub fn fold(text: &str) -> Cow<'_, str> {
    if is_folded_ascii(text.as_bytes()) {
        return Cow::Borrowed(text);
    }
    // Folding can grow a line, but rarely does.
    let mut out = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            out.push('\n');
        }
        fold_line(line, &mut out);
    }
    Cow::Owned(out)
}

/// Whether a text is ASCII without blanks at line ends, and so its own folded form.
fn is_folded_ascii(text: &[u8]) -> bool {
    let is_space = |b: Option<&u8>| b.is_some_and(|b| is_js_space(char::from(*b)) && *b != b'\n');
    text.is_ascii()
        && !is_space(text.last())
        && !memchr_iter(b'\n', text).any(|at| is_space(at.checked_sub(1).and_then(|before| text.get(before))))
}

/// How often a folded, non-empty `needle` without LF occurs in the folded form of `text`, without making that form:
/// in ASCII lines folding only drops blanks at the end, where the needle does not reach.
#[must_use]
pub fn count_in_lines(text: &str, needle: &str) -> usize {
    let finder = memmem::Finder::new(needle.as_bytes());
    let mut scratch = String::new();
    let (mut rest, mut count) = (text, 0);
    while !rest.is_empty() {
        // Lines up to the one with the next character outside ASCII are searched as they are.
        let odd = first_non_ascii(rest.as_bytes());
        let bytes = rest.as_bytes();
        let line_start = memrchr(b'\n', bytes.get(..odd).unwrap_or_default()).map_or(0, |at| at + 1);
        let plain = if odd == bytes.len() { bytes.len() } else { line_start };
        count += finder.find_iter(bytes.get(..plain).unwrap_or_default()).count();
        rest = rest.get(plain..).unwrap_or_default();
        if rest.is_empty() {
            break;
        }
        let line_end = memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
        scratch.clear();
        fold_line(rest.get(..line_end).unwrap_or_default(), &mut scratch);
        count += finder.find_iter(scratch.as_bytes()).count();
        rest = rest.get(line_end + 1..).unwrap_or_default();
    }
    count
}

/// Position of the first byte outside ASCII, the length if there is none.
fn first_non_ascii(bytes: &[u8]) -> usize {
    const BLOCK: usize = 1024;
    let mut at = 0;
    for block in bytes.chunks(BLOCK) {
        if !block.is_ascii() {
            return at + block.iter().take_while(|b| b.is_ascii()).count();
        }
        at += block.len();
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_by_lines_equals_counting_in_the_folded_text() {
        let texts =
            ["", "a'b", "a’b\na'b \nxx", "end\nend \nend\t", "ﬁn fin\n…...\n", "aaaa\nａａａ", "é a\na\n\né"];
        for text in texts {
            for needle in ["a", "aa", "a'b", "end", "fin", "...", "é", "x"] {
                let want = fold(text).matches(needle).count();
                assert_eq!(count_in_lines(text, needle), want, "{text:?} {needle:?}");
            }
        }
    }
}
