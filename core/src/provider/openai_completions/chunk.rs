//! One streamed chunk of chat completions, as far as we read it.
//!
//! Two readers give the same structure. [`Chunk::strict`] borrows from the text and fails on any odd shape; it serves
//! all but a few chunks. [`Chunk::lenient`] goes over a dynamic value and takes what it can.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, SeqAccess, Visitor};

use crate::json::{self, Value};
use crate::provider::borrow::{Any, Few, Str};

/// A chunk.
#[derive(Debug, Default, Deserialize)]
pub(in crate::provider) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(in crate::provider) id: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(in crate::provider) model: Option<Str<'a>>,
    /// `None` = there is no list at all: this is no chunk.
    #[serde(borrow, default)]
    pub(in crate::provider) choices: Option<First<'a>>,
    #[serde(borrow, default)]
    pub(in crate::provider) usage: Option<Any<'a>>,
    #[serde(borrow, default)]
    pub(in crate::provider) error: Option<Any<'a>>,
}

/// The first of the choices; the others are not read.
#[derive(Debug, Default)]
pub(in crate::provider) struct First<'a>(pub(in crate::provider) Option<Choice<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for First<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Head;
        impl<'de> Visitor<'de> for Head {
            type Value = First<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of choices")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<First<'de>, A::Error> {
                let first = list.next_element()?;
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(First(first))
            }
        }
        deserializer.deserialize_seq(Head)
    }
}

#[derive(Debug, Default, Deserialize)]
pub(in crate::provider) struct Choice<'a> {
    #[serde(borrow, default)]
    pub(in crate::provider) delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub(in crate::provider) finish_reason: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(in crate::provider) usage: Option<Any<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(in crate::provider) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(in crate::provider) content: Option<Content<'a>>,
    #[serde(borrow, default)]
    pub(in crate::provider) reasoning_content: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(in crate::provider) reasoning: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(in crate::provider) reasoning_text: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(in crate::provider) reasoning_details: Option<Any<'a>>,
    #[serde(borrow, default)]
    pub(in crate::provider) tool_calls: Few<CallDelta<'a>>,
}

/// What a delta says: a text, or a list of parts (Mistral, and a few other servers).
#[derive(Debug)]
pub(in crate::provider) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

/// A part: text, or thinking as a list of texts. Others have neither.
#[derive(Debug, Default, Deserialize)]
pub(in crate::provider) struct Part<'a> {
    #[serde(borrow, default)]
    pub(in crate::provider) text: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(in crate::provider) thinking: Vec<Self>,
}

impl<'a> Content<'a> {
    /// All of it that is text.
    pub(in crate::provider) fn into_text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text,
            Self::Parts(parts) => {
                parts.into_iter().filter_map(|part| part.text).map(|text| text.0).collect::<String>().into()
            }
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Content<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of parts")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Content<'de>, E> {
                Ok(Content::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Content<'de>, E> {
                Ok(Content::Text(Cow::Owned(text.into())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Content<'de>, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = list.next_element()? {
                    parts.push(part);
                }
                Ok(Content::Parts(parts))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[derive(Debug, Default, Deserialize)]
pub(in crate::provider) struct CallDelta<'a> {
    #[serde(default)]
    pub(in crate::provider) index: Option<i64>,
    #[serde(borrow, default)]
    pub(in crate::provider) id: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(in crate::provider) function: Option<Function<'a>>,
    #[serde(borrow, default)]
    pub(in crate::provider) custom: Option<Custom<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(in crate::provider) struct Function<'a> {
    #[serde(borrow, default)]
    pub(in crate::provider) name: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(in crate::provider) arguments: Option<Str<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(in crate::provider) struct Custom<'a> {
    #[serde(borrow, default)]
    pub(in crate::provider) name: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(in crate::provider) input: Option<Str<'a>>,
}

impl<'a> Chunk<'a> {
    /// Reads a chunk of the documented shape.
    pub(in crate::provider) fn strict(data: &'a str) -> Option<Self> {
        serde_json::from_str(data).ok()
    }

    /// Reads a chunk of any shape; what has another type than documented is dropped, arguments given as an object are
    /// taken as their text (D53). `None` when the value is no object.
    pub(in crate::provider) fn lenient(value: &'a Value) -> Option<Self> {
        let map = value.as_object()?;
        let choices = map.get("choices").and_then(Value::as_array);
        Some(Self {
            id: text(map.get("id")),
            model: text(map.get("model")),
            choices: choices.map(|list| First(list.first().map(choice_of))),
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

fn content_of(value: Option<&Value>) -> Option<Content<'_>> {
    match value? {
        Value::String(text) => Some(Content::Text(Cow::Borrowed(text))),
        Value::Array(parts) => Some(Content::Parts(parts.iter().map(part_of).collect())),
        _ => None,
    }
}

/// A part; some servers send bare texts.
fn part_of(value: &Value) -> Part<'_> {
    let thinking = value.get("thinking").and_then(Value::as_array);
    Part {
        text: text(Some(value.get("text").unwrap_or(value))),
        thinking: thinking.into_iter().flatten().map(part_of).collect(),
    }
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
