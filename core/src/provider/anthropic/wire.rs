//! Events of the stream as they are on the wire; texts are borrowed from the input wherever they hold no escapes.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use crate::json::Value;

/// A text that may be missing or null.
#[derive(Clone, Debug, Default)]
pub(super) struct Text<'a>(pub(super) Option<Cow<'a, str>>);

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or null")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Some(Cow::Borrowed(text))))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Some(Cow::Owned(text.into()))))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<Text<'de>, E> {
                Ok(Text(Some(Cow::Owned(text))))
            }

            fn visit_unit<E: Error>(self) -> Result<Text<'de>, E> {
                Ok(Text(None))
            }
        }
        deserializer.deserialize_any(TextVisitor)
    }
}

/// `message_start`
#[derive(Debug, Deserialize)]
pub(super) struct MessageStart<'a> {
    #[serde(borrow, default)]
    pub(super) message: Message<'a>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    pub(super) usage: Option<Value>,
    pub(super) input_transformations: Option<Value>,
}

/// `content_block_start`
#[derive(Debug, Deserialize)]
pub(super) struct BlockStart<'a> {
    #[serde(default)]
    pub(super) index: i64,
    #[serde(borrow)]
    pub(super) content_block: Block<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Block<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow, default)]
    pub(super) signature: Text<'a>,
    #[serde(borrow, default)]
    pub(super) data: Text<'a>,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    pub(super) input: Option<Value>,
}

/// `content_block_delta`
#[derive(Debug, Deserialize)]
pub(super) struct BlockDelta<'a> {
    #[serde(default)]
    pub(super) index: i64,
    #[serde(borrow)]
    pub(super) delta: Delta<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow, default)]
    pub(super) partial_json: Text<'a>,
    #[serde(borrow, default)]
    pub(super) signature: Text<'a>,
}

/// `content_block_stop`
#[derive(Debug, Deserialize)]
pub(super) struct BlockStop {
    #[serde(default)]
    pub(super) index: i64,
}

/// `message_delta`
#[derive(Debug, Deserialize)]
pub(super) struct MessageDelta<'a> {
    #[serde(borrow, default)]
    pub(super) delta: Ending<'a>,
    pub(super) usage: Option<Value>,
    pub(super) input_transformations: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Ending<'a> {
    #[serde(borrow, default)]
    pub(super) stop_reason: Text<'a>,
    pub(super) stop_details: Option<Value>,
}
