//! `*-stream.json`: bytes of a response in, events and the final message out. Each case runs in several splits.

use std::sync::Arc;

use base64::Engine as _;
use serde_json::{Map, Value, json};
use tau_core::fault::{FaultKind, IoFault};
use tau_core::message::{AssistantMessage, Block, StopReason};
use tau_core::model::Model;
use tau_core::provider::{BodyEnd, Decoder, ModelRequest, StreamEvent, encoder, error};
use tau_tests::compare::same;

use super::common;

/// `openai-completions-stream`
pub fn completions(doc: &Value, case: &Value) -> Result<(), String> {
    run(doc, case)
}

/// Runs a case: in the recorded chunks with all events, and in other splits with joined deltas.
pub fn run(doc: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let scene = Scene::new(doc, input)?;
    let chunks = chunks(&input["response"]["chunks"])?;
    let (events, message) = scene.play(&chunks, true);
    same_events(&case["expected"]["events"], &events)?;
    same_message(&case["expected"]["message"], &message)?;

    let whole: Vec<u8> = chunks.concat();
    let reference = joined(&events);
    for pieces in splits(&whole) {
        let (events, message) = scene.play(&pieces, false);
        same_message(&case["expected"]["message"], &message)
            .map_err(|why| format!("in {} pieces: {why}", pieces.len()))?;
        same(&reference, &joined(&events)).map_err(|why| format!("in {} pieces: {why}", pieces.len()))?;
    }
    Ok(())
}

/// Whole, one byte each, and three seeded random splits.
pub fn splits(whole: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut list = vec![vec![whole.to_vec()], whole.chunks(1).map(<[u8]>::to_vec).collect()];
    for seed in 1..4_u64 {
        let (mut state, mut rest, mut pieces) = (seed, whole, Vec::new());
        while !rest.is_empty() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let len = usize::try_from(state >> 33).unwrap_or_default() % 40 + 1;
            let (piece, tail) = rest.split_at(len.min(rest.len()));
            pieces.push(piece.to_vec());
            rest = tail;
        }
        list.push(pieces);
    }
    list
}

struct Scene {
    model: Arc<Model>,
    messages: Vec<Arc<tau_core::message::Message>>,
    options: Value,
    status: u16,
    headers: Vec<(String, String)>,
    end: String,
    abort_before: bool,
    aborts: bool,
}

impl Scene {
    fn new(doc: &Value, input: &Value) -> Result<Self, String> {
        let context = input.get("context").unwrap_or(&doc["defaultContext"]);
        let response = &input["response"];
        let headers = common::header_list(&response["headers"]);
        Ok(Self {
            model: Arc::new(common::model(&input["model"])),
            messages: common::messages(context),
            options: input["options"].clone(),
            status: u16::try_from(response["status"].as_u64().unwrap_or(200)).map_err(|e| e.to_string())?,
            headers: headers.into_iter().filter_map(|(name, value)| Some((name, value?))).collect(),
            end: response["end"].as_str().unwrap_or("close").to_owned(),
            abort_before: input["abortBeforeRequest"] == true,
            aborts: input.get("abortAfterChunk").is_some(),
        })
    }

    /// What the hub does with one exchange.
    fn play(&self, chunks: &[Vec<u8>], with_arguments: bool) -> (Vec<Value>, Value) {
        let failed = |reason: StopReason, text: String| {
            let message = AssistantMessage {
                api: self.model.api.clone(),
                provider: self.model.provider.clone(),
                model: self.model.id.clone(),
                stop_reason: reason,
                error_message: Some(text),
                ..AssistantMessage::default()
            };
            let event = json!({"type": "error", "reason": reason.name()});
            (vec![event], written(&message))
        };
        if self.abort_before {
            return failed(StopReason::Aborted, error::ABORTED.into());
        }
        if self.end == "network-error-before-response" {
            let fault = IoFault::new(FaultKind::Connect, "connection refused (ECONNREFUSED)");
            return failed(StopReason::Error, error::request_fault_message(&fault));
        }
        if self.status >= 400 {
            let body = chunks.concat();
            let text = error::http_error_message(&self.model, self.status, &self.headers, &body);
            return failed(StopReason::Error, text);
        }
        let mut encoder = encoder(&self.model.api).expect("a known protocol");
        let request = ModelRequest {
            model: &self.model,
            messages: &self.messages,
            options: &common::options(&self.options),
            credential: &common::credential(&self.options),
            now_ms: 7,
        };
        encoder.encode(&request).expect("a request");
        let mut decoder = encoder.decoder(&self.model, 7);
        let mut log = Log { events: Vec::new(), with_arguments };
        let mut out = Vec::new();
        for chunk in chunks {
            // Taken one by one, so that the state at each event can be seen.
            decoder.on_bytes(chunk, &mut out);
            log.take(&mut out, &*decoder);
        }
        let end = match self.end.as_str() {
            "connection-error" => BodyEnd::Failed(IoFault::new(FaultKind::Reset, "reset by peer")),
            "stays-open" if self.aborts => BodyEnd::Aborted,
            _ => BodyEnd::Complete,
        };
        decoder.on_end(end, &mut out);
        log.take(&mut out, &*decoder);
        let message = decoder.take();
        for event in &mut log.events {
            let kind = event["type"].as_str().unwrap_or_default().to_owned();
            if kind == "done" || kind == "error" {
                event["reason"] = json!(message.stop_reason.name());
            }
        }
        (log.events, written(&message))
    }
}

struct Log {
    events: Vec<Value>,
    with_arguments: bool,
}

impl Log {
    fn take(&mut self, out: &mut Vec<StreamEvent>, decoder: &dyn Decoder) {
        let content = &decoder.partial().content;
        for event in out.drain(..) {
            let name = match &event {
                StreamEvent::Start => "start",
                StreamEvent::TextStart { .. } => "text_start",
                StreamEvent::TextDelta { .. } => "text_delta",
                StreamEvent::TextEnd { .. } => "text_end",
                StreamEvent::ThinkingStart { .. } => "thinking_start",
                StreamEvent::ThinkingDelta { .. } => "thinking_delta",
                StreamEvent::ThinkingEnd { .. } => "thinking_end",
                StreamEvent::ToolCallStart { .. } => "toolcall_start",
                StreamEvent::ToolCallDelta { .. } => "toolcall_delta",
                StreamEvent::ToolCallEnd { .. } => "toolcall_end",
                StreamEvent::Done => "done",
                StreamEvent::Error => "error",
            };
            let mut json = json!({ "type": name });
            match event {
                StreamEvent::Start | StreamEvent::Done | StreamEvent::Error => {}
                StreamEvent::TextStart { index } | StreamEvent::ThinkingStart { index } => {
                    json["contentIndex"] = json!(index);
                }
                StreamEvent::ToolCallStart { index } => json["contentIndex"] = json!(index),
                StreamEvent::TextDelta { index, delta } | StreamEvent::ThinkingDelta { index, delta } => {
                    json["contentIndex"] = json!(index);
                    json["delta"] = json!(delta);
                }
                StreamEvent::ToolCallDelta { index, delta } => {
                    json["contentIndex"] = json!(index);
                    json["delta"] = json!(delta);
                    if self.with_arguments {
                        json["partialArguments"] = json!(decoder.partial_arguments(index));
                    }
                }
                StreamEvent::TextEnd { index } | StreamEvent::ThinkingEnd { index } => {
                    json["contentIndex"] = json!(index);
                    json["content"] = match &content[index] {
                        Block::Text(block) => json!(block.text.as_str()),
                        Block::Thinking(block) => json!(block.thinking.as_str()),
                        _ => Value::Null,
                    };
                }
                StreamEvent::ToolCallEnd { index } => {
                    json["contentIndex"] = json!(index);
                    json["toolCall"] = common::written(|w| content[index].write(w));
                }
            }
            self.events.push(json);
        }
    }
}

fn written(message: &AssistantMessage) -> Value {
    let mut value = common::written(|w| message.write(w));
    if let Some(map) = value.as_object_mut() {
        map.remove("timestamp");
        map.remove("durationMs");
    }
    value
}

fn chunks(list: &Value) -> Result<Vec<Vec<u8>>, String> {
    let chunk = |value: &Value| match value {
        Value::String(text) => Ok(text.clone().into_bytes()),
        other => {
            let text = other["b64"].as_str().unwrap_or_default();
            base64::engine::general_purpose::STANDARD.decode(text).map_err(|e| e.to_string())
        }
    };
    list.as_array().into_iter().flatten().map(chunk).collect()
}

/// Compares event by event. The state that goes with a call event is the one after the whole chunk, because events of
/// a chunk come together; `toolcall_start` is compared by its index alone, and partial arguments where they were final.
fn same_events(expected: &Value, got: &[Value]) -> Result<(), String> {
    let strip = |event: &Value| {
        let mut event = event.clone();
        if let Some(map) = event.as_object_mut() {
            map.remove("partialToolCall");
            map.remove("partialArguments");
        }
        event
    };
    let expected_events = expected.as_array().cloned().unwrap_or_default();
    let stripped = |list: &[Value]| Value::Array(list.iter().map(strip).collect());
    match_pattern(&stripped(&expected_events), &stripped(got))?;
    let last_of_call = |at: usize, event: &Value| {
        let same_call = |other: &Value| {
            other["type"] == "toolcall_delta" && other["contentIndex"] == event["contentIndex"]
        };
        !expected_events[at + 1..].iter().any(same_call)
    };
    for (at, (wanted, got)) in expected_events.iter().zip(got).enumerate() {
        if wanted.get("partialArguments").is_some()
            && last_of_call(at, wanted)
            && got["partialArguments"].is_object()
        {
            match_pattern(&wanted["partialArguments"], &got["partialArguments"])?;
        }
    }
    Ok(())
}

fn same_message(expected: &Value, got: &Value) -> Result<(), String> {
    let mut expected = expected.clone();
    // The text of an abort is ours; costs carry the flag of their origin in both.
    if expected["stopReason"] == "aborted" {
        let text = got["errorMessage"].as_str().unwrap_or_default();
        if text.is_empty() {
            return Err("aborted without a text".into());
        }
        expected["errorMessage"] = got["errorMessage"].clone();
    }
    match_pattern(&expected, got)
}

/// Compares; `{mustContain: […]}` matches a text that contains all of the parts, signatures that hold JSON are
/// compared as JSON.
fn match_pattern(expected: &Value, got: &Value) -> Result<(), String> {
    match (expected, got) {
        (Value::Object(pattern), Value::String(text)) if pattern.contains_key("mustContain") => {
            for part in expected["mustContain"].as_array().into_iter().flatten() {
                let part = part.as_str().unwrap_or_default();
                if !text.contains(part) {
                    return Err(format!("{text:?} does not contain {part:?}"));
                }
            }
            Ok(())
        }
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            for key in keys {
                match (a.get(key), b.get(key)) {
                    (Some(x), Some(y)) => match_pattern(x, y).map_err(|why| format!("{key}: {why}"))?,
                    (x, y) => return Err(format!("{key}: expected {x:?}, got {y:?}")),
                }
            }
            Ok(())
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (x, y)) in a.iter().zip(b).enumerate() {
                match_pattern(x, y).map_err(|why| format!("[{at}]: {why}"))?;
            }
            Ok(())
        }
        (Value::String(a), Value::String(b)) if a != b && a.starts_with(['[', '{']) => {
            let parse = |text: &str| serde_json::from_str::<Value>(text).map_err(|e| e.to_string());
            same(&parse(a)?, &parse(b)?)
        }
        _ => same(expected, got),
    }
}

/// Events with neighbouring deltas of a block joined: what must not depend on the split.
fn joined(events: &[Value]) -> Value {
    let mut list: Vec<Map<String, Value>> = Vec::new();
    for event in events {
        let Some(map) = event.as_object() else { continue };
        let mut map = map.clone();
        map.remove("partialArguments");
        let same_block = |last: &Map<String, Value>| {
            map.contains_key("delta")
                && last["type"] == map["type"]
                && last["contentIndex"] == map["contentIndex"]
        };
        match list.last_mut().filter(|last| same_block(last)) {
            Some(last) => {
                let more = map["delta"].as_str().unwrap_or_default();
                let text = format!("{}{more}", last["delta"].as_str().unwrap_or_default());
                last.insert("delta".into(), json!(text));
            }
            None => list.push(map),
        }
    }
    Value::Array(list.into_iter().map(Value::Object).collect())
}
