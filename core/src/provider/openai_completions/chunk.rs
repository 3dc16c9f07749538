//! One streamed chunk of chat completions, as far as we read it.
//!
//! Two readers give the same structure. [`Chunk::strict`] borrows from the text and fails on any odd shape; it serves
//! all but a few chunks. [`Chunk::lenient`] goes over a dynamic value and takes what it can.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::json::{self, Value};

/// Text that borrows from the input where it has no escapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Str<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrow;
        impl<'de> Visitor<'de> for Borrow {
            type Value = Str<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Str<'de>, E> {
                Ok(Str(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Str<'de>, E> {
                Ok(Str(Cow::Owned(text.to_string())))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<Str<'de>, E> {
                Ok(Str(Cow::Owned(text)))
            }
        }
        deserializer.deserialize_str(Borrow)
    }
}

/// Any JSON, not read yet: chunks that have it are rare.
#[derive(Clone, Copy, Debug)]
pub(super) enum Any<'a> {
    Text(&'a str),
    Value(&'a Value),
}

impl Any<'_> {
    /// The value.
    pub(super) fn read(self) -> Value {
        match self {
            Self::Text(text) => json::parse(text).unwrap_or_default(),
            Self::Value(value) => value.clone(),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Any<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|raw| Self::Text(raw.get()))
    }
}

/// A chunk.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) model: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) choices: First<'a>,
    #[serde(borrow, default)]
    pub(super) usage: Option<Any<'a>>,
    #[serde(borrow, default)]
    pub(super) error: Option<Any<'a>>,
}

/// The first of the choices; the others are not read.
#[derive(Debug, Default)]
pub(super) struct First<'a>(pub(super) Option<Choice<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for First<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Head;
        impl<'de> Visitor<'de> for Head {
            type Value = First<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of choices")
            }

            fn visit_unit<E: Error>(self) -> Result<First<'de>, E> {
                Ok(First(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<First<'de>, A::Error> {
                let first = list.next_element()?;
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(First(first))
            }
        }
        deserializer.deserialize_any(Head)
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) usage: Option<Any<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) content: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) reasoning: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) reasoning_text: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) reasoning_details: Option<Any<'a>>,
    #[serde(borrow, default)]
    pub(super) tool_calls: Few<CallDelta<'a>>,
}

/// A list that almost always has one item: the first needs no allocation.
#[derive(Debug)]
pub(super) struct Few<T> {
    first: Option<T>,
    more: Vec<T>,
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { first: None, more: Vec::new() }
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut items = items.into_iter();
        Self { first: items.next(), more: items.collect() }
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = core::iter::Chain<core::option::IntoIter<T>, alloc::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.more)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items<T>(core::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
            type Value = Few<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_unit<E: Error>(self) -> Result<Few<T>, E> {
                Ok(Few::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Few<T>, A::Error> {
                let mut few = Few { first: list.next_element()?, more: Vec::new() };
                while let Some(item) = list.next_element()? {
                    few.more.push(item);
                }
                Ok(few)
            }
        }
        deserializer.deserialize_any(Items(core::marker::PhantomData))
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct CallDelta<'a> {
    #[serde(default)]
    pub(super) index: Option<i64>,
    #[serde(borrow, default)]
    pub(super) id: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) function: Option<Function<'a>>,
    #[serde(borrow, default)]
    pub(super) custom: Option<Custom<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow, default)]
    pub(super) name: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<Str<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Custom<'a> {
    #[serde(borrow, default)]
    pub(super) name: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) input: Option<Str<'a>>,
}

impl<'a> Chunk<'a> {
    /// Reads a chunk of the documented shape.
    pub(super) fn strict(data: &'a str) -> Option<Self> {
        serde_json::from_str(data).ok()
    }

    /// Reads a chunk of any shape; what has another type than documented is dropped, arguments given as an object are
    /// taken as their text (D53). `None` when the value is no object.
    pub(super) fn lenient(value: &'a Value) -> Option<Self> {
        let map = value.as_object()?;
        let choice = map.get("choices").and_then(Value::as_array).and_then(|list| list.first());
        Some(Self {
            id: text(map.get("id")),
            model: text(map.get("model")),
            choices: First(choice.map(choice_of)),
            usage: any(map.get("usage")),
            error: any(map.get("error")),
        })
    }
}

fn choice_of(value: &Value) -> Choice<'_> {
    Choice {
        delta: value.get("delta").map(delta_of),
        finish_reason: text(value.get("finish_reason")),
        usage: any(value.get("usage")),
    }
}

fn delta_of(value: &Value) -> Delta<'_> {
    let calls = value.get("tool_calls").and_then(Value::as_array);
    Delta {
        content: content_of(value.get("content")),
        reasoning_content: text(value.get("reasoning_content")),
        reasoning: text(value.get("reasoning")),
        reasoning_text: text(value.get("reasoning_text")),
        reasoning_details: any(value.get("reasoning_details")),
        tool_calls: calls.into_iter().flatten().filter(|call| call.is_object()).map(call_of).collect(),
    }
}

/// Content is a string; some servers send a list of text parts.
fn content_of(value: Option<&Value>) -> Option<Str<'_>> {
    let Some(Value::Array(parts)) = value else { return text(value) };
    let texts = parts.iter().filter_map(|part| part.get("text").unwrap_or(part).as_str());
    Some(Str(Cow::Owned(texts.collect())))
}

fn call_of(value: &Value) -> CallDelta<'_> {
    let index = value.get("index");
    let index = index.and_then(|v| v.as_i64().or_else(|| v.as_str().and_then(|text| text.parse().ok())));
    CallDelta {
        index,
        id: text(value.get("id")),
        function: value.get("function").map(|function| Function {
            name: text(function.get("name")),
            arguments: match function.get("arguments") {
                Some(object @ Value::Object(_)) => Some(Str(Cow::Owned(json::to_string(object)))),
                other => text(other),
            },
        }),
        custom: value
            .get("custom")
            .map(|custom| Custom { name: text(custom.get("name")), input: text(custom.get("input")) }),
    }
}

fn any(value: Option<&Value>) -> Option<Any<'_>> {
    value.filter(|value| !value.is_null()).map(Any::Value)
}

fn text(value: Option<&Value>) -> Option<Str<'_>> {
    value.and_then(Value::as_str).map(|text| Str(Cow::Borrowed(text)))
}
