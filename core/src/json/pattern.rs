//! A small regular expression matcher for `pattern` and `patternProperties` of JSON Schema.
//!
//! It reads the part of the ECMAScript syntax that schemas use: literals, `.`, classes, `\d \w \s \b`, anchors, groups,
//! alternation and quantifiers. It simulates a state set, so the cost is linear in the text whatever the pattern.
//! Look-around, back references and property classes are not read; such a pattern is no constraint.

use alloc::vec::Vec;
use core::iter::Peekable;
use core::str::Chars;

/// Largest program; bounded repeats are written out.
const MAX_STEPS: usize = 4096;

/// Deepest nesting of groups.
const MAX_DEPTH: usize = 32;

#[derive(Clone, Debug)]
enum Step {
    /// One character out of ranges (or out of the others).
    Class(Vec<(char, char)>, bool),
    /// Go on at both places.
    Split(usize, usize),
    Jump(usize),
    Start,
    End,
    WordEdge(bool),
    Match,
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    steps: Vec<Step>,
}

impl Pattern {
    /// Compiles; `None` for syntax that is not read and for patterns that are too large.
    pub(super) fn new(source: &str) -> Option<Self> {
        let mut compiler = Compiler { chars: source.chars().peekable(), steps: Vec::new(), depth: 0 };
        compiler.alternatives()?;
        if compiler.chars.next().is_some() {
            return None;
        }
        compiler.emit(Step::Match)?;
        Some(Self { steps: compiler.steps })
    }

    /// Whether the pattern is found anywhere in the text.
    pub(super) fn is_match(&self, text: &str) -> bool {
        let mut set = StateSet::new(self.steps.len());
        let mut next = StateSet::new(self.steps.len());
        let mut before = None;
        let mut chars = text.chars().peekable();
        loop {
            let after = chars.peek().copied();
            self.add(&mut set, 0, before, after);
            if set.matched {
                return true;
            }
            let Some(c) = chars.next() else { return false };
            let following = chars.peek().copied();
            next.clear();
            for &at in &set.list {
                if let Some(Step::Class(ranges, negated)) = self.steps.get(at)
                    && ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
                {
                    self.add(&mut next, at + 1, Some(c), following);
                }
            }
            core::mem::swap(&mut set, &mut next);
            before = Some(c);
        }
    }

    /// Adds a state and everything reachable without reading a character.
    fn add(&self, set: &mut StateSet, from: usize, before: Option<char>, after: Option<char>) {
        let mut todo = alloc::vec![from];
        while let Some(at) = todo.pop() {
            let Some(seen) = set.seen.get_mut(at) else { continue };
            if core::mem::replace(seen, true) {
                continue;
            }
            match self.steps.get(at) {
                Some(Step::Class(..)) => set.list.push(at),
                Some(Step::Split(a, b)) => todo.extend([*b, *a]),
                Some(Step::Jump(to)) => todo.push(*to),
                Some(Step::Start) if before.is_none() => todo.push(at + 1),
                Some(Step::End) if after.is_none() => todo.push(at + 1),
                Some(Step::WordEdge(wanted)) if (is_word(before) != is_word(after)) == *wanted => {
                    todo.push(at + 1)
                }
                Some(Step::Match) => set.matched = true,
                _ => {}
            }
        }
    }
}

fn is_word(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
}

struct StateSet {
    list: Vec<usize>,
    seen: Vec<bool>,
    matched: bool,
}

impl StateSet {
    fn new(len: usize) -> Self {
        Self { list: Vec::new(), seen: alloc::vec![false; len], matched: false }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.seen.fill(false);
        self.matched = false;
    }
}

const DIGIT: &[(char, char)] = &[('0', '9')];
const WORD: &[(char, char)] = &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];
const SPACE: &[(char, char)] = &[
    ('\t', '\r'),
    (' ', ' '),
    ('\u{a0}', '\u{a0}'),
    ('\u{1680}', '\u{1680}'),
    ('\u{2000}', '\u{200a}'),
    ('\u{2028}', '\u{2029}'),
    ('\u{202f}', '\u{202f}'),
    ('\u{205f}', '\u{205f}'),
    ('\u{3000}', '\u{3000}'),
    ('\u{feff}', '\u{feff}'),
];
const LINE_ENDS: &[(char, char)] = &[('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')];

struct Compiler<'a> {
    chars: Peekable<Chars<'a>>,
    steps: Vec<Step>,
    depth: usize,
}

impl Compiler<'_> {
    fn emit(&mut self, step: Step) -> Option<usize> {
        if self.steps.len() >= MAX_STEPS {
            return None;
        }
        self.steps.push(step);
        Some(self.steps.len() - 1)
    }

    fn set(&mut self, at: usize, step: Step) {
        if let Some(slot) = self.steps.get_mut(at) {
            *slot = step;
        }
    }

    /// `a|b|c`
    fn alternatives(&mut self) -> Option<()> {
        let mut ends = Vec::new();
        loop {
            let split = self.emit(Step::Jump(0))?;
            self.sequence()?;
            if self.chars.next_if_eq(&'|').is_none() {
                self.set(split, Step::Jump(split + 1));
                break;
            }
            ends.push(self.emit(Step::Jump(0))?);
            let next = self.steps.len();
            self.set(split, Step::Split(split + 1, next));
        }
        let end = self.steps.len();
        ends.into_iter().for_each(|at| self.set(at, Step::Jump(end)));
        Some(())
    }

    fn sequence(&mut self) -> Option<()> {
        while let Some(&c) = self.chars.peek() {
            if matches!(c, '|' | ')') {
                break;
            }
            self.chars.next();
            let start = self.steps.len();
            self.atom(c)?;
            self.quantifier(start)?;
        }
        Some(())
    }

    fn atom(&mut self, c: char) -> Option<()> {
        let step = match c {
            '^' => Step::Start,
            '$' => Step::End,
            '.' => Step::Class(LINE_ENDS.into(), true),
            '[' => self.class()?,
            '(' => return self.group(),
            '\\' => self.escape()?,
            '*' | '+' | '?' | '{' | '}' | ']' => return None,
            c => Step::Class([(c, c)].into(), false),
        };
        self.emit(step).map(|_| ())
    }

    fn group(&mut self) -> Option<()> {
        if self.chars.next_if_eq(&'?').is_some() {
            match self.chars.next()? {
                ':' => {}
                '<' if !matches!(self.chars.peek(), Some('=' | '!')) => while self.chars.next()? != '>' {},
                _ => return None,
            }
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        self.alternatives()?;
        self.depth -= 1;
        self.chars.next_if_eq(&')').map(|_| ())
    }

    fn escape(&mut self) -> Option<Step> {
        Some(match self.chars.next()? {
            'b' => Step::WordEdge(true),
            'B' => Step::WordEdge(false),
            c => {
                let (ranges, negated) = self.escaped(c)?;
                Step::Class(ranges, negated)
            }
        })
    }

    /// An escape that stands for characters, inside and outside of classes.
    fn escaped(&mut self, c: char) -> Option<(Vec<(char, char)>, bool)> {
        let one = |c: char| Some((Vec::from([(c, c)]), false));
        match c {
            'd' | 'D' => Some((DIGIT.into(), c == 'D')),
            'w' | 'W' => Some((WORD.into(), c == 'W')),
            's' | 'S' => Some((SPACE.into(), c == 'S')),
            'n' => one('\n'),
            'r' => one('\r'),
            't' => one('\t'),
            'f' => one('\u{c}'),
            'v' => one('\u{b}'),
            '0' => one('\0'),
            'x' => one(self.hex(2)?),
            'u' if self.chars.next_if_eq(&'{').is_some() => {
                let mut code = 0u32;
                loop {
                    match self.chars.next()? {
                        '}' => break one(char::from_u32(code)?),
                        digit => code = code.checked_mul(16)?.checked_add(digit.to_digit(16)?)?,
                    }
                }
            }
            'u' => one(self.hex(4)?),
            c if !c.is_ascii_alphanumeric() => one(c),
            _ => None,
        }
    }

    fn hex(&mut self, digits: usize) -> Option<char> {
        let mut code = 0;
        for _ in 0..digits {
            code = code * 16 + self.chars.next()?.to_digit(16)?;
        }
        char::from_u32(code)
    }

    fn class(&mut self) -> Option<Step> {
        let negated = self.chars.next_if_eq(&'^').is_some();
        let mut ranges: Vec<(char, char)> = Vec::new();
        loop {
            let low = match self.chars.next()? {
                ']' => return Some(Step::Class(ranges, negated)),
                '\\' => match self.class_escape()? {
                    Ok(c) => c,
                    Err(set) => {
                        ranges.extend(set);
                        continue;
                    }
                },
                c => c,
            };
            let mut ahead = self.chars.clone();
            if ahead.next() != Some('-') || ahead.peek() == Some(&']') {
                ranges.push((low, low));
                continue;
            }
            self.chars.next();
            let high = match self.chars.next()? {
                '\\' => self.class_escape()?.ok()?,
                c => c,
            };
            if high < low {
                return None;
            }
            ranges.push((low, high));
        }
    }

    /// One character, or a set such as `\d`.
    fn class_escape(&mut self) -> Option<Result<char, Vec<(char, char)>>> {
        let c = self.chars.next()?;
        if c == 'b' {
            return Some(Ok('\u{8}'));
        }
        match self.escaped(c)? {
            (set, true) => Some(Err(complement(&set))),
            (set, false) => match set.as_slice() {
                [(low, high)] if low == high => Some(Ok(*low)),
                _ => Some(Err(set)),
            },
        }
    }

    fn quantifier(&mut self, start: usize) -> Option<()> {
        let (least, most) = match self.chars.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => return self.counted(start),
            _ => return Some(()),
        };
        self.chars.next();
        self.repeat(start, least, most)
    }

    fn counted(&mut self, start: usize) -> Option<()> {
        self.chars.next();
        let least = self.count()?;
        let most = match self.chars.next()? {
            '}' => Some(least),
            ',' if self.chars.next_if_eq(&'}').is_some() => None,
            ',' => {
                let most = self.count()?;
                self.chars.next_if_eq(&'}')?;
                Some(most)
            }
            _ => return None,
        };
        self.repeat(start, least, most)
    }

    fn count(&mut self) -> Option<usize> {
        let mut count: Option<usize> = None;
        while let Some(digit) = self.chars.peek().and_then(|c| c.to_digit(10)) {
            self.chars.next();
            count = Some(count.unwrap_or(0).checked_mul(10)?.checked_add(usize::try_from(digit).ok()?)?);
        }
        count
    }

    /// Writes the steps since `start` as often as asked.
    fn repeat(&mut self, start: usize, least: usize, most: Option<usize>) -> Option<()> {
        // Laziness changes what is captured, never whether there is a match.
        self.chars.next_if_eq(&'?');
        let body: Vec<Step> = self.steps.drain(start..).collect();
        let copies = most.unwrap_or_else(|| least.max(1));
        if most.is_some_and(|most| most < least) || body.len().checked_mul(copies)? > MAX_STEPS {
            return None;
        }
        for _ in 0..least {
            self.copy(&body, start)?;
        }
        match most {
            None => {
                let split = self.emit(Step::Jump(0))?;
                self.copy(&body, start)?;
                self.emit(Step::Jump(split))?;
                let end = self.steps.len();
                self.set(split, Step::Split(split + 1, end));
            }
            Some(most) => {
                let mut splits = Vec::new();
                for _ in least..most {
                    splits.push(self.emit(Step::Jump(0))?);
                    self.copy(&body, start)?;
                }
                let end = self.steps.len();
                splits.into_iter().for_each(|at| self.set(at, Step::Split(at + 1, end)));
            }
        }
        Some(())
    }

    /// Appends steps that were compiled at `origin`; their targets move along.
    fn copy(&mut self, body: &[Step], origin: usize) -> Option<()> {
        let here = self.steps.len();
        let moved = |to: usize| to - origin + here;
        for step in body {
            self.emit(match step {
                Step::Split(a, b) => Step::Split(moved(*a), moved(*b)),
                Step::Jump(to) => Step::Jump(moved(*to)),
                other => other.clone(),
            })?;
        }
        Some(())
    }
}

fn complement(ranges: &[(char, char)]) -> Vec<(char, char)> {
    let mut out = Vec::new();
    let mut from = Some('\0');
    for (low, high) in ranges {
        if let (Some(start), Some(end)) = (from, before(*low))
            && start <= end
        {
            out.push((start, end));
        }
        from = after(*high);
    }
    out.extend(from.map(|start| (start, char::MAX)));
    out
}

fn before(c: char) -> Option<char> {
    ('\0'..c).next_back()
}

fn after(c: char) -> Option<char> {
    (c..).nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches() {
        for (pattern, text, expected) in [
            ("^a+$", "aaa", true),
            ("^a+$", "b", false),
            ("", "x", true),
            ("b", "abc", true),
            ("^(foo|ba[rz])$", "baz", true),
            ("^(foo|ba[rz])$", "bax", false),
            ("^(a|b)*c?$", "ababc", true),
            ("^[^a-c\\d]{2,3}$", "xyz", true),
            ("^[^a-c\\d]{2,3}$", "xy1", false),
            ("^\\d{3}-\\d{4}$", "555-1234", true),
            ("\\bfoo\\b", "a foo b", true),
            ("\\bfoo\\b", "afoo", false),
            ("^[\\w.-]+@[\\w-]+\\.\\w+$", "a.b@c-d.e", true),
            ("^\\u0041\\x42\\u{1F600}$", "AB😀", true),
            ("^[\\W]$", "é", true),
            ("^.$", "\n", false),
            ("^(?:a{0}b|(?<n>c))$", "b", true),
            ("^(a{2}){2}$", "aaaa", true),
            ("^(a{2}){2}$", "aaa", false),
            ("a|", "", true),
            ("^[]$", "", false),
            ("(a*)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", false),
            ("x{2,}", "axxxb", true),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().is_match(text), expected, "{pattern} on {text}");
        }
        for unread in
            ["(?=a)", "(?<!a)", "\\1", "\\p{L}", "a{9999}", "(", ")", "a{2", "*", "[b-a]", "[a", "\\"]
        {
            assert!(Pattern::new(unread).is_none(), "{unread}");
        }
        assert!(Pattern::new(&"(".repeat(100_000)).is_none());
    }
}
