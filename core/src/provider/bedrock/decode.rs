//! Streamed replies: frames of an event stream, each with one event as JSON.
//!
//! `messageStart` begins a reply, `messageStop` names its end, `metadata` brings the usage behind it. A reply is complete
//! with `messageStop`; anything less is a failure. Failures that the service may be asked about carry a diagnostic with
//! what identifies them.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::Deserialize;

use super::failure;
use crate::json::Value;
use crate::message::{AssistantMessage, Block, StopReason, TextBlock, ThinkingBlock, ToolCall, Usage};
use crate::model::Model;
use crate::op::Headers;
use crate::provider::anthropic::REASONING_REDACTED;
use crate::provider::assemble::Assembler;
use crate::provider::borrow::{Str, repaired};
use crate::provider::error::{ABORTED, clean, excerpt, no_stream_message, stream_fault_message};
use crate::provider::event_stream::{Damage, EventStream, Frame};
use crate::provider::stop::{self, Stop};
use crate::provider::{BodyEnd, Decoder, StreamEvent, cost};
use crate::text::base64;

/// Bytes of a body that is no event stream at all that are looked at.
const STRAY: usize = 2000;

/// Decoder of one reply.
#[derive(Debug)]
pub(super) struct BedrockDecoder {
    stream: EventStream,
    reply: Reply,
    /// The beginning of the body, until a frame came.
    stray: Vec<u8>,
    /// The body is no event stream; its words are still gathered.
    foreign: bool,
}

/// The reply in the making.
#[derive(Debug)]
struct Reply {
    model: Arc<Model>,
    assembler: Assembler,
    /// Open blocks by the service's index.
    open: Vec<Open>,
    /// Whether any frame came.
    any_frame: bool,
    /// For questions to the service.
    request_id: Option<String>,
}

#[derive(Debug)]
struct Open {
    key: i64,
    index: usize,
    kind: Kind,
    /// Hidden thinking, which is whole only at the end of its block.
    hidden: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Hidden,
    Call,
}

/// The members of all events; each has some of them.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Event<'a> {
    content_block_index: i64,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    start: Option<Start<'a>>,
    #[serde(borrow)]
    role: Option<Str<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Str<'a>>,
    usage: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Delta<'a> {
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    tool_use: Option<ToolDelta<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<Reasoning<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ToolDelta<'a> {
    #[serde(borrow)]
    input: Option<Str<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Reasoning<'a> {
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    signature: Option<Str<'a>>,
    #[serde(borrow)]
    redacted_content: Option<Str<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Start<'a> {
    #[serde(borrow)]
    tool_use: Option<ToolStart<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ToolStart<'a> {
    #[serde(borrow)]
    tool_use_id: Option<Str<'a>>,
    #[serde(borrow)]
    name: Option<Str<'a>>,
}

fn owned(text: Option<Str<'_>>) -> String {
    text.map_or_else(String::new, |text| text.0.into_owned())
}

impl BedrockDecoder {
    pub(super) fn new(model: &Arc<Model>, now_ms: i64) -> Self {
        let reply = Reply {
            model: Arc::clone(model),
            assembler: Assembler::new(model, now_ms),
            open: Vec::new(),
            any_frame: false,
            request_id: None,
        };
        Self { stream: EventStream::default(), reply, stray: Vec::new(), foreign: false }
    }

    /// Keeps the beginning of a body without frames, to be shown when it turns out to be something else.
    fn note_stray(&mut self, bytes: &[u8]) {
        let room = STRAY.saturating_sub(self.stray.len()).min(bytes.len());
        self.stray.extend_from_slice(bytes.get(..room).unwrap_or_default());
    }

    fn fail_foreign(&mut self, out: &mut Vec<StreamEvent>) {
        let text = no_stream_message(&self.reply.model, &String::from_utf8_lossy(&self.stray));
        self.reply.fail(None, text, out);
    }
}

impl Decoder for BedrockDecoder {
    fn on_head(&mut self, headers: &Headers) {
        let id = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(failure::REQUEST_ID));
        self.reply.request_id = id.map(|(_, value)| clean(value));
    }

    fn on_bytes(&mut self, bytes: &[u8], out: &mut Vec<StreamEvent>) {
        if self.reply.assembler.ended() {
            return;
        }
        if !self.reply.any_frame {
            self.note_stray(bytes);
        }
        if !self.foreign {
            let reply = &mut self.reply;
            match self.stream.feed(bytes, &mut |frame| reply.on_frame(frame, out)) {
                Ok(()) => {}
                Err(Damage::Prelude) if !reply.any_frame => self.foreign = true,
                Err(damage) => return reply.damaged(&format!("damaged: {damage}"), out),
            }
            if self.reply.any_frame {
                self.stray = Vec::new();
            }
        }
        if self.foreign && self.stray.len() == STRAY {
            self.fail_foreign(out);
        }
    }

    fn on_end(&mut self, end: BodyEnd, out: &mut Vec<StreamEvent>) {
        let reply = &mut self.reply;
        match end {
            _ if reply.assembler.ended() => {}
            BodyEnd::Aborted => reply.assembler.fail(StopReason::Aborted, ABORTED.into(), out),
            // The usage is missing then, but nothing of what was said.
            _ if reply.has_stop() => reply.finish(out),
            BodyEnd::Failed(fault) => {
                reply.assembler.fail(StopReason::Error, stream_fault_message(&fault), out)
            }
            // The length of a frame begins with a zero.
            BodyEnd::Complete if self.foreign || self.stray.first().is_some_and(|first| *first != 0) => {
                self.fail_foreign(out);
            }
            BodyEnd::Complete if self.stream.is_cut() => {
                reply.damaged("cut: the stream ended without the rest of a frame", out);
            }
            BodyEnd::Complete => reply.finish(out),
        }
    }

    fn partial(&self) -> &AssistantMessage {
        self.reply.assembler.message()
    }

    fn take(&mut self) -> AssistantMessage {
        self.reply.assembler.take()
    }

    fn partial_arguments(&mut self, index: usize) -> Option<Value> {
        self.reply.assembler.partial_arguments(index)
    }
}

impl Reply {
    fn on_frame(&mut self, frame: Frame<'_>, out: &mut Vec<StreamEvent>) {
        self.any_frame = true;
        if self.assembler.ended() {
            return;
        }
        let text = String::from_utf8_lossy(frame.payload);
        match frame.header(":message-type") {
            Some("exception") => {
                let kind = frame.header(":exception-type").unwrap_or("unknown exception");
                self.refused(kind, failure::words(&text).as_deref().unwrap_or(&text), out);
            }
            Some("error") => {
                let [code, words] = [":error-code", ":error-message"].map(|name| frame.header(name));
                self.refused(code.unwrap_or("unknown error"), words.unwrap_or(&text), out);
            }
            _ => self.on_event(frame.header(":event-type").unwrap_or_default(), &text, out),
        }
    }

    fn on_event(&mut self, name: &str, data: &str, out: &mut Vec<StreamEvent>) {
        let known = [
            "messageStart",
            "contentBlockStart",
            "contentBlockDelta",
            "contentBlockStop",
            "messageStop",
            "metadata",
        ];
        if !known.contains(&name) {
            return;
        }
        let text;
        let event = match serde_json::from_str::<Event<'_>>(data) {
            Ok(event) => Ok(event),
            Err(error) => match repaired(data) {
                Some(again) => {
                    text = again;
                    serde_json::from_str(&text)
                }
                None => Err(error),
            },
        };
        match event {
            Ok(event) => self.read(name, event, out),
            Err(error) => {
                self.damaged(&format!("unreadable: the event {name} ({error}): {}", excerpt(data)), out);
            }
        }
    }

    fn read(&mut self, name: &str, event: Event<'_>, out: &mut Vec<StreamEvent>) {
        match name {
            "contentBlockDelta" => {
                if let Some(delta) = event.delta {
                    self.on_delta(event.content_block_index, delta, out);
                }
            }
            "contentBlockStart" => {
                if let Some(call) = event.start.and_then(|start| start.tool_use) {
                    let call = ToolCall {
                        id: owned(call.tool_use_id),
                        name: owned(call.name),
                        ..ToolCall::default()
                    };
                    self.open_block(event.content_block_index, Kind::Call, Block::ToolCall(call), out);
                }
            }
            "contentBlockStop" => {
                if let Some(at) = self.open.iter().rposition(|open| open.key == event.content_block_index) {
                    let open = self.open.remove(at);
                    self.seal(&open);
                    self.assembler.close(open.index, out);
                }
            }
            "messageStart" => match event.role {
                Some(Str(role)) if role != "assistant" => {
                    let text = format!("The service began a reply of another role ({}).", clean(&role));
                    self.fail(None, text, out);
                }
                _ => self.assembler.start(out),
            },
            "messageStop" => {
                self.assembler.start(out);
                self.assembler.message_mut().raw_stop_reason = Some(owned(event.stop_reason));
            }
            _ => {
                if let Some(reported) = event.usage {
                    self.count(&reported);
                }
                if self.has_stop() {
                    self.finish(out);
                }
            }
        }
    }

    fn open_block(&mut self, key: i64, kind: Kind, block: Block, out: &mut Vec<StreamEvent>) -> usize {
        self.assembler.start(out);
        let index = self.assembler.open(block, out);
        self.open.retain(|open| open.key != key);
        self.open.push(Open { key, index, kind, hidden: Vec::new() });
        index
    }

    /// The open block of a key; its first piece begins it. `None` when the block is of another kind.
    fn block(&mut self, key: i64, kind: Kind, out: &mut Vec<StreamEvent>) -> Option<usize> {
        if let Some(open) = self.open.iter().find(|open| open.key == key) {
            return (open.kind == kind).then_some(open.index);
        }
        let thinking = |redacted| Block::Thinking(ThinkingBlock { redacted, ..ThinkingBlock::default() });
        let block = match kind {
            Kind::Text => Block::Text(TextBlock::default()),
            Kind::Thinking => thinking(false),
            Kind::Hidden => thinking(true),
            // A call needs a name, which comes with its start.
            Kind::Call => return None,
        };
        let index = self.open_block(key, kind, block, out);
        if kind == Kind::Hidden {
            self.assembler.push(index, Cow::Borrowed(REASONING_REDACTED), out);
        }
        Some(index)
    }

    fn on_delta(&mut self, key: i64, delta: Delta<'_>, out: &mut Vec<StreamEvent>) {
        if let Some(Str(text)) = delta.text {
            self.push(key, Kind::Text, text, out);
        }
        if let Some(Str(input)) = delta.tool_use.and_then(|call| call.input) {
            self.push(key, Kind::Call, input, out);
        }
        let Some(reasoning) = delta.reasoning_content else { return };
        if let Some(Str(text)) = reasoning.text {
            self.push(key, Kind::Thinking, text, out);
        }
        if let Some(Str(signature)) = reasoning.signature.filter(|signature| !signature.0.is_empty())
            && let Some(index) = self.block(key, Kind::Thinking, out)
            && let Some(Block::Thinking(thinking)) = self.assembler.block(index)
        {
            thinking.signature.get_or_insert_default().push_str(&signature);
        }
        if let Some(bytes) = reasoning.redacted_content.and_then(|content| base64::decode(&content.0))
            && self.block(key, Kind::Hidden, out).is_some()
            && let Some(open) = self.open.iter_mut().find(|open| open.key == key)
        {
            open.hidden.extend(bytes);
        }
    }

    fn push(&mut self, key: i64, kind: Kind, text: Cow<'_, str>, out: &mut Vec<StreamEvent>) {
        if let Some(index) = self.block(key, kind, out) {
            self.assembler.push(index, text, out);
        }
    }

    /// Puts hidden thinking into its block.
    fn seal(&mut self, open: &Open) {
        if let (false, Some(Block::Thinking(thinking))) =
            (open.hidden.is_empty(), self.assembler.block(open.index))
        {
            thinking.signature = Some(base64::encode(&open.hidden).into());
        }
    }

    fn seal_all(&mut self) {
        for open in core::mem::take(&mut self.open) {
            self.seal(&open);
        }
    }

    fn count(&mut self, reported: &Value) {
        let field = |key: &str| reported.get(key).and_then(Value::as_u64).unwrap_or_default();
        let details = reported.get("cacheDetails").and_then(Value::as_array).into_iter().flatten();
        let of_hour = details.filter(|entry| entry.get("ttl").is_some_and(|ttl| ttl == "1h"));
        let hour = of_hour.filter_map(|entry| entry.get("inputTokens")?.as_u64()).reduce(u64::saturating_add);
        let mut usage = Usage {
            input: field("inputTokens"),
            output: field("outputTokens"),
            cache_read: field("cacheReadInputTokens"),
            cache_write: field("cacheWriteInputTokens"),
            cache_write_1h: hour,
            total_tokens: field("totalTokens"),
            ..Usage::default()
        };
        if usage.total_tokens == 0 {
            usage.total_tokens = usage.context_tokens();
        }
        cost::apply(&self.model, &mut usage, Some(reported));
        self.assembler.message_mut().usage = usage;
    }

    const fn has_stop(&self) -> bool {
        self.assembler.message().raw_stop_reason.is_some()
    }

    /// The end of the reply. An unknown reason with complete calls is tool use (D27).
    fn finish(&mut self, out: &mut Vec<StreamEvent>) {
        let message = self.assembler.message();
        let Some(word) = message.raw_stop_reason.clone() else {
            let text = if self.any_frame {
                "The stream ended without a stop reason (messageStop).".to_string()
            } else {
                no_stream_message(&self.model, "")
            };
            return self.fail(None, text, out);
        };
        let has_calls = self.open.is_empty() && message.tool_calls().next().is_some();
        match stop::map(stop::BEDROCK, &word) {
            Stop::Good(reason) => {
                self.seal_all();
                self.assembler.done(reason, out);
            }
            Stop::Unknown if has_calls => self.assembler.done(StopReason::ToolUse, out),
            Stop::Failed => self.fail(None, format!("The service stopped the reply: {}", clean(&word)), out),
            Stop::Unknown => {
                let text = format!("The service ended the reply for an unknown reason: {}", clean(&word));
                self.fail(None, text, out);
            }
        }
    }

    /// The service broke off and said why.
    fn refused(&mut self, kind: &str, words: &str, out: &mut Vec<StreamEvent>) {
        let code = failure::code(kind);
        let text = failure::message(&code, &clean(words));
        self.fail(Some(code), text, out);
    }

    fn damaged(&mut self, how: &str, out: &mut Vec<StreamEvent>) {
        self.seal_all();
        self.assembler.fail(StopReason::Error, format!("The reply of the service is {how}."), out);
    }

    fn fail(&mut self, code: Option<String>, text: String, out: &mut Vec<StreamEvent>) {
        self.seal_all();
        if !self.assembler.ended() {
            let message = self.assembler.message_mut();
            let note = failure::diagnostic(message.timestamp, None, code, self.request_id.as_deref());
            message.diagnostics.get_or_insert_default().push(note);
        }
        self.assembler.fail(StopReason::Error, text, out);
    }
}
