//! The tolerant streaming parser behind [`super::PartialArgs`]: never fails, never reads a byte twice, no recursion.

use alloc::string::String;
use alloc::vec::Vec;
use core::mem;

use memchr::memchr2;
use serde_json::{Map, Value};

use super::scan::{MAX_DEPTH, Units, hex, number, number_len, simple_escape};

/// An unfinished number longer than this is not shown.
const LONG_NUMBER: usize = 64;

/// A word (number, literal, junk) longer than this is dropped.
const LONG_WORD: usize = 1024;

#[derive(Clone, Debug)]
enum Container {
    Array(Vec<Value>),
    /// Members, and the key whose value is expected.
    Object(Map<String, Value>, Option<String>),
}

#[derive(Clone, Debug)]
struct Frame {
    container: Container,
    /// `false` for a container where a key should stand: it is read and thrown away.
    keep: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Between tokens.
    #[default]
    Between,
    /// Inside a number, a literal or junk.
    Word,
    /// Inside a string.
    Text,
    /// After a backslash.
    Escape,
    /// Inside `\uXXXX`, so many digits read.
    Unit(u8),
    /// The root is complete, or the nesting too deep: the rest is ignored.
    Done,
}

/// See the module text.
#[derive(Clone, Debug, Default)]
pub(super) struct Tolerant {
    stack: Vec<Frame>,
    root: Option<Value>,
    state: State,
    /// Content of the open string or word.
    token: String,
    /// The digits of an unfinished `\u` escape as they came, in case they turn out to be none.
    digits: String,
    units: Units,
}

impl Tolerant {
    /// Reads a piece of text.
    pub(super) fn push(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at += match self.state {
                State::Done => return,
                State::Between => self.between(byte),
                State::Word => self.word(text, at),
                State::Text => self.text(text, at),
                State::Escape => self.escape(byte),
                State::Unit(count) => self.unit(byte, count),
            };
        }
    }

    /// The value so far; `None` before one starts.
    pub(super) fn value(&self) -> Option<Value> {
        let mut inner = self.open_token();
        for frame in self.stack.iter().rev() {
            let outer = match (&frame.container, inner) {
                (Container::Array(items), inner) => {
                    let mut copy = Vec::with_capacity(items.len() + usize::from(inner.is_some()));
                    copy.extend(items.iter().cloned().chain(inner));
                    Value::Array(copy)
                }
                (Container::Object(map, key), inner) => {
                    let mut map = map.clone();
                    if let (Some(key), Some(inner)) = (key, inner) {
                        map.insert(key.clone(), inner);
                    }
                    Value::Object(map)
                }
            };
            inner = frame.keep.then_some(outer);
        }
        self.root.clone().or(inner)
    }

    /// The open string or word, unless it is a key.
    fn open_token(&self) -> Option<Value> {
        match self.state {
            State::Between | State::Done => None,
            _ if self.wants_key() => None,
            State::Word if self.token.len() > LONG_NUMBER => None,
            State::Word => word_value(&self.token),
            State::Text | State::Escape | State::Unit(_) => Some(Value::String(self.token.clone())),
        }
    }

    fn wants_key(&self) -> bool {
        matches!(self.stack.last(), Some(Frame { container: Container::Object(_, None), .. }))
    }

    fn between(&mut self, byte: u8) -> usize {
        match byte {
            b'{' => self.open(Container::Object(Map::new(), None)),
            b'[' => self.open(Container::Array(Vec::new())),
            b'}' | b']' => self.close(),
            b'"' => {
                self.token.clear();
                self.units.reset();
                self.state = State::Text;
            }
            b',' => self.drop_key(),
            b':' | b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => {
                self.token.clear();
                self.state = State::Word;
                return 0;
            }
        }
        1
    }

    /// Takes the bytes of a word; its end is looked at again.
    fn word(&mut self, text: &str, at: usize) -> usize {
        let rest = text.get(at..).unwrap_or_default();
        let len = rest.find(is_word_end).unwrap_or(rest.len());
        if self.token.len() <= LONG_WORD {
            self.token.push_str(rest.get(..len).unwrap_or_default());
        }
        if len < rest.len() {
            self.state = State::Between;
            let value = if self.token.len() <= LONG_WORD { word_value(&self.token) } else { None };
            match value {
                Some(value) => self.attach(value),
                None => self.drop_key(),
            }
        }
        len
    }

    /// Takes the plain part of a string and the quote or backslash after it.
    fn text(&mut self, text: &str, at: usize) -> usize {
        let rest = text.get(at..).unwrap_or_default();
        let found = memchr2(b'"', b'\\', rest.as_bytes());
        let span = rest.get(..found.unwrap_or(rest.len())).unwrap_or_default();
        if !span.is_empty() {
            self.units.reset();
            self.token.push_str(span);
        }
        match found.and_then(|at| rest.as_bytes().get(at)) {
            None => return span.len(),
            Some(b'"') => self.end_text(),
            Some(_) => self.state = State::Escape,
        }
        span.len() + 1
    }

    fn end_text(&mut self) {
        self.state = State::Between;
        let text = mem::take(&mut self.token);
        if let Some(Frame { container: Container::Object(_, key @ None), .. }) = self.stack.last_mut() {
            *key = Some(text);
        } else {
            self.attach(Value::String(text));
        }
    }

    fn escape(&mut self, letter: u8) -> usize {
        self.state = State::Text;
        if letter == b'u' {
            self.digits.clear();
            self.state = State::Unit(0);
            return 1;
        }
        self.units.reset();
        match simple_escape(letter) {
            Some(c) => {
                self.token.push(c);
                1
            }
            None => {
                // No escape after all: the backslash stays, what follows is read as text.
                self.token.push('\\');
                0
            }
        }
    }

    fn unit(&mut self, digit: u8, count: u8) -> usize {
        if hex(digit).is_none() {
            self.units.reset();
            self.token.push_str("\\u");
            self.token.push_str(&self.digits);
            self.state = State::Text;
            return 0;
        }
        self.digits.push(char::from(digit));
        self.state = State::Unit(count + 1);
        if count == 3 {
            let unit = u16::from_str_radix(&self.digits, 16).unwrap_or_default();
            self.units.push(unit, &mut self.token);
            self.state = State::Text;
        }
        1
    }

    fn open(&mut self, container: Container) {
        if self.stack.len() >= MAX_DEPTH {
            self.state = State::Done;
            return;
        }
        let keep = !self.wants_key();
        self.stack.push(Frame { container, keep });
    }

    /// Any closer closes the innermost container.
    fn close(&mut self) {
        let Some(frame) = self.stack.pop() else { return };
        if frame.keep {
            self.attach(match frame.container {
                Container::Array(items) => Value::Array(items),
                Container::Object(map, _) => Value::Object(map),
            });
        }
    }

    fn attach(&mut self, value: Value) {
        match self.stack.last_mut().map(|frame| &mut frame.container) {
            None => {
                self.root = Some(value);
                self.state = State::Done;
            }
            Some(Container::Array(items)) => items.push(value),
            Some(Container::Object(map, key)) => {
                // A value where a key should stand is dropped.
                if let Some(key) = key.take() {
                    map.insert(key, value);
                }
            }
        }
    }

    fn drop_key(&mut self) {
        if let Some(Frame { container: Container::Object(_, key), .. }) = self.stack.last_mut() {
            *key = None;
        }
    }
}

const fn is_word_end(c: char) -> bool {
    matches!(c, '{' | '}' | '[' | ']' | '"' | ',' | ':' | ' ' | '\t' | '\n' | '\r')
}

/// A number or (the start of) a literal; `None` for anything else, and for what is no number yet.
fn word_value(word: &str) -> Option<Value> {
    for (literal, value) in
        [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)]
    {
        if literal.starts_with(word) {
            return Some(value);
        }
    }
    // An exponent without digits does not count yet.
    let bare = word.trim_end_matches(['+', '-']);
    let cut = bare.strip_suffix(['e', 'E']).unwrap_or(word);
    let (len, integer) = number_len(cut.as_bytes())?;
    (len == cut.len()).then(|| number(cut, integer)).flatten().map(Value::Number)
}
