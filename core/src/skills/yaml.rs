//! The part of YAML 1.2 that front matter uses: block and flow collections, all scalar styles, anchors, the core
//! schema. Explicit keys (`?`), directives and several documents are refused.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::yaml_flow::Flow;
use super::yaml_scalar::{Style, block_scalar, fold_plain, resolve_plain};
use crate::json::{Map, Value};

/// Why a text is not YAML (or not of the part that is read here).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlFault {
    /// Line, from 1, inside the YAML.
    pub line: usize,
    /// What is wrong.
    pub reason: &'static str,
}

impl fmt::Display for YamlFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

/// How deep collections may nest.
pub(super) const MAX_DEPTH: usize = 64;
/// How much all aliases together may repeat, in bytes of text plus one per value.
const ALIAS_BUDGET: usize = 1 << 20;

/// Parses one document; nothing at all is `null`.
pub(super) fn parse(text: &str) -> Result<Value, YamlFault> {
    let mut parser =
        Parser { lines: text.split('\n').map(Line::new).collect(), at: 0, anchors: Anchors::default() };
    let Some(first) = parser.peek() else { return Ok(Value::Null) };
    if first.text.starts_with('%') {
        return Err(parser.fault("directives are not supported"));
    }
    let value = parser.block(-1, 0)?;
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.fault("there is more after the end of the document")),
    }
}

/// Values that have names.
#[derive(Default)]
pub(super) struct Anchors {
    named: BTreeMap<String, Value>,
    spent: usize,
}

impl Anchors {
    pub(super) fn set(&mut self, name: Option<&str>, value: &Value) {
        if let Some(name) = name {
            self.named.insert(name.to_string(), value.clone());
        }
    }

    pub(super) fn get(&mut self, name: &str) -> Result<Value, &'static str> {
        let value = self.named.get(name).ok_or("unknown alias")?;
        self.spent = self.spent.saturating_add(weight(value));
        if self.spent > ALIAS_BUDGET { Err("aliases repeat too much") } else { Ok(value.clone()) }
    }
}

fn weight(value: &Value) -> usize {
    1 + match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(weight).sum(),
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + weight(value)).sum(),
        _ => 0,
    }
}

#[derive(Clone, Copy)]
struct Line<'a> {
    /// Column of the first character of `text`.
    indent: isize,
    /// The line without its blanks at the left.
    text: &'a str,
    /// The whole line.
    raw: &'a str,
}

impl<'a> Line<'a> {
    fn new(raw: &'a str) -> Self {
        let text = raw.trim_start_matches(' ');
        Self { indent: isize::try_from(raw.len() - text.len()).unwrap_or(isize::MAX), text, raw }
    }

    fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    fn has_content(&self) -> bool {
        !self.is_blank() && !self.text.starts_with('#')
    }
}

struct Parser<'a> {
    lines: Vec<Line<'a>>,
    at: usize,
    anchors: Anchors,
}

/// `&anchor` and `!tag` before a value.
#[derive(Clone, Copy, Default)]
pub(super) struct Properties<'a> {
    pub(super) anchor: Option<&'a str>,
    pub(super) tag: Option<&'a str>,
}

impl<'a> Parser<'a> {
    fn fault(&self, reason: &'static str) -> YamlFault {
        YamlFault { line: self.at + 1, reason }
    }

    /// The next line with content; blank ones and comments are passed.
    fn peek(&mut self) -> Option<Line<'a>> {
        loop {
            let line = *self.lines.get(self.at)?;
            if line.has_content() {
                return Some(line);
            }
            self.at += 1;
        }
    }

    /// A value that begins on a line of its own, further right than `parent`.
    fn block(&mut self, parent: isize, depth: usize) -> Result<Value, YamlFault> {
        let Some(line) = self.peek().filter(|line| line.indent > parent) else { return Ok(Value::Null) };
        if depth > MAX_DEPTH {
            return Err(self.fault("nested too deeply"));
        }
        if line.text.starts_with('\t') {
            return Err(self.fault("tabs cannot indent"));
        }
        if line.text.starts_with("...") || (line.indent == 0 && line.text.starts_with("---")) {
            return Err(self.fault("only one document is allowed"));
        }
        if is_item(line.text) {
            self.sequence(line.indent, depth)
        } else if split_key(line.text).map_err(|reason| self.fault(reason))?.is_some() {
            self.mapping(line.indent, depth)
        } else {
            self.at += 1;
            self.inline(line.text, parent, depth)
        }
    }

    fn sequence(&mut self, indent: isize, depth: usize) -> Result<Value, YamlFault> {
        let mut list = Vec::new();
        while let Some(line) = self.peek().filter(|line| line.indent == indent && is_item(line.text)) {
            let rest = line.text.strip_prefix('-').unwrap_or_default();
            let inner = rest.trim_start_matches(' ');
            if inner.is_empty() || inner.starts_with('#') {
                self.at += 1;
                list.push(self.block(indent, depth + 1)?);
                continue;
            }
            // What follows the dash is a line of its own, further right.
            let width = isize::try_from(line.text.len() - inner.len()).unwrap_or(1);
            if let Some(slot) = self.lines.get_mut(self.at) {
                *slot = Line { indent: indent + width, text: inner, raw: line.raw };
            }
            let nested = is_item(inner) || split_key(inner).map_err(|reason| self.fault(reason))?.is_some();
            if nested {
                list.push(self.block(indent, depth + 1)?);
            } else {
                self.at += 1;
                list.push(self.inline(inner, indent, depth + 1)?);
            }
        }
        self.must_leave(indent)?;
        Ok(Value::Array(list))
    }

    fn mapping(&mut self, indent: isize, depth: usize) -> Result<Value, YamlFault> {
        let mut map = Map::new();
        while let Some(line) = self.peek().filter(|line| line.indent == indent) {
            if line.text.starts_with("...") {
                return Err(self.fault("only one document is allowed"));
            }
            if line.text.starts_with('\t') {
                return Err(self.fault("tabs cannot indent"));
            }
            let split = split_key(line.text).map_err(|reason| self.fault(reason))?;
            let Some((key, rest)) = split.filter(|_| !is_item(line.text)) else {
                return Err(self.fault("expected a key and a colon"));
            };
            if map.contains_key(&key) {
                return Err(self.fault("a key stands here twice"));
            }
            self.at += 1;
            let value = self.value_of_key(rest, indent, depth)?;
            map.insert(key, value);
        }
        self.must_leave(indent)?;
        Ok(Value::Object(map))
    }

    fn value_of_key(&mut self, rest: &'a str, indent: isize, depth: usize) -> Result<Value, YamlFault> {
        let (properties, after) = properties(rest).map_err(|reason| self.fault_before(reason))?;
        if !after.is_empty() && !after.starts_with('#') {
            return self.inline(rest, indent, depth + 1);
        }
        // A list may stand as far left as the key it belongs to.
        let list_here = self.peek().is_some_and(|line| line.indent == indent && is_item(line.text));
        let value = self.block(if list_here { indent - 1 } else { indent }, depth + 1)?;
        self.anchors.set(properties.anchor, &value);
        Ok(value)
    }

    /// After a collection nothing may be further right than its entries.
    fn must_leave(&mut self, indent: isize) -> Result<(), YamlFault> {
        match self.peek() {
            Some(line) if line.indent > indent => Err(self.fault("this line is indented too far")),
            _ => Ok(()),
        }
    }

    fn fault_before(&self, reason: &'static str) -> YamlFault {
        YamlFault { line: self.at.max(1), reason }
    }

    /// A value that begins with `text`, the rest of the line before the current one.
    fn inline(&mut self, text: &'a str, parent: isize, depth: usize) -> Result<Value, YamlFault> {
        let (properties, text) = properties(text).map_err(|reason| self.fault_before(reason))?;
        let value = self.bare(text, parent, depth, properties)?;
        self.anchors.set(properties.anchor, &value);
        Ok(value)
    }

    fn bare(
        &mut self,
        text: &'a str,
        parent: isize,
        depth: usize,
        properties: Properties<'_>,
    ) -> Result<Value, YamlFault> {
        match text.chars().next() {
            Some('|' | '>') => self.block_text(text, parent),
            Some('*') => {
                let name = without_comment(text).trim_end().strip_prefix('*').unwrap_or_default();
                self.anchors.get(name).map_err(|reason| self.fault_before(reason))
            }
            Some('"' | '\'' | '[' | '{') => {
                let begin = self.at;
                let whole = self.extent(text, parent);
                let mut flow = Flow::new(&whole, &mut self.anchors);
                let value =
                    flow.document(depth).map_err(|reason| YamlFault { line: begin.max(1), reason })?;
                Ok(value)
            }
            _ => {
                let begin = self.at;
                let whole = self.extent(text, parent);
                let plain = fold_plain(&whole).map_err(|reason| YamlFault { line: begin.max(1), reason })?;
                Ok(match properties.tag {
                    Some("!!str") => Value::String(plain),
                    Some(tag) if !tag.starts_with("!!") => Value::String(plain),
                    _ => resolve_plain(&plain),
                })
            }
        }
    }

    /// The text with all lines that continue it.
    fn extent(&mut self, first: &str, parent: isize) -> String {
        let mut whole = first.to_string();
        while let Some(line) = self.lines.get(self.at).filter(|line| line.is_blank() || line.indent > parent)
        {
            whole.push('\n');
            whole.push_str(line.text);
            self.at += 1;
        }
        whole
    }

    fn block_text(&mut self, header: &str, parent: isize) -> Result<Value, YamlFault> {
        let style = Style::parse(without_comment(header)).map_err(|reason| self.fault_before(reason))?;
        let mut lines = Vec::new();
        while let Some(line) = self.lines.get(self.at).filter(|line| line.is_blank() || line.indent > parent)
        {
            lines.push(line.raw);
            self.at += 1;
        }
        let base = usize::try_from(parent.max(0)).unwrap_or_default();
        block_scalar(&lines, style, base).map(Value::String).map_err(|reason| self.fault_before(reason))
    }
}

fn is_item(text: &str) -> bool {
    text == "-" || text.starts_with("- ") || text.starts_with("-\t")
}

/// The text before a comment.
pub(super) fn without_comment(text: &str) -> &str {
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        if c == '#' && matches!(before, ' ' | '\t') {
            return text.split_at(at).0;
        }
        before = c;
    }
    text
}

/// Takes `&anchor` and `!tag` from the front.
pub(super) fn properties(text: &str) -> Result<(Properties<'_>, &str), &'static str> {
    let mut found = Properties::default();
    let mut rest = text.trim_start_matches([' ', '\t']);
    while rest.starts_with(['&', '!']) {
        let end = rest.find([' ', '\t', '\n', ',', ']', '}']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        match word.strip_prefix('&') {
            Some("") => return Err("an anchor needs a name"),
            Some(name) => found.anchor = Some(name),
            None => found.tag = Some(word),
        }
        rest = after.trim_start_matches([' ', '\t']);
    }
    Ok((found, rest))
}

/// A key at the front of a line, and what follows its colon; `None` if the line has no key.
fn split_key(text: &str) -> Result<Option<(String, &str)>, &'static str> {
    if text == "?" || text.starts_with("? ") {
        return Err("explicit keys are not supported");
    }
    if text.starts_with(['"', '\'']) {
        let mut none = Anchors::default();
        let mut flow = Flow::new(text, &mut none);
        let Ok(key) = flow.quoted() else { return Ok(None) };
        let rest = flow.rest().trim_start_matches([' ', '\t']);
        return Ok(rest.strip_prefix(':').filter(|rest| ends_key(rest)).map(|rest| (key, rest.trim_start())));
    }
    if text.starts_with(['[', '{', '#', '|', '>', '@', '`', '%']) {
        return Ok(None);
    }
    let text = without_comment(text);
    let Some((at, _)) = text.match_indices(':').find(|(at, _)| ends_key(text.split_at(at + 1).1)) else {
        return Ok(None);
    };
    let (key, rest) = text.split_at(at);
    let key = key.trim_end();
    if key.is_empty() || key.starts_with(['&', '*', '!']) {
        return Err("only plain and quoted keys are supported");
    }
    Ok(Some((key.to_string(), rest.strip_prefix(':').unwrap_or_default().trim())))
}

fn ends_key(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with([' ', '\t'])
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use serde_json::json;

    use super::*;

    fn ok(text: &str) -> Value {
        parse(text).unwrap_or_else(|fault| panic!("{text:?}: {fault}"))
    }

    #[test]
    fn collections() {
        assert_eq!(
            ok("a:\n- 1\n- b: 2\n  c: 3\n-\n  - x\nd: {e: [f, g: h], i}"),
            json!({
                "a": [1, {"b": 2, "c": 3}, ["x"]], "d": {"e": ["f", {"g": "h"}], "i": null}
            })
        );
        assert_eq!(ok("- - a\n  - b\n- c"), json!([["a", "b"], "c"]));
        assert_eq!(ok("a: [1, # one\n 2]\nb: 'x\n  y'"), json!({"a": [1, 2], "b": "x y"}));
        assert_eq!(ok("\"k 1\": v\n'k2' : w\n# end\n"), json!({"k 1": "v", "k2": "w"}));
        assert_eq!(ok("a: # nothing\nb:"), json!({"a": null, "b": null}));
    }

    #[test]
    fn scalars() {
        assert_eq!(
            ok("a: |2\n   x\n  y\nb: >+\n  p\n  q\n\nc: |-\n\n  z\n"),
            json!({
                "a": " x\ny\n", "b": "p q\n\n", "c": "\nz"
            })
        );
        assert_eq!(ok("a: >\n  p\n    deeper\n  q\n"), json!({"a": "p\n  deeper\nq\n"}));
        assert_eq!(
            ok(r#"a: "\ud83d\ude00 \x41\
  b""#),
            json!({"a": "😀 Ab"})
        );
        assert_eq!(
            ok("a: -1.5e3\nb: 1e999\nc: .5\nd: -\u{2013}"),
            json!({
                "a": -1500.0, "b": "1e999", "c": 0.5, "d": "-\u{2013}"
            })
        );
        assert_eq!(ok("a: !!str 1\nb: !x 2\nc: &n 3\nd: *n"), json!({"a": "1", "b": "2", "c": 3, "d": 3}));
    }

    #[test]
    fn faults_say_the_line() {
        for (text, line) in [
            ("a: 1\nb: x: y", 2),
            ("a: 1\n\tb: 2", 2),
            ("a: 1\na: 2", 2),
            ("a:\n  b: 1\n   c: 2", 2),
            ("a: [1\nb: 2", 1),
            ("? a\n: b", 1),
            ("a: - b", 1),
            ("a: *x", 1),
        ] {
            assert_eq!(parse(text).map_err(|fault| fault.line), Err(line), "{text:?}");
        }
    }

    #[test]
    fn aliases_cannot_explode() {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let inner = alloc::vec![format!("*a{}", level - 1); 10].join(", ");
            text.push_str(&format!("a{level}: &a{level} [{inner}]\n"));
        }
        assert!(parse(&text).is_err());
    }

    #[test]
    fn nesting_ends() {
        assert!(parse(&"[".repeat(100_000)).is_err());
        assert!(parse(&"- ".repeat(100_000)).is_err());
        let deep: String = (0..2000).map(|n| format!("{}k:\n", " ".repeat(n))).collect();
        assert!(parse(&deep).is_err());
    }

    #[test]
    fn any_cut_is_harmless() {
        let text = "a: &x \"q\\u00e9\\x41\"\nb: [c, {d: 'e''f'}, *x]\nm:\n  - >+2\n     t\n\n    u\n  - |\n   v # w\n\u{feff}ü: ~";
        let letters: Vec<char> = text.chars().collect();
        for begin in 0..letters.len() {
            for end in begin..letters.len() {
                let part: String = letters.get(begin..end).unwrap_or_default().iter().collect();
                let _ = parse(&part);
            }
        }
    }
}
