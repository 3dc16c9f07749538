//! Patterns for the names of models (spec 40 §3.7): letters count without case, `*` and `?` stay between slashes, `**`
//! spans them, a leading dot must be written out. Braces, classes, groups as `+(a|b)`, `!` before the whole.
//!
//! The work is bounded whatever the pattern: what needs more matches nothing.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Longest pattern and longest name, bytes.
const MOST_BYTES: usize = 1024;
/// Most patterns that braces may stand for.
const MOST_EXPANDED: usize = 1000;
/// Most steps of one match.
const MOST_STEPS: u32 = 100_000;

/// Whether a pattern fits a name.
#[must_use]
pub fn fits(pattern: &str, name: &str) -> bool {
    if pattern.is_empty() {
        return name.is_empty();
    }
    if pattern.starts_with('#') || pattern.len() > MOST_BYTES || name.len() > MOST_BYTES {
        return false;
    }
    let positive = pattern.trim_start_matches('!');
    let is_negated = (pattern.len() - positive.len()) % 2 == 1;
    let parts: Vec<Vec<char>> = split(name).map(|part| part.chars().map(fold).collect()).collect();
    let mut steps = MOST_STEPS;
    let found = expand(positive).iter().any(|pattern| path_fits(&path(pattern), &parts, &mut steps));
    steps > 0 && found != is_negated
}

/// Between the slashes; several in a row are one.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let last = text.split('/').count() - 1;
    text.split('/')
        .enumerate()
        .filter(move |(at, part)| !part.is_empty() || *at == 0 || *at == last)
        .map(|(_, part)| part)
}

/// One letter in the case that counts.
fn fold(letter: char) -> char {
    let mut lower = letter.to_lowercase();
    lower.next().filter(|_| lower.next().is_none()).unwrap_or(letter)
}

// ----- braces -----

/// The patterns that braces stand for.
fn expand(text: &str) -> Vec<String> {
    let mut from = 0;
    while let Some(open) = text.get(from..).and_then(|rest| rest.find('{')).map(|at| at + from) {
        let (before, inside) = text.split_at(open);
        match alternatives(inside) {
            Some((alternatives, after)) => return combine(before, &alternatives, after),
            None => from = open + 1,
        }
    }
    Vec::from([text.to_string()])
}

fn combine(before: &str, alternatives: &[String], after: &str) -> Vec<String> {
    let (mut out, after) = (Vec::new(), expand(after));
    for middle in alternatives.iter().flat_map(|alternative| expand(alternative)) {
        for end in &after {
            if out.len() == MOST_EXPANDED {
                return out;
            }
            out.push([before, &middle, end].concat());
        }
    }
    out
}

/// What stands between the braces at the start of a text, and what follows them.
fn alternatives(text: &str) -> Option<(Vec<String>, &str)> {
    let (mut depth, mut commas, mut escaped) = (0_usize, Vec::new(), false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => {}
            '{' => depth += 1,
            ',' if depth == 1 => commas.push(at),
            '}' if depth == 1 => {
                let inside = text.get(1..at)?;
                let after = text.get(at + 1..)?;
                if commas.is_empty() {
                    return Some((range(inside)?, after));
                }
                let (mut list, mut start) = (Vec::new(), 1);
                for end in commas.into_iter().chain([at]) {
                    list.push(text.get(start..end)?.to_string());
                    start = end + 1;
                }
                return Some((list, after));
            }
            '}' => depth -= 1,
            _ => {}
        }
        escaped = letter == '\\' && !escaped;
    }
    None
}

/// `1..3`, `a..c`.
fn range(text: &str) -> Option<Vec<String>> {
    let (first, last) = text.split_once("..")?;
    let most = MOST_EXPANDED;
    if let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) {
        let up = (first.min(last)..=first.max(last)).take(most).map(|number| number.to_string());
        return Some(up.collect());
    }
    let one = |text: &str| -> Option<char> {
        let mut letters = text.chars();
        letters.next().filter(|letter| letter.is_ascii_alphabetic() && letters.next().is_none())
    };
    let (first, last) = (one(first)?, one(last)?);
    Some((first.min(last)..=first.max(last)).map(String::from).collect())
}

// ----- patterns -----

#[derive(Debug)]
enum Part {
    /// `**`
    Spanning,
    /// What one part of a name must look like.
    One(Vec<Piece>),
}

#[derive(Debug)]
enum Piece {
    Letter(char),
    AnyLetter,
    AnyText,
    Class { is_negated: bool, ranges: Vec<(char, char)>, kinds: Vec<fn(char) -> bool> },
    Group { times: Times, choices: Vec<Vec<Self>> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Times {
    Once,
    Maybe,
    Some,
    Any,
    Never,
}

fn path(pattern: &str) -> Vec<Part> {
    let mut texts: Vec<&str> = Vec::new();
    for part in split(pattern) {
        match texts.last() {
            // A step down and up again.
            Some(last) if part == ".." && !matches!(*last, "" | "." | ".." | "**") => {
                texts.pop();
            }
            _ => texts.push(part),
        }
    }
    let part = |text: &str| match text {
        "**" => Part::Spanning,
        _ => Part::One(pieces(&text.chars().collect::<Vec<_>>(), false).0),
    };
    texts.into_iter().map(part).collect()
}

/// Reads pieces; inside a group up to what ends a choice. Returns how many letters were read.
fn pieces(text: &[char], in_group: bool) -> (Vec<Piece>, usize) {
    let (mut out, mut at) = (Vec::new(), 0);
    while let Some(letter) = text.get(at).copied() {
        if in_group && matches!(letter, '|' | ')') {
            break;
        }
        let rest = text.get(at + 1..).unwrap_or_default();
        if let Some((group, length)) = group(letter, rest) {
            out.push(group);
            at += 1 + length;
            continue;
        }
        at += 1;
        out.push(match letter {
            '*' if matches!(out.last(), Some(Piece::AnyText)) => continue,
            '*' => Piece::AnyText,
            '?' => Piece::AnyLetter,
            '[' => match class(rest) {
                Some((class, length)) => {
                    at += length;
                    class
                }
                None => Piece::Letter('['),
            },
            '\\' => {
                at += usize::from(!rest.is_empty());
                Piece::Letter(fold(rest.first().copied().unwrap_or('\\')))
            }
            letter => Piece::Letter(fold(letter)),
        });
    }
    (out, at)
}

/// A group after its mark; `None` when there is none, or it is not closed. Found out before it is read, so that nothing
/// is read twice.
fn group(mark: char, rest: &[char]) -> Option<(Piece, usize)> {
    let times = match mark {
        '@' => Times::Once,
        '?' => Times::Maybe,
        '+' => Times::Some,
        '*' => Times::Any,
        '!' => Times::Never,
        _ => return None,
    };
    if rest.first() != Some(&'(') || !is_closed(rest) {
        return None;
    }
    let (mut choices, mut at) = (Vec::new(), 1);
    loop {
        let (choice, length) = pieces(rest.get(at..)?, true);
        choices.push(choice);
        at += length;
        match rest.get(at) {
            Some('|') => at += 1,
            end => return Some((Piece::Group { times, choices }, at + usize::from(end.is_some()))),
        }
    }
}

/// Whether the bracket at the start is closed.
fn is_closed(text: &[char]) -> bool {
    let mut depth = 0_usize;
    text.iter().any(|letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

/// A class after its bracket; `None` when it is not closed.
fn class(text: &[char]) -> Option<(Piece, usize)> {
    let is_negated = matches!(text.first(), Some('!' | '^'));
    let first = usize::from(is_negated);
    let (mut ranges, mut kinds, mut at) = (Vec::new(), Vec::new(), first);
    loop {
        let rest = text.get(at..)?;
        match rest {
            // A bracket that stands first is one of the letters.
            [']', ..] if at > first => return Some((Piece::Class { is_negated, ranges, kinds }, at + 1)),
            ['[', ':', ..] if let Some((kind, length)) = kind(rest) => {
                kinds.push(kind);
                at += length;
            }
            ['\\', letter, ..] => {
                ranges.push((*letter, *letter));
                at += 2;
            }
            [low, '-', high, ..] if *high != ']' => {
                ranges.push((*low, *high));
                at += 3;
            }
            [letter, ..] => {
                ranges.push((*letter, *letter));
                at += 1;
            }
            [] => return None,
        }
    }
}

/// `[:digit:]` and the like.
fn kind(text: &[char]) -> Option<(fn(char) -> bool, usize)> {
    const KINDS: [(&str, fn(char) -> bool); 8] = [
        ("[:alnum:]", char::is_alphanumeric),
        ("[:alpha:]", char::is_alphabetic),
        ("[:digit:]", |letter| letter.is_ascii_digit()),
        ("[:lower:]", char::is_alphabetic),
        ("[:punct:]", |letter| letter.is_ascii_punctuation()),
        ("[:space:]", char::is_whitespace),
        ("[:upper:]", char::is_alphabetic),
        ("[:xdigit:]", |letter| letter.is_ascii_hexdigit()),
    ];
    let is_here = |name: &str| name.chars().zip(text).filter(|(a, b)| a == *b).count() == name.len();
    KINDS.iter().find(|(name, _)| is_here(name)).map(|(name, kind)| (*kind, name.len()))
}

// ----- matching -----

fn path_fits(parts: &[Part], names: &[Vec<char>], steps: &mut u32) -> bool {
    let Some((part, rest)) = parts.split_first() else {
        // A slash at the end does not matter.
        return matches!(names, [] | [_]) && names.iter().all(Vec::is_empty);
    };
    let is_hidden = |name: &Vec<char>| name.first() == Some(&'.');
    match part {
        Part::Spanning if rest.is_empty() => !names.is_empty() && !names.iter().any(is_hidden),
        Part::Spanning => {
            let seen = names.iter().take_while(|name| !is_hidden(name)).count();
            (0..=seen).any(|from| names.get(from..).is_some_and(|names| path_fits(rest, names, steps)))
        }
        Part::One(pieces) => names
            .split_first()
            .is_some_and(|(name, names)| name_fits(pieces, name, steps) && path_fits(rest, names, steps)),
    }
}

fn name_fits(pieces: &[Piece], name: &[char], steps: &mut u32) -> bool {
    let literal = || pieces.iter().all(|piece| matches!(piece, Piece::Letter(_)));
    let allowed = match name {
        [] => pieces.is_empty(),
        ['.'] | ['.', '.'] => literal(),
        ['.', ..] => matches!(pieces.first(), Some(Piece::Letter('.'))),
        _ => true,
    };
    allowed && fits_then(pieces, name, steps, &mut |rest, _| rest.is_empty())
}

/// What has to hold of the text that is left.
type Then<'a> = &'a mut dyn FnMut(&[char], &mut u32) -> bool;

fn fits_then(pieces: &[Piece], text: &[char], steps: &mut u32, then: Then<'_>) -> bool {
    *steps = steps.saturating_sub(1);
    if *steps == 0 {
        return false;
    }
    let Some((piece, rest)) = pieces.split_first() else { return then(text, steps) };
    let mut ends = 0..=text.len();
    match piece {
        Piece::AnyText => ends.any(|at| fits_then(rest, text.get(at..).unwrap_or_default(), steps, then)),
        Piece::Group { times: Times::Never, choices } => ends.any(|at| {
            let (inside, after) = text.split_at_checked(at).unwrap_or_default();
            let is_one = |choice: &Vec<Piece>, steps: &mut u32| {
                fits_then(choice, inside, steps, &mut |rest, _| rest.is_empty())
            };
            !choices.iter().any(|choice| is_one(choice, steps)) && fits_then(rest, after, steps, then)
        }),
        Piece::Group { times, choices } => {
            (matches!(times, Times::Maybe | Times::Any) && fits_then(rest, text, steps, then))
                || repeat(choices, matches!(times, Times::Some | Times::Any), rest, text, steps, then)
        }
        piece => text
            .split_first()
            .is_some_and(|(letter, text)| piece.takes(*letter) && fits_then(rest, text, steps, then)),
    }
}

/// One of the choices, and more of them if `again`, then the rest.
fn repeat(
    choices: &[Vec<Piece>],
    again: bool,
    rest: &[Piece],
    text: &[char],
    steps: &mut u32,
    then: Then<'_>,
) -> bool {
    choices.iter().any(|choice| {
        fits_then(choice, text, steps, &mut |left, steps| {
            fits_then(rest, left, steps, then)
                || (again && left.len() < text.len() && repeat(choices, again, rest, left, steps, then))
        })
    })
}

impl Piece {
    fn takes(&self, letter: char) -> bool {
        match self {
            Self::Letter(own) => *own == letter,
            Self::Class { is_negated, ranges, kinds } => {
                let upper = letter.to_uppercase().next().unwrap_or(letter);
                let within = |(low, high): &(char, char)| {
                    let range = *low..=*high;
                    range.contains(&letter) || range.contains(&upper)
                };
                (ranges.iter().any(within) || kinds.iter().any(|kind| kind(letter))) != *is_negated
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_all_measure_matches_nothing() {
        assert!(!fits(&("*a".repeat(400) + "b"), &"a".repeat(1000)));
        assert!(!fits(&("+(a|a)".repeat(20) + "b"), &"a".repeat(500)));
        assert!(!fits(&"{a,b}".repeat(100), "x"));
        assert!(!fits(&"(".repeat(1000), "x") && !fits(&"+(".repeat(500), "x"));
        assert!(!fits(&("!".to_string() + &"*a".repeat(300) + "b"), &"a".repeat(1000)));
        assert!(!fits("*", &"a".repeat(2000)));
    }

    #[test]
    fn groups() {
        for (pattern, yes, no) in [
            ("+(a|bc)d", "abcad", "d"),
            ("*(a)", "aaa", "ab"),
            ("?(a)b", "ab", "aab"),
            ("a!(b)c", "axc", "abc"),
            ("@(a|+(b))", "bbb", "ab"),
            ("{a,{b,c}}x", "cx", "dx"),
            ("{a..c}", "b", "d"),
            ("\\{a,b\\}", "{a,b}", "a"),
            ("+(a", "+(a", "a"),
            ("+(a[)])", "a)", "a"),
        ] {
            assert!(fits(pattern, yes), "{pattern} {yes}");
            assert!(!fits(pattern, no), "{pattern} {no}");
        }
    }
}
