//! Phrases that are looked for in the words of services: a few marks instead of regular expressions.
//!
//! | in a phrase | stands for |
//! |---|---|
//! | `~` | one character of the same line, or none |
//! | `[x]` | the text `x`, or nothing |
//! | `{digits}` | one digit or more |
//! | `{number}` | digits and commas, at least one |
//! | `{blanks}` | any number of blanks, also none |
//! | `{blank}` | one blank |
//! | `{sep}` | one space or `_` |
//! | `{word}` | characters without a blank, at least one |
//! | `{name}` | letters, digits, `_`, `-` and spaces, at least one |
//! | `{line}` | anything up to the end of the line |
//! | `{start}`, `{end}` | the ends of the text |
//! | `{edge}` | no ASCII letter or digit on the other side: before a word the character behind us, after it the next |
//! | `{rim}` | as `{edge}`, `_` counts as a letter |
//! | `{no digit}` | the next character is no digit |
//!
//! Everything else is itself; ASCII letters are compared without case. Alternatives are separate phrases. The work is
//! linear in the text for each phrase.

/// Whether the phrase occurs in the text. A phrase with an unknown mark occurs nowhere.
#[must_use]
pub fn contains(text: &str, phrase: &str) -> bool {
    match phrase.split_once("{line}") {
        None => find(text, phrase).is_some(),
        // The first head of a line leaves the most room for the tail, so no other one needs a try.
        Some((head, tail)) => text.split(is_line_end).any(|line| {
            let rest = find(line, head).and_then(|end| line.get(end..));
            rest.is_some_and(|rest| find(rest, tail).is_some())
        }),
    }
}

/// Whether any of the phrases occurs in the text.
#[must_use]
pub fn contains_any(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| contains(text, phrase))
}

const fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

/// Where the first occurrence ends.
fn find(text: &str, phrase: &str) -> Option<usize> {
    if let Some(phrase) = phrase.strip_prefix("{start}") {
        return matched(text, 0, phrase);
    }
    text.char_indices().find_map(|(at, _)| matched(text, at, phrase))
}

/// Where the phrase ends if it stands at `at`.
fn matched(text: &str, mut at: usize, mut phrase: &str) -> Option<usize> {
    while let Some(mark) = phrase.chars().next() {
        let rest = phrase.get(mark.len_utf8()..)?;
        match mark {
            '~' => {
                let skipped = next(text, at).filter(|c| !is_line_end(*c)).map(|c| at + c.len_utf8());
                if let Some(end) = skipped.and_then(|at| matched(text, at, rest)) {
                    return Some(end);
                }
                phrase = rest;
            }
            '[' => {
                let (choice, rest) = rest.split_once(']')?;
                if let Some(end) = literal(text, at, choice).and_then(|at| matched(text, at, rest)) {
                    return Some(end);
                }
                phrase = rest;
            }
            '{' => {
                let (mark, rest) = rest.split_once('}')?;
                if mark == "name" {
                    return after_name(text, at, rest);
                }
                at = special(text, at, mark)?;
                phrase = rest;
            }
            _ => {
                at = same(text, at, mark)?;
                phrase = rest;
            }
        }
    }
    Some(at)
}

fn next(text: &str, at: usize) -> Option<char> {
    text.get(at..)?.chars().next()
}

fn same(text: &str, at: usize, wanted: char) -> Option<usize> {
    next(text, at).filter(|c| c.eq_ignore_ascii_case(&wanted)).map(|c| at + c.len_utf8())
}

fn literal(text: &str, at: usize, wanted: &str) -> Option<usize> {
    wanted.chars().try_fold(at, |at, c| same(text, at, c))
}

/// The end of the rest of the phrase after the shortest name that allows it.
fn after_name(text: &str, at: usize, rest: &str) -> Option<usize> {
    let is_name = |c: &(usize, char)| c.1.is_ascii_alphanumeric() || matches!(c.1, '_' | '-' | ' ');
    let mut ends = text.get(at..)?.char_indices().take_while(is_name).map(|(i, c)| at + i + c.len_utf8());
    ends.find_map(|at| matched(text, at, rest))
}

/// The end of what a mark in braces stands for. Runs take all they can: what follows them cannot begin like them.
fn special(text: &str, at: usize, mark: &str) -> Option<usize> {
    let rest = text.get(at..)?;
    let run = |is: fn(char) -> bool| rest.find(|c| !is(c)).unwrap_or(rest.len());
    let some = |len: usize| (len > 0).then_some(at + len);
    let first = rest.chars().next();
    let one = |is: fn(char) -> bool| first.filter(|c| is(*c)).map(|c| at + c.len_utf8());
    match mark {
        "digits" => some(run(|c| c.is_ascii_digit())),
        "number" => some(run(|c| c.is_ascii_digit() || c == ',')),
        "word" => some(run(|c| !c.is_whitespace())),
        "blanks" => Some(at + run(char::is_whitespace)),
        "blank" => one(char::is_whitespace),
        "sep" => one(|c| matches!(c, ' ' | '_')),
        "end" => rest.is_empty().then_some(at),
        "no digit" => (!first.is_some_and(|c| c.is_ascii_digit())).then_some(at),
        "edge" => is_edge(text, at, |c| c.is_ascii_alphanumeric()).then_some(at),
        "rim" => is_edge(text, at, |c| c.is_ascii_alphanumeric() || c == '_').then_some(at),
        _ => None,
    }
}

/// A place between two characters is an edge unless both belong to a word.
fn is_edge(text: &str, at: usize, in_word: fn(char) -> bool) -> bool {
    let before = text.get(..at).and_then(|head| head.chars().next_back());
    !(before.is_some_and(in_word) && next(text, at).is_some_and(in_word))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Checks a table: every row in order has a text with it and a near miss without it.
    pub(crate) fn check_rows(table: &[&str], rows: &[(&str, &str, &str)]) {
        for (phrase, yes, no) in rows {
            assert!(contains(yes, phrase), "{phrase:?} is not found in {yes:?}");
            assert!(
                contains(&alloc::format!("{yes} é\n"), phrase) || phrase.ends_with("{end}"),
                "{phrase:?}"
            );
            assert!(!contains(no, phrase), "{phrase:?} is found in {no:?}");
        }
        let tested: alloc::vec::Vec<_> = rows.iter().map(|row| row.0).collect();
        assert_eq!(tested, table, "a row without a test");
    }

    #[test]
    fn marks() {
        for (phrase, yes, no) in [
            ("a~b", "xAB", "a--b"),
            ("a~b", "a\u{2013}b", "a\nb"),
            ("a~b~c", "abc", "a"),
            ("x[yz]a", "xa XYZA", "xya"),
            ("[a]ab", "ab", "a"),
            ("n {digits}!", "n 123!", "n !"),
            ("n {number}.", "n 1,234.", "n 1_2."),
            (":{blanks};", ":\t ;", ":x;"),
            ("a{blank}b", "a\u{a0}b", "ab"),
            ("a{sep}b", "a_b", "a-b"),
            ("to {word} end", "to x:é end", "to  end"),
            ("{start}{name} (4)", "my api-v_1 (4)", "my/api (4)"),
            ("a{line}b", "x\naxxab", "a\nb"),
            ("a{line}b", "b a\nab", "ba"),
            ("{start}ab", "abc", " ab"),
            ("ab{end}", "xab", "ab "),
            ("{edge}42{edge}", "_42_", "x42"),
            ("{edge}42{edge}", "é42é", "420"),
            ("{rim}ab{rim}", "(ab)", "ab_"),
            ("1308{no digit}", "1308x", "13080"),
        ] {
            assert!(contains(yes, phrase), "{phrase:?} in {yes:?}");
            assert!(!contains(no, phrase), "{phrase:?} not in {no:?}");
        }
        assert!(!contains("{wrong}", "{wrong}"), "an unknown mark occurs nowhere");
        assert!(contains_any("abc", &["x", "C"]) && !contains_any("abc", &[]));
        assert!(!contains("", "a") && contains("", "{start}{end}"));
    }
}
