//! Messages in the shape of chat completions.
//!
//! Units: a message by itself, or a row of tool results together (their images follow the row as one user message).
//! What depends on the neighbours travels in the flavour of the unit.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::compat::Compat;
use super::details;
use crate::convert::{NO_TOOL_OUTPUT, SEE_IMAGE};
use crate::json::{self, Value, Writer};
use crate::message::{
    AssistantMessage, Block, Content, ImageBlock, Message, TextBlock, ThinkingBlock, ToolCall,
    ToolResultMessage,
};
use crate::provider::body::{PASSING, Unit};
use crate::provider::grammar::{FreeForm, input_of};

/// Comes before the images of tool results, which this protocol takes only from users.
pub const TOOL_IMAGES_FOLLOW: &str = "Images of the tool results above:";
/// Stands between tool results and a user message for servers that demand an assistant message there.
pub const TOOL_RESULTS_BRIDGE: &str = "I have the tool results.";

/// The unit carries the cache marker.
const MARKED: u32 = PASSING | 1;
/// The user message comes right after tool results.
const AFTER_RESULTS: u32 = 2;

/// How items are written.
pub(super) struct Items<'a> {
    pub(super) compat: &'a Compat,
    pub(super) reasoning: bool,
    pub(super) provider: &'a str,
    /// The cache marker, when the protocol flavour has one.
    pub(super) marker: Option<&'a Value>,
    pub(super) grammar: &'a FreeForm,
}

/// Splits the messages into units, from the message at `from` on, which begins one. Without the cache marker, see
/// [`mark`].
pub(super) fn units<'a>(history: &'a [Arc<Message>], from: usize, items: &Items<'_>) -> Vec<Unit<'a>> {
    let (before, mut rest) = history.split_at_checked(from).unwrap_or((history, &[]));
    let mut units: Vec<Unit<'a>> = Vec::with_capacity(rest.len());
    let row = before.iter().rev().take_while(|message| is_result(message));
    let mut after_results = ends_in_results(row);
    while let Some(first) = rest.first() {
        let results = rest.iter().take_while(|message| is_result(message)).count();
        let (sources, tail) = rest.split_at(results.max(1));
        let bridge = after_results && items.compat.assistant_after_tool_result;
        let is_user = matches!(**first, Message::User(_));
        units.push(Unit { sources, flavour: if is_user && bridge { AFTER_RESULTS } else { 0 } });
        after_results = ends_in_results(sources.iter().take(results));
        rest = tail;
    }
    units
}

/// Whether there are results in a row of them, and no image: images of results end in a user message of our own.
fn ends_in_results<'a>(row: impl Iterator<Item = &'a Arc<Message>>) -> bool {
    let mut row = row.peekable();
    row.peek().is_some() && !row.any(|message| message.has_image())
}

fn is_result(message: &Message) -> bool {
    matches!(message, Message::ToolResult(_))
}

/// Puts the cache marker on the last unit that takes it. `false` when none does.
pub(super) fn mark(units: &mut [Unit<'_>]) -> bool {
    let last = units.iter_mut().rev().find(|unit| takes_marker(unit));
    last.map(|unit| unit.flavour |= MARKED).is_some()
}

/// Whether a unit ends in an item with text.
fn takes_marker(unit: &Unit<'_>) -> bool {
    match unit.sources.last().map(|message| &**message) {
        Some(Message::User(m)) => m.content.texts().any(|text| !text.is_empty()),
        Some(Message::Assistant(m)) => assistant_texts(m).next().is_some(),
        Some(Message::ToolResult(_)) => true,
        _ => false,
    }
}

fn assistant_texts(message: &AssistantMessage) -> impl Iterator<Item = &str> {
    message.content.iter().filter_map(Block::as_text).filter(|text| !text.trim().is_empty())
}

impl Items<'_> {
    /// Writes the items of one unit.
    pub(super) fn write(&self, unit: &Unit<'_>, w: &mut Writer) {
        let marker = self.marker.filter(|_| unit.flavour & MARKED == MARKED);
        match unit.sources.first().map(|message| &**message) {
            Some(Message::User(m)) => {
                if unit.flavour & AFTER_RESULTS != 0 {
                    bridge(w);
                }
                user(&m.content, marker, w);
            }
            Some(Message::Assistant(m)) => self.assistant(m, marker, w),
            Some(Message::ToolResult(_)) => {
                let results = unit.sources.iter().filter_map(|message| match &**message {
                    Message::ToolResult(m) => Some(m),
                    _ => None,
                });
                self.results(&results.collect::<Vec<_>>(), marker, w);
            }
            _ => {}
        }
    }

    /// The system text as an item.
    pub(super) fn system(&self, prompt: &str, w: &mut Writer) {
        w.begin_object();
        w.field_str(
            "role",
            if self.reasoning && self.compat.developer_role { "developer" } else { "system" },
        );
        w.key("content");
        text_content(core::iter::once(prompt), self.marker, w);
        w.end_object();
    }

    fn assistant(&self, message: &AssistantMessage, marker: Option<&Value>, w: &mut Writer) {
        let texts: Vec<&str> = assistant_texts(message).collect();
        let thoughts: Vec<&ThinkingBlock> = message
            .content
            .iter()
            .filter_map(|block| match block {
                Block::Thinking(block) if !block.thinking.trim().is_empty() => Some(block),
                _ => None,
            })
            .collect();
        let as_text = self.compat.thinking_as_text && !thoughts.is_empty();
        let has_calls = message.tool_calls().next().is_some();
        if texts.is_empty() && !as_text && !has_calls {
            return;
        }
        w.begin_object();
        w.field_str("role", "assistant");
        w.key("content");
        if as_text {
            thoughts_and_texts(&thoughts, &texts, marker, w);
        } else if !texts.is_empty() {
            text_content(texts.iter().copied(), marker, w);
        } else if self.compat.non_null_content || self.compat.assistant_after_tool_result {
            w.str("");
        } else {
            w.null();
        }
        let wrote = self.reasoning_fields(message, if as_text { &[] } else { &thoughts }, w);
        if has_calls {
            w.key("tool_calls");
            w.begin_array();
            message.tool_calls().for_each(|call| self.call(call, w));
            w.end_array();
        }
        if !wrote && self.compat.reasoning_content && self.reasoning {
            w.field_str("reasoning_content", "");
        }
        w.end_object();
    }

    /// Thinking under the field it came from, or the router's details. Returns whether `reasoning_content` is there.
    fn reasoning_fields(
        &self,
        message: &AssistantMessage,
        thoughts: &[&ThinkingBlock],
        w: &mut Writer,
    ) -> bool {
        if let Some(list) = replayed_details(message) {
            w.key("reasoning_details");
            w.begin_array();
            list.iter().for_each(|detail| w.value(detail));
            w.end_array();
            return false;
        }
        let field = match thoughts.first().and_then(|block| block.signature.as_deref()) {
            Some("reasoning") if self.provider == "opencode-go" => "reasoning_content",
            Some(field @ ("reasoning" | "reasoning_content" | "reasoning_text")) => field,
            _ => return false,
        };
        w.name(field);
        joined(thoughts.iter().map(|block| block.thinking.as_str()), "\n", w);
        field == "reasoning_content"
    }

    fn call(&self, call: &ToolCall, w: &mut Writer) {
        w.begin_object();
        w.field_str("id", &call.id);
        if let Some(input) = input_of(self.grammar, &call.name, &call.arguments) {
            w.field_str("type", "custom");
            w.key("custom");
            w.begin_object();
            w.field_str("name", &call.name);
            w.field_str("input", input);
        } else {
            w.field_str("type", "function");
            w.key("function");
            w.begin_object();
            w.field_str("name", &call.name);
            w.field_str("arguments", &json::to_string(&call.arguments));
        }
        w.end_object();
        w.end_object();
    }

    fn results(&self, results: &[&ToolResultMessage], marker: Option<&Value>, w: &mut Writer) {
        let images: Vec<&ImageBlock> = results
            .iter()
            .flat_map(|result| &result.content)
            .filter_map(|block| match block {
                Block::Image(image) => Some(image),
                _ => None,
            })
            .collect();
        for (at, result) in results.iter().enumerate() {
            let last = at + 1 == results.len() && images.is_empty();
            self.result(result, marker.filter(|_| last), w);
        }
        if images.is_empty() {
            return;
        }
        if self.compat.assistant_after_tool_result {
            bridge(w);
        }
        w.begin_object();
        w.field_str("role", "user");
        w.key("content");
        w.begin_array();
        text_part(TOOL_IMAGES_FOLLOW, marker, w);
        images.iter().for_each(|image| image_part(image, w));
        w.end_array();
        w.end_object();
    }

    fn result(&self, result: &ToolResultMessage, marker: Option<&Value>, w: &mut Writer) {
        let texts: Vec<&str> = result.content.iter().filter_map(Block::as_text).collect();
        let has_image = result.content.iter().any(|block| matches!(block, Block::Image(_)));
        w.begin_object();
        w.field_str("role", "tool");
        w.key("content");
        if texts.iter().all(|text| text.is_empty()) {
            let text = if has_image { SEE_IMAGE } else { NO_TOOL_OUTPUT };
            text_content(core::iter::once(text), marker, w);
        } else if marker.is_some() || texts.len() > 1 {
            text_content(separated(&texts, "\n"), marker, w);
        } else {
            text_content(texts.iter().copied(), None, w);
        }
        w.field_str("tool_call_id", &result.tool_call_id);
        if self.compat.tool_result_name {
            w.field_str("name", &result.tool_name);
        }
        w.end_object();
    }
}

fn bridge(w: &mut Writer) {
    w.begin_object();
    w.field_str("role", "assistant");
    w.field_str("content", TOOL_RESULTS_BRIDGE);
    w.end_object();
}

/// A user message; one without any content is left out.
fn user(content: &Content, marker: Option<&Value>, w: &mut Writer) {
    let blocks = match content {
        Content::Text(text) => {
            w.begin_object();
            w.field_str("role", "user");
            w.key("content");
            text_content(core::iter::once(text.as_str()), marker, w);
            return w.end_object();
        }
        Content::Blocks(blocks) => blocks,
    };
    let sent = |block: &&Block| match block {
        Block::Text(TextBlock { text, .. }) => !text.is_empty(),
        Block::Image(_) => true,
        _ => false,
    };
    let last_text = blocks.iter().rposition(|block| block.as_text().is_some_and(|text| !text.is_empty()));
    if !blocks.iter().any(|block| sent(&block)) {
        return;
    }
    w.begin_object();
    w.field_str("role", "user");
    w.key("content");
    w.begin_array();
    for (at, block) in blocks.iter().enumerate().filter(|(_, block)| sent(block)) {
        match block {
            Block::Image(image) => image_part(image, w),
            block => {
                text_part(block.as_text().unwrap_or_default(), marker.filter(|_| last_text == Some(at)), w)
            }
        }
    }
    w.end_array();
    w.end_object();
}

/// Text as a string, or as one marked part.
fn text_content<'t>(parts: impl IntoIterator<Item = &'t str>, marker: Option<&Value>, w: &mut Writer) {
    let Some(marker) = marker else { return w.str_parts(parts) };
    w.begin_array();
    w.begin_object();
    w.field_str("type", "text");
    w.key("text");
    w.str_parts(parts);
    w.field_value("cache_control", marker);
    w.end_object();
    w.end_array();
}

fn thoughts_and_texts(thoughts: &[&ThinkingBlock], texts: &[&str], marker: Option<&Value>, w: &mut Writer) {
    w.begin_array();
    w.begin_object();
    w.field_str("type", "text");
    w.key("text");
    joined(thoughts.iter().map(|block| block.thinking.as_str()), "\n\n", w);
    if let (Some(marker), true) = (marker, texts.is_empty()) {
        w.field_value("cache_control", marker);
    }
    w.end_object();
    for (at, text) in texts.iter().enumerate() {
        text_part(text, marker.filter(|_| at + 1 == texts.len()), w);
    }
    w.end_array();
}

fn text_part(text: &str, marker: Option<&Value>, w: &mut Writer) {
    w.begin_object();
    w.field_str("type", "text");
    w.field_str("text", text);
    if let Some(marker) = marker {
        w.field_value("cache_control", marker);
    }
    w.end_object();
}

fn image_part(image: &ImageBlock, w: &mut Writer) {
    w.begin_object();
    w.field_str("type", "image_url");
    w.key("image_url");
    w.begin_object();
    w.key("url");
    w.str_parts([&*format!("data:{};base64,", image.mime_type), &image.data]);
    w.end_object();
    w.end_object();
}

fn joined<'t>(texts: impl Iterator<Item = &'t str>, separator: &'t str, w: &mut Writer) {
    let texts: Vec<&str> = texts.collect();
    w.str_parts(separated(&texts, separator));
}

fn separated<'t>(texts: &'t [&'t str], separator: &'t str) -> impl Iterator<Item = &'t str> {
    texts.iter().enumerate().flat_map(move |(at, text)| [if at == 0 { "" } else { separator }, *text])
}

/// Details to send back: from a thinking signature, or from call signatures of older versions.
fn replayed_details(message: &AssistantMessage) -> Option<Vec<Value>> {
    let from_thinking = message.content.iter().find_map(|block| match block {
        Block::Thinking(block) => {
            let text = block.signature.as_deref().filter(|text| text.starts_with('['))?;
            let list: Vec<Value> = serde_json::from_str(text).ok()?;
            (!list.is_empty() && list.iter().all(details::is_valid)).then_some(list)
        }
        _ => None,
    });
    from_thinking.or_else(|| {
        let encrypted = |call: &ToolCall| {
            let text = call.thought_signature.as_deref().filter(|text| text.starts_with('{'))?;
            let value: Value = serde_json::from_str(text).ok()?;
            let kind = value.get("type").and_then(Value::as_str);
            (kind == Some("reasoning.encrypted") && value.get("data").is_some()).then_some(value)
        };
        let list: Vec<Value> = message.tool_calls().filter_map(encrypted).collect();
        (!list.is_empty()).then_some(list)
    })
}
