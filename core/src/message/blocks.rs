//! Content blocks.

use alloc::string::String;
use alloc::sync::Arc;

use super::Text;
use crate::json::{Map, Value};

/// One piece of a message's content.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Text.
    Text(TextBlock),
    /// An image.
    Image(ImageBlock),
    /// Thinking of a model.
    Thinking(ThinkingBlock),
    /// A call of a tool.
    ToolCall(ToolCall),
    /// A kind this version does not know: kept, never sent.
    Other(Value),
}

impl Block {
    /// A plain text block.
    #[must_use]
    pub fn text(text: impl Into<Text>) -> Self {
        Self::Text(TextBlock { text: text.into(), signature: None })
    }

    /// An image block.
    #[must_use]
    pub fn image(data: impl Into<Text>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageBlock { data: data.into(), mime_type: mime_type.into() })
    }

    /// The text of a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }
}

/// `type: "text"`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextBlock {
    /// The text.
    pub text: Text,
    /// Opaque metadata of the provider.
    pub signature: Option<Text>,
}

/// `type: "image"`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageBlock {
    /// Base64.
    pub data: Text,
    /// e.g. `image/png`.
    pub mime_type: String,
}

/// `type: "thinking"`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThinkingBlock {
    /// The thinking.
    pub thinking: Text,
    /// Opaque metadata of the provider.
    pub signature: Option<Text>,
    /// Hidden by the provider; the signature holds the payload.
    pub redacted: bool,
}

/// `type: "toolCall"`.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Id given by the provider.
    pub id: String,
    /// Tool name.
    pub name: String,
    /// Arguments as the model gave them; an object.
    pub arguments: Arc<Value>,
    /// Opaque metadata of the provider.
    pub thought_signature: Option<Text>,
    /// Namespace of the tool.
    pub namespace: Option<String>,
    /// The arguments could not be parsed: the call must fail with this text.
    pub arguments_error: Option<String>,
}

impl Default for ToolCall {
    fn default() -> Self {
        Self {
            id: String::new(),
            name: String::new(),
            arguments: Arc::new(Value::Object(Map::new())),
            thought_signature: None,
            namespace: None,
            arguments_error: None,
        }
    }
}
