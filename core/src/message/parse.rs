//! Stored messages back into types: one pass over the text, tolerant of what other versions and hands wrote.
//!
//! A message is read into one structure that has every field of every role. Fields of a wrong type are dropped and
//! the rest is kept (spec 10 §4.2 "Tolerance"); null or missing content becomes empty.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{
    AssistantMessage, BashExecution, Block, BranchSummary, CompactionSummary, Content, Cost, CustomMessage,
    ImageBlock, Message, StopReason, SystemMessage, Text, TextBlock, ThinkingBlock, ToolCall,
    ToolResultMessage, Usage, UserMessage,
};
use crate::json::{self, Map, Value};
use crate::model::ThinkingLevel;

/// Reads one message from its JSON text. `None` when it is not an object with a string `role`.
#[must_use]
pub fn parse_message(text: &str) -> Option<Message> {
    if let Ok(wire) = serde_json::from_str::<WireMessage<'_>>(text) {
        return wire.into_message(|| serde_json::from_str(text).ok());
    }
    Message::from_value(&json::parse(text).ok()?)
}

impl Message {
    /// Reads one message from a value.
    #[must_use]
    pub fn from_value(value: &Value) -> Option<Self> {
        let map = value.as_object()?;
        map.get("role")?.as_str()?;
        let mut clean = sanitize(map);
        // Blocks go their own way, so that an unknown kind is kept as it is; free values, because they may be
        // nested deeper than the typed read allows.
        let mut take = |key: &str| clean.as_object_mut().and_then(|map| map.shift_remove(key));
        let content = take("content");
        let (details, structured, nested) = (take("details"), take("structuredContent"), take("nestedCalls"));
        let text = json::to_string(&clean);
        let mut wire: WireMessage<'_> = serde_json::from_str(&text).ok()?;
        (wire.details, wire.structured_content, wire.nested_calls) = (details, structured, nested);
        wire.content = match content.as_ref().map(Content::from_value) {
            Some(Content::Text(text)) => WireContent::Text(text.into_string()),
            Some(Content::Blocks(blocks)) if content.is_some_and(|c| c.is_array()) => {
                WireContent::Blocks(blocks)
            }
            _ => WireContent::Missing,
        };
        wire.into_message(|| Some(value.clone()))
    }
}

impl Usage {
    /// Reads a usage object; `None` when it is none.
    #[must_use]
    pub fn from_value(value: &Value) -> Option<Self> {
        let map = value.as_object()?;
        let wire: WireUsage = serde_json::from_str(&json::to_string(&clean_usage(map))).ok()?;
        Some(wire.into())
    }
}

impl Block {
    /// Reads one content block from a value.
    #[must_use]
    pub fn from_value(value: &Value) -> Self {
        Self::known(value).unwrap_or_else(|| Self::Other(value.clone()))
    }

    fn known(value: &Value) -> Option<Self> {
        let mut clean = clean_block(value.as_object()?)?;
        // Arguments may be nested deeper than the typed read allows.
        let arguments = clean.as_object_mut()?.shift_remove("arguments");
        let text = json::to_string(&clean);
        let mut wire: WireBlock<'_> = serde_json::from_str(&text).ok()?;
        wire.arguments = arguments;
        wire.into_block()
    }
}

impl Content {
    /// Reads content: a string, or a list of blocks; anything else is an empty list.
    #[must_use]
    pub fn from_value(value: &Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text.as_str().into()),
            Value::Array(items) => Self::Blocks(items.iter().map(Block::from_value).collect()),
            _ => Self::Blocks(Vec::new()),
        }
    }
}

/// Kinds of the fields we know; a value of another kind is dropped before the typed read.
const FIELDS: &[(&str, fn(&Value) -> bool)] = &[
    ("role", Value::is_string),
    ("api", Value::is_string),
    ("provider", Value::is_string),
    ("model", Value::is_string),
    ("responseModel", Value::is_string),
    ("responseId", Value::is_string),
    ("stopReason", Value::is_string),
    ("rawStopReason", Value::is_string),
    ("errorMessage", Value::is_string),
    ("providerThinkingLevel", Value::is_string),
    ("thinkingLevel", Value::is_string),
    ("toolCallId", Value::is_string),
    ("toolName", Value::is_string),
    ("command", Value::is_string),
    ("output", Value::is_string),
    ("fullOutputPath", Value::is_string),
    ("customType", Value::is_string),
    ("summary", Value::is_string),
    ("fromId", Value::is_string),
    ("timestamp", Value::is_number),
    ("durationMs", Value::is_number),
    ("exitCode", Value::is_number),
    ("tokensBefore", Value::is_number),
    ("endTurn", Value::is_boolean),
    ("isError", Value::is_boolean),
    ("cancelled", Value::is_boolean),
    ("truncated", Value::is_boolean),
    ("excludeFromContext", Value::is_boolean),
    ("display", Value::is_boolean),
    ("diagnostics", Value::is_array),
    ("toolsAdded", Value::is_array),
    ("toolsRemoved", Value::is_array),
];

const BLOCK_TEXTS: &[&str] = &[
    "text",
    "textSignature",
    "data",
    "mimeType",
    "thinking",
    "thinkingSignature",
    "id",
    "name",
    "thoughtSignature",
    "namespace",
    "argumentsError",
];

fn sanitize(map: &Map<String, Value>) -> Value {
    let mut clean = Map::new();
    for (key, value) in map {
        let kept = match key.as_str() {
            "content" => Some(value.clone()),
            "usage" => value.as_object().map(clean_usage),
            "sections" => value.as_object().map(|sections| {
                let keep = |v: &Value| v.is_string() || v.is_null();
                Value::Object(
                    sections.iter().filter(|(_, v)| keep(v)).map(|(k, v)| (k.clone(), v.clone())).collect(),
                )
            }),
            name => match FIELDS.iter().find(|(field, _)| *field == name) {
                Some((_, fits)) => fits(value).then(|| value.clone()),
                None => Some(value.clone()),
            },
        };
        if let Some(kept) = kept {
            clean.insert(key.clone(), kept);
        }
    }
    Value::Object(clean)
}

fn clean_block(map: &Map<String, Value>) -> Option<Value> {
    map.get("type")?.as_str()?;
    let fits = |key: &str, value: &Value| match key {
        "redacted" => value.is_boolean(),
        _ => value.is_string() || !BLOCK_TEXTS.contains(&key),
    };
    Some(Value::Object(map.iter().filter(|(k, v)| fits(k, v)).map(|(k, v)| (k.clone(), v.clone())).collect()))
}

fn clean_usage(map: &Map<String, Value>) -> Value {
    let fits = |key: &str, value: &Value| match key {
        "cost" => value.is_object(),
        "totalFromProvider" => value.is_boolean(),
        _ => value.is_number(),
    };
    let filter = |map: &Map<String, Value>| -> Map<String, Value> {
        map.iter().filter(|(k, v)| fits(k, v)).map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    let mut clean = filter(map);
    if let Some(Value::Object(cost)) = clean.get("cost") {
        let cost = filter(cost);
        clean.insert("cost".into(), Value::Object(cost));
    }
    Value::Object(clean)
}

/// Every field of every role.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireMessage<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(default)]
    content: WireContent,
    #[serde(default)]
    timestamp: Num,
    #[serde(default)]
    api: String,
    #[serde(default)]
    provider: String,
    #[serde(default)]
    model: String,
    response_model: Option<String>,
    response_id: Option<String>,
    usage: Option<WireUsage>,
    #[serde(borrow, default)]
    stop_reason: Cow<'a, str>,
    raw_stop_reason: Option<String>,
    error_message: Option<String>,
    diagnostics: Option<Vec<Value>>,
    provider_thinking_level: Option<String>,
    thinking_level: Option<Cow<'a, str>>,
    deferred: Option<Value>,
    end_turn: Option<bool>,
    duration_ms: Option<Num>,
    #[serde(default)]
    tool_call_id: String,
    #[serde(default)]
    tool_name: String,
    details: Option<Value>,
    structured_content: Option<Value>,
    nested_calls: Option<Value>,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    sections: Sections,
    tools_added: Option<Vec<Value>>,
    tools_removed: Option<Vec<Value>>,
    #[serde(default)]
    command: String,
    #[serde(default)]
    output: String,
    exit_code: Option<Num>,
    #[serde(default)]
    cancelled: bool,
    #[serde(default)]
    truncated: bool,
    full_output_path: Option<String>,
    #[serde(default)]
    exclude_from_context: bool,
    #[serde(default)]
    custom_type: String,
    #[serde(default)]
    display: bool,
    #[serde(default)]
    summary: String,
    #[serde(default)]
    from_id: String,
    #[serde(default)]
    tokens_before: Num,
}

impl WireMessage<'_> {
    fn into_message(self, whole: impl FnOnce() -> Option<Value>) -> Option<Message> {
        let timestamp = self.timestamp.int();
        Some(match self.role.as_ref() {
            "user" => Message::User(UserMessage { content: self.content.into_content(), timestamp }),
            "assistant" => Message::Assistant(AssistantMessage {
                content: self.content.into_blocks(),
                api: self.api,
                provider: self.provider,
                model: self.model,
                response_model: self.response_model,
                response_id: self.response_id,
                usage: self.usage.map(Usage::from).unwrap_or_default(),
                // A stored reply without a known reason is treated as complete.
                stop_reason: StopReason::parse(&self.stop_reason).unwrap_or(StopReason::Stop),
                raw_stop_reason: self.raw_stop_reason,
                error_message: self.error_message,
                diagnostics: self.diagnostics,
                provider_thinking_level: self.provider_thinking_level,
                thinking_level: self.thinking_level.as_deref().and_then(ThinkingLevel::parse),
                deferred: self.deferred,
                end_turn: self.end_turn,
                timestamp,
                duration_ms: self.duration_ms.map(Num::uint),
            }),
            "toolResult" => Message::ToolResult(ToolResultMessage {
                tool_call_id: self.tool_call_id,
                tool_name: self.tool_name,
                content: self.content.into_blocks(),
                details: self.details,
                structured_content: self.structured_content,
                usage: self.usage.map(Usage::from),
                is_error: self.is_error,
                nested_calls: self.nested_calls,
                duration_ms: self.duration_ms.map(Num::uint),
                timestamp,
            }),
            "system" => Message::System(SystemMessage {
                content: self.content.into_text(),
                sections: self.sections.0,
                tools_added: self.tools_added,
                tools_removed: self.tools_removed,
                timestamp,
            }),
            "bashExecution" => Message::Bash(BashExecution {
                command: self.command,
                output: self.output.into(),
                exit_code: self.exit_code.map(Num::int),
                cancelled: self.cancelled,
                truncated: self.truncated,
                full_output_path: self.full_output_path,
                exclude_from_context: self.exclude_from_context,
                timestamp,
            }),
            "custom" => Message::Custom(CustomMessage {
                custom_type: self.custom_type,
                content: self.content.into_content(),
                display: self.display,
                details: self.details,
                timestamp,
            }),
            "branchSummary" => Message::BranchSummary(BranchSummary {
                summary: self.summary.into(),
                from_id: self.from_id,
                timestamp,
            }),
            "compactionSummary" => Message::CompactionSummary(CompactionSummary {
                summary: self.summary.into(),
                tokens_before: self.tokens_before.uint(),
                timestamp,
            }),
            _ => Message::Other(whole()?),
        })
    }
}

/// Any JSON number, also as a fraction; other versions wrote some integers so.
#[derive(Clone, Copy, Default)]
struct Num(f64);

impl Num {
    const fn int(self) -> i64 {
        self.0 as i64
    }

    const fn uint(self) -> u64 {
        self.0 as u64
    }
}

impl<'de> Deserialize<'de> for Num {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Self)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireUsage {
    #[serde(default)]
    input: Num,
    #[serde(default)]
    output: Num,
    #[serde(default)]
    cache_read: Num,
    #[serde(default)]
    cache_write: Num,
    #[serde(rename = "cacheWrite1h")]
    cache_write_1h: Option<Num>,
    reasoning: Option<Num>,
    #[serde(default)]
    total_tokens: Num,
    #[serde(default)]
    cost: WireCost,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireCost {
    input: f64,
    output: f64,
    cache_read: f64,
    cache_write: f64,
    total: f64,
    total_from_provider: Option<bool>,
}

impl From<WireUsage> for Usage {
    fn from(w: WireUsage) -> Self {
        Self {
            input: w.input.uint(),
            output: w.output.uint(),
            cache_read: w.cache_read.uint(),
            cache_write: w.cache_write.uint(),
            cache_write_1h: w.cache_write_1h.map(Num::uint),
            reasoning: w.reasoning.map(Num::uint),
            total_tokens: w.total_tokens.uint(),
            cost: Cost {
                input: w.cost.input,
                output: w.cost.output,
                cache_read: w.cost.cache_read,
                cache_write: w.cost.cache_write,
                total: w.cost.total,
                total_from_provider: w.cost.total_from_provider,
            },
        }
    }
}

/// Every field of every block.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireBlock<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    text: Option<String>,
    text_signature: Option<String>,
    data: Option<String>,
    mime_type: Option<String>,
    thinking: Option<String>,
    thinking_signature: Option<String>,
    redacted: Option<bool>,
    id: Option<String>,
    name: Option<String>,
    arguments: Option<Value>,
    thought_signature: Option<String>,
    namespace: Option<String>,
    arguments_error: Option<String>,
}

impl WireBlock<'_> {
    /// `None` for a kind this version does not know.
    fn into_block(self) -> Option<Block> {
        Some(match self.kind.as_ref() {
            "text" => Block::Text(TextBlock {
                text: self.text.unwrap_or_default().into(),
                signature: self.text_signature.map(Text::from),
            }),
            "image" => Block::Image(ImageBlock {
                data: self.data.unwrap_or_default().into(),
                mime_type: self.mime_type.unwrap_or_default(),
            }),
            "thinking" => Block::Thinking(ThinkingBlock {
                thinking: self.thinking.unwrap_or_default().into(),
                signature: self.thinking_signature.map(Text::from),
                redacted: self.redacted.unwrap_or_default(),
            }),
            "toolCall" => Block::ToolCall(ToolCall {
                id: self.id.unwrap_or_default(),
                name: self.name.unwrap_or_default(),
                arguments: Arc::new(self.arguments.unwrap_or_else(|| Value::Object(Map::new()))),
                thought_signature: self.thought_signature.map(Text::from),
                namespace: self.namespace,
                arguments_error: self.arguments_error,
            }),
            _ => return None,
        })
    }
}

#[derive(Default)]
enum WireContent {
    #[default]
    Missing,
    Text(String),
    Blocks(Vec<Block>),
}

impl WireContent {
    fn into_content(self) -> Content {
        match self {
            Self::Missing => Content::Blocks(Vec::new()),
            Self::Text(text) => Content::Text(text.into()),
            Self::Blocks(blocks) => Content::Blocks(blocks),
        }
    }

    fn into_blocks(self) -> Vec<Block> {
        match self {
            Self::Missing => Vec::new(),
            Self::Text(text) => alloc::vec![Block::text(text)],
            Self::Blocks(blocks) => blocks,
        }
    }

    fn into_text(self) -> Text {
        match self {
            Self::Missing => Text::new(),
            Self::Text(text) => text.into(),
            Self::Blocks(blocks) => {
                let texts: Vec<&str> = blocks.iter().filter_map(Block::as_text).collect();
                texts.join("\n").into()
            }
        }
    }
}

impl<'de> Deserialize<'de> for WireContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;
        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = WireContent;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, blocks or null")
            }

            fn visit_str<E>(self, text: &str) -> Result<WireContent, E> {
                Ok(WireContent::Text(text.into()))
            }

            fn visit_string<E>(self, text: String) -> Result<WireContent, E> {
                Ok(WireContent::Text(text))
            }

            fn visit_unit<E>(self) -> Result<WireContent, E> {
                Ok(WireContent::Missing)
            }

            fn visit_bool<E>(self, _: bool) -> Result<WireContent, E> {
                Ok(WireContent::Missing)
            }

            fn visit_f64<E>(self, _: f64) -> Result<WireContent, E> {
                Ok(WireContent::Missing)
            }

            fn visit_u64<E>(self, _: u64) -> Result<WireContent, E> {
                Ok(WireContent::Missing)
            }

            fn visit_i64<E>(self, _: i64) -> Result<WireContent, E> {
                Ok(WireContent::Missing)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WireContent, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(WireContent::Missing)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<WireContent, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = seq.next_element::<WireBlock<'de>>()? {
                    // Unknown kinds need the whole value: the caller falls back to the slow path.
                    blocks.push(block.into_block().ok_or_else(|| serde::de::Error::custom("unknown block"))?);
                }
                Ok(WireContent::Blocks(blocks))
            }
        }
        deserializer.deserialize_any(ContentVisitor)
    }
}

#[derive(Default)]
struct Sections(Vec<(String, Option<Text>)>);

impl<'de> Deserialize<'de> for Sections {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SectionsVisitor;
        impl<'de> Visitor<'de> for SectionsVisitor {
            type Value = Sections;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of texts")
            }

            fn visit_unit<E>(self) -> Result<Sections, E> {
                Ok(Sections::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Sections, A::Error> {
                let mut sections = Vec::new();
                while let Some((name, text)) = map.next_entry::<String, Option<String>>()? {
                    sections.push((name, text.map(Text::from)));
                }
                Ok(Sections(sections))
            }
        }
        deserializer.deserialize_any(SectionsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Writer;

    fn round(text: &str) -> String {
        let mut w = Writer::new();
        parse_message(text).unwrap().write(&mut w);
        w.into_string()
    }

    #[test]
    fn known_messages_survive_to_the_byte() {
        for text in [
            r#"{"role":"user","content":"hi","timestamp":5}"#,
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","data":"QQ==","mimeType":"image/png"}],"timestamp":5}"#,
            r#"{"role":"toolResult","toolCallId":"c","toolName":"read","content":[],"details":{"b":1,"a":[1.5]},"isError":true,"timestamp":1}"#,
            r#"{"role":"system","content":"x","sections":{"b":"1","a":null},"toolsAdded":[{"name":"t"}],"timestamp":1}"#,
            r#"{"role":"bashExecution","command":"ls","output":"o","exitCode":2,"cancelled":false,"truncated":false,"timestamp":1}"#,
            r#"{"role":"sage","wisdom":[1,2],"timestamp":9}"#,
        ] {
            assert_eq!(round(text), text);
        }
    }

    #[test]
    fn odd_messages_are_read_tolerantly() {
        assert_eq!(
            round(r#"{"role":"user","content":null,"timestamp":5.0}"#),
            r#"{"role":"user","content":[],"timestamp":5}"#
        );
        let odd = r#"{"role":"assistant","content":[{"type":"text","text":7},{"type":"x","y":1},3],"usage":"none","timestamp":"no"}"#;
        let Some(Message::Assistant(m)) = parse_message(odd) else { panic!("not an assistant") };
        assert_eq!(m.content[0], Block::text(""));
        assert!(matches!(&m.content[1], Block::Other(v) if v["y"] == 1));
        assert_eq!(m.content.len(), 3);
        assert_eq!(m.timestamp, 0);
        for bad in ["null", "[]", "{}", r#"{"role":5}"#, "{"] {
            assert!(parse_message(bad).is_none(), "{bad}");
        }
    }
}
