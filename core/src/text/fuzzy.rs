//! Matching a few typed letters against a text, as pickers do (vectors `sessions/fuzzy.json`).
//!
//! All letters of the query must occur in the text in their order, case aside. The score says how well: runs of
//! neighbours and starts of words are good, gaps and late places are bad; lower is better. Letters are taken where they
//! come first, unless the query stands somewhere as a whole. Places count UTF-16 units.

use alloc::string::String;
use alloc::vec::Vec;

/// For each letter of a run, as often as the run is long.
const RUN: f64 = -5.0;
/// For a letter at the start of a word.
const WORD_START: f64 = -10.0;
/// For each unit between two letters.
const GAP: f64 = 2.0;
/// For each unit before a letter.
const LATE: f64 = 0.1;
/// For a query that is the whole text.
const WHOLE: f64 = -100.0;
/// For `4gpt` that was found as `gpt4`, and the other way round.
const SWAPPED: f64 = 5.0;

/// How well `text` fits `query`, lower is better; `None` when it does not.
#[must_use]
pub fn score(query: &str, text: &str) -> Option<f64> {
    let (query, text) = (query.to_lowercase(), text.to_lowercase());
    let text: Vec<u16> = text.encode_utf16().collect();
    in_order(&query, &text).or_else(|| Some(in_order(&swapped(&query)?, &text)? + SWAPPED))
}

/// The places of the items that fit every word of the query (words end at blanks and slashes), best first.
#[must_use]
pub fn rank<'a>(query: &str, items: impl IntoIterator<Item = &'a str>) -> Vec<usize> {
    let words = || query.split(|c: char| c.is_whitespace() || c == '/').filter(|word| !word.is_empty());
    let all = |text: &str| words().map(|word| score(word, text)).sum::<Option<f64>>();
    let scored = items.into_iter().enumerate();
    let mut found: Vec<(usize, f64)> = scored.filter_map(|(at, text)| Some((at, all(text)?))).collect();
    crate::order::sort(&mut found, |a, b| a.1.total_cmp(&b.1));
    found.into_iter().map(|(at, _)| at).collect()
}

fn in_order(query: &str, text: &[u16]) -> Option<f64> {
    let query: Vec<u16> = query.encode_utf16().collect();
    let whole = text.windows(query.len().max(1)).position(|part| part == query);
    let mut score = 0.0;
    let (mut run, mut last, mut from) = (0.0, None, whole.unwrap_or(0));
    for wanted in query.iter().copied() {
        let at = from + text.get(from..)?.iter().position(|unit| *unit == wanted)?;
        match last {
            Some(last) if at > last + 1 => {
                run = 0.0;
                score += GAP * (at - last - 1) as f64;
            }
            None if at > 0 => run = 0.0,
            _ => {
                run += 1.0;
                score += RUN * run;
            }
        }
        let starts_word = at.checked_sub(1).and_then(|before| text.get(before)).is_none_or(|u| ends_word(*u));
        if starts_word {
            score += WORD_START;
        }
        score += LATE * at as f64;
        (last, from) = (Some(at), at + 1);
    }
    if !query.is_empty() && query == text {
        score += WHOLE;
    }
    Some(score)
}

fn ends_word(unit: u16) -> bool {
    char::from_u32(unit.into()).is_some_and(|c| c.is_whitespace() || "-_./:".contains(c))
}

/// Letters and then digits, or digits and then letters, in the other order.
fn swapped(query: &str) -> Option<String> {
    let first_is_digit = query.chars().next()?.is_ascii_digit();
    let split = query.find(|c: char| c.is_ascii_digit() != first_is_digit)?;
    let (first, second) = query.split_at_checked(split)?;
    let is = |part: &str, digits: bool| {
        part.bytes().all(|b| if digits { b.is_ascii_digit() } else { b.is_ascii_lowercase() })
    };
    let fits = is(first, first_is_digit) && is(second, !first_is_digit);
    fits.then(|| alloc::format!("{second}{first}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_in_order() {
        assert_eq!(score("", "abc"), Some(0.0));
        assert_eq!(score("ca", "abc"), None);
        assert!(score("ab", "a-b") < score("ab", "xaxb"));
        assert!(score("4gpt", "gpt-4o").is_some() && score("4gp4", "gpt-4o").is_none());
        assert_eq!(score("a1b", "b1a"), None);
        assert!(score("opus", "anthropic claude-opus") < score("opus", "anthropic claude-sonnet"));
    }

    #[test]
    fn every_word_counts() {
        let items = ["beta alpha", "alpha", "gamma"];
        assert_eq!(rank("al/be", items), [0]);
        assert_eq!(rank(" / ", items), [0, 1, 2]);
        assert_eq!(rank("alpha", items), [1, 0]);
    }
}
