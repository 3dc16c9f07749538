//! Messages of a request: the two sides take turns, so that replies in a row are one message, and results, and what the
//! user says behind them, another. Results stand first: they directly follow their calls.

use alloc::string::String;
use alloc::sync::Arc;

use crate::json::{Map, Value, Writer};
use crate::message::{
    Block, Content, ImageBlock, Message, ThinkingBlock, ToolCall, ToolResultMessage, UserMessage,
};
use crate::provider::anthropic::{ERROR_IMAGE_MOVED, error_images_caption};
use crate::provider::marker::Marker;
use crate::text::base64;

/// Stands where a text must be and there is none: the service refuses blank ones and empty messages.
pub const EMPTY_TEXT: &str = "(empty)";
/// Stands for an image of a kind that the service does not take.
const FOREIGN_IMAGE: &str = "[image left out: this service takes PNG, JPEG, GIF and WebP only]";

/// What the encoding depends on besides the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Claude: thinking goes back with its signature or as text, errors hold no images.
    pub(super) claude: bool,
}

impl Shape {
    /// Whether there is something in a message; an assistant that said nothing gets a stand-in.
    pub(super) fn says_something(self, message: &Message) -> bool {
        match message {
            Message::Assistant(reply) => reply.content.iter().any(|block| self.is_output(block)),
            Message::User(_) | Message::ToolResult(_) => true,
            _ => false,
        }
    }

    /// Writes one unit; `marker` follows its last block.
    pub(super) fn write(self, sources: &[Arc<Message>], marker: Marker, w: &mut Writer) {
        if sources.first().is_some_and(|first| first.as_assistant().is_some()) {
            return self.write_replies(sources, w);
        }
        open("user", w);
        let mut is_empty = !self.write_results(sources, w);
        for message in sources {
            if let Message::User(user) = &**message {
                is_empty &= !write_user(user, w);
            }
        }
        if is_empty {
            write_text(EMPTY_TEXT, w);
        }
        marker.write_block(w);
        close(w);
    }

    fn is_output(self, block: &Block) -> bool {
        match block {
            Block::Text(text) => !text.text.trim().is_empty(),
            Block::Thinking(thinking) => !matches!(self.replay(thinking), Replay::Nothing),
            Block::ToolCall(_) => true,
            Block::Image(_) | Block::Other(_) => false,
        }
    }

    fn replay(self, thinking: &ThinkingBlock) -> Replay<'_> {
        let signature = thinking.signature.as_deref().unwrap_or_default();
        if thinking.redacted {
            let hidden = !signature.is_empty() && is_base64(signature);
            return if hidden { Replay::Hidden(signature) } else { Replay::Nothing };
        }
        match (signature, thinking.thinking.trim()) {
            ("", "") => Replay::Nothing,
            ("", _) if self.claude => Replay::Text,
            (_, "") if !self.claude => Replay::Nothing,
            (signature, _) => Replay::Thinking(Some(signature).filter(|_| self.claude)),
        }
    }

    fn write_replies(self, sources: &[Arc<Message>], w: &mut Writer) {
        open("assistant", w);
        let replies = sources.iter().filter_map(|message| message.as_assistant());
        let mut is_empty = true;
        for block in replies.flat_map(|reply| &reply.content).filter(|block| self.is_output(block)) {
            is_empty = false;
            match block {
                Block::Text(text) => write_text(&text.text, w),
                Block::Thinking(thinking) => self.write_thinking(thinking, w),
                Block::ToolCall(call) => write_call(call, w),
                Block::Image(_) | Block::Other(_) => {}
            }
        }
        if is_empty {
            write_text(EMPTY_TEXT, w);
        }
        close(w);
    }

    fn write_thinking(self, thinking: &ThinkingBlock, w: &mut Writer) {
        let replay = self.replay(thinking);
        if let Replay::Text = replay {
            return write_text(&thinking.thinking, w);
        }
        w.begin_object();
        w.key("reasoningContent");
        w.begin_object();
        match replay {
            Replay::Hidden(data) => w.field_str("redactedContent", data),
            Replay::Thinking(signature) => {
                w.key("reasoningText");
                w.begin_object();
                w.field_str("text", &thinking.thinking);
                w.field_opt_str("signature", signature);
                w.end_object();
            }
            Replay::Nothing | Replay::Text => {}
        }
        w.end_object();
        w.end_object();
    }

    /// All results of one reply; images of failed ones follow behind, where Claude takes them. Whether there are any.
    fn write_results(self, sources: &[Arc<Message>], w: &mut Writer) -> bool {
        let results = || {
            sources.iter().filter_map(|message| match &**message {
                Message::ToolResult(result) => Some(result),
                _ => None,
            })
        };
        let moved =
            |result: &ToolResultMessage| self.claude && result.is_error && images(result).next().is_some();
        for result in results() {
            write_result(result, moved(result), w);
        }
        for result in results().filter(|result| moved(result)) {
            write_text(&error_images_caption(&result.tool_call_id, &result.tool_name), w);
            images(result).for_each(|image| write_image(image, w));
        }
        results().next().is_some()
    }
}

/// What becomes of a thinking block.
enum Replay<'a> {
    Nothing,
    Text,
    Hidden(&'a str),
    Thinking(Option<&'a str>),
}

fn is_base64(text: &str) -> bool {
    text.len().is_multiple_of(4) && !text.contains(['-', '_']) && base64::decode(text).is_some()
}

fn open(role: &str, w: &mut Writer) {
    w.begin_object();
    w.field_str("role", role);
    w.key("content");
    w.begin_array();
}

fn close(w: &mut Writer) {
    w.end_array();
    w.end_object();
}

fn write_text(text: &str, w: &mut Writer) {
    w.begin_object();
    w.field_str("text", text);
    w.end_object();
}

fn write_image(image: &ImageBlock, w: &mut Writer) {
    let format = match image.mime_type.as_str() {
        "image/png" => "png",
        "image/jpeg" | "image/jpg" => "jpeg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        _ => return write_text(FOREIGN_IMAGE, w),
    };
    w.begin_object();
    w.key("image");
    w.begin_object();
    w.field_str("format", format);
    w.key("source");
    w.begin_object();
    w.field_str("bytes", &image.data);
    w.end_object();
    w.end_object();
    w.end_object();
}

/// What the user said; whether it was anything.
fn write_user(user: &UserMessage, w: &mut Writer) -> bool {
    let mut says = false;
    let mut text = |text: &str, w: &mut Writer| {
        if !text.trim().is_empty() {
            says = true;
            write_text(text, w);
        }
    };
    match &user.content {
        Content::Text(content) => text(content, w),
        Content::Blocks(blocks) => {
            let mut has_image = false;
            for block in blocks {
                match block {
                    Block::Text(block) => text(&block.text, w),
                    Block::Image(image) => {
                        has_image = true;
                        write_image(image, w);
                    }
                    _ => {}
                }
            }
            says |= has_image;
        }
    }
    says
}

fn write_call(call: &ToolCall, w: &mut Writer) {
    w.begin_object();
    w.key("toolUse");
    w.begin_object();
    w.field_str("toolUseId", &call.id);
    w.field_str("name", &call.name);
    w.key("input");
    match &*call.arguments {
        Value::Object(map) if map.contains_key("") || map.values().any(has_empty_key) => {
            w.map(&without_empty_keys(map));
        }
        input @ Value::Object(_) => w.value(input),
        // Only an object is taken; other versions stored what they got.
        _ => w.raw("{}"),
    }
    w.end_object();
    w.end_object();
}

/// The service refuses a key without a name.
fn has_empty_key(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.contains_key("") || map.values().any(has_empty_key),
        Value::Array(list) => list.iter().any(has_empty_key),
        _ => false,
    }
}

fn without_empty_keys(map: &Map<String, Value>) -> Map<String, Value> {
    fn clean(value: &Value) -> Value {
        match value {
            Value::Object(map) => Value::Object(without_empty_keys(map)),
            Value::Array(list) => Value::Array(list.iter().map(clean).collect()),
            other => other.clone(),
        }
    }
    let named = map.iter().filter(|(key, _)| !key.is_empty());
    named.map(|(key, value)| (key.clone(), clean(value))).collect()
}

fn images(result: &ToolResultMessage) -> impl Iterator<Item = &ImageBlock> {
    result.content.iter().filter_map(|block| match block {
        Block::Image(image) => Some(image),
        _ => None,
    })
}

/// One result; `moved` = its images follow elsewhere, a note stands for each run of them.
fn write_result(result: &ToolResultMessage, moved: bool, w: &mut Writer) {
    w.begin_object();
    w.key("toolResult");
    w.begin_object();
    w.field_str("toolUseId", &result.tool_call_id);
    w.key("content");
    w.begin_array();
    let (mut in_run, mut is_empty) = (false, true);
    for block in &result.content {
        let was_in_run = core::mem::replace(&mut in_run, matches!(block, Block::Image(_)));
        match block {
            Block::Text(text) if !text.text.trim().is_empty() => write_text(&text.text, w),
            Block::Image(_) if moved && was_in_run => continue,
            Block::Image(_) if moved => write_text(ERROR_IMAGE_MOVED, w),
            Block::Image(image) => write_image(image, w),
            _ => continue,
        }
        is_empty = false;
    }
    if is_empty {
        write_text(EMPTY_TEXT, w);
    }
    w.end_array();
    w.field_str("status", if result.is_error { "error" } else { "success" });
    w.end_object();
    w.end_object();
}
