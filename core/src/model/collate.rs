//! The order in which people expect names: blanks, punctuation, symbols, digits, letters; case and accents only
//! break ties (spec 40 §3.7, vectors `locale-order`).

use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::text::normal::{is_combining_mark, nfd};

/// ASCII that is neither digit nor letter, ascending; `$` follows all other symbols.
const MARKS: &str = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~";

/// Compares two names for people: blanks, marks, digits, letters; case and accents break ties.
#[must_use]
pub fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (Key::of(a), Key::of(b));
    a.base.cmp(&b.base).then_with(|| a.accents.cmp(&b.accents)).then_with(|| a.case.cmp(&b.case))
}

/// What is compared first, second and third.
struct Key {
    base: Vec<(u8, u32)>,
    accents: Vec<u32>,
    case: Vec<u8>,
}

impl Key {
    fn of(text: &str) -> Self {
        let mut key = Self { base: Vec::new(), accents: Vec::new(), case: Vec::new() };
        for c in nfd(text).chars() {
            if is_combining_mark(c) {
                key.accents.push(c.into());
            } else if c == 'ß' {
                key.push('s', 2);
                key.push('s', 2);
            } else {
                key.push(c, u8::from(c.is_uppercase()));
            }
        }
        key
    }

    fn push(&mut self, c: char, case: u8) {
        self.base.push(rank(c));
        self.accents.push(0);
        self.case.push(case);
    }
}

fn rank(c: char) -> (u8, u32) {
    if let Some(place) = MARKS.chars().position(|mark| mark == c) {
        return (0, u32::try_from(place).unwrap_or_default());
    }
    let lower = c.to_lowercase().next().unwrap_or(c);
    match c {
        '$' => (2, 0),
        c if c.is_numeric() => (3, c.into()),
        c if c.is_alphabetic() => (4, lower.into()),
        c => (1, c.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_like_a_catalogue() {
        let ascending =
            ["", " ", "_", "-", ".", "/", "~", "😀", "$", "0", "10", "2", "a", "A", "a b", "a-b", "ab"];
        for pair in ascending.windows(2) {
            assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{pair:?}");
        }
        assert_eq!(compare("é", "f"), Ordering::Less);
        assert_eq!(compare("e", "é"), Ordering::Less);
        assert_eq!(compare("ss", "ß"), Ordering::Less);
        assert_eq!(compare("GPT-5", "gpt-5-mini"), Ordering::Less);
        assert_eq!(compare("gpt-5", "GPT-5"), Ordering::Less);
    }
}
