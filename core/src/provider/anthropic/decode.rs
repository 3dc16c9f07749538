//! Streamed replies.
//!
//! The `event` line decides; only six kinds of events and `error` mean something, everything else is skipped without
//! being read. A reply is complete with `message_stop`; anything less is a failure that may be retried.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::REASONING_REDACTED;
use super::compat::Compat;
use super::wire;
use crate::json::{Map, Value};
use crate::message::{Block, StopReason, TextBlock, ThinkingBlock, ToolCall};
use crate::model::Model;
use crate::provider::assemble::Assembler;
use crate::provider::borrow::repaired;
use crate::provider::error::{clean, no_stream_message, service_words};
use crate::provider::sse_reply::{Events, SseReply};
use crate::provider::stop::{self, Stop};
use crate::provider::{StreamEvent, cost};
use crate::wire::sse::SseEvent;

/// Decoder of one reply.
pub(super) type AnthropicDecoder = SseReply<Reply>;

/// The reply in the making.
#[derive(Debug)]
pub(super) struct Reply {
    model: Arc<Model>,
    assembler: Assembler,
    /// Open blocks by the service's index, which may be sparse and may come again.
    open: Vec<Open>,
    /// Whether `message_start` came.
    begun: bool,
    /// Explanation of a stop that is a failure.
    explanation: Option<String>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    key: i64,
    index: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Call,
}

impl AnthropicDecoder {
    pub(super) fn new(model: &Arc<Model>, now_ms: i64) -> Self {
        let reply = Reply {
            model: Arc::clone(model),
            assembler: Assembler::new(model, now_ms),
            open: Vec::new(),
            begun: false,
            explanation: None,
        };
        Self::of(reply)
    }
}

impl Events for Reply {
    fn assembler(&self) -> &Assembler {
        &self.assembler
    }

    fn assembler_mut(&mut self) -> &mut Assembler {
        &mut self.assembler
    }

    fn on_event(&mut self, event: SseEvent<'_>, out: &mut Vec<StreamEvent>) {
        if self.assembler.ended() {
            return;
        }
        let (name, data) = (event.event, event.data);
        if let Err(error) = self.read(name, data, out) {
            let again = repaired(data).is_some_and(|data| self.read(name, &data, out).is_ok());
            if !again {
                self.fail(format!("The event {name} cannot be read ({error}): {}", clean(data)), out);
            }
        }
    }

    fn on_complete(&mut self, stray: &str, out: &mut Vec<StreamEvent>) {
        let text = self.incomplete(stray);
        self.fail(text, out);
    }
}

impl Reply {
    /// Reads one event; an error leaves the reply as it was.
    fn read(&mut self, name: &str, data: &str, out: &mut Vec<StreamEvent>) -> serde_json::Result<()> {
        match name {
            "content_block_delta" => self.on_delta(serde_json::from_str(data)?, out),
            "content_block_start" => self.on_block(serde_json::from_str(data)?, out),
            "content_block_stop" => self.on_block_stop(&serde_json::from_str(data)?, out),
            "message_start" => self.on_start(serde_json::from_str(data)?),
            "message_delta" => self.on_message_delta(serde_json::from_str(data)?, out),
            "message_stop" => self.on_stop(out),
            "error" => {
                let words = serde_json::from_str(data).ok().and_then(|value| service_words(&value));
                self.fail(clean(words.as_deref().unwrap_or(data)), out);
            }
            _ => {}
        }
        Ok(())
    }

    fn fail(&mut self, text: String, out: &mut Vec<StreamEvent>) {
        self.assembler.fail(StopReason::Error, text, out);
    }

    fn on_start(&mut self, start: wire::MessageStart<'_>) {
        self.begun = true;
        let message = self.assembler.message_mut();
        let (id, model) = (start.message.id.as_str(), start.message.model.as_str());
        if message.response_id.is_none() && !id.is_empty() {
            message.response_id = Some(id.into());
        }
        if !model.is_empty() && model != message.model {
            message.response_model = Some(model.into());
        }
        message.usage.cache_write_1h = Some(0);
        self.count(start.message.usage.as_ref().unwrap_or(&Value::Null));
        self.note_transformations(start.message.input_transformations);
    }

    /// Takes the counters that are there; the total and the cost follow from them.
    fn count(&mut self, reported: &Value) {
        let number = |value: Option<&Value>| {
            let value = value?;
            value.as_u64().or_else(|| value.as_f64().map(|n| n as u64))
        };
        let field = |key: &str| number(reported.get(key));
        let inner = |key: &str, inner: &str| number(reported.get(key).and_then(|value| value.get(inner)));
        let message = self.assembler.message_mut();
        let set = |slot: &mut u64, value: Option<u64>| *slot = value.unwrap_or(*slot);
        let usage = &mut message.usage;
        set(&mut usage.input, field("input_tokens"));
        set(&mut usage.output, field("output_tokens"));
        set(&mut usage.cache_read, field("cache_read_input_tokens"));
        set(&mut usage.cache_write, field("cache_creation_input_tokens"));
        usage.cache_write_1h = inner("cache_creation", "ephemeral_1h_input_tokens").or(usage.cache_write_1h);
        usage.reasoning = inner("output_tokens_details", "thinking_tokens").or(usage.reasoning);
        usage.total_tokens = 0;
        usage.total_tokens = usage.context_tokens();
        cost::bound(usage);
        let answered_by = message.response_model.as_deref();
        let other = answered_by.and_then(|model| Compat::of(&self.model).fallback_rates(model));
        match other {
            Some(rates) => usage.cost = cost::cost(&rates, usage),
            None => cost::apply(&self.model, usage, Some(reported)),
        }
    }

    fn on_block(&mut self, start: wire::BlockStart<'_>, out: &mut Vec<StreamEvent>) {
        let block = start.content_block;
        let (kind, content) = match block.kind.as_str() {
            "text" => {
                let text = block.text.as_str().into();
                (Kind::Text, Block::Text(TextBlock { text, signature: None }))
            }
            "thinking" => {
                let thinking = block.thinking.as_str().into();
                let signature = Some(block.signature.as_str().into());
                (Kind::Thinking, Block::Thinking(ThinkingBlock { thinking, signature, redacted: false }))
            }
            "redacted_thinking" => {
                let signature = Some(block.data.as_str().into());
                let thinking = REASONING_REDACTED.into();
                (Kind::Thinking, Block::Thinking(ThinkingBlock { thinking, signature, redacted: true }))
            }
            "tool_use" => {
                let input = block.input.filter(Value::is_object);
                (
                    Kind::Call,
                    Block::ToolCall(ToolCall {
                        id: block.id.as_str().into(),
                        name: block.name.as_str().into(),
                        // Final only if no text follows (D53).
                        arguments: Arc::new(input.unwrap_or_else(|| Value::Object(Map::new()))),
                        ..ToolCall::default()
                    }),
                )
            }
            // The service answers with another model; what came before would be of the first one.
            "fallback" if !self.assembler.message().content.is_empty() => {
                return self.fail("The service changed the model in the middle of the reply.".into(), out);
            }
            _ => return,
        };
        let index = self.assembler.open(content, out);
        self.open.retain(|open| open.key != start.index);
        self.open.push(Open { key: start.index, index, kind });
    }

    fn on_delta(&mut self, event: wire::BlockDelta<'_>, out: &mut Vec<StreamEvent>) {
        let Some(open) = self.open.iter().rev().find(|open| open.key == event.index).copied() else { return };
        let delta = event.delta;
        let text = match (open.kind, delta.kind.as_str()) {
            (Kind::Text, "text_delta") => delta.text,
            (Kind::Thinking, "thinking_delta") => delta.thinking,
            (Kind::Call, "input_json_delta") => delta.partial_json,
            (Kind::Thinking, "signature_delta") => {
                if let Some(Block::Thinking(thinking)) = self.assembler.block(open.index) {
                    thinking.signature.get_or_insert_default().push_str(delta.signature.as_str());
                }
                return;
            }
            _ => return,
        };
        self.assembler.push(open.index, text.0.unwrap_or(Cow::Borrowed("")), out);
    }

    fn on_block_stop(&mut self, stop: &wire::BlockStop, out: &mut Vec<StreamEvent>) {
        if let Some(at) = self.open.iter().rposition(|open| open.key == stop.index) {
            let open = self.open.remove(at);
            self.assembler.close(open.index, out);
        }
    }

    fn on_message_delta(&mut self, event: wire::MessageDelta<'_>, out: &mut Vec<StreamEvent>) {
        if let Some(reason) = event.delta.stop_reason.0 {
            let is_known = stop::map(stop::ANTHROPIC, &reason) != Stop::Unknown;
            self.assembler.message_mut().raw_stop_reason = Some(reason.into_owned());
            let details = event.delta.stop_details.as_ref();
            let said = details.and_then(|details| details.get("explanation")?.as_str());
            self.explanation = said.map(clean);
            if let (false, Some(Err(text))) = (is_known, self.verdict()) {
                return self.fail(text, out);
            }
        }
        if let Some(usage) = event.usage {
            self.count(&usage);
        }
        self.note_transformations(event.input_transformations);
    }

    fn note_transformations(&mut self, list: Option<Value>) {
        let Some(list @ Value::Array(_)) = list else { return };
        let message = self.assembler.message_mut();
        let mut note = Map::new();
        note.insert("type".into(), "anthropic_input_transformations".into());
        note.insert("timestamp".into(), message.timestamp.into());
        note.insert("details".into(), serde_json::json!({ "transformations": list }));
        message.diagnostics.get_or_insert_default().push(Value::Object(note));
    }

    fn on_stop(&mut self, out: &mut Vec<StreamEvent>) {
        match self.verdict() {
            Some(Ok(reason)) => self.assembler.done(reason, out),
            Some(Err(text)) => self.fail(text, out),
            None => self.fail("The stream ended without a stop reason.".into(), out),
        }
    }

    /// What the stop reason means, if there was one. An unknown one with complete calls is tool use (D27).
    fn verdict(&self) -> Option<Result<StopReason, String>> {
        let message = self.assembler.message();
        let word = message.raw_stop_reason.as_deref()?;
        let has_calls = || self.open.is_empty() && message.tool_calls().next().is_some();
        Some(match stop::map(stop::ANTHROPIC, word) {
            Stop::Good(reason) => Ok(reason),
            Stop::Unknown if has_calls() => Ok(StopReason::ToolUse),
            Stop::Failed if word == "refusal" => Err(match &self.explanation {
                Some(said) => format!("The model refused: {said}"),
                None => "The model refused to answer (refusal).".into(),
            }),
            Stop::Failed => Err(format!("The provider stopped the reply: {}", clean(word))),
            Stop::Unknown => {
                Err(format!("The provider ended the reply for an unknown reason: {}", clean(word)))
            }
        })
    }

    /// Why a body that ended without `message_stop` is no reply.
    fn incomplete(&self, stray: &str) -> String {
        if let Some(Err(text)) = self.verdict() {
            return text;
        }
        if self.begun {
            return "The stream ended before message_stop.".into();
        }
        no_stream_message(&self.model, stray)
    }
}
