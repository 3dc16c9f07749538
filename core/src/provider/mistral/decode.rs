//! Streamed replies: chunks of chat completions whose content may be a list of parts. Calls end after everything else.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::call_id;
use crate::json::{self, Value};
use crate::message::{Block, StopReason, ToolCall, Usage};
use crate::model::Model;
use crate::provider::assemble::Assembler;
use crate::provider::borrow::{Any, Str};
use crate::provider::error::{clean, excerpt, no_stream_message, service_words};
use crate::provider::openai_completions::calls::Calls;
use crate::provider::openai_completions::chunk::{CallDelta, Chunk, Content};
use crate::provider::sse_reply::{Events, SseReply};
use crate::provider::stop::{self, Stop};
use crate::provider::{StreamEvent, cost};
use crate::wire::sse::SseEvent;

/// Decoder of one reply.
pub(super) type MistralDecoder = SseReply<Reply>;

/// The reply in the making.
#[derive(Debug)]
pub(super) struct Reply {
    model: Arc<Model>,
    assembler: Assembler,
    calls: Calls,
    /// Which request of its encoder this answers, to make ids that no other reply has.
    round: u32,
    any_event: bool,
}

impl MistralDecoder {
    pub(super) fn new(model: &Arc<Model>, round: u32, now_ms: i64) -> Self {
        let reply = Reply {
            model: Arc::clone(model),
            assembler: Assembler::new(model, now_ms),
            calls: Calls::default(),
            round,
            any_event: false,
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
        let data = event.data.trim();
        if self.assembler.ended() || data.is_empty() {
            return;
        }
        self.any_event = true;
        if data.starts_with("[DONE]") {
            return self.finish(out);
        }
        let read;
        let chunk = match Chunk::strict(data) {
            Some(chunk) => Some(chunk),
            None => {
                read = json::parse(data).unwrap_or_default();
                Chunk::lenient(&read)
            }
        };
        match chunk {
            Some(chunk) if chunk.choices.is_some() && chunk.error.is_none() => self.on_chunk(chunk, out),
            _ => self.on_foreign(data, out),
        }
    }

    fn on_complete(&mut self, stray: &str, out: &mut Vec<StreamEvent>) {
        if self.any_event {
            self.finish(out);
        } else {
            self.fail(no_stream_message(&self.model, stray), out);
        }
    }
}

impl Reply {
    /// An event that is no chunk: a failure in the words of the service, or nothing that can be read.
    fn on_foreign(&mut self, data: &str, out: &mut Vec<StreamEvent>) {
        let said = json::parse(data).ok().as_ref().and_then(service_words);
        let text = match said {
            Some(words) => clean(&words),
            None => format!("The service sent an event that cannot be read: {}", excerpt(data)),
        };
        self.fail(text, out);
    }

    fn on_chunk(&mut self, chunk: Chunk<'_>, out: &mut Vec<StreamEvent>) {
        let message = self.assembler.message_mut();
        if let (None, Some(id)) = (&message.response_id, some_text(chunk.id)) {
            message.response_id = Some(id.into_owned());
        }
        if let (None, Some(model)) =
            (&message.response_model, some_text(chunk.model).filter(|model| *model != self.model.id))
        {
            message.response_model = Some(model.into_owned());
        }
        let choice = chunk.choices.and_then(|first| first.0).unwrap_or_default();
        if let Some(reported) = chunk.usage.or(choice.usage).map(Any::read).filter(Value::is_object) {
            message.usage = usage_of(&self.model, &reported);
        }
        if let Some(word) = some_text(choice.finish_reason) {
            message.raw_stop_reason = Some(word.into_owned());
        }
        let delta = choice.delta.unwrap_or_default();
        match delta.content {
            None => {}
            Some(Content::Text(text)) => self.grow(false, text, out),
            Some(Content::Parts(parts)) => {
                for part in parts {
                    for thought in part.thinking.into_iter().filter_map(|part| part.text) {
                        self.grow(true, thought.0, out);
                    }
                    if let Some(text) = part.text {
                        self.grow(false, text.0, out);
                    }
                }
            }
        }
        for call in delta.tool_calls {
            self.on_call(call, out);
        }
    }

    /// Appends to the text or thinking at the end; an empty piece opens nothing.
    fn grow(&mut self, thinking: bool, text: Cow<'_, str>, out: &mut Vec<StreamEvent>) {
        if !text.is_empty() {
            let index = self.assembler.current(thinking, out);
            self.assembler.push(index, text, out);
        }
    }

    fn on_call(&mut self, call: CallDelta<'_>, out: &mut Vec<StreamEvent>) {
        self.assembler.close_current(out);
        let id = some_text(call.id).filter(|id| id != "null").unwrap_or_default();
        let function = call.function.unwrap_or_default();
        let name = some_text(function.name).unwrap_or_default();
        let at = match self.calls.find(&id, call.index, !name.is_empty()) {
            Some(at) => at,
            None => {
                let block = ToolCall { id: self.id_or_made(&id, call.index), ..ToolCall::default() };
                let content = self.assembler.open(Block::ToolCall(block), out);
                self.calls.push(content, call.index, false)
            }
        };
        let Some(slot) = self.calls.get_mut(at) else { return };
        if let Some(Block::ToolCall(block)) = self.assembler.block(slot.content) {
            if slot.id.is_empty() && !id.is_empty() {
                block.id = id.clone().into_owned();
                slot.id = id.into_owned();
            }
            if block.name.is_empty() {
                block.name = name.into_owned();
            }
            slot.named = !block.name.is_empty();
        }
        let piece = function.arguments.map(|piece| piece.0).unwrap_or_default();
        let content = slot.content;
        self.assembler.push(content, piece, out);
    }

    /// Results need an id, and one that no other reply of the session has.
    fn id_or_made(&self, id: &str, index: Option<i64>) -> String {
        if !id.is_empty() {
            return id.into();
        }
        let message = self.assembler.message();
        let index = index.unwrap_or_default();
        let text = format!("toolcall:{index}:{}:{}:{}", message.timestamp, self.round, message.content.len());
        call_id(&text, 0)
    }

    /// The stream is over: what kind of end is it?
    fn finish(&mut self, out: &mut Vec<StreamEvent>) {
        self.assembler.close_current(out);
        self.assembler.close_all(out);
        let message = self.assembler.message();
        let Some(word) = message.raw_stop_reason.as_deref() else {
            let text = "The stream ended without a finish_reason; the reply may be cut.";
            return self.fail(text.into(), out);
        };
        let has_calls = message.tool_calls().next().is_some();
        let all_readable = message.tool_calls().all(|call| call.arguments_error.is_none());
        match stop::map(stop::MISTRAL, word) {
            Stop::Good(reason) => self.assembler.done(reason, out),
            // D27
            Stop::Unknown if has_calls && all_readable => self.assembler.done(StopReason::ToolUse, out),
            Stop::Failed => {
                let text =
                    "The service failed while it answered (finish_reason error); you can retry your request.";
                self.fail(text.into(), out);
            }
            Stop::Unknown => {
                let text = format!("The service ended the reply with finish_reason {}", clean(word));
                self.fail(text, out);
            }
        }
    }

    fn fail(&mut self, text: String, out: &mut Vec<StreamEvent>) {
        self.assembler.fail(StopReason::Error, text, out);
    }
}

fn some_text(text: Option<Str<'_>>) -> Option<Cow<'_, str>> {
    text.map(|text| text.0).filter(|text| !text.is_empty())
}

/// Tokens and cost of a usage object; what comes from a cache is counted within the prompt.
fn usage_of(model: &Model, reported: &Value) -> Usage {
    let count = |value: Option<&Value>| {
        value.and_then(|value| value.as_u64().or_else(|| value.as_f64().map(|n| n as u64)))
    };
    let field = |key: &str| count(reported.get(key));
    let prompt = field("prompt_tokens").unwrap_or(0);
    let output = field("completion_tokens").unwrap_or(0);
    let details = reported.get("prompt_tokens_details").and_then(|details| details.get("cached_tokens"));
    let cached = count(details).or_else(|| field("num_cached_tokens")).unwrap_or(0).min(prompt);
    let mut usage = Usage {
        input: prompt - cached,
        output,
        cache_read: cached,
        total_tokens: field("total_tokens").unwrap_or_else(|| prompt.saturating_add(output)),
        ..Usage::default()
    };
    cost::apply(model, &mut usage, None);
    usage
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::AssistantMessage;
    use crate::provider::{BodyEnd, Decoder};

    fn decode(round: u32, events: &[&str]) -> AssistantMessage {
        let model = Arc::new(Model { base_url: "http://host.example/v1".into(), ..Model::default() });
        let (mut decoder, mut out) = (MistralDecoder::new(&model, round, 77), Vec::new());
        for event in events {
            decoder.on_bytes(format!("data: {event}\n\n").as_bytes(), &mut out);
        }
        decoder.on_end(BodyEnd::Complete, &mut out);
        assert!(matches!(out.last(), Some(StreamEvent::Done | StreamEvent::Error)));
        decoder.take()
    }

    const CALL: &str =
        r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"ls","arguments":""}}]}}]}"#;

    fn ending(word: &str) -> String {
        format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{word}"}}]}}"#)
    }

    #[test]
    fn made_ids_differ_between_calls_and_requests_of_one_moment() {
        let two = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"null","function":{"name":"a"}},{"index":1,"function":{"name":"b"}}]}}]}"#;
        let mut ids: Vec<String> = (1..3)
            .flat_map(|round| {
                let reply = decode(round, &[two, &ending("tool_calls")]);
                assert_eq!(reply.stop_reason, StopReason::ToolUse);
                reply.tool_calls().map(|call| call.id.clone()).collect::<Vec<_>>()
            })
            .collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 4, "{ids:?}");
    }

    #[test]
    fn an_unknown_word_with_a_readable_call_is_tool_use() {
        assert_eq!(decode(1, &[CALL, &ending("function")]).stop_reason, StopReason::ToolUse);
        assert_eq!(decode(1, &[&ending("function")]).stop_reason, StopReason::Error);
        assert_eq!(decode(1, &[CALL, &ending("model_length")]).stop_reason, StopReason::Length);
    }

    #[test]
    fn failures_in_the_words_of_the_service() {
        for event in [
            r#"{"object":"error","message":"no capacity"}"#,
            r#"{"choices":[],"error":{"message":"no capacity"}}"#,
            r#"{"detail":"no capacity"}"#,
        ] {
            let reply = decode(1, &[event]);
            assert_eq!(reply.error_message.as_deref(), Some("no capacity"), "{event}");
        }
    }
}
