//! Prompt templates: `/name arguments` becomes the text of a file with the arguments filled in (spec 50 §10.1).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::json::Value;
use crate::skills::SourceInfo;
use crate::skills::frontmatter::{self, YamlFault};

/// A template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// Name of the command, without the slash.
    pub name: String,
    /// For lists.
    pub description: String,
    /// What arguments it takes, for people.
    pub argument_hint: Option<String>,
    /// The text with its placeholders.
    pub content: String,
    /// Its file; empty when it has none.
    pub file_path: String,
    /// Where it comes from.
    pub source: SourceInfo,
}

/// Most UTF-16 units of a description taken from the text.
const DESCRIPTION_UNITS: usize = 60;

/// Reads a template from its file; `None` = the name does not end in `.md`.
///
/// # Errors
/// When the front matter is not YAML.
pub fn load(file_name: &str, text: &str) -> Result<Option<Template>, YamlFault> {
    let Some(name) = file_name.strip_suffix(".md") else { return Ok(None) };
    let document = frontmatter::parse(text)?;
    let field = |key: &str| {
        let text = document.front.get(key).and_then(Value::as_str);
        text.filter(|text| !text.is_empty()).map(ToString::to_string)
    };
    let (description, argument_hint) = (field("description"), field("argument-hint"));
    Ok(Some(Template {
        name: name.to_string(),
        description: description.unwrap_or_else(|| first_line(&document.body)),
        argument_hint,
        content: document.body,
        ..Template::default()
    }))
}

fn first_line(body: &str) -> String {
    let line = body.split('\n').find(|line| !line.chars().all(is_space)).unwrap_or_default();
    let mut units = 0usize;
    for (at, c) in line.char_indices() {
        units += c.len_utf16();
        if units > DESCRIPTION_UNITS {
            return line.split_at(at).0.to_string() + "...";
        }
    }
    line.to_string()
}

/// The text a `/name arguments` stands for; `None` when it names no template. Not recursive.
#[must_use]
pub fn expand(text: &str, templates: &[Template]) -> Option<String> {
    let command = text.strip_prefix('/')?;
    let end = command.find(is_space).unwrap_or(command.len());
    let (name, rest) = command.split_at(end);
    let template = templates.iter().find(|template| template.name == name)?;
    Some(substitute(&template.content, &split_arguments(rest)))
}

/// White space as ECMAScript sees it.
fn is_space(c: char) -> bool {
    (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}'
}

/// Splits at white space. A quote at the beginning of an argument groups; inside, a backslash keeps that quote; a
/// quote that is never closed is an ordinary letter.
#[must_use]
pub fn split_arguments(text: &str) -> Vec<String> {
    let (mut list, mut rest) = (Vec::new(), text.trim_start_matches(is_space));
    while !rest.is_empty() {
        let mut argument = String::new();
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        // Where one is never closed, no later argument begins with its kind: this fails at most twice.
        if let Some((inner, after)) = quote.and_then(|quote| quoted(rest, quote)) {
            argument = inner;
            rest = after;
        }
        let end = rest.find(is_space).unwrap_or(rest.len());
        let (plain, after) = rest.split_at(end);
        argument.push_str(plain);
        list.push(argument);
        rest = after.trim_start_matches(is_space);
    }
    list
}

/// The text between the quote at the front and the next one without a backslash, and what follows.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut inner = String::new();
    let mut letters = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = letters.next() {
        if c == quote {
            return Some((inner, text.get(at + 1..)?));
        }
        let escaped = if c == '\\' { letters.next_if(|(_, next)| *next == quote) } else { None };
        inner.push(escaped.map_or(c, |(_, quote)| quote));
    }
    None
}

/// Fills the placeholders in one pass; values are never looked at again.
#[must_use]
pub fn substitute(content: &str, arguments: &[String]) -> String {
    let mut filler = Filler { arguments, may_close: true };
    let (mut out, mut rest) = (String::with_capacity(content.len()), content);
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        rest = match filler.placeholder(after) {
            Some((value, after)) => {
                out.push_str(&value);
                after
            }
            None => {
                out.push('$');
                after
            }
        };
    }
    out.push_str(rest);
    out
}

struct Filler<'a> {
    arguments: &'a [String],
    /// Whether there can still be a closing brace.
    may_close: bool,
}

impl Filler<'_> {
    /// What stands after a `$`: its value, and the text behind it.
    fn placeholder<'t>(&mut self, text: &'t str) -> Option<(String, &'t str)> {
        if let Some((digits, after)) = digits(text) {
            return Some((self.number(digits).unwrap_or_default().to_string(), after));
        }
        if let Some(after) = text.strip_prefix('@').or_else(|| text.strip_prefix("ARGUMENTS")) {
            return Some((self.arguments.join(" "), after));
        }
        self.braced(text.strip_prefix('{')?)
    }

    fn braced<'t>(&mut self, text: &'t str) -> Option<(String, &'t str)> {
        let (value, after) = if let Some((digits, after)) = digits(text) {
            (self.number(digits).unwrap_or_default().to_string(), after)
        } else if let Some(after) = text.strip_prefix("ARGUMENTS") {
            (self.arguments.join(" "), after)
        } else {
            let after = text.strip_prefix('@')?;
            if let Some(slice) = self.slice(after) {
                return Some(slice);
            }
            (self.arguments.join(" "), after)
        };
        let default = after.strip_prefix(":-").filter(|_| self.may_close)?;
        let Some((default, after)) = default.split_once('}') else {
            self.may_close = false;
            return None;
        };
        Some((if value.is_empty() { default.to_string() } else { value }, after))
    }

    /// `:start}` or `:start:length}`, counted from 1.
    fn slice<'t>(&self, text: &'t str) -> Option<(String, &'t str)> {
        let (start, after) = digits(text.strip_prefix(':')?)?;
        let (length, after) = match after.strip_prefix(':').and_then(digits) {
            Some((length, after)) => (parse(length), after),
            None => (usize::MAX, after),
        };
        let taken = self.arguments.iter().skip(parse(start).saturating_sub(1)).take(length);
        let words: Vec<&str> = taken.map(String::as_str).collect();
        Some((words.join(" "), after.strip_prefix('}')?))
    }

    fn number(&self, digits: &str) -> Option<&str> {
        self.arguments.get(parse(digits).checked_sub(1)?).map(String::as_str)
    }
}

fn digits(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// A number too large for anything is larger than everything.
fn parse(digits: &str) -> usize {
    digits.parse().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unclosed_things_cost_linear_time() {
        let quotes = "'x\\' ".repeat(100_001);
        assert_eq!(split_arguments(&quotes).len(), 50_001);
        let braces = "${1:-".repeat(100_000);
        assert_eq!(substitute(&braces, &[]), braces);
    }

    #[test]
    fn long_first_lines_are_cut() {
        let text = "😀".repeat(40);
        assert_eq!(load("x.md", &text).unwrap().unwrap().description, "😀".repeat(30) + "...");
    }

    #[test]
    fn huge_numbers_are_no_arguments() {
        let arguments = ["a".to_string()];
        assert_eq!(
            substitute("<$99999999999999999999999><${@:99999999999999999999999}>", &arguments),
            "<><>"
        );
    }
}
