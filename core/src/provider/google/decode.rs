//! Streamed replies.
//!
//! There is no event that says the end: the reply is complete when the body ends after a finish reason. Calls come
//! whole. An event is read as it is or, if that fails, once more after repair.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use hashbrown::HashSet;

use super::frame::{Call, Candidate, Frame, Part, Tokens};
use crate::convert::{sanitize_id, wire_id};
use crate::json::Value;
use crate::message::{Block, StopReason, ToolCall, Usage};
use crate::model::Model;
use crate::provider::assemble::Assembler;
use crate::provider::borrow::{Any, Str, repaired};
use crate::provider::error::{clean, excerpt, no_stream_message, service_words};
use crate::provider::sse_reply::{Events, SseReply};
use crate::provider::stop::{self, Stop};
use crate::provider::{StreamEvent, cost};
use crate::wire::sse::SseEvent;

/// Longest part of a tool name in an id that is made here.
const NAME_IN_ID: usize = 40;

/// Decoder of one reply.
pub(super) type GoogleDecoder = SseReply<Reply>;

/// The reply in the making.
#[derive(Debug)]
pub(super) struct Reply {
    model: Arc<Model>,
    assembler: Assembler,
    /// Ids of calls so far.
    ids: HashSet<String>,
    /// Which request of its encoder this answers, to make ids that no other reply has.
    round: u32,
    any_event: bool,
    /// Why the prompt was not answered.
    blocked: Option<String>,
    /// What the service says about the end.
    finish_message: Option<String>,
}

impl GoogleDecoder {
    pub(super) fn new(model: &Arc<Model>, round: u32, now_ms: i64) -> Self {
        let reply = Reply {
            model: Arc::clone(model),
            assembler: Assembler::new(model, now_ms),
            ids: HashSet::new(),
            round,
            any_event: false,
            blocked: None,
            finish_message: None,
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
        if self.assembler.ended() || data.is_empty() || data == "[DONE]" {
            return;
        }
        self.any_event = true;
        if let Ok(frame) = serde_json::from_str(data) {
            return self.on_frame(frame, out);
        }
        let repaired = repaired(data);
        match repaired.as_deref().and_then(|data| serde_json::from_str(data).ok()) {
            Some(frame) => self.on_frame(frame, out),
            None => {
                self.fail(format!("The service sent an event that cannot be read: {}", excerpt(data)), out)
            }
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
    fn on_frame(&mut self, frame: Frame<'_>, out: &mut Vec<StreamEvent>) {
        if let Some(error) = frame.error.map(Any::read) {
            let words = service_words(&error).unwrap_or_else(|| crate::json::to_string(&error));
            return self.fail(clean(&words), out);
        }
        let message = self.assembler.message_mut();
        if let Some(Str(id)) =
            frame.response_id.filter(|id| message.response_id.is_none() && !id.0.is_empty())
        {
            message.response_id = Some(id.into_owned());
        }
        if let Some(candidate) = frame.candidates.into_iter().next() {
            self.on_candidate(candidate, out);
        }
        if let Some(usage) = frame.usage_metadata.filter(|_| !self.assembler.ended()) {
            self.assembler.message_mut().usage = usage_of(&self.model, usage);
        }
        if let Some(feedback) = frame.prompt_feedback.map(Any::read) {
            let text = |key: &str| feedback.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
            self.blocked = text("blockReason").map(|reason| match text("blockReasonMessage") {
                Some(said) => clean(&format!("{reason}: {said}")),
                None => clean(reason),
            });
        }
    }

    fn on_candidate(&mut self, candidate: Candidate<'_>, out: &mut Vec<StreamEvent>) {
        for part in candidate.content.into_iter().flat_map(|content| content.parts) {
            self.on_part(part, out);
        }
        if let Some(Str(said)) = candidate.finish_message {
            self.finish_message = Some(clean(&said));
        }
        let Some(Str(word)) = candidate.finish_reason.filter(|word| !word.0.is_empty()) else { return };
        let is_known = stop::map(stop::GOOGLE, &word) != Stop::Unknown;
        self.assembler.message_mut().raw_stop_reason = Some(word.into_owned());
        if !is_known && let Err(text) = self.verdict() {
            self.fail(text, out);
        }
    }

    fn on_part(&mut self, part: Part<'_>, out: &mut Vec<StreamEvent>) {
        let signature = part.thought_signature.map(|text| text.0).filter(|text| !text.is_empty());
        if let Some(Str(text)) = part.text {
            let index = self.assembler.current(part.thought == Some(true), out);
            if let Some(signature) = signature.as_deref() {
                match self.assembler.block(index) {
                    Some(Block::Text(block)) => block.signature = Some(signature.into()),
                    Some(Block::Thinking(block)) => block.signature = Some(signature.into()),
                    _ => {}
                }
            }
            self.assembler.push(index, text, out);
        }
        if let Some(call) = part.function_call {
            self.on_call(call, signature, out);
        }
    }

    fn on_call(&mut self, call: Call<'_>, signature: Option<Cow<'_, str>>, out: &mut Vec<StreamEvent>) {
        self.assembler.close_current(out);
        let name = call.name.map(|name| name.0.into_owned()).unwrap_or_default();
        let given = call.id.map(|id| id.0.into_owned()).filter(|id| !id.is_empty());
        let id = match given.filter(|id| !self.ids.contains(wire_id(id))) {
            Some(id) => id,
            None => self.make_id(&name),
        };
        self.ids.insert(wire_id(&id).to_string());
        let block = Block::ToolCall(ToolCall {
            id,
            name,
            thought_signature: signature.as_deref().map(Into::into),
            ..ToolCall::default()
        });
        let index = self.assembler.open(block, out);
        let args = match call.args {
            Some(Any::Text(text)) => text,
            _ => "{}",
        };
        self.assembler.push(index, args.into(), out);
        self.assembler.close(index, out);
    }

    /// An id for a call that has none, or one that is taken: no reply of the session has it.
    fn make_id(&self, name: &str) -> String {
        let name = sanitize_id(name, NAME_IN_ID);
        format!(
            "{name}_{}_{}-{}",
            self.assembler.message().timestamp,
            self.round,
            self.assembler.message().content.len()
        )
    }

    /// The body is over: what kind of end is it?
    fn finish(&mut self, out: &mut Vec<StreamEvent>) {
        match self.verdict() {
            Ok(reason) => self.assembler.done(reason, out),
            Err(text) => {
                self.assembler.close_all(out);
                self.fail(text, out);
            }
        }
    }

    /// What the finish reason means. An unknown one with complete calls is tool use (D27).
    fn verdict(&self) -> Result<StopReason, String> {
        let message = self.assembler.message();
        let Some(word) = message.raw_stop_reason.as_deref() else {
            return Err(match &self.blocked {
                // Final: it would be blocked again (D18).
                Some(reason) => format!("The service blocked the prompt and did not answer it ({reason})."),
                None => "The stream ended without a finish reason; the reply may be cut.".into(),
            });
        };
        let has_calls = message.tool_calls().next().is_some();
        let all_readable = message.tool_calls().all(|call| call.arguments_error.is_none());
        match stop::map(stop::GOOGLE, word) {
            Stop::Good(StopReason::Stop) if has_calls => Ok(StopReason::ToolUse),
            Stop::Good(reason) => Ok(reason),
            Stop::Unknown if has_calls && all_readable => Ok(StopReason::ToolUse),
            Stop::Failed | Stop::Unknown => {
                let mut text = format!("The service ended the reply with finish reason {}", clean(word));
                if let Some(said) = &self.finish_message {
                    text.push_str(": ");
                    text.push_str(said);
                }
                Err(text)
            }
        }
    }

    fn fail(&mut self, text: String, out: &mut Vec<StreamEvent>) {
        self.assembler.fail(StopReason::Error, text, out);
    }
}

/// Tokens and cost of a usage object. What comes from a cache is counted within the prompt, thoughts are not within
/// the answer. It comes with every event, so it is read in place.
fn usage_of(model: &Model, reported: Any<'_>) -> Usage {
    let tokens: Tokens<'_> = match reported {
        Any::Text(text) => serde_json::from_str(text).unwrap_or_default(),
        Any::Value(_) => Tokens::default(),
    };
    let (cache_read, thoughts) = (count(tokens.cached_content), count(tokens.thoughts));
    let input = count(tokens.prompt).saturating_sub(cache_read);
    let output = count(tokens.candidates).saturating_add(thoughts);
    let mut usage = Usage {
        input,
        output,
        cache_read,
        reasoning: Some(thoughts),
        total_tokens: count(tokens.total),
        ..Usage::default()
    };
    cost::apply(model, &mut usage, None);
    usage
}

/// A number of tokens; 0 for what is none.
fn count(reported: Option<Any<'_>>) -> u64 {
    let Some(Any::Text(text)) = reported else { return 0 };
    text.parse().or_else(|_| text.parse().map(|number: f64| number as u64)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::AssistantMessage;
    use crate::provider::{BodyEnd, Decoder};
    use crate::retry;

    fn decode(round: u32, body: &str) -> AssistantMessage {
        let model = Arc::new(Model { base_url: "http://host.example/v1".into(), ..Model::default() });
        let (mut decoder, mut out) = (GoogleDecoder::new(&model, round, 77), Vec::new());
        decoder.on_bytes(body.as_bytes(), &mut out);
        decoder.on_end(BodyEnd::Complete, &mut out);
        assert!(matches!(out.last(), Some(StreamEvent::Done | StreamEvent::Error)));
        decoder.take()
    }

    fn frame(part: &str, reason: &str) -> String {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{part}]}},\"finishReason\":\"{reason}\"}}]}}\n\n"
        )
    }

    #[test]
    fn a_blocked_prompt_is_final_and_says_why() {
        let reply =
            decode(1, r#"data: {"promptFeedback":{"blockReason":"SAFETY","blockReasonMessage":"no"}}"#);
        assert!(reply.error_message.as_deref().is_some_and(|text| text.contains("SAFETY: no")));
        assert!(reply.stop_reason == StopReason::Error && !retry::is_transient(&reply));
        // Feedback alone is no block.
        let reply =
            decode(1, &format!("data: {{\"promptFeedback\":{{}}}}\n\n{}", frame(r#"{"text":"x"}"#, "STOP")));
        assert_eq!(reply.stop_reason, StopReason::Stop);
    }

    #[test]
    fn the_last_event_needs_no_blank_line_and_a_cut_one_is_no_reply() {
        let body = frame(r#"{"text":"x"}"#, "STOP");
        assert_eq!(decode(1, body.trim_end()).stop_reason, StopReason::Stop);
        let cut = decode(1, &body[..body.len() - 8]);
        assert_eq!((cut.stop_reason, cut.content.len()), (StopReason::Error, 0));
    }

    #[test]
    fn an_unknown_word_with_a_readable_call_is_tool_use() {
        let stop = |part: &str, word: &str| decode(1, &frame(part, word)).stop_reason;
        let call = r#"{"functionCall":{"name":"ls","args":{}}}"#;
        assert_eq!(stop(call, "FUNCTION_CALL"), StopReason::ToolUse);
        assert_eq!(stop(call, "MALFORMED_FUNCTION_CALL"), StopReason::Error);
        assert_eq!(stop(r#"{"functionCall":{"name":"ls","args":[1]}}"#, "FUNCTION_CALL"), StopReason::Error);
        assert_eq!(stop(r#"{"text":"x"}"#, "FUNCTION_CALL"), StopReason::Error);
    }

    #[test]
    fn made_ids_differ_between_calls_and_requests_of_one_moment() {
        let calls = r#"{"functionCall":{"name":"a|b"}},{"functionCall":{"name":"a|b"}}"#;
        let mut ids: Vec<String> = (1..3)
            .flat_map(|round| {
                let reply = decode(round, &frame(calls, "STOP"));
                reply.tool_calls().map(|call| wire_id(&call.id).to_string()).collect::<Vec<_>>()
            })
            .collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 4, "{ids:?}");
    }

    #[test]
    fn what_the_service_says_about_the_end_and_odd_counts() {
        let body = r#"data: {"candidates":[{"finishReason":"SAFETY","finishMessage":"too spicy"}],
data: "usageMetadata":{"promptTokenCount":"7","candidatesTokenCount":2.0,"thoughtsTokenCount":-1}}"#;
        let reply = decode(1, body);
        assert!(reply.error_message.as_deref().is_some_and(|text| text.ends_with("SAFETY: too spicy")));
        assert_eq!((reply.usage.input, reply.usage.output, reply.usage.reasoning), (0, 2, Some(0)));
    }

    #[test]
    fn a_plain_answer_instead_of_a_stream_says_what_it_is() {
        let reply = decode(1, r#"{"error":{"code":400,"message":"bad key","status":"INVALID_ARGUMENT"}}"#);
        let text = reply.error_message.unwrap_or_default();
        assert!(text.contains("host.example") && text.contains("bad key"), "{text}");
    }
}
