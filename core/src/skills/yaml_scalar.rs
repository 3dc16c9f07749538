//! Scalars of YAML: block and plain ones, folding, the core schema.

use alloc::string::{String, ToString};

use super::yaml::without_comment;
use crate::json::{Number, Value};

/// Header of a block scalar.
#[derive(Clone, Copy)]
pub(super) struct Style {
    folded: bool,
    chomp: Chomp,
    /// Indentation relative to the parent, if given.
    indent: Option<usize>,
}

#[derive(Clone, Copy, PartialEq)]
enum Chomp {
    Clip,
    Strip,
    Keep,
}

impl Style {
    /// Reads `|`, `>-`, `|2+` …
    pub(super) fn parse(header: &str) -> Result<Self, &'static str> {
        let mut letters = header.trim_end().chars();
        let mut style = Self { folded: letters.next() == Some('>'), chomp: Chomp::Clip, indent: None };
        for letter in letters {
            match letter {
                '-' if style.chomp == Chomp::Clip => style.chomp = Chomp::Strip,
                '+' if style.chomp == Chomp::Clip => style.chomp = Chomp::Keep,
                '1'..='9' if style.indent.is_none() => {
                    style.indent = letter.to_digit(10).and_then(|digit| usize::try_from(digit).ok());
                }
                _ => return Err("the header of a block scalar is wrong"),
            }
        }
        Ok(style)
    }
}

/// The text of a block scalar. `parent` is the column of what it belongs to.
pub(super) fn block_scalar(lines: &[&str], style: Style, parent: usize) -> Result<String, &'static str> {
    let spaces = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let first = lines.iter().find(|line| !line.trim_matches(' ').is_empty());
    let indent = match style.indent {
        Some(indent) => parent.saturating_add(indent),
        None => first.map_or(0, |line| spaces(line)),
    };
    let mut text = String::new();
    let (mut blanks, mut before_deeper, mut any) = (0usize, false, false);
    for line in lines {
        let line = match line.get(indent..) {
            Some(rest) if spaces(line) >= indent => rest,
            _ if line.trim_matches(' ').is_empty() => "",
            _ => return Err("a line of a block scalar is not indented enough"),
        };
        if line.is_empty() {
            blanks += 1;
            continue;
        }
        let deeper = line.starts_with([' ', '\t']);
        let fold = style.folded && any && !deeper && !before_deeper;
        match (any, fold, blanks) {
            (true, true, 0) => text.push(' '),
            (true, true, _) | (false, ..) => push_breaks(&mut text, blanks),
            (true, false, _) => push_breaks(&mut text, blanks + 1),
        }
        text.push_str(line);
        (blanks, before_deeper, any) = (0, deeper, true);
    }
    match style.chomp {
        Chomp::Strip => {}
        Chomp::Clip => push_breaks(&mut text, usize::from(any)),
        Chomp::Keep => push_breaks(&mut text, blanks + usize::from(any)),
    }
    Ok(text)
}

fn push_breaks(text: &mut String, count: usize) {
    text.extend(core::iter::repeat_n('\n', count));
}

/// A plain scalar over one or more lines: comments go, a line break becomes a blank, blank lines become breaks.
pub(super) fn fold_plain(text: &str) -> Result<String, &'static str> {
    let mut out = String::new();
    let (mut blanks, mut ended) = (0usize, false);
    for (number, line) in text.split('\n').enumerate() {
        let content = without_comment(line);
        let commented = content.len() != line.len();
        let content = content.trim();
        if content.is_empty() {
            blanks += usize::from(number > 0);
            ended |= commented && number > 0;
            continue;
        }
        if ended {
            return Err("text after a comment");
        }
        if content.ends_with(':') || content.contains(": ") || content.contains(":\t") {
            return Err("a colon inside a value; quote the value");
        }
        if number == 0 {
            may_begin(content)?;
        } else if blanks == 0 {
            out.push(' ');
        } else {
            push_breaks(&mut out, blanks);
        }
        out.push_str(content);
        (blanks, ended) = (0, commented);
    }
    Ok(out)
}

/// Whether a plain scalar may begin like this.
pub(super) fn may_begin(text: &str) -> Result<(), &'static str> {
    let mut letters = text.chars();
    match letters.next() {
        Some(
            '@' | '`' | '%' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '#',
        ) => Err("a value cannot begin with this character; quote it"),
        Some('-' | '?' | ':') if matches!(letters.next(), None | Some(' ' | '\t')) => {
            Err("a list or key cannot stand here")
        }
        _ => Ok(()),
    }
}

/// What a plain scalar is by the core schema.
pub(super) fn resolve_plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    number(text).map_or_else(|| Value::String(text.to_string()), Value::Number)
}

fn number(text: &str) -> Option<Number> {
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix).filter(|d| d.chars().all(|c| c.is_digit(radix))) {
            return u64::from_str_radix(digits, radix).ok().map(Number::from);
        }
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.bytes().all(|b| b.is_ascii_digit())
        && let Ok(whole) = text.strip_prefix('+').unwrap_or(text).parse::<i64>()
    {
        return Some(Number::from(whole));
    }
    let shape = unsigned.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    let begins = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    (shape && begins).then(|| text.parse::<f64>().ok()).flatten().and_then(Number::from_f64)
}
