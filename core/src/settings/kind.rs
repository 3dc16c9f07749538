//! What settings may hold: strict when someone sets one, tolerant when a file is read.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};

use crate::json::Value;
use crate::model::ThinkingLevel;

/// Largest integer that every reader of the file understands (2^53 − 1).
pub(super) const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

/// What a setting may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Flag,
    /// Any text.
    Text,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// `true`, `false` or one of some words.
    FlagOr(&'static [&'static str]),
    /// `false` or one of some words.
    FalseOr(&'static [&'static str]),
    /// A thinking level.
    Level,
    /// A number that is not negative; fractions are cut.
    Count,
    /// A number in a range, to which others are moved; or a word.
    Range(u64, u64, Option<&'static str>),
    /// A whole number of tokens. A wrong one is an error, not another budget.
    Tokens,
    /// Milliseconds: a number, its text, or `disabled`, which is 0.
    Milliseconds,
    /// A list of texts.
    Texts,
    /// A list of texts and objects.
    List,
    /// An object from names to texts.
    Names,
}

impl Kind {
    /// What may be written, for people.
    #[must_use]
    pub fn describe(self) -> Cow<'static, str> {
        let words = |words: &[&str]| words.join(", ");
        Cow::Borrowed(match self {
            Self::Flag => "true or false",
            Self::Text => "text",
            Self::Count => "a number, not negative",
            Self::Tokens => "a whole number, not negative",
            Self::Milliseconds => "milliseconds, or disabled",
            Self::Texts => "a list of texts",
            Self::List => "a list of texts and objects",
            Self::Names => "an object of texts",
            Self::Choice(list) => return words(list).into(),
            Self::FlagOr(list) => return format!("true, false, {}", words(list)).into(),
            Self::FalseOr(list) => return format!("false, {}", words(list)).into(),
            Self::Level => return words(&ThinkingLevel::ALL.map(ThinkingLevel::name)).into(),
            Self::Range(least, most, word) => {
                let range = match most {
                    u64::MAX => format!("a number from {least}"),
                    _ => format!("a number from {least} to {most}"),
                };
                return match word {
                    Some(word) => format!("{range}, or {word}").into(),
                    None => range.into(),
                };
            }
        })
    }

    /// Whether a value is one of those that [`describe`](Self::describe) names.
    #[must_use]
    pub fn allows(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Milliseconds, value) => milliseconds(value).is_ok(),
            (Self::Flag | Self::FlagOr(_), Value::Bool(_))
            | (Self::FalseOr(_), Value::Bool(false))
            | (Self::Text, Value::String(_)) => true,
            (Self::Choice(words) | Self::FlagOr(words) | Self::FalseOr(words), Value::String(text)) => {
                words.contains(&text.as_str())
            }
            (Self::Level, Value::String(text)) => ThinkingLevel::parse(text).is_some(),
            (Self::Count, value) => count(value).is_some(),
            (Self::Range(.., Some(word)), Value::String(text)) => text == word,
            (Self::Range(least, most, _), Value::Number(number)) => {
                number.as_u64().is_some_and(|number| (least..=most).contains(&number))
            }
            (Self::Tokens, value) => whole(value).is_some(),
            (Self::Texts, Value::Array(items)) => items.iter().all(Value::is_string),
            (Self::List, Value::Array(items)) => {
                items.iter().all(|item| item.is_string() || item.is_object())
            }
            (Self::Names, Value::Object(map)) => map.values().all(Value::is_string),
            _ => false,
        }
    }

    /// The value that counts when a file says `value`; `None` = the default does.
    #[must_use]
    pub fn read(self, value: &Value) -> Option<Value> {
        match self {
            Self::Milliseconds => milliseconds(value).ok().map(Value::from),
            Self::Count => count(value).map(Value::from),
            Self::Range(least, most, _) if value.is_number() => {
                // The cast cuts the fraction and saturates.
                let number = value.as_f64().filter(|number| !number.is_nan())?;
                Some(Value::from((number as u64).clamp(least, most)))
            }
            Self::Texts => {
                let items = value.as_array()?;
                Some(items.iter().filter(|item| item.is_string()).cloned().collect())
            }
            _ => self.allows(value).then(|| value.clone()),
        }
    }

    /// The value that a text stands for when someone types it.
    #[must_use]
    pub fn typed(self, text: &str) -> Value {
        let word = || Value::String(text.to_string());
        let json = || crate::json::parse(text).unwrap_or_else(|_| word());
        match self {
            Self::Text | Self::Choice(_) | Self::Level => word(),
            Self::Texts | Self::List if !text.trim_start().starts_with('[') => Value::Array([word()].into()),
            _ => json(),
        }
    }
}

/// A number that is not negative; its fraction is cut.
pub(super) fn count(value: &Value) -> Option<u64> {
    let number = value.as_f64().filter(|_| value.is_number())?;
    (number.is_finite() && number >= 0.0).then_some(number as u64)
}

/// A whole number from 0 to 2^53 − 1.
pub(super) fn whole(value: &Value) -> Option<u64> {
    let number = value.as_f64().filter(|_| value.is_number())?;
    // The cast is exact in this range.
    ((0.0..=MAX_SAFE).contains(&number) && number as u64 as f64 == number).then_some(number as u64)
}

/// A number of milliseconds: a number, its text, or `disabled`.
///
/// # Errors
/// What is wrong with the value.
pub(super) fn milliseconds(value: &Value) -> Result<u64, String> {
    let given = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) if text.trim().eq_ignore_ascii_case("disabled") => Some(0.0),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    match given {
        // The cast saturates, which is as good as no limit.
        Some(ms) if ms.is_finite() && ms >= 0.0 => Ok(ms as u64),
        _ => Err("must be a number of milliseconds that is not negative, or \"disabled\"".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn strict_and_tolerant() {
        // Kind, value, allowed, what counts (null = the default).
        for (kind, value, allowed, counts) in [
            (Kind::Flag, json!(true), true, json!(true)),
            (Kind::Flag, json!("true"), false, json!(null)),
            (Kind::Choice(&["a", "b"]), json!("b"), true, json!("b")),
            (Kind::Choice(&["a", "b"]), json!("c"), false, json!(null)),
            (Kind::FlagOr(&["a"]), json!("a"), true, json!("a")),
            (Kind::FlagOr(&["a"]), json!("b"), false, json!(null)),
            (Kind::FalseOr(&["a"]), json!(true), false, json!(null)),
            (Kind::FalseOr(&["a"]), json!(false), true, json!(false)),
            (Kind::Level, json!("xhigh"), true, json!("xhigh")),
            (Kind::Level, json!("HIGH"), false, json!(null)),
            (Kind::Count, json!(2.9), true, json!(2)),
            (Kind::Count, json!(-1), false, json!(null)),
            (Kind::Count, json!("2"), false, json!(null)),
            (Kind::Range(1, 9, None), json!(0), false, json!(1)),
            (Kind::Range(1, 9, None), json!(-4.5), false, json!(1)),
            (Kind::Range(1, 9, None), json!(4.5), false, json!(4)),
            (Kind::Range(1, 9, None), json!("4"), false, json!(null)),
            (Kind::Range(1, 9, Some("auto")), json!("auto"), true, json!("auto")),
            (Kind::Tokens, json!(5.0), true, json!(5.0)),
            (Kind::Tokens, json!(5.5), false, json!(null)),
            (Kind::Tokens, json!(1e300), false, json!(null)),
            (Kind::Milliseconds, json!(" 1e3 "), true, json!(1000)),
            (Kind::Milliseconds, json!("Disabled"), true, json!(0)),
            (Kind::Milliseconds, json!(-1), false, json!(null)),
            (Kind::Texts, json!(["a"]), true, json!(["a"])),
            (Kind::Texts, json!(["a", 1]), false, json!(["a"])),
            (Kind::Texts, json!("a"), false, json!(null)),
            (Kind::List, json!(["a", {}]), true, json!(["a", {}])),
            (Kind::Names, json!({"a": 1}), false, json!(null)),
        ] {
            assert_eq!(kind.allows(&value), allowed, "{kind:?} {value}");
            assert_eq!(kind.read(&value).unwrap_or_default(), counts, "{kind:?} {value}");
        }
    }

    #[test]
    fn what_is_typed() {
        for (kind, text, value) in [
            (Kind::Flag, "true", json!(true)),
            (Kind::Flag, "yes", json!("yes")),
            (Kind::Text, "true", json!("true")),
            (Kind::Choice(&["all"]), "all", json!("all")),
            (Kind::FlagOr(&["header"]), "header", json!("header")),
            (Kind::FlagOr(&["header"]), "false", json!(false)),
            (Kind::Count, "7", json!(7)),
            (Kind::Milliseconds, "disabled", json!("disabled")),
            (Kind::Milliseconds, "5000", json!(5000)),
            (Kind::Texts, "a,b", json!(["a,b"])),
            (Kind::Texts, " [\"a\",\"b\"]", json!(["a", "b"])),
        ] {
            assert_eq!(kind.typed(text), value, "{kind:?} {text}");
        }
    }
}
