//! Patterns for paths, as ignore files write them: `*` and `?` stay inside a name, `[a-z]` is one of several letters,
//! `**` spans folders, a backslash takes the next letter as it is.
//!
//! Matching needs no recursion and at most (pattern × path) steps, whatever the pattern.

use alloc::vec::Vec;

/// A pattern.
#[derive(Clone, Debug)]
pub(super) struct Glob {
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    /// Any number of folders, also none.
    Folders,
    /// One name.
    Name(Vec<Piece>),
}

#[derive(Clone, Debug)]
enum Piece {
    Letter(char),
    AnyLetter,
    AnyText,
    OneOf { negated: bool, ranges: Vec<(char, char)> },
}

impl Glob {
    /// Reads a pattern; every text is one.
    pub(super) fn parse(pattern: &str) -> Self {
        let mut parts: Vec<Part> = pattern.split('/').map(part).collect();
        if matches!(parts.last(), Some(Part::Folders)) {
            // What is inside, not the folder itself.
            parts.push(Part::Name(Vec::from([Piece::AnyText])));
        }
        Self { parts }
    }

    /// The same pattern at any depth.
    pub(super) fn at_any_depth(mut self) -> Self {
        self.parts.insert(0, Part::Folders);
        self
    }

    /// Whether the whole path, with `/`, is meant.
    pub(super) fn matches(&self, path: &str) -> bool {
        let (mut at, mut names) = (0, path.split('/'));
        let mut retry = None;
        loop {
            let mut ahead = names.clone();
            match (self.parts.get(at), ahead.next()) {
                (None, None) => return true,
                (Some(Part::Folders), _) => {
                    at += 1;
                    retry = Some((at, names.clone()));
                    continue;
                }
                (Some(Part::Name(_)), None) => return false,
                (Some(Part::Name(pieces)), Some(name)) if name_matches(pieces, name) => {
                    at += 1;
                    names = ahead;
                    continue;
                }
                _ => {}
            }
            // The last `**` takes one more folder.
            let Some((from, start)) = &mut retry else { return false };
            if start.next().is_none() {
                return false;
            }
            (at, names) = (*from, start.clone());
        }
    }
}

fn name_matches(pieces: &[Piece], name: &str) -> bool {
    let (mut at, mut letters) = (0, name.chars());
    let mut retry = None;
    loop {
        let mut ahead = letters.clone();
        match (pieces.get(at), ahead.next()) {
            (None, None) => return true,
            (Some(Piece::AnyText), _) => {
                at += 1;
                retry = Some((at, letters.clone()));
                continue;
            }
            (Some(_), None) => return false,
            (Some(piece), Some(letter)) if piece.takes(letter) => {
                at += 1;
                letters = ahead;
                continue;
            }
            _ => {}
        }
        let Some((from, start)) = &mut retry else { return false };
        if start.next().is_none() {
            return false;
        }
        (at, letters) = (*from, start.clone());
    }
}

impl Piece {
    fn takes(&self, letter: char) -> bool {
        match self {
            Self::Letter(own) => *own == letter,
            Self::AnyLetter | Self::AnyText => true,
            Self::OneOf { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&letter)) != *negated
            }
        }
    }
}

fn part(text: &str) -> Part {
    if text == "**" {
        return Part::Folders;
    }
    let (mut pieces, mut rest) = (Vec::new(), text.chars());
    let mut may_close = true;
    while let Some(letter) = rest.next() {
        pieces.push(match letter {
            // Two stars inside a name are one.
            '*' if matches!(pieces.last(), Some(Piece::AnyText)) => continue,
            '*' => Piece::AnyText,
            '?' => Piece::AnyLetter,
            '\\' => Piece::Letter(rest.next().unwrap_or('\\')),
            '[' if may_close => match letters(rest.as_str()) {
                Some((piece, after)) => {
                    rest = after.chars();
                    piece
                }
                None => {
                    may_close = false;
                    Piece::Letter('[')
                }
            },
            letter => Piece::Letter(letter),
        });
    }
    Part::Name(pieces)
}

/// The letters between brackets, and what follows; `None` when they are never closed.
fn letters(text: &str) -> Option<(Piece, &str)> {
    let inner = text.strip_prefix(['!', '^']);
    let (negated, mut rest) = (inner.is_some(), inner.unwrap_or(text).chars());
    let mut ranges = Vec::new();
    loop {
        let low = match rest.next()? {
            // A bracket that stands first is one of the letters.
            ']' if !ranges.is_empty() => return Some((Piece::OneOf { negated, ranges }, rest.as_str())),
            '\\' => rest.next()?,
            letter => letter,
        };
        let mut ahead = rest.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) if high != ']' => {
                rest = ahead;
                if high == '\\' { rest.next()? } else { high }
            }
            _ => low,
        };
        ranges.push((low, high));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, yes, no) in [
            ("a*", "abc", "ba"),
            ("a*b*c", "axxbyyc", "axxbyy"),
            ("a*", "a", "a/b"),
            ("a/**", "a/b/c", "a"),
            ("a/**/b", "a/b", "a/bb"),
            ("a/**/b", "a/x/y/b", "a/x/y"),
            ("**/b", "b", "b/c"),
            ("**/*.md", "a/b.md", "a/b.txt"),
            ("a**c", "abc", "a/c"),
            ("?", "é", "ab"),
            ("[a-c]x", "bx", "dx"),
            ("[!a-c]x", "dx", "bx"),
            ("[]a]", "]", "b"),
            ("[a-]", "-", "b"),
            ("[a", "[a", "a"),
            ("\\*", "*", "a"),
            ("/x/*", "/x/y", "x/y"),
        ] {
            assert!(Glob::parse(pattern).matches(yes), "{pattern} {yes}");
            assert!(!Glob::parse(pattern).matches(no), "{pattern} {no}");
        }
        assert!(Glob::parse("x").at_any_depth().matches("a/b/x"));
    }

    #[test]
    fn bad_patterns_are_not_slow() {
        let pattern = Glob::parse(&("*a".repeat(500) + "b"));
        assert!(!pattern.matches(&"a".repeat(5_000)));
        let folders = Glob::parse(&("**/a/".repeat(500) + "b"));
        assert!(!folders.matches(&"a/".repeat(5_000)));
    }
}
