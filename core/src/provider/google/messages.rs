//! Messages in the shape of Gemini contents.
//!
//! Units: a message of the user by itself, a row of replies, or a row of tool results. A row is one content: calls must
//! directly follow something of the user, and all of their results stand in the content behind them. Where images may
//! not stand inside results, they follow in one more content.

use alloc::sync::Arc;

use crate::convert::SEE_IMAGE;
use crate::json::{Value, Writer};
use crate::message::{
    Block, Content, ImageBlock, Message, ThinkingBlock, ToolCall, ToolResultMessage, UserMessage,
};
use crate::model::Model;
use crate::provider::body::Unit;

/// Stands above images of a tool result that follow it.
pub const TOOL_IMAGE_FOLLOWS: &str = "(images of the tool result above)";

/// In the place of a signature that only Gemini could have made, as its documentation says: for calls of other models.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// What the encoding depends on besides the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Calls and results carry the id of the call.
    pub(super) ids: bool,
    /// Images stand inside results.
    pub(super) nested_images: bool,
    /// Calls of other models carry [`NO_SIGNATURE`].
    pub(super) signed_calls: bool,
}

impl Shape {
    /// Writes the contents of one unit.
    pub(super) fn write(self, unit: &Unit<'_>, model: &Model, w: &mut Writer) {
        match unit.sources.first().map(|message| &**message) {
            Some(Message::User(user)) => write_user(user, w),
            Some(Message::Assistant(_)) => self.write_replies(unit.sources, model, w),
            Some(Message::ToolResult(_)) => self.write_results(unit.sources, w),
            _ => {}
        }
    }

    fn write_replies(self, sources: &[Arc<Message>], model: &Model, w: &mut Writer) {
        let replies = || sources.iter().filter_map(|message| message.as_assistant());
        if !replies().flat_map(|reply| &reply.content).any(is_output) {
            return;
        }
        open("model", w);
        for reply in replies() {
            let foreign = reply.model != model.id || reply.provider != model.provider;
            let mut stand_in = Some(NO_SIGNATURE).filter(|_| self.signed_calls && foreign);
            for block in reply.content.iter().filter(|block| is_output(block)) {
                w.begin_object();
                match block {
                    Block::Text(text) => {
                        w.field_str("text", &text.text);
                        write_signature(text.signature.as_deref(), w);
                    }
                    Block::Thinking(thinking) => {
                        w.field_bool("thought", true);
                        w.field_str("text", &thinking.thinking);
                        write_signature(thinking.signature.as_deref(), w);
                    }
                    // The first call of a reply is the one that is looked at.
                    Block::ToolCall(call) => self.write_call(call, stand_in.take(), w),
                    Block::Image(_) | Block::Other(_) => {}
                }
                w.end_object();
            }
        }
        close(w);
    }

    fn write_call(self, call: &ToolCall, stand_in: Option<&str>, w: &mut Writer) {
        w.key("functionCall");
        w.begin_object();
        w.field_str("name", &call.name);
        w.key("args");
        match &*call.arguments {
            args @ Value::Object(_) => w.value(args),
            // Only an object is taken; other versions stored what they got.
            _ => w.raw("{}"),
        }
        if self.ids {
            w.field_str("id", &call.id);
        }
        w.end_object();
        w.field_opt_str("thoughtSignature", signature(call.thought_signature.as_deref()).or(stand_in));
    }

    fn write_results(self, sources: &[Arc<Message>], w: &mut Writer) {
        let results = || {
            sources.iter().filter_map(|message| match &**message {
                Message::ToolResult(result) => Some(result),
                _ => None,
            })
        };
        open("user", w);
        for result in results() {
            self.write_result(result, w);
        }
        close(w);
        let apart = || results().filter(|result| !self.nested_images && images(result).next().is_some());
        if apart().next().is_none() {
            return;
        }
        open("user", w);
        for result in apart() {
            write_text(TOOL_IMAGE_FOLLOWS, w);
            images(result).for_each(|image| write_image(image, w));
        }
        close(w);
    }

    fn write_result(self, result: &ToolResultMessage, w: &mut Writer) {
        w.begin_object();
        w.key("functionResponse");
        w.begin_object();
        w.field_str("name", &result.tool_name);
        w.key("response");
        w.begin_object();
        w.key(if result.is_error { "error" } else { "output" });
        let has_images = images(result).next().is_some();
        if has_images && texts(result).next().is_none() {
            w.str(SEE_IMAGE);
        } else {
            w.str_parts(
                texts(result).enumerate().flat_map(|(at, text)| [if at == 0 { "" } else { "\n" }, text]),
            );
        }
        w.end_object();
        if has_images && self.nested_images {
            w.key("parts");
            w.begin_array();
            images(result).for_each(|image| write_image(image, w));
            w.end_array();
        }
        if self.ids {
            w.field_str("id", &result.tool_call_id);
        }
        w.end_object();
        w.end_object();
    }
}

fn open(role: &str, w: &mut Writer) {
    w.begin_object();
    w.field_str("role", role);
    w.key("parts");
    w.begin_array();
}

fn close(w: &mut Writer) {
    w.end_array();
    w.end_object();
}

pub(super) fn write_text(text: &str, w: &mut Writer) {
    w.begin_object();
    w.field_str("text", text);
    w.end_object();
}

fn write_image(image: &ImageBlock, w: &mut Writer) {
    w.begin_object();
    w.key("inlineData");
    w.begin_object();
    w.field_str("mimeType", &image.mime_type);
    w.field_str("data", &image.data);
    w.end_object();
    w.end_object();
}

/// The service refuses a signature that is no base64.
fn signature(text: Option<&str>) -> Option<&str> {
    let is_base64 = |text: &&str| {
        let data = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
        let fits = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/');
        !data.is_empty() && text.len().is_multiple_of(4) && data.bytes().all(fits)
    };
    text.filter(is_base64)
}

fn write_signature(text: Option<&str>, w: &mut Writer) {
    w.field_opt_str("thoughtSignature", signature(text));
}

fn write_user(user: &UserMessage, w: &mut Writer) {
    match &user.content {
        Content::Text(text) if text.is_empty() => {}
        Content::Text(text) => {
            open("user", w);
            write_text(text, w);
            close(w);
        }
        Content::Blocks(blocks) => {
            let is_input = |block: &&Block| matches!(block, Block::Text(_) | Block::Image(_));
            if !blocks.iter().any(|block| is_input(&block)) {
                return;
            }
            open("user", w);
            for block in blocks {
                match block {
                    Block::Text(text) => write_text(&text.text, w),
                    Block::Image(image) => write_image(image, w),
                    _ => {}
                }
            }
            close(w);
        }
    }
}

/// Whether a block goes back: an empty one only for its signature.
fn is_output(block: &Block) -> bool {
    let says = |text: &str, sign: Option<&str>| !text.trim().is_empty() || signature(sign).is_some();
    match block {
        Block::Text(text) => says(&text.text, text.signature.as_deref()),
        Block::Thinking(ThinkingBlock { thinking, signature, .. }) => says(thinking, signature.as_deref()),
        Block::ToolCall(_) => true,
        Block::Image(_) | Block::Other(_) => false,
    }
}

fn texts(result: &ToolResultMessage) -> impl Iterator<Item = &str> {
    result.content.iter().filter_map(Block::as_text)
}

fn images(result: &ToolResultMessage) -> impl Iterator<Item = &ImageBlock> {
    result.content.iter().filter_map(|block| match block {
        Block::Image(image) => Some(image),
        _ => None,
    })
}
