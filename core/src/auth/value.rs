//! Value forms of keys and headers: literal text, `$NAME`, `!command` (spec 40 §1.5).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A configured value, taken apart.
#[derive(Clone, PartialEq, Eq)]
pub enum ConfigValue {
    /// The output of a shell command.
    Command(String),
    /// Text with variables.
    Template(Vec<Piece>),
}

/// A piece of a template.
#[derive(Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text.
    Literal(String),
    /// The value of a variable.
    Variable(String),
}

/// Why a value has no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// A command must run first; it is in the value, not here.
    NeedsCommand,
    /// Variables that are missing or empty, each once, in order.
    Missing(Vec<String>),
}

impl ConfigValue {
    /// Takes a configured value apart.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.strip_prefix('!') {
            Some(command) => Self::Command(command.to_string()),
            None => Self::Template(pieces(text)),
        }
    }

    /// Names of its variables, each once, in order.
    #[must_use]
    pub fn variables(&self) -> Vec<&str> {
        let mut names = Vec::new();
        let Self::Template(pieces) = self else { return names };
        for piece in pieces {
            if let Piece::Variable(name) = piece
                && !names.contains(&name.as_str())
            {
                names.push(name.as_str());
            }
        }
        names
    }

    /// The variable, if the value is nothing but one.
    #[must_use]
    pub fn single_variable(&self) -> Option<&str> {
        match self {
            Self::Template(pieces) => match pieces.as_slice() {
                [Piece::Variable(name)] => Some(name),
                _ => None,
            },
            Self::Command(_) => None,
        }
    }

    /// The text, with variables filled in; values are not expanded again.
    ///
    /// # Errors
    /// When it is a command, or a variable is missing or empty.
    pub fn resolve(&self, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, Unresolved> {
        let Self::Template(pieces) = self else { return Err(Unresolved::NeedsCommand) };
        let (mut text, mut missing) = (String::new(), Vec::new());
        for piece in pieces {
            match piece {
                Piece::Literal(literal) => text.push_str(literal),
                Piece::Variable(name) => match variable(name).filter(|value| !value.is_empty()) {
                    Some(value) => text.push_str(&value),
                    None if missing.contains(name) => {}
                    None => missing.push(name.clone()),
                },
            }
        }
        if missing.is_empty() { Ok(text) } else { Err(Unresolved::Missing(missing)) }
    }
}

/// What the output of a command means: trimmed; nothing is no value.
#[must_use]
pub fn command_output(stdout: &str) -> Option<String> {
    Some(stdout.trim()).filter(|text| !text.is_empty()).map(ToString::to_string)
}

fn pieces(text: &str) -> Vec<Piece> {
    let (mut pieces, mut literal, mut rest) = (Vec::new(), String::new(), text);
    while let Some((before, after)) = rest.split_once('$') {
        literal.push_str(before);
        rest = after;
        if let Some(escaped) = ["$", "!"].into_iter().find(|c| after.starts_with(c)) {
            literal.push_str(escaped);
            rest = after.get(1..).unwrap_or_default();
        } else if let Some((name, after)) = variable(after) {
            if !literal.is_empty() {
                pieces.push(Piece::Literal(core::mem::take(&mut literal)));
            }
            pieces.push(Piece::Variable(name.to_string()));
            rest = after;
        } else {
            literal.push('$');
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    pieces
}

/// `NAME…` or `{NAME}…` → name and what follows.
fn variable(text: &str) -> Option<(&str, &str)> {
    let (inner, braced) = text.strip_prefix('{').map_or((text, false), |inner| (inner, true));
    if !inner.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return None;
    }
    let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(inner.len());
    let (name, after) = inner.split_at(end);
    let after = if braced { after.strip_prefix('}')? } else { after };
    Some((name, after))
}
