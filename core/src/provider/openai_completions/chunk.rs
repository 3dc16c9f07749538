//! One streamed chunk of chat completions, as far as we read it.
//!
//! Two readers give the same structure. [`Chunk::strict`] borrows from the text and fails on any odd shape; it serves
//! all but a few chunks. [`Chunk::lenient`] goes over a dynamic value and takes what it can.

use alloc::borrow::Cow;
use core::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, SeqAccess, Visitor};

use crate::json::{self, Value};
use crate::provider::borrow::{Any, Few, Str};

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
