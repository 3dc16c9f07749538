//! Messages of a request: user and assistant turns, with all results of one reply in one user message.

use alloc::borrow::Cow;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{ERROR_IMAGE_MOVED, error_images_caption};
use crate::convert::{SEE_IMAGE, sanitize_id};
use crate::json::{Value, Writer};
use crate::message::{
    AssistantMessage, Block, Content, ImageBlock, Message, ThinkingBlock, ToolCall, ToolResultMessage,
    UserMessage,
};
use crate::provider::body::Unit;
use crate::provider::marker::Marker;

/// Longest name of a tool.
const MAX_TOOL_NAME: usize = 128;

/// What the encoding depends on besides the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Thinking without a signature goes back as thinking.
    pub(super) empty_signature: bool,
}

/// Whether a unit becomes a message at all.
pub(super) fn says_something(unit: &Unit<'_>, shape: Shape) -> bool {
    unit.sources.iter().any(|message| match &**message {
        Message::User(user) => match &user.content {
            Content::Text(text) => !text.trim().is_empty(),
            Content::Blocks(blocks) => blocks.iter().any(is_input),
        },
        Message::Assistant(reply) => reply.content.iter().any(|block| is_output(block, shape)),
        Message::ToolResult(_) => true,
        _ => false,
    })
}

/// Writes one unit; `marker` goes to its last block.
pub(super) fn write_unit(sources: &[Arc<Message>], marker: Marker, shape: Shape, w: &mut Writer) {
    match sources.first().map(|message| &**message) {
        Some(Message::User(user)) => write_user(user, marker, w),
        Some(Message::Assistant(reply)) => write_reply(reply, shape, w),
        Some(Message::ToolResult(_)) => write_results(sources, marker, w),
        _ => {}
    }
}

fn open(role: &str, w: &mut Writer) {
    w.begin_object();
    w.field_str("role", role);
    w.key("content");
}

fn write_text(text: &str, marker: Marker, w: &mut Writer) {
    w.begin_object();
    w.field_str("type", "text");
    w.field_str("text", text);
    marker.write_field(w);
    w.end_object();
}

fn write_image(image: &ImageBlock, marker: Marker, w: &mut Writer) {
    w.begin_object();
    w.field_str("type", "image");
    w.key("source");
    w.begin_object();
    w.field_str("type", "base64");
    w.field_str("media_type", &image.mime_type);
    w.field_str("data", &image.data);
    w.end_object();
    marker.write_field(w);
    w.end_object();
}

/// Whether a user may send a block: images, and texts that are not blank.
fn is_input(block: &Block) -> bool {
    match block {
        Block::Text(text) => !text.text.trim().is_empty(),
        Block::Image(_) => true,
        _ => false,
    }
}

fn write_user(user: &UserMessage, marker: Marker, w: &mut Writer) {
    match &user.content {
        Content::Text(text) if text.trim().is_empty() => {}
        Content::Text(text) => {
            open("user", w);
            if marker == Marker::None {
                w.str(text);
            } else {
                w.begin_array();
                write_text(text, marker, w);
                w.end_array();
            }
            w.end_object();
        }
        Content::Blocks(blocks) => {
            let Some(last) = blocks.iter().rposition(is_input) else { return };
            open("user", w);
            w.begin_array();
            for (at, block) in blocks.iter().enumerate().filter(|(_, block)| is_input(block)) {
                let marker = if at == last { marker } else { Marker::None };
                match block {
                    Block::Text(text) => write_text(&text.text, marker, w),
                    Block::Image(image) => write_image(image, marker, w),
                    _ => {}
                }
            }
            w.end_array();
            w.end_object();
        }
    }
}

/// What becomes of a thinking block.
enum Replay<'a> {
    Nothing,
    Text,
    Hidden(&'a str),
    Signed(&'a str),
}

fn replay(thinking: &ThinkingBlock, shape: Shape) -> Replay<'_> {
    let signature = thinking.signature.as_deref().unwrap_or_default();
    if thinking.redacted {
        return if signature.is_empty() { Replay::Nothing } else { Replay::Hidden(signature) };
    }
    match (signature, thinking.thinking.trim()) {
        ("", "") => Replay::Nothing,
        ("", _) if !shape.empty_signature => Replay::Text,
        (signature, _) => Replay::Signed(signature),
    }
}

fn is_output(block: &Block, shape: Shape) -> bool {
    match block {
        Block::Text(text) => !text.text.trim().is_empty(),
        Block::Thinking(thinking) => !matches!(replay(thinking, shape), Replay::Nothing),
        Block::ToolCall(_) => true,
        Block::Image(_) | Block::Other(_) => false,
    }
}

fn write_reply(reply: &AssistantMessage, shape: Shape, w: &mut Writer) {
    if !reply.content.iter().any(|block| is_output(block, shape)) {
        return;
    }
    open("assistant", w);
    w.begin_array();
    for block in reply.content.iter().filter(|block| is_output(block, shape)) {
        match block {
            Block::Text(text) => write_text(&text.text, Marker::None, w),
            Block::Thinking(thinking) => write_thinking(thinking, shape, w),
            Block::ToolCall(call) => write_call(call, w),
            Block::Image(_) | Block::Other(_) => {}
        }
    }
    w.end_array();
    w.end_object();
}

fn write_thinking(thinking: &ThinkingBlock, shape: Shape, w: &mut Writer) {
    match replay(thinking, shape) {
        Replay::Nothing => {}
        Replay::Text => write_text(&thinking.thinking, Marker::None, w),
        Replay::Hidden(data) => {
            w.begin_object();
            w.field_str("type", "redacted_thinking");
            w.field_str("data", data);
            w.end_object();
        }
        Replay::Signed(signature) => {
            w.begin_object();
            w.field_str("type", "thinking");
            w.field_str("thinking", &thinking.thinking);
            w.field_str("signature", signature);
            w.end_object();
        }
    }
}

/// Names of other protocols and of models that made one up are refused as they are.
fn tool_name(name: &str) -> Cow<'_, str> {
    match sanitize_id(name, MAX_TOOL_NAME) {
        Cow::Borrowed("") => Cow::Borrowed("unknown"),
        name => name,
    }
}

fn write_call(call: &ToolCall, w: &mut Writer) {
    w.begin_object();
    w.field_str("type", "tool_use");
    w.field_str("id", &call.id);
    w.field_str("name", &tool_name(&call.name));
    w.key("input");
    match &*call.arguments {
        input @ Value::Object(_) => w.value(input),
        // Only an object is taken; other versions stored what they got.
        _ => w.raw("{}"),
    }
    w.end_object();
}

/// All results of one reply; images of failed ones follow behind, where the service takes them.
fn write_results(sources: &[Arc<Message>], marker: Marker, w: &mut Writer) {
    let results: Vec<&ToolResultMessage> = sources
        .iter()
        .filter_map(|message| match &**message {
            Message::ToolResult(result) => Some(result),
            _ => None,
        })
        .collect();
    let moved = |result: &&ToolResultMessage| result.is_error && has_image(result);
    let last_moved = results.iter().rposition(moved);
    open("user", w);
    w.begin_array();
    for (at, result) in results.iter().enumerate() {
        let is_last = last_moved.is_none() && at + 1 == results.len();
        write_result(result, if is_last { marker } else { Marker::None }, w);
    }
    for (at, result) in results.iter().enumerate().filter(|(_, result)| moved(result)) {
        write_text(&error_images_caption(&result.tool_call_id, &result.tool_name), Marker::None, w);
        let mut images = images(result).peekable();
        while let Some(image) = images.next() {
            let is_last = Some(at) == last_moved && images.peek().is_none();
            write_image(image, if is_last { marker } else { Marker::None }, w);
        }
    }
    w.end_array();
    w.end_object();
}

fn images(result: &ToolResultMessage) -> impl Iterator<Item = &ImageBlock> {
    result.content.iter().filter_map(|block| match block {
        Block::Image(image) => Some(image),
        _ => None,
    })
}

fn has_image(result: &ToolResultMessage) -> bool {
    images(result).next().is_some()
}

fn write_result(result: &ToolResultMessage, marker: Marker, w: &mut Writer) {
    w.begin_object();
    w.field_str("type", "tool_result");
    w.field_str("tool_use_id", &result.tool_call_id);
    w.key("content");
    if has_image(result) && !result.is_error {
        write_result_blocks(result, w);
    } else {
        w.str_parts(result_text(result));
    }
    w.field_bool("is_error", result.is_error);
    marker.write_field(w);
    w.end_object();
}

/// Texts joined by LF; each run of images is one note.
fn result_text(result: &ToolResultMessage) -> impl Iterator<Item = &str> {
    let mut in_run = false;
    let texts = result.content.iter().filter_map(move |block| {
        let was_in_run = core::mem::replace(&mut in_run, matches!(block, Block::Image(_)));
        match block {
            Block::Text(text) => Some(text.text.as_str()),
            Block::Image(_) if !was_in_run => Some(ERROR_IMAGE_MOVED),
            _ => None,
        }
    });
    texts.enumerate().flat_map(|(at, text)| [if at == 0 { "" } else { "\n" }, text])
}

fn write_result_blocks(result: &ToolResultMessage, w: &mut Writer) {
    w.begin_array();
    if !result.content.iter().any(|block| block.as_text().is_some()) {
        write_text(SEE_IMAGE, Marker::None, w);
    }
    for block in &result.content {
        match block {
            Block::Text(text) => write_text(&text.text, Marker::None, w),
            Block::Image(image) => write_image(image, Marker::None, w),
            _ => {}
        }
    }
    w.end_array();
}
