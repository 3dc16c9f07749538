//! Finding sessions by what was said in them (spec 60 §1.12; vectors `sessions/session-search.json`).
//!
//! A query is a list of words and `"phrases"`, all of which must be found, or `re:` and a pattern. Each is looked for
//! in the name first, then in id, directory and messages, at last loosely in name and directory.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::now::Wall;
use crate::text::fuzzy;

/// What a person looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// All of these.
    Tokens(Vec<Token>),
    /// A regular expression, case aside; empty when `re:` stood alone, which finds nothing.
    Pattern(String),
}

/// A part of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// A word.
    Word(String),
    /// What stood between quotes: blanks of any kind and number are the same.
    Phrase(String),
}

impl Query {
    /// Reads a query. A quote without its partner is a character like others.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        if let Some(pattern) = text.strip_prefix("re:") {
            return Self::Pattern(pattern.trim().into());
        }
        Self::Tokens(tokens(text).unwrap_or_else(|| text.split_whitespace().map(word).collect()))
    }
}

fn word(text: &str) -> Token {
    Token::Word(text.into())
}

/// `None` when a quote has no partner.
fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut parts = text.split('"');
    tokens.extend(parts.next()?.split_whitespace().map(word));
    while let Some(phrase) = parts.next() {
        let after = parts.next()?;
        let phrase = phrase.trim();
        if !phrase.is_empty() {
            tokens.push(Token::Phrase(phrase.into()));
        }
        tokens.extend(after.split_whitespace().map(word));
    }
    Some(tokens)
}

/// One session, as far as a search looks at it.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Session id.
    pub id: &'a str,
    /// Display name.
    pub name: Option<&'a str>,
    /// Working directory.
    pub cwd: &'a str,
    /// What user and model said.
    pub text: &'a str,
}

/// Tells whether a pattern is found in a text.
pub type IsMatch = Box<dyn Fn(&str) -> bool>;

/// A query that is ready to be used on many sessions.
pub enum Search {
    /// Lower-case needles.
    Tokens(Vec<Needle>),
    /// A pattern.
    Pattern(IsMatch),
    /// A query that makes no sense.
    Nothing,
}

/// A token in the form in which it is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needle {
    text: String,
    folded: bool,
}

/// A better place costs less than any difference inside a place.
const TIER: f64 = 1e6;

impl Search {
    /// Prepares a query; `compile` makes a pattern usable, `None` when it is none.
    #[must_use]
    pub fn new(query: &Query, compile: impl FnOnce(&str) -> Option<IsMatch>) -> Self {
        match query {
            Query::Tokens(tokens) => Self::Tokens(tokens.iter().map(Needle::new).collect()),
            Query::Pattern(pattern) if pattern.is_empty() => Self::Nothing,
            Query::Pattern(pattern) => compile(pattern).map_or(Self::Nothing, Self::Pattern),
        }
    }

    /// How well a session fits, lower is better; `None` when it does not.
    #[must_use]
    pub fn score(&self, subject: &Subject<'_>) -> Option<f64> {
        match self {
            Self::Nothing => None,
            Self::Pattern(is_match) => {
                let rest = || [subject.id, subject.cwd, subject.text].into_iter().any(is_match);
                match subject.name {
                    Some(name) if is_match(name) => Some(0.0),
                    _ => rest().then_some(TIER),
                }
            }
            Self::Tokens(needles) => {
                let mut text = None;
                needles.iter().map(|needle| needle.score(subject, &mut text)).sum()
            }
        }
    }

    /// Where the session's text holds what was looked for: the offset of the first needle that is in it.
    #[must_use]
    pub fn place(&self, text: &str) -> Option<usize> {
        let Self::Tokens(needles) = self else { return None };
        let lower = text.to_lowercase();
        let at = needles.iter().find_map(|needle| lower.find(&needle.text))?;
        // Lower case may be of another length; then the place is not worth a search.
        (lower.len() == text.len() && text.is_char_boundary(at)).then_some(at)
    }

    /// Order of what was found: the better score, then the newer activity.
    #[must_use]
    pub fn order(a: (f64, Wall), b: (f64, Wall)) -> Ordering {
        a.0.total_cmp(&b.0).then_with(|| b.1.cmp(&a.1))
    }
}

impl Needle {
    fn new(token: &Token) -> Self {
        match token {
            Token::Word(text) => Self { text: text.to_lowercase(), folded: false },
            Token::Phrase(text) => Self { text: fold(&text.to_lowercase()), folded: true },
        }
    }

    /// `lower` keeps the text in lower case from one needle to the next.
    fn score(&self, subject: &Subject<'_>, lower: &mut Option<String>) -> Option<f64> {
        if subject.name.is_some_and(|name| self.is_in(&name.to_lowercase())) {
            return Some(0.0);
        }
        let in_short = self.is_in(&subject.id.to_lowercase()) || self.is_in(&subject.cwd.to_lowercase());
        if in_short || self.is_in(lower.get_or_insert_with(|| subject.text.to_lowercase())) {
            return Some(TIER);
        }
        if self.folded {
            return None;
        }
        let loose = |text: &str| fuzzy::score(&self.text, text);
        let (name, cwd) = (subject.name.and_then(loose), loose(subject.cwd));
        let best = match (name, cwd) {
            (Some(name), Some(cwd)) => name.min(cwd),
            (name, cwd) => name.or(cwd)?,
        };
        Some(2.0 * TIER + best)
    }

    fn is_in(&self, lower: &str) -> bool {
        lower.contains(&self.text) || (self.folded && fold(lower).contains(&self.text))
    }
}

/// Blanks of any kind and number become one.
fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for part in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(part);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_make_phrases() {
        let phrase = |text: &str| Token::Phrase(text.into());
        for (text, tokens) in [
            ("", alloc::vec![]),
            ("a  b", alloc::vec![word("a"), word("b")]),
            (r#"a "b  c"d"#, alloc::vec![word("a"), phrase("b  c"), word("d")]),
            (r#"" " x"#, alloc::vec![word("x")]),
            (r#"a "b c"#, alloc::vec![word("a"), word("\"b"), word("c")]),
        ] {
            assert_eq!(Query::parse(text), Query::Tokens(tokens), "{text}");
        }
        assert_eq!(Query::parse(" re: x+ "), Query::Pattern("x+".into()));
    }

    #[test]
    fn places_are_offsets_of_the_text() {
        let find = |query: &str, text: &str| Search::new(&Query::parse(query), |_| None).place(text);
        assert_eq!(find("NODE", "fix the Node cve"), Some(8));
        assert_eq!(find("absent cve", "fix the Node cve"), Some(13));
        assert_eq!(find("i", "İi"), None);
        assert_eq!(find("re:x", "x"), None);
    }
}
