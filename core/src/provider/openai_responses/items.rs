//! Messages as input items.
//!
//! A text without an id of its own gets one from its place, so the unit of a reply carries how many messages were
//! sent before it.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::fields::{Fields, text};
use crate::convert::{NO_TOOL_OUTPUT, SEE_IMAGE, sanitize_id, short_hash};
use crate::json::{self, Writer};
use crate::message::{
    AssistantMessage, Block, Content, ImageBlock, Message, TextBlock, ThinkingBlock, ToolCall,
    ToolResultMessage,
};
use crate::model::Model;
use crate::provider::body::Unit;
use crate::provider::grammar::{FreeForm, input_of};

/// Longest item id.
const MAX_ID: usize = 64;

/// How items are written.
pub(super) struct Items<'a> {
    pub(super) model: &'a Model,
    pub(super) free_form: &'a FreeForm,
}

/// Each message by itself, from the message at `from` on. `sent_before` is the flavour of an earlier reply: how many
/// messages are sent before it.
pub(super) fn units(
    history: &[Arc<Message>],
    from: usize,
    sent_before: impl Fn(usize) -> u32,
) -> Vec<Unit<'_>> {
    let is_reply = |message: &Arc<Message>| matches!(**message, Message::Assistant(_));
    let count = |messages: &[Arc<Message>]| messages.iter().filter(|message| is_sent(message)).count();
    let (before, rest) = history.split_at_checked(from).unwrap_or((history, &[]));
    let last_reply = before.iter().rposition(is_reply);
    let since = before.get(last_reply.unwrap_or(0)..).unwrap_or_default();
    let mut sent = last_reply.map_or(0, sent_before);
    sent = sent.saturating_add(u32::try_from(count(since)).unwrap_or(u32::MAX));
    let mut list = Vec::with_capacity(rest.len());
    for message in rest {
        list.push(Unit { flavour: if is_reply(message) { sent } else { 0 }, ..Unit::single(message) });
        sent = sent.saturating_add(u32::from(is_sent(message)));
    }
    list
}

/// Whether anything of a message is sent.
fn is_sent(message: &Message) -> bool {
    match message {
        Message::User(m) => match &m.content {
            Content::Text(_) => true,
            Content::Blocks(blocks) => blocks.iter().any(|b| matches!(b, Block::Text(_) | Block::Image(_))),
        },
        Message::Assistant(m) => m.content.iter().any(is_output),
        _ => true,
    }
}

/// Whether a block of a reply is an output item. The service refuses reasoning that leads to none, as a reply has it
/// that was cut while it thought.
const fn is_output(block: &Block) -> bool {
    matches!(block, Block::Text(_) | Block::ToolCall(_))
}

/// The item of the service that a thinking block stands for.
fn reasoning_item(block: &ThinkingBlock) -> Option<&str> {
    block.signature.as_deref().filter(|text| text.starts_with('{'))
}

impl Items<'_> {
    /// Writes the items of one unit.
    pub(super) fn write(&self, unit: &Unit<'_>, w: &mut Writer) {
        match unit.sources.first().map(|message| &**message) {
            Some(Message::User(m)) => user(&m.content, w),
            Some(Message::Assistant(m)) => self.reply(m, unit.flavour, w),
            Some(Message::ToolResult(m)) => self.result(m, w),
            _ => {}
        }
    }

    fn reply(&self, message: &AssistantMessage, place: u32, w: &mut Writer) {
        let mut texts = 0_usize;
        let Some(end) = message.content.iter().rposition(is_output) else { return };
        for block in message.content.get(..=end).unwrap_or_default() {
            match block {
                Block::Thinking(thinking) => {
                    if let Some(item) = reasoning_item(thinking) {
                        replay(item, w);
                    }
                }
                Block::Text(block) => {
                    said(block, place, texts, w);
                    texts += 1;
                }
                Block::ToolCall(call) => self.call(call, message, w),
                Block::Image(_) | Block::Other(_) => {}
            }
        }
    }

    fn call(&self, call: &ToolCall, message: &AssistantMessage, w: &mut Writer) {
        let (model, input) = (self.model, input_of(self.free_form, &call.name, &call.arguments));
        let (call_id, item) = call.id.split_once('|').unwrap_or((&call.id, ""));
        let same_service = message.provider == model.provider && message.api == model.api;
        let same_model = same_service && message.model == model.id;
        let (kind, prefix) =
            if input.is_some() { ("custom_tool_call", "ctc_") } else { ("function_call", "fc_") };
        w.begin_object();
        w.field_str("type", kind);
        // The service ties ids of its items to the model that made them.
        if item.starts_with(prefix) && (same_model || !same_service) {
            w.field_str("id", item);
        }
        w.field_str("call_id", call_id);
        w.field_str("name", &call.name);
        match input {
            Some(input) => w.field_str("input", input),
            None => w.field_str("arguments", &json::to_string(&call.arguments)),
        }
        w.field_opt_str("namespace", call.namespace.as_deref().filter(|_| same_model));
        w.end_object();
    }

    fn result(&self, result: &ToolResultMessage, w: &mut Writer) {
        let is_custom = self.free_form.iter().any(|(name, _)| *name == result.tool_name);
        let call_id = result.tool_call_id.split('|').next().unwrap_or_default();
        let has_image = result.content.iter().any(|block| matches!(block, Block::Image(_)));
        let texts = result.content.iter().filter_map(Block::as_text);
        let has_text = texts.clone().any(|text| !text.is_empty());
        w.begin_object();
        w.field_str("type", if is_custom { "custom_tool_call_output" } else { "function_call_output" });
        w.field_str("call_id", call_id);
        w.key("output");
        if has_image && self.model.image_input {
            w.begin_array();
            if has_text {
                w.begin_object();
                w.field_str("type", "input_text");
                w.key("text");
                w.str_parts(lines(texts));
                w.end_object();
            }
            result.content.iter().for_each(|block| {
                if let Block::Image(image) = block {
                    picture(image, w);
                }
            });
            w.end_array();
        } else if has_text {
            w.str_parts(lines(texts));
        } else {
            w.str(if has_image { SEE_IMAGE } else { NO_TOOL_OUTPUT });
        }
        w.end_object();
    }
}

/// Sends an item back as it came; what a file holds instead of a reasoning item is left out.
fn replay(item: &str, w: &mut Writer) {
    let kind = serde_json::from_str::<Fields<'_>>(item).ok().and_then(|fields| text(fields.kind));
    if kind.as_deref() != Some("reasoning") {
        return;
    }
    if item.contains("\\ud") || item.contains("\\uD") {
        // Perhaps half a surrogate pair, which the service would refuse: our reader drops it.
        if let Ok(item) = json::parse(item) {
            w.value(&item);
        }
    } else {
        w.raw(item);
    }
}

/// The texts with line feeds between them.
fn lines<'t>(texts: impl Iterator<Item = &'t str>) -> impl Iterator<Item = &'t str> {
    texts.enumerate().flat_map(|(at, text)| [if at == 0 { "" } else { "\n" }, text])
}

/// A user message; one without any content is left out.
fn user(content: &Content, w: &mut Writer) {
    let sent = |block: &&Block| matches!(block, Block::Text(_) | Block::Image(_));
    if matches!(content, Content::Blocks(blocks) if !blocks.iter().any(|block| sent(&block))) {
        return;
    }
    w.begin_object();
    w.field_str("role", "user");
    w.key("content");
    w.begin_array();
    match content {
        Content::Text(text) => input_text(text, w),
        Content::Blocks(blocks) => blocks.iter().for_each(|block| match block {
            Block::Text(block) => input_text(&block.text, w),
            Block::Image(image) => picture(image, w),
            _ => {}
        }),
    }
    w.end_array();
    w.end_object();
}

fn input_text(text: &str, w: &mut Writer) {
    w.begin_object();
    w.field_str("type", "input_text");
    w.field_str("text", text);
    w.end_object();
}

fn picture(image: &ImageBlock, w: &mut Writer) {
    w.begin_object();
    w.field_str("type", "input_image");
    w.field_str("detail", "auto");
    w.key("image_url");
    w.str_parts(["data:", &image.mime_type, ";base64,", &image.data]);
    w.end_object();
}

/// A text of a reply, the `nth` of its message.
fn said(block: &TextBlock, place: u32, nth: usize, w: &mut Writer) {
    let signature = block.signature.as_deref().filter(|signature| !signature.is_empty());
    let (stored, phase) = match signature.and_then(Fields::read) {
        Some(fields) => (text(fields.id), text(fields.phase)),
        // Older versions stored the bare id.
        None => (signature.map(Cow::Borrowed), None),
    };
    w.begin_object();
    w.field_str("type", "message");
    w.field_str("role", "assistant");
    w.key("content");
    w.begin_array();
    w.begin_object();
    w.field_str("type", "output_text");
    w.field_str("text", &block.text);
    w.key("annotations");
    w.begin_array();
    w.end_array();
    w.end_object();
    w.end_array();
    w.field_str("status", "completed");
    w.field_str("id", &item_id(stored.as_deref(), place, nth));
    w.field_opt_str("phase", phase.as_deref());
    w.end_object();
}

/// The id of a text item: the one it came with if that is short enough, else one that stays the same in every request.
fn item_id(stored: Option<&str>, place: u32, nth: usize) -> Cow<'_, str> {
    match stored {
        Some(id) if id.chars().count() <= MAX_ID => Cow::Borrowed(id),
        Some(id) => Cow::Owned(format!("msg_{}", short_hash(id))),
        None if nth == 0 => Cow::Owned(format!("msg_pi_{place}")),
        None => Cow::Owned(format!("msg_pi_{place}_{nth}")),
    }
}

/// A call id of another model in a form that this protocol takes (spec 30 §2). Services that know items of each other
/// keep the item in the id.
pub(super) fn foreign_call_id(id: &str, knows_items: bool, same_service: bool) -> String {
    let part = |text: &str| {
        let clean = sanitize_id(text, MAX_ID);
        let short = clean.trim_end_matches('_');
        String::from(if short.is_empty() { &*clean } else { short })
    };
    let Some((call, item)) = id.split_once('|').filter(|_| knows_items) else { return part(id) };
    let item = if same_service { part(item) } else { format!("fc_{}", short_hash(item)) };
    let item = if item.starts_with("fc_") { item } else { part(&format!("fc_{item}")) };
    format!("{}|{item}", part(call))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::borrow::ToOwned;

    #[test]
    fn reasoning_goes_back_as_it_came() {
        let sent = |item: &str| {
            let mut w = Writer::new();
            replay(item, &mut w);
            w.into_string()
        };
        for (item, wanted) in [
            (r#"{"type":"reasoning", "n": 1.0}"#, r#"{"type":"reasoning", "n": 1.0}"#),
            (
                r#"{"type":"reasoning","a":"x\ud83d","b":"\ud83d\ude00"}"#,
                r#"{"type":"reasoning","a":"x","b":"😀"}"#,
            ),
            (r#"{"v":1,"id":"msg_1"}"#, ""),
            (r#"{"type":"message"}"#, ""),
            (r#"{"a":1"#, ""),
            (r#"{"a":"\ud83d"#, ""),
        ] {
            assert_eq!(sent(item), wanted, "{item}");
        }
    }

    #[test]
    fn ids_of_other_models() {
        let long = "x".repeat(70);
        for (id, knows_items, same_service, wanted) in [
            ("toolu_1", true, false, "toolu_1".to_owned()),
            ("a b|", false, false, "a_b".to_owned()),
            ("call_1|fc_2", false, false, "call_1_fc_2".to_owned()),
            ("call_1|fc_2", true, true, "call_1|fc_2".to_owned()),
            ("call_1|ctc_2", true, true, "call_1|fc_ctc_2".to_owned()),
            ("call_1|item+/=id", true, false, "call_1|fc_1hyryaggsbekm".to_owned()),
            ("___", true, false, "___".to_owned()),
            (&long, true, false, "x".repeat(64)),
        ] {
            assert_eq!(foreign_call_id(id, knows_items, same_service), wanted, "{id}");
        }
    }

    #[test]
    fn ids_of_texts() {
        assert_eq!(item_id(Some("msg_1"), 3, 0), "msg_1");
        assert_eq!(item_id(Some(&"m".repeat(65)), 3, 0), "msg_4tg0y8defk0h");
        assert_eq!(item_id(None, 3, 0), "msg_pi_3");
        assert_eq!(item_id(None, 3, 2), "msg_pi_3_2");
    }
}
