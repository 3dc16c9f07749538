//! Messages in the shape of Mistral's chat.

use alloc::format;
use alloc::vec::Vec;

use crate::convert::{NO_TOOL_OUTPUT, SEE_IMAGE};
use crate::json::{self, Writer};
use crate::message::{AssistantMessage, Block, Content, ImageBlock, Message, ToolCall, ToolResultMessage};
use crate::provider::body::Unit;

/// Marks the text of a result that is a failure.
pub const TOOL_ERROR_PREFIX: &str = "[tool error] ";

/// Writes the item of a unit, which is one message.
pub(super) fn write(unit: &Unit<'_>, w: &mut Writer) {
    match unit.sources.first().map(|message| &**message) {
        Some(Message::User(user)) => write_user(&user.content, w),
        Some(Message::Assistant(reply)) => write_reply(reply, w),
        Some(Message::ToolResult(result)) => write_result(result, w),
        _ => {}
    }
}

/// The system text as an item.
pub(super) fn write_system(prompt: &str, w: &mut Writer) {
    w.begin_object();
    w.field_str("role", "system");
    w.field_str("content", prompt);
    w.end_object();
}

fn write_user(content: &Content, w: &mut Writer) {
    let is_input = |block: &Block| matches!(block, Block::Text(_) | Block::Image(_));
    if matches!(content, Content::Blocks(blocks) if !blocks.iter().any(is_input)) {
        return;
    }
    w.begin_object();
    w.field_str("role", "user");
    w.key("content");
    match content {
        Content::Text(text) => w.str(text),
        Content::Blocks(blocks) => {
            w.begin_array();
            blocks.iter().for_each(|block| write_part(block, w));
            w.end_array();
        }
    }
    w.end_object();
}

fn write_part(block: &Block, w: &mut Writer) {
    match block {
        Block::Text(text) => write_text([&*text.text], w),
        Block::Image(image) => write_image(image, w),
        _ => {}
    }
}

fn write_text<'t>(pieces: impl IntoIterator<Item = &'t str>, w: &mut Writer) {
    w.begin_object();
    w.field_str("type", "text");
    w.key("text");
    w.str_parts(pieces);
    w.end_object();
}

fn write_image(image: &ImageBlock, w: &mut Writer) {
    w.begin_object();
    w.field_str("type", "image_url");
    w.key("image_url");
    w.str_parts([&*format!("data:{};base64,", image.mime_type), &image.data]);
    w.end_object();
}

/// A text or thinking that says something.
fn says_something(block: &&Block) -> bool {
    match block {
        Block::Text(text) => !text.text.trim().is_empty(),
        Block::Thinking(thinking) => !thinking.thinking.trim().is_empty(),
        _ => false,
    }
}

fn write_reply(reply: &AssistantMessage, w: &mut Writer) {
    let has_words = reply.content.iter().any(|block| says_something(&block));
    let has_calls = reply.tool_calls().next().is_some();
    if !has_words && !has_calls {
        return;
    }
    w.begin_object();
    w.field_str("role", "assistant");
    w.field_bool("prefix", false);
    if has_words {
        w.key("content");
        w.begin_array();
        for block in reply.content.iter().filter(says_something) {
            match block {
                Block::Thinking(thinking) => {
                    w.begin_object();
                    w.field_str("type", "thinking");
                    w.key("thinking");
                    w.begin_array();
                    write_text([&*thinking.thinking], w);
                    w.end_array();
                    w.end_object();
                }
                block => write_part(block, w),
            }
        }
        w.end_array();
    }
    if has_calls {
        w.key("tool_calls");
        w.begin_array();
        reply.tool_calls().for_each(|call| write_call(call, w));
        w.end_array();
    }
    w.end_object();
}

fn write_call(call: &ToolCall, w: &mut Writer) {
    w.begin_object();
    w.field_str("id", &call.id);
    w.field_str("type", "function");
    w.key("function");
    w.begin_object();
    w.field_str("name", &call.name);
    w.field_str("arguments", &json::to_string(&call.arguments));
    w.end_object();
    w.field_u64("index", 0);
    w.end_object();
}

/// A result: its text without blanks around it, then its images.
fn write_result(result: &ToolResultMessage, w: &mut Writer) {
    let images = || result.content.iter().filter(|block| matches!(block, Block::Image(_)));
    let text = result.content.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n");
    let text = match text.trim() {
        "" if images().next().is_some() => SEE_IMAGE,
        "" => NO_TOOL_OUTPUT,
        text => text,
    };
    w.begin_object();
    w.field_str("role", "tool");
    w.field_str("name", &result.tool_name);
    w.key("content");
    w.begin_array();
    write_text([if result.is_error { TOOL_ERROR_PREFIX } else { "" }, text], w);
    images().for_each(|image| write_part(image, w));
    w.end_array();
    w.field_str("tool_call_id", &result.tool_call_id);
    w.end_object();
}
