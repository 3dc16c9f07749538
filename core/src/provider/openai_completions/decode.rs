//! The stream of chat completions (spec 30 §3.2).

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::calls::Calls;
use super::chunk::{CallDelta, Chunk, Content, Delta};
use super::details::Details;
use crate::json::{self, Value};
use crate::message::{Block, StopReason, TextBlock, ThinkingBlock, ToolCall, Usage};
use crate::model::Model;
use crate::provider::assemble::Assembler;
use crate::provider::borrow::{Any, Str};
use crate::provider::grammar::{self, FreeForm};
use crate::provider::halves::{self, Halves};
use crate::provider::sse_reply::{Events, SseReply};
use crate::provider::stop::{self, Stop};
use crate::provider::{StreamEvent, cost, error};
use crate::wire::sse::SseEvent;

/// Decoder of one response.
pub(super) type CompletionsDecoder = SseReply<Reply>;

/// What the decoder knows besides framing.
#[derive(Debug)]
pub(super) struct Reply {
    model: Arc<Model>,
    supports_finish_reason: bool,
    grammar: FreeForm,
    assembler: Assembler,
    text: Option<usize>,
    thinking: Option<usize>,
    details: Details,
    calls: Calls,
    any_event: bool,
    /// The current event has marks of surrogate halves.
    marked: bool,
    text_halves: Halves,
    thinking_halves: Halves,
}

impl CompletionsDecoder {
    pub(super) fn new(
        model: &Arc<Model>,
        supports_finish_reason: bool,
        grammar: FreeForm,
        now_ms: i64,
    ) -> Self {
        Self::of(Reply {
            model: Arc::clone(model),
            supports_finish_reason,
            grammar,
            assembler: Assembler::new(model, now_ms),
            text: None,
            thinking: None,
            details: Details::default(),
            calls: Calls::default(),
            any_event: false,
            marked: false,
            text_halves: Halves::default(),
            thinking_halves: Halves::default(),
        })
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
        let data = event.data.trim();
        self.any_event = true;
        if event.event == "error" {
            return self.service_error(data, out);
        }
        if data.is_empty() {
            return;
        }
        if data.starts_with("[DONE]") {
            return self.finish(out);
        }
        self.marked = false;
        if let Some(chunk) = Chunk::strict(data) {
            return self.on_chunk(chunk, out);
        }
        let marked = halves::mark(data);
        self.marked = matches!(marked, Cow::Owned(_));
        match json::parse(&marked) {
            Ok(value) => {
                if let Some(chunk) = Chunk::lenient(&value) {
                    self.on_chunk(chunk, out);
                }
            }
            Err(_) => {
                let excerpt = error::excerpt(data);
                self.fail(format!("the service sent an event that is not valid JSON: {excerpt}"), out);
            }
        }
    }

    fn on_complete(&mut self, stray: &str, out: &mut Vec<StreamEvent>) {
        if self.any_event {
            self.finish(out);
        } else {
            self.fail(error::no_stream_message(&self.model, stray), out);
        }
    }

    fn before_abort(&mut self, out: &mut Vec<StreamEvent>) {
        self.close(out);
    }
}

impl Reply {
    fn on_chunk(&mut self, chunk: Chunk<'_>, out: &mut Vec<StreamEvent>) {
        if let Some(said) = chunk.error.map(Any::read).filter(is_truthy) {
            let wrapped = serde_json::json!({ "error": said });
            let words = error::service_words(&wrapped).unwrap_or_else(|| json::to_string(&said));
            return self.fail(error::clean(&halves::strip(words.into(), self.marked)), out);
        }
        let marked = self.marked;
        let message = self.assembler.message_mut();
        set_once(&mut message.response_id, chunk.id, marked);
        if chunk.model.as_ref().is_some_and(|model| model.0 != self.model.id) {
            set_once(&mut message.response_model, chunk.model, marked);
        }
        let choice = chunk.choices.and_then(|first| first.0).unwrap_or_default();
        if let Some(reported) = chunk.usage.or(choice.usage).map(Any::read).filter(Value::is_object) {
            message.usage = usage(&self.model, &reported);
        }
        if let Some(Str(word)) = choice.finish_reason.filter(|word| !word.0.is_empty()) {
            message.raw_stop_reason = Some(halves::strip(word, marked).into_owned());
        }
        if let Some(delta) = choice.delta {
            self.on_delta(delta, out);
        }
    }

    fn on_delta(&mut self, delta: Delta<'_>, out: &mut Vec<StreamEvent>) {
        let fields = [
            ("reasoning_content", delta.reasoning_content),
            ("reasoning", delta.reasoning),
            ("reasoning_text", delta.reasoning_text),
        ];
        let thought = fields.into_iter().find_map(|(name, text)| Some((name, text.filter(is_some_text)?)));
        if let Some((name, text)) = thought {
            let index = self.thinking_block(name, out);
            let text = self.thinking_halves.join(text.0, self.marked);
            self.grow(index, text, out);
        }
        if let Some(Value::Array(details)) = delta.reasoning_details.map(Any::read) {
            self.details.add(details);
            if !self.details.is_empty() {
                self.thinking_block("", out);
            }
        }
        if let Some(text) = delta.content.map(Content::into_text).filter(|text| !text.is_empty()) {
            let index = match self.text {
                Some(index) => index,
                None => self.assembler.open(Block::Text(TextBlock::default()), out),
            };
            self.text = Some(index);
            let text = self.text_halves.join(text, self.marked);
            self.grow(index, text, out);
        }
        for call in delta.tool_calls {
            self.on_call(call, out);
        }
    }

    /// Appends to a text; a piece that was only half a character adds nothing yet.
    fn grow(&mut self, index: usize, text: Cow<'_, str>, out: &mut Vec<StreamEvent>) {
        if !text.is_empty() {
            self.assembler.push(index, text, out);
        }
    }

    /// The one thinking block of the reply. Its signature remembers the field the text came from, so that it goes back
    /// the same way.
    fn thinking_block(&mut self, field: &str, out: &mut Vec<StreamEvent>) -> usize {
        let index = match self.thinking {
            Some(index) => index,
            None => self.assembler.open(Block::Thinking(ThinkingBlock::default()), out),
        };
        self.thinking = Some(index);
        let field = if field == "reasoning" && self.model.provider == "opencode-go" {
            "reasoning_content"
        } else {
            field
        };
        if let Some(Block::Thinking(block)) = self.assembler.block(index)
            && block.signature.is_none()
            && !field.is_empty()
        {
            block.signature = Some(field.into());
        }
        index
    }

    fn on_call<'a>(&mut self, call: CallDelta<'a>, out: &mut Vec<StreamEvent>) {
        let own =
            |text: Option<Str<'a>>| halves::strip(text.map(|text| text.0).unwrap_or_default(), self.marked);
        let id = own(call.id);
        let (function, custom) = (call.function.unwrap_or_default(), call.custom);
        let is_custom = custom.is_some();
        let (name, piece) = match custom {
            Some(custom) => (custom.name, custom.input),
            None => (function.name, function.arguments),
        };
        let name = own(name);
        let found = self.calls.find(&id, call.index, !name.is_empty());
        let at = match found {
            Some(at) => at,
            None => self.open_call(&id, &name, call.index, is_custom, out),
        };
        let Some(slot) = self.calls.get_mut(at) else { return };
        let content = slot.content;
        if let Some(Block::ToolCall(block)) = self.assembler.block(content) {
            if block.id.is_empty() && !id.is_empty() {
                block.id = id.as_ref().to_string();
                slot.id = block.id.clone();
            }
            if block.name.is_empty() && !name.is_empty() {
                block.name = name.into_owned();
            }
            slot.named = !block.name.is_empty();
        }
        let piece = piece.map(|piece| piece.0).unwrap_or_default();
        let piece = slot.halves.join(piece, self.marked);
        let piece = if slot.custom { self.custom_piece(content, &piece).into() } else { piece };
        self.assembler.push(content, piece, out);
    }

    fn open_call(
        &mut self,
        id: &str,
        name: &str,
        index: Option<i64>,
        custom: bool,
        out: &mut Vec<StreamEvent>,
    ) -> usize {
        let mut call = ToolCall { id: id.into(), name: name.into(), ..ToolCall::default() };
        if custom {
            let property = grammar::input_property(&self.grammar, name);
            call.arguments = Arc::new(grammar::empty_arguments(property));
        }
        let content = self.assembler.open(Block::ToolCall(call), out);
        let at = self.calls.push(content, index, custom);
        if let Some(slot) = self.calls.get_mut(at) {
            slot.id = id.into();
        }
        at
    }

    /// A piece of free-form input as JSON text.
    fn custom_piece(&self, content: usize, piece: &str) -> String {
        let first = self.assembler.raw_arguments(content).is_empty();
        let name = match self.assembler.message().content.get(content) {
            Some(Block::ToolCall(call)) => call.name.as_str(),
            _ => "",
        };
        grammar::json_piece(grammar::input_property(&self.grammar, name), first, piece)
    }

    /// Completes all blocks in content order.
    fn close(&mut self, out: &mut Vec<StreamEvent>) {
        for slot in self.calls.iter().filter(|slot| slot.custom) {
            self.assembler.push(slot.content, Cow::Borrowed(grammar::JSON_END), out);
        }
        for slot in self.calls.iter().filter(|slot| slot.id.is_empty()) {
            let made = format!("call_{}_{}", self.assembler.message().timestamp, slot.content);
            if let Some(Block::ToolCall(call)) = self.assembler.block(slot.content) {
                // Results need a name; the time keeps it apart from those of other replies.
                call.id = made;
            }
        }
        if !self.details.is_empty()
            && let Some(Block::Thinking(block)) = self.thinking.and_then(|index| self.assembler.block(index))
        {
            block.signature = Some(self.details.to_json().into());
        }
        self.assembler.close_all(out);
    }

    /// The stream is over: what kind of end is it?
    fn finish(&mut self, out: &mut Vec<StreamEvent>) {
        self.close(out);
        let message = self.assembler.message();
        let has_calls = message.tool_calls().next().is_some();
        let all_readable = message.tool_calls().all(|call| call.arguments_error.is_none());
        let Some(word) = message.raw_stop_reason.clone() else {
            if self.supports_finish_reason {
                return self
                    .fail("the stream ended without a finish_reason; the reply may be cut".into(), out);
            }
            let reason = if has_calls { StopReason::ToolUse } else { StopReason::Stop };
            return self.assembler.done(reason, out);
        };
        match stop::map(stop::OPENAI_COMPLETIONS, &word) {
            Stop::Good(reason) => self.assembler.done(reason, out),
            // D27
            Stop::Unknown if has_calls && all_readable => self.assembler.done(StopReason::ToolUse, out),
            Stop::Failed | Stop::Unknown => {
                let text = match word.as_str() {
                    "content_filter" => {
                        "the safety filter of the service blocked the reply (content_filter)".to_string()
                    }
                    word => format!("the service ended the reply with finish_reason {}", error::clean(word)),
                };
                self.fail(text, out);
            }
        }
    }

    fn service_error(&mut self, data: &str, out: &mut Vec<StreamEvent>) {
        let words = json::parse(data).ok().as_ref().and_then(error::service_words);
        let words = words.unwrap_or_else(|| data.to_string());
        let words =
            if words.is_empty() { "the service reported an error without a text".into() } else { words };
        self.fail(error::clean(&words), out);
    }

    fn fail(&mut self, text: String, out: &mut Vec<StreamEvent>) {
        self.assembler.fail(StopReason::Error, text, out);
    }
}

fn set_once(slot: &mut Option<String>, text: Option<Str<'_>>, marked: bool) {
    if slot.is_none()
        && let Some(Str(text)) = text
        && !text.is_empty()
    {
        *slot = Some(halves::strip(text, marked).into_owned());
    }
}

fn is_some_text(text: &Str<'_>) -> bool {
    !text.0.is_empty()
}

/// What JavaScript calls truthy.
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

/// Tokens and cost of a usage object.
fn usage(model: &Model, reported: &Value) -> Usage {
    let count = |value: Option<&Value>| value.filter(|v| v.is_number()).map(whole);
    let inner = |outer: &str, key: &str| count(reported.get(outer).and_then(|details| details.get(key)));
    let cache_read = inner("prompt_tokens_details", "cached_tokens")
        .or_else(|| count(reported.get("prompt_cache_hit_tokens")))
        .or_else(|| count(reported.get("cached_tokens")))
        .unwrap_or(0);
    let cache_write = inner("prompt_tokens_details", "cache_write_tokens").unwrap_or(0);
    let prompt = count(reported.get("prompt_tokens")).unwrap_or(0);
    let input = prompt.saturating_sub(cache_read).saturating_sub(cache_write);
    let output = count(reported.get("completion_tokens")).unwrap_or(0);
    let reasoning = inner("completion_tokens_details", "reasoning_tokens").filter(|n| *n > 0);
    let reasoning = reasoning.or_else(|| count(reported.get("reasoning_tokens"))).unwrap_or(0);
    let mut usage = Usage {
        input,
        output,
        cache_read,
        cache_write,
        reasoning: Some(reasoning),
        total_tokens: input.saturating_add(output).saturating_add(cache_read).saturating_add(cache_write),
        ..Usage::default()
    };
    cost::apply(model, &mut usage, Some(reported));
    usage
}

/// A number as a count; negative ones are 0.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| value.as_f64().unwrap_or_default() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::AssistantMessage;
    use crate::provider::{BodyEnd, Decoder};
    use alloc::vec;

    fn decode(events: &[&str]) -> AssistantMessage {
        let model = Arc::new(Model { base_url: "http://host.example/v1".into(), ..Model::default() });
        let mut decoder = CompletionsDecoder::new(&model, true, vec![], 77);
        let mut out = Vec::new();
        for event in events {
            decoder.on_bytes(format!("data: {event}\n\n").as_bytes(), &mut out);
        }
        decoder.on_end(BodyEnd::Complete, &mut out);
        assert!(matches!(out.last(), Some(StreamEvent::Done | StreamEvent::Error)));
        decoder.take()
    }

    fn calls(events: &[&str]) -> Vec<(String, String, String)> {
        let mut list: Vec<&str> = events.to_vec();
        list.push(r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#);
        let reply = decode(&list);
        reply.tool_calls().map(|c| (c.id.clone(), c.name.clone(), json::to_string(&c.arguments))).collect()
    }

    fn call(inner: &str) -> String {
        format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{inner}]}}}}]}}"#)
    }

    #[test]
    fn arguments_as_an_object_and_odd_indexes() {
        let first = call(r#"{"index":"0","id":"a","function":{"name":"t","arguments":{"x":1,"y":[2]}}}"#);
        assert_eq!(calls(&[&first]), vec![("a".into(), "t".into(), r#"{"x":1,"y":[2]}"#.into())]);
    }

    #[test]
    fn calls_without_id_and_index_begin_at_their_name() {
        let a = call(r#"{"function":{"name":"t","arguments":"{\"x\":"}}"#);
        let b = call(r#"{"function":{"arguments":"1}"}}"#);
        let c = call(r#"{"function":{"name":"u","arguments":""}}"#);
        let got = calls(&[&a, &b, &c]);
        assert_eq!(
            got,
            vec![
                ("call_77_0".into(), "t".into(), r#"{"x":1}"#.into()),
                ("call_77_1".into(), "u".into(), "{}".into()),
            ]
        );
    }

    #[test]
    fn a_word_we_do_not_know() {
        let tool = call(r#"{"index":0,"id":"a","function":{"name":"t","arguments":"{}"}}"#);
        let end = r#"{"choices":[{"delta":{},"finish_reason":"weird"}]}"#;
        let reply = decode(&[&tool, end]);
        assert_eq!(reply.stop_reason, StopReason::ToolUse);
        assert_eq!(reply.raw_stop_reason.as_deref(), Some("weird"));
        let broken = call(r#"{"index":0,"id":"a","function":{"name":"t","arguments":"{"}}"#);
        for events in [&[broken.as_str(), end][..], &[end]] {
            let reply = decode(events);
            assert_eq!(reply.stop_reason, StopReason::Error);
            assert!(reply.error_message.unwrap().contains("weird"));
        }
    }

    #[test]
    fn content_in_parts_and_a_page_instead_of_a_stream() {
        let parts =
            r#"{"choices":[{"delta":{"content":[{"type":"text","text":"a"},"b"]},"finish_reason":"stop"}]}"#;
        assert_eq!(decode(&[parts]).content, vec![Block::text("ab")]);
        let model = Arc::new(Model { base_url: "http://host.example/v1".into(), ..Model::default() });
        let mut decoder = CompletionsDecoder::new(&model, true, vec![], 1);
        let mut out = Vec::new();
        decoder.on_bytes(b"<html><body>Log in</body></html>", &mut out);
        decoder.on_end(BodyEnd::Complete, &mut out);
        let text = decoder.take().error_message.unwrap();
        assert!(text.contains("html") && text.contains("host.example") && text.contains("ended without"));
    }

    #[test]
    fn a_pair_cut_between_two_events() {
        let chunk = |text: &str| {
            format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}},"finish_reason":"stop"}}]}}"#)
        };
        let text = |events: &[String]| {
            let events: Vec<&str> = events.iter().map(String::as_str).collect();
            decode(&events).content.iter().filter_map(Block::as_text).collect::<String>()
        };
        assert_eq!(text(&[chunk(r"a\ud83d"), chunk(r"\ude00b")]), "a😀b");
        assert_eq!(text(&[chunk(r"a\ud83d"), chunk("x"), chunk(r"\ude00b")]), "axb");
        assert_eq!(text(&[chunk(r"\ude00\ud83d\ud83d\ude00")]), "😀");
    }

    #[test]
    fn one_very_long_event() {
        let long = "A".repeat(200_000);
        let body = format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{long}\"}},\"finish_reason\":\"stop\"}}]}}\n\n"
        );
        let mut decoder = CompletionsDecoder::new(&Arc::new(Model::default()), true, vec![], 1);
        let mut out = Vec::new();
        body.as_bytes().chunks(16 << 10).for_each(|piece| decoder.on_bytes(piece, &mut out));
        decoder.on_end(BodyEnd::Complete, &mut out);
        let reply = decoder.take();
        assert_eq!(reply.stop_reason, StopReason::Stop);
        assert_eq!(reply.content, vec![Block::text(long)]);
    }
}
