//! The stream of the Responses protocol.
//!
//! The `type` inside the data decides; `event` lines are not looked at, some servers have none. Items stream side by
//! side, each with a number; its last event holds it whole, and what it says wins over what was streamed.

use alloc::borrow::{Cow, ToOwned};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Dialect;
use super::fields::{Fields, Raw, arguments, list, parts, piece, text, value};
use super::usage;
use crate::json::{self, Map, Value, Writer};
use crate::message::{Block, StopReason, TextBlock, ThinkingBlock, ToolCall};
use crate::model::Model;
use crate::provider::assemble::Assembler;
use crate::provider::grammar::{self, FreeForm};
use crate::provider::halves::Halves;
use crate::provider::sse_reply::{Events, SseReply};
use crate::provider::stop::{self, Stop};
use crate::provider::{StreamEvent, error};
use crate::wire::sse::SseEvent;

/// Decoder of one response.
pub(super) type ResponsesDecoder = SseReply<Reply>;

/// What the decoder knows besides framing.
#[derive(Debug)]
pub(super) struct Reply {
    dialect: Dialect,
    model: Arc<Model>,
    free_form: FreeForm,
    /// The service tier of the request.
    tier: Option<String>,
    assembler: Assembler,
    /// Items that began and did not end.
    open: Vec<Item>,
    any_event: bool,
}

/// An item in the making.
#[derive(Debug)]
struct Item {
    /// Its number in the response, if the server counts.
    number: Option<i64>,
    /// Its id when it began. Some services change ids on the way.
    id: String,
    /// Index in the content.
    index: usize,
    kind: Kind,
    halves: Halves,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Thinking,
    Text,
    Call,
    /// A call of a free-form tool.
    FreeForm,
}

impl Kind {
    fn of(item: &Fields<'_>) -> Option<Self> {
        Some(match &*text(item.kind)? {
            "reasoning" => Self::Thinking,
            "message" => Self::Text,
            "function_call" => Self::Call,
            "custom_tool_call" => Self::FreeForm,
            _ => return None,
        })
    }
}

impl ResponsesDecoder {
    pub(super) fn new(
        dialect: Dialect,
        model: &Arc<Model>,
        free_form: FreeForm,
        tier: Option<String>,
        now_ms: i64,
    ) -> Self {
        let reply = Reply {
            dialect,
            model: Arc::clone(model),
            free_form,
            tier,
            assembler: Assembler::new(model, now_ms),
            open: Vec::new(),
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
        if let Some(event) = Fields::read(data) {
            return self.on_fields(&event, out);
        }
        if data.starts_with("[DONE]") {
            return;
        }
        // Once more without the mistakes that servers and proxies make.
        match json::parse(&json::repair(data)) {
            Ok(value) => {
                if let Some(event) = Fields::read(&json::to_string(&value)) {
                    self.on_fields(&event, out);
                }
            }
            Err(_) => {
                let excerpt = error::excerpt(data);
                self.fail(format!("the service sent an event that is not valid JSON: {excerpt}"), out);
            }
        }
    }

    fn on_complete(&mut self, stray: &str, out: &mut Vec<StreamEvent>) {
        let text = if self.any_event {
            "the stream ended before a terminal response event; the reply may be cut".into()
        } else {
            error::no_stream_message(&self.model, stray)
        };
        self.fail(text, out);
    }
}

impl Reply {
    fn on_fields(&mut self, event: &Fields<'_>, out: &mut Vec<StreamEvent>) {
        let kind = event.kind.map_or("", |kind| kind.get().trim_matches('"'));
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => self.grow(event, Kind::Text, out),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.grow(event, Kind::Thinking, out);
            }
            "response.function_call_arguments.delta" => self.grow(event, Kind::Call, out),
            "response.custom_tool_call_input.delta" => self.grow(event, Kind::FreeForm, out),
            "response.reasoning_summary_part.done" => {
                if let Some(index) = self.index_of(event, Kind::Thinking) {
                    self.assembler.push(index, Cow::Borrowed("\n\n"), out);
                }
            }
            "response.function_call_arguments.done" => {
                let index = self.index_of(event, Kind::Call);
                if let (Some(index), Some(whole)) = (index, arguments(event.arguments)) {
                    self.assembler.complete(index, &whole, Some(out));
                }
            }
            "response.custom_tool_call_input.done" => self.free_form_done(event, out),
            "response.output_item.added" => {
                if let Some(item) = Fields::of(event.item) {
                    self.begin(event, &item, out);
                }
            }
            "response.output_item.done" => {
                if let Some(item) = Fields::of(event.item) {
                    self.end_item(event, &item, out);
                }
            }
            "response.created" => self.note_id(&Fields::of(event.response).unwrap_or_default()),
            "response.completed" | "response.incomplete" | "response.done" => {
                self.finish(&Fields::of(event.response).unwrap_or_default(), kind, out);
            }
            "response.failed" => {
                let response = Fields::of(event.response).unwrap_or_default();
                self.note_id(&response);
                if self.dialect != Dialect::Codex {
                    self.assembler.message_mut().raw_stop_reason = Some("failed".into());
                }
                let text = failure(&response);
                self.fail(text, out);
            }
            "error" => {
                let text =
                    said(event).unwrap_or_else(|| "the service reported an error without a text".into());
                self.fail(text, out);
            }
            // Gateways report a failure of their own without a type.
            "" if event.error.is_some() => {
                if let Some(text) = said(event) {
                    self.fail(text, out);
                }
            }
            _ => {}
        }
    }

    fn fail(&mut self, text: String, out: &mut Vec<StreamEvent>) {
        self.assembler.fail(StopReason::Error, text, out);
    }

    fn note_id(&mut self, response: &Fields<'_>) {
        let message = self.assembler.message_mut();
        if message.response_id.is_none() {
            message.response_id = text(response.id).map(Cow::into_owned);
        }
    }

    /// The open item that an event is about: by its number and id, by its number, by its id; the last one when the
    /// server tells neither.
    fn position(&self, event: &Fields<'_>, id: &str) -> Option<usize> {
        let number = number(event.output_index);
        let find = |test: &dyn Fn(&Item) -> bool| self.open.iter().rposition(test);
        let same_id = |item: &Item| !id.is_empty() && item.id == id;
        if number.is_some() {
            let counted = find(&|item| item.number == number && same_id(item));
            return counted.or_else(|| find(&|item| item.number == number)).or_else(|| find(&same_id));
        }
        if id.is_empty() { self.open.len().checked_sub(1) } else { find(&same_id) }
    }

    fn find(&mut self, event: &Fields<'_>, kind: Kind) -> Option<&mut Item> {
        let id = text(event.item_id).unwrap_or_default();
        let at = self.position(event, &id)?;
        self.open.get_mut(at).filter(|item| item.kind == kind)
    }

    /// Where the open item of an event stands in the content.
    fn index_of(&mut self, event: &Fields<'_>, kind: Kind) -> Option<usize> {
        self.find(event, kind).map(|item| item.index)
    }

    /// Appends a piece to the item it belongs to.
    fn grow(&mut self, event: &Fields<'_>, kind: Kind, out: &mut Vec<StreamEvent>) {
        let Some((text, marked)) = piece(event.delta) else { return };
        let Some(item) = self.find(event, kind) else { return };
        let (text, index) = (item.halves.join(text, marked), item.index);
        // A piece that was only half a character adds nothing yet.
        if text.is_empty() {
            return;
        }
        let text = if kind == Kind::FreeForm { self.json_piece(index, &text).into() } else { text };
        self.assembler.push(index, text, out);
    }

    /// Begins an item; returns its position among the open ones.
    fn begin(&mut self, event: &Fields<'_>, item: &Fields<'_>, out: &mut Vec<StreamEvent>) -> Option<usize> {
        let kind = Kind::of(item)?;
        let block = match kind {
            Kind::Thinking => Block::Thinking(ThinkingBlock::default()),
            Kind::Text => Block::Text(TextBlock::default()),
            Kind::Call | Kind::FreeForm => Block::ToolCall(self.call(item, kind)),
        };
        let index = self.assembler.open(block, out);
        match kind {
            Kind::Call => self.assembler.preload(index, &arguments(item.arguments).unwrap_or_default()),
            Kind::FreeForm => {
                if let Some(input) = text(item.input) {
                    let begun = self.json_piece(index, &input);
                    self.assembler.preload(index, &begun);
                }
            }
            Kind::Thinking | Kind::Text => {}
        }
        self.open.push(Item {
            number: number(event.output_index),
            id: text(item.id).unwrap_or_default().into_owned(),
            index,
            kind,
            halves: Halves::default(),
        });
        Some(self.open.len() - 1)
    }

    /// A call before its arguments.
    fn call(&self, item: &Fields<'_>, kind: Kind) -> ToolCall {
        let name = text(item.name).unwrap_or_default().into_owned();
        let mut call = ToolCall { id: self.call_id(item), name, ..ToolCall::default() };
        if kind == Kind::FreeForm {
            let property = grammar::input_property(&self.free_form, &call.name);
            call.arguments = Arc::new(grammar::empty_arguments(property));
        }
        call
    }

    /// Id of a call: what results name and what the item is called, as far as the service tells.
    fn call_id(&self, item: &Fields<'_>) -> String {
        match (text(item.call_id), text(item.id)) {
            (Some(call), Some(item)) => format!("{call}|{item}"),
            (Some(one), None) | (None, Some(one)) => one.into_owned(),
            (None, None) => {
                // Results need a name; the time keeps it apart from those of other replies.
                let message = self.assembler.message();
                format!("call_{}_{}", message.timestamp, message.content.len())
            }
        }
    }

    /// A piece of free-form input as JSON text.
    fn json_piece(&self, index: usize, piece: &str) -> String {
        let first = self.assembler.raw_arguments(index).is_empty();
        grammar::json_piece(self.property(index), first, piece)
    }

    /// The property that takes the input of the call at `index`.
    fn property(&self, index: usize) -> &str {
        let name = match self.assembler.message().content.get(index) {
            Some(Block::ToolCall(call)) => call.name.as_str(),
            _ => "",
        };
        grammar::input_property(&self.free_form, name)
    }

    /// Arguments of free-form input that is complete.
    fn whole_input(&self, index: usize, input: &str) -> String {
        grammar::json_piece(self.property(index), true, input) + grammar::JSON_END
    }

    /// The whole input of a free-form call. It was acted upon already, so it may only add to what was streamed.
    fn free_form_done(&mut self, event: &Fields<'_>, out: &mut Vec<StreamEvent>) {
        let Some(index) = self.index_of(event, Kind::FreeForm) else { return };
        let input = text(event.input).unwrap_or_default();
        let whole = self.whole_input(index, &input);
        if whole.starts_with(self.assembler.raw_arguments(index)) {
            self.assembler.complete(index, &whole, Some(out));
        } else {
            self.fail("the input of a tool call changed after it was streamed".into(), out);
        }
    }

    /// An item is complete.
    fn end_item(&mut self, event: &Fields<'_>, item: &Fields<'_>, out: &mut Vec<StreamEvent>) {
        let Some(kind) = Kind::of(item) else { return };
        let id = text(item.id).unwrap_or_default();
        let known = self.position(event, &id).filter(|at| self.open.get(*at).is_some_and(|i| i.kind == kind));
        let known = known.or_else(|| {
            let again = self.is_known_call(item);
            if again { None } else { self.begin(event, item, out) }
        });
        let Some(at) = known else { return };
        let index = self.open.remove(at).index;
        match kind {
            Kind::Call => {
                if let Some(whole) = arguments(item.arguments) {
                    self.assembler.complete(index, &whole, None);
                }
            }
            Kind::FreeForm => {
                if let Some(input) = text(item.input) {
                    let whole = self.whole_input(index, &input);
                    self.assembler.complete(index, &whole, None);
                } else if !self.assembler.raw_arguments(index).is_empty() {
                    let whole = self.assembler.raw_arguments(index).to_owned();
                    if !whole.ends_with(grammar::JSON_END) {
                        self.assembler.preload(index, grammar::JSON_END);
                    }
                }
            }
            Kind::Thinking | Kind::Text => {}
        }
        match self.assembler.block(index) {
            Some(Block::Thinking(block)) => {
                let said = parts(item.summary, "\n\n").or_else(|| parts(item.content, "\n\n"));
                if let Some(said) = said.filter(|said| *said != *block.thinking) {
                    block.thinking = said.into();
                }
                block.signature = event.item.map(|item| item.get().into());
            }
            Some(Block::Text(block)) => {
                if let Some(said) = parts(item.content, "").filter(|said| *said != *block.text) {
                    block.text = said.into();
                }
                block.signature = text_signature(item).map(Into::into);
            }
            Some(Block::ToolCall(call)) => {
                call.namespace = text(item.namespace).map(Cow::into_owned);
                if let Some(name) = text(item.name).filter(|_| call.name.is_empty()) {
                    call.name = name.into_owned();
                }
            }
            _ => {}
        }
        self.assembler.close(index, out);
    }

    /// Whether one of the last blocks is this very call: its end was sent twice.
    fn is_known_call(&self, item: &Fields<'_>) -> bool {
        const LAST: usize = 16;
        let id = self.call_id(item);
        let same = |block: &Block| matches!(block, Block::ToolCall(call) if call.id == id);
        self.assembler.message().content.iter().rev().take(LAST).any(same)
    }

    /// The response is over: what kind of end is it?
    fn finish(&mut self, response: &Fields<'_>, event: &str, out: &mut Vec<StreamEvent>) {
        self.note_id(response);
        let tier = text(response.service_tier);
        let usage = usage::usage(&self.model, &value(response.usage));
        let factor = usage::tier_factor(self.dialect, &self.model.id, self.tier.as_deref(), tier.as_deref());
        let word = status(response, event).filter(|word| self.is_known(word));
        let message = self.assembler.message_mut();
        message.usage = usage::times(usage, factor);
        message.end_turn = value(response.end_turn).as_bool();
        message.raw_stop_reason.clone_from(&word);
        self.note_transformations(response);
        self.backfill(response.output);

        let message = self.assembler.message();
        let verdict = word.as_deref().map_or(Stop::Good(StopReason::Stop), |word| {
            match stop::map(stop::OPENAI_RESPONSES, word) {
                Stop::Unknown if word.starts_with("incomplete") => Stop::Failed,
                verdict => verdict,
            }
        });
        let has_calls = message.tool_calls().next().is_some();
        let unfinished = self.open.iter().find(|item| matches!(item.kind, Kind::Call | Kind::FreeForm));
        let all_readable = unfinished.is_none() && message.tool_calls().all(|c| c.arguments_error.is_none());
        match verdict {
            Stop::Good(StopReason::Stop) if has_calls => match unfinished.map(|item| self.name_of(item)) {
                Some(name) => {
                    self.fail(
                        format!("the response is complete, but its call of the tool {name} is not"),
                        out,
                    );
                }
                None => self.assembler.done(StopReason::ToolUse, out),
            },
            Stop::Good(reason) => self.assembler.done(reason, out),
            // D27
            Stop::Unknown if has_calls && all_readable => self.assembler.done(StopReason::ToolUse, out),
            Stop::Failed | Stop::Unknown => {
                let word = word.unwrap_or_default();
                let text = match said(response) {
                    Some(said) => said,
                    None if word == "incomplete.content_filter" => {
                        "the safety filter of the service blocked the reply (content_filter)".into()
                    }
                    None => format!("the service ended the response with status {}", error::clean(&word)),
                };
                self.fail(text, out);
            }
        }
    }

    /// ChatGPT sends words that mean nothing here.
    fn is_known(&self, word: &str) -> bool {
        self.dialect != Dialect::Codex
            || word.starts_with("incomplete")
            || stop::map(stop::OPENAI_RESPONSES, word) != Stop::Unknown
    }

    fn name_of(&self, item: &Item) -> String {
        match self.assembler.message().content.get(item.index) {
            Some(Block::ToolCall(call)) => error::clean(&call.name),
            _ => String::new(),
        }
    }

    /// Reasoning that the service left out of the request, except what a new turn always drops.
    fn note_transformations(&mut self, response: &Fields<'_>) {
        let Value::Array(mut list) = value(response.input_transformations) else { return };
        let word =
            |entry: &Value, key: &str, word: &str| entry.get(key).and_then(Value::as_str) == Some(word);
        list.retain(|entry| word(entry, "action", "removed") && !word(entry, "reason", "turn_boundary"));
        if list.is_empty() {
            return;
        }
        let message = self.assembler.message_mut();
        let mut note = Map::new();
        note.insert("type".to_owned(), "openai_input_transformations".into());
        note.insert("timestamp".to_owned(), message.timestamp.into());
        note.insert("details".to_owned(), serde_json::json!({ "transformations": list }));
        message.diagnostics.get_or_insert_default().push(Value::Object(note));
    }

    /// Some services send the encrypted reasoning only at the very end. It comes in the order of the blocks.
    fn backfill(&mut self, output: Raw<'_>) {
        let mut late: Option<Vec<(String, String)>> = None;
        let mut next = 0;
        for index in 0..self.assembler.message().content.len() {
            let Some(Block::Thinking(block)) = self.assembler.block(index) else { continue };
            let Some(item) = block.signature.as_deref().and_then(Fields::read) else { continue };
            let (None, Some(id)) = (text(item.encrypted_content), text(item.id)) else { continue };
            let late = late.get_or_insert_with(|| {
                let pair = |item: Fields<'_>| {
                    Some((text(item.id)?.into_owned(), text(item.encrypted_content)?.into_owned()))
                };
                list(output).filter_map(pair).collect()
            });
            let from_next = (next..late.len()).chain(0..next);
            let found = from_next.filter_map(|at| Some((at, late.get(at)?))).find(|(_, (own, _))| *own == id);
            let Some((at, (_, encrypted))) = found else { continue };
            let Some(Ok(Value::Object(mut item))) = block.signature.as_deref().map(json::parse) else {
                continue;
            };
            item.insert("encrypted_content".to_owned(), encrypted.as_str().into());
            block.signature = Some(json::to_string(&Value::Object(item)).into());
            next = at + 1;
        }
    }
}

/// A number, also one given as text.
fn number(raw: Raw<'_>) -> Option<i64> {
    raw?.get().trim_matches('"').parse().ok()
}

/// What a text item must say when it is sent back.
fn text_signature(item: &Fields<'_>) -> Option<String> {
    let id = text(item.id)?;
    let mut w = Writer::new();
    w.begin_object();
    w.field_u64("v", 1);
    w.field_str("id", &id);
    w.field_opt_str("phase", text(item.phase).as_deref());
    w.end_object();
    Some(w.into_string())
}

/// The status of a response with the reason of an incomplete one.
fn status(response: &Fields<'_>, event: &str) -> Option<String> {
    let implied = (event == "response.incomplete").then_some(Cow::Borrowed("incomplete"));
    let status = text(response.status).or(implied)?;
    let reason =
        Fields::of(response.incomplete_details).and_then(|details| Some(text(details.reason)?.to_string()));
    Some(match reason {
        Some(reason) => format!("{status}.{reason}"),
        None => status.into_owned(),
    })
}

/// The words of a service in an event or a response: code and message, in an `error` or beside it.
fn said(fields: &Fields<'_>) -> Option<String> {
    if let Some(error) = fields.error.filter(|error| !matches!(error.get(), "null" | "false")) {
        let wrapped = serde_json::json!({ "error": value(Some(error)) });
        return Some(error::clean(&error::service_words(&wrapped).unwrap_or_else(|| error.get().into())));
    }
    let (code, message) = (text(fields.code), text(fields.message));
    let text = match (&code, &message) {
        (Some(code), Some(message)) if !message.contains(&**code) => format!("{code}: {message}"),
        (_, Some(one)) | (Some(one), None) => one.to_string(),
        (None, None) => return None,
    };
    Some(error::clean(&text))
}

/// Why a response failed.
fn failure(response: &Fields<'_>) -> String {
    let details = || {
        let details = Fields::of(response.incomplete_details)?;
        Some(format!("the response failed: {}", error::clean(&text(details.reason)?)))
    };
    said(response)
        .or_else(details)
        .unwrap_or_else(|| "the response failed; the service tells no reason".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::AssistantMessage;
    use crate::provider::{BodyEnd, Decoder};
    use alloc::vec;

    fn decode(dialect: Dialect, events: &[&str]) -> AssistantMessage {
        let model = Arc::new(Model { base_url: "http://host.example/v1".into(), ..Model::default() });
        let mut decoder = ResponsesDecoder::new(dialect, &model, FreeForm::new(), None, 77);
        let mut out = Vec::new();
        for event in events {
            decoder.on_bytes(format!("data: {event}\n\n").as_bytes(), &mut out);
        }
        decoder.on_end(BodyEnd::Complete, &mut out);
        assert!(matches!(out.last(), Some(StreamEvent::Done | StreamEvent::Error)));
        decoder.take()
    }

    /// `type` and the other members of an event.
    fn event(kind: &str, more: &str) -> String {
        format!(r#"{{"type":"response.{kind}",{more}}}"#)
    }

    fn text_of(events: &[String]) -> String {
        let mut list =
            vec![event("output_item.added", r#""output_index":0,"item":{"type":"message","id":"m"}"#)];
        list.extend(events.iter().cloned());
        list.push(event("completed", r#""response":{"status":"completed"}"#));
        let list: Vec<&str> = list.iter().map(String::as_str).collect();
        let reply = decode(Dialect::OpenAi, &list);
        assert_eq!(reply.stop_reason, StopReason::Stop, "{:?}", reply.error_message);
        reply.content.iter().filter_map(Block::as_text).collect()
    }

    fn delta(text: &str) -> String {
        event("output_text.delta", &format!(r#""output_index":0,"delta":"{text}""#))
    }

    #[test]
    fn a_pair_cut_between_two_events() {
        assert_eq!(text_of(&[delta(r"a\ud83d"), delta(r"\ude00b\n")]), "a😀b\n");
        assert_eq!(text_of(&[delta(r"a\ud83d"), delta("x"), delta(r"\ude00b")]), "axb");
    }

    #[test]
    fn events_with_mistakes_and_odd_members() {
        let raw_tab = delta("a\tb");
        let twice = event("output_text.delta", r#""output_index":"0","output_index":"0","delta":"c""#);
        let odd = event("output_text.delta", r#""output_index":0,"delta":{"x":1}"#);
        assert_eq!(text_of(&[raw_tab, twice, odd, "[]".into(), "null".into(), "7".into()]), "a\tbc");
    }

    #[test]
    fn items_by_number_by_id_or_by_order() {
        let call = |place: &str, id: &str| {
            event(
                "output_item.added",
                &format!(
                    r#"{place}"item":{{"type":"function_call","id":"{id}","call_id":"c{id}","name":"t"}}"#
                ),
            )
        };
        let piece = |place: &str, text: &str| {
            event("function_call_arguments.delta", &format!(r#"{place}"delta":"{text}""#))
        };
        let done = |place: &str, id: &str| {
            event(
                "output_item.done",
                &format!(
                    r#"{place}"item":{{"type":"function_call","id":"{id}","call_id":"c{id}","name":"t"}}"#
                ),
            )
        };
        let end = event("completed", r#""response":{"status":"completed"}"#);
        let (zero, one) = (r#""output_index":0,"#, r#""output_index":1,"#);
        // Some services give every event of an item another id.
        let by_number = [
            call(zero, "a"),
            call(one, "b"),
            piece(&format!(r#"{zero}"item_id":"zz","#), r#"{\"x\":0}"#),
            piece(&format!(r#"{one}"item_id":"a","#), r#"{\"x\":1}"#),
            done(zero, "yy"),
            done(one, "xx"),
        ];
        let by_id = [
            call("", "a"),
            call("", "b"),
            piece(r#""item_id":"a","#, r#"{\"x\":0}"#),
            piece(r#""item_id":"b","#, r#"{\"x\":1}"#),
            done("", "a"),
            done("", "b"),
        ];
        let by_order = [
            call("", "a"),
            piece("", r#"{\"x\":0}"#),
            done("", "a"),
            call("", "b"),
            piece("", r#"{\"x\":1}"#),
            done("", "b"),
        ];
        // A number that is used again belongs to the item that began last; the end of a known call is no new one.
        let again = [
            call(zero, "a"),
            piece(zero, r#"{\"x\":0}"#),
            done(zero, "a"),
            done(zero, "a"),
            call(zero, "b"),
            piece(zero, r#"{\"x\":1}"#),
            done(zero, "b"),
        ];
        for events in [&by_number[..], &by_id, &by_order, &again] {
            let list: Vec<&str> = events.iter().chain([&end]).map(String::as_str).collect();
            let reply = decode(Dialect::OpenAi, &list);
            let calls: Vec<_> =
                reply.tool_calls().map(|c| (c.id.clone(), json::to_string(&c.arguments))).collect();
            let wanted = [
                ("ca|a".to_string(), r#"{"x":0}"#.to_string()),
                ("cb|b".to_string(), r#"{"x":1}"#.to_string()),
            ];
            assert_eq!(calls, wanted, "{events:?}");
            assert_eq!(reply.stop_reason, StopReason::ToolUse);
        }
    }

    #[test]
    fn a_status_we_do_not_know() {
        let call = |arguments: &str| {
            let item =
                format!(r#"{{"type":"function_call","call_id":"c","name":"t","arguments":"{arguments}"}}"#);
            event("output_item.done", &format!(r#""item":{item}"#))
        };
        let end = event("completed", r#""response":{"status":"weird"}"#);
        let of = |call: &str| decode(Dialect::OpenAi, &[call, &end]);
        let reply = of(&call("{}"));
        assert_eq!(
            (reply.stop_reason, reply.raw_stop_reason.as_deref()),
            (StopReason::ToolUse, Some("weird"))
        );
        let reply = of(&call("{"));
        assert_eq!(reply.stop_reason, StopReason::Error);
        assert!(reply.error_message.unwrap().contains("weird"));
    }

    #[test]
    fn failures_keep_the_words_of_the_service() {
        for (said, wanted) in [
            (r#"{"type":"error","code":"server_error","message":"m"}"#, "server_error: m"),
            (r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#, "m (overloaded_error)"),
            (r#"{"error":{"message":"m","code":500}}"#, "m (500)"),
            (r#"{"type":"error"}"#, "the service reported an error without a text"),
            (
                r#"{"type":"response.failed","response":{"error":{"code":"server_error","message":"m"}}}"#,
                "m (server_error)",
            ),
            (
                r#"{"type":"response.failed","response":{"incomplete_details":{"reason":"r"}}}"#,
                "the response failed: r",
            ),
            (r#"{"type":"response.failed"}"#, "the response failed; the service tells no reason"),
            (
                r#"{"type":"response.completed","response":{"status":"cancelled"}}"#,
                "the service ended the response with status cancelled",
            ),
        ] {
            let reply = decode(Dialect::OpenAi, &[said]);
            assert_eq!(reply.error_message.as_deref(), Some(wanted), "{said}");
            assert!(reply.content.is_empty());
        }
    }

    #[test]
    fn a_page_instead_of_a_stream() {
        let model = Arc::new(Model { base_url: "http://host.example/v1".into(), ..Model::default() });
        let mut decoder = ResponsesDecoder::new(Dialect::OpenAi, &model, FreeForm::new(), None, 1);
        let mut out = Vec::new();
        decoder.on_bytes(b"<html><body>Log in</body></html>", &mut out);
        decoder.on_end(BodyEnd::Complete, &mut out);
        let text = decoder.take().error_message.unwrap();
        assert!(text.contains("html") && text.contains("host.example") && text.contains("ended without"));
    }
}
