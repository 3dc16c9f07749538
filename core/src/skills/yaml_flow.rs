//! Flow style of YAML: quoted scalars, `[lists]` and `{maps}`, over as many lines as they take.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::iter::Peekable;
use core::str::CharIndices;

use super::yaml::{Anchors, MAX_DEPTH, Properties, properties};
use super::yaml_scalar::{may_begin, resolve_plain};
use crate::json::{Map, Value};

type Parsed<T> = Result<T, &'static str>;

/// A cursor over a text.
pub(super) struct Flow<'t, 'a> {
    text: &'t str,
    at: usize,
    anchors: &'a mut Anchors,
}

impl<'t, 'a> Flow<'t, 'a> {
    pub(super) const fn new(text: &'t str, anchors: &'a mut Anchors) -> Self {
        Self { text, at: 0, anchors }
    }

    /// What was not read yet.
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn first(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes);
    }

    /// One value and nothing more.
    pub(super) fn document(&mut self, depth: usize) -> Parsed<Value> {
        let value = self.value(depth)?;
        let before = self.at;
        self.blanks();
        match self.first() {
            None => Ok(value),
            Some('#') if self.at > before => Ok(value),
            Some(_) => Err("there is more after the end of a value"),
        }
    }

    /// Blanks, breaks and comments.
    fn blanks(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\n']);
            let moved = rest.len() - trimmed.len();
            self.skip(moved);
            if !(trimmed.starts_with('#') && (moved > 0 || self.at == 0)) {
                return;
            }
            self.skip(trimmed.find('\n').unwrap_or(trimmed.len()));
        }
    }

    fn value(&mut self, depth: usize) -> Parsed<Value> {
        if depth > MAX_DEPTH {
            return Err("nested too deeply");
        }
        let rest = self.rest();
        let (found, after) = properties(rest)?;
        self.skip(rest.len() - after.len());
        let value = match self.first() {
            Some('"' | '\'') => Value::String(self.quoted()?),
            Some('[') => self.list(depth)?,
            Some('{') => self.map(depth)?,
            Some('*') => {
                let end = after.find([' ', '\t', '\n', ',', ']', '}']).unwrap_or(after.len());
                self.skip(end);
                let name = after.split_at(end).0.strip_prefix('*').unwrap_or_default();
                self.anchors.get(name)?
            }
            _ => self.plain_value(found)?,
        };
        self.anchors.set(found.anchor, &value);
        Ok(value)
    }

    fn plain_value(&mut self, found: Properties<'_>) -> Parsed<Value> {
        let text = self.plain()?;
        let as_text = found.tag.is_some_and(|tag| tag == "!!str" || !tag.starts_with("!!"));
        Ok(if as_text { Value::String(text) } else { resolve_plain(&text) })
    }

    /// A plain scalar inside a list or map.
    fn plain(&mut self) -> Parsed<String> {
        let rest = self.rest();
        let mut end = rest.len();
        let mut letters = rest.char_indices().peekable();
        let mut before = ' ';
        while let Some((at, c)) = letters.next() {
            let next = letters.peek().map(|(_, c)| *c);
            let colon =
                c == ':' && matches!(next, None | Some(' ' | '\t' | '\n' | ',' | '[' | ']' | '{' | '}'));
            let comment = c == '#' && matches!(before, ' ' | '\t' | '\n');
            if colon || comment || matches!(c, ',' | '[' | ']' | '{' | '}') {
                end = at;
                break;
            }
            before = c;
        }
        self.skip(end);
        let words: Vec<&str> = rest.split_at(end).0.split('\n').map(str::trim).collect();
        let text = words.join(" ").trim().to_string();
        if !text.is_empty() {
            may_begin(&text)?;
        }
        Ok(text)
    }

    fn list(&mut self, depth: usize) -> Parsed<Value> {
        self.skip(1);
        let mut list = Vec::new();
        loop {
            self.blanks();
            match self.first() {
                None => return Err("a list is not closed"),
                Some(']') => {
                    self.skip(1);
                    return Ok(Value::Array(list));
                }
                Some(',') => return Err("an entry is missing before a comma"),
                Some(_) => list.push(self.entry(depth)?),
            }
            self.comma(']')?;
        }
    }

    /// An entry of a list: a value, or one `key: value` by itself.
    fn entry(&mut self, depth: usize) -> Parsed<Value> {
        let value = self.value(depth + 1)?;
        self.blanks();
        if !self.rest().starts_with(':') {
            return Ok(value);
        }
        self.skip(1);
        let mut pair = Map::new();
        pair.insert(key_text(value)?, self.after_colon(depth)?);
        Ok(Value::Object(pair))
    }

    fn map(&mut self, depth: usize) -> Parsed<Value> {
        self.skip(1);
        let mut map = Map::new();
        loop {
            self.blanks();
            match self.first() {
                None => return Err("a map is not closed"),
                Some('}') => {
                    self.skip(1);
                    return Ok(Value::Object(map));
                }
                Some(',') => return Err("an entry is missing before a comma"),
                Some(_) => {}
            }
            let key = key_text(self.value(depth + 1)?)?;
            self.blanks();
            let value = if self.rest().starts_with(':') {
                self.skip(1);
                self.after_colon(depth)?
            } else {
                Value::Null
            };
            if map.insert(key, value).is_some() {
                return Err("a key stands here twice");
            }
            self.comma('}')?;
        }
    }

    fn after_colon(&mut self, depth: usize) -> Parsed<Value> {
        self.blanks();
        match self.first() {
            Some(',' | ']' | '}') | None => Ok(Value::Null),
            Some(_) => self.value(depth + 1),
        }
    }

    /// A comma, unless the collection closes next.
    fn comma(&mut self, close: char) -> Parsed<()> {
        self.blanks();
        match self.first() {
            Some(',') => {
                self.skip(1);
                Ok(())
            }
            Some(c) if c == close => Ok(()),
            Some(_) => Err("expected a comma"),
            None => Err("a list or map is not closed"),
        }
    }

    /// A quoted scalar.
    pub(super) fn quoted(&mut self) -> Parsed<String> {
        let rest = self.rest();
        if let Some(text) = simple(rest) {
            self.skip(text.len() + 2);
            return Ok(text.into());
        }
        let mut letters = rest.char_indices().peekable();
        let quote = letters.next().map(|(_, c)| c);
        let mut out = String::new();
        while let Some((at, c)) = letters.next() {
            match c {
                '\'' if quote == Some('\'') => {
                    if letters.next_if(|(_, next)| *next == '\'').is_none() {
                        self.skip(at + 1);
                        return Ok(out);
                    }
                    out.push('\'');
                }
                '"' if quote == Some('"') => {
                    self.skip(at + 1);
                    return Ok(out);
                }
                '\\' if quote == Some('"') => escape(&mut letters, &mut out)?,
                '\n' => fold_break(&mut letters, &mut out),
                c => out.push(c),
            }
        }
        Err("a quote is not closed")
    }
}

/// What is in the quotes, where it stands there as it is: nearly always.
fn simple(quoted: &str) -> Option<&str> {
    let quote = quoted.chars().next()?;
    let inner = quoted.get(1..)?;
    let end = inner.find([quote, '\\', '\n'])?;
    let (text, rest) = inner.split_at_checked(end)?;
    let after = rest.strip_prefix(quote)?;
    // A single quote that stands twice is a letter.
    (quote == '"' || !after.starts_with(quote)).then_some(text)
}

fn key_text(value: Value) -> Parsed<String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Null => Ok(String::new()),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Array(_) | Value::Object(_) => Err("only scalars can be keys"),
    }
}

type Letters<'t> = Peekable<CharIndices<'t>>;

/// A line break in a quoted scalar: one blank, or as many breaks as there are blank lines.
fn fold_break(letters: &mut Letters<'_>, out: &mut String) {
    out.truncate(out.trim_end_matches([' ', '\t']).len());
    let mut breaks = 0usize;
    while let Some((_, c)) = letters.next_if(|(_, c)| matches!(c, ' ' | '\t' | '\n')) {
        breaks += usize::from(c == '\n');
    }
    if breaks == 0 {
        out.push(' ');
    } else {
        out.extend(core::iter::repeat_n('\n', breaks));
    }
}

fn escape(letters: &mut Letters<'_>, out: &mut String) -> Parsed<()> {
    const UNKNOWN: &str = "unknown escape in a quoted value";
    let (_, letter) = letters.next().ok_or(UNKNOWN)?;
    let plain = match letter {
        '0' => '\0',
        'a' => '\u{7}',
        'b' => '\u{8}',
        't' | '\t' => '\t',
        'n' => '\n',
        'v' => '\u{b}',
        'f' => '\u{c}',
        'r' => '\r',
        'e' => '\u{1b}',
        ' ' | '"' | '/' | '\\' => letter,
        'N' => '\u{85}',
        '_' => '\u{a0}',
        'L' => '\u{2028}',
        'P' => '\u{2029}',
        'x' => scalar(hex(letters, 2)?),
        'u' => unicode(letters)?,
        'U' => scalar(hex(letters, 8)?),
        '\n' => {
            while letters.next_if(|(_, c)| matches!(c, ' ' | '\t')).is_some() {}
            return Ok(());
        }
        _ => return Err(UNKNOWN),
    };
    out.push(plain);
    Ok(())
}

/// `\u` with four digits; two halves of a pair make one character.
fn unicode(letters: &mut Letters<'_>) -> Parsed<char> {
    let first = hex(letters, 4)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Ok(scalar(first));
    }
    let mut ahead = letters.clone();
    let follows = ahead.next().is_some_and(|(_, c)| c == '\\') && ahead.next().is_some_and(|(_, c)| c == 'u');
    match follows.then(|| hex(&mut ahead, 4)) {
        Some(Ok(second)) if (0xdc00..0xe000).contains(&second) => {
            *letters = ahead;
            Ok(scalar(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)))
        }
        _ => Ok(char::REPLACEMENT_CHARACTER),
    }
}

fn hex(letters: &mut Letters<'_>, digits: usize) -> Parsed<u32> {
    let mut value = 0u32;
    for _ in 0..digits {
        let digit = letters.next().and_then(|(_, c)| c.to_digit(16)).ok_or("an escape needs more digits")?;
        value = value.wrapping_mul(16).wrapping_add(digit);
    }
    Ok(value)
}

fn scalar(code: u32) -> char {
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}
