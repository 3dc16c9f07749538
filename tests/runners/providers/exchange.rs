//! Requests and streams of any protocol: vector in, encoder or decoder at work, outcome as the vectors describe it.

use std::sync::Arc;

use base64::Engine as _;
use serde_json::{Map, Value, json};
use tau_core::fault::{FaultKind, IoFault};
use tau_core::message::{AssistantMessage, Block, Message, StopReason};
use tau_core::model::{Model, ThinkingLevel};
use tau_core::now::Wall;
use tau_core::op::HttpRequest;
use tau_core::overflow::is_overflow;
use tau_core::provider::assemble::Assembler;
use tau_core::provider::error::{ABORTED, http_error_message, request_fault_message};
use tau_core::provider::headers::USER_AGENT;
use tau_core::provider::{self, BodyEnd, Decoder, ModelRequest, StreamEvent};
use tau_core::retry;
use tau_tests::compare::same;
use tau_tests::messages::value;
use tau_tests::splits;

use super::common;

/// Encodes the request of a case. The entry `streamSimple` without a level means level `off`.
pub fn encode(case: &Value) -> Result<HttpRequest, String> {
    // Half a surrogate pair cannot be in a text of ours; on the wire it is left out, too.
    let input = &without_halves(&case["input"]);
    let model = common::model(&input["model"]);
    let mut options = common::options(&input["options"]);
    if input["entry"] == "streamSimple" {
        options.reasoning = options.reasoning.or(Some(ThinkingLevel::Off));
    }
    if input["options"]["env"]["PI_CACHE_RETENTION"] == "long" {
        options.cache = provider::CacheRetention::Long;
    }
    let credential = common::credential(&input["options"]);
    let messages = common::messages(&input["context"]);
    let mut encoder = provider::encoder(&model.api).ok_or("no encoder")?;
    let request = ModelRequest {
        model: &model,
        messages: &messages,
        options: &options,
        credential: &credential,
        now_ms: 1,
    };
    let made = encoder.encode(&request).map_err(|fault| fault.message)?;
    // A second request with the same messages must be the same to the byte, from the kept body.
    let body = made.body.to_vec();
    let made = HttpRequest { body: Arc::new(body), ..made };
    let again = encoder.encode(&request).map_err(|fault| fault.message)?;
    if again.body != made.body {
        return Err("the second body differs from the first".into());
    }
    Ok(made)
}

/// Compares a request with `expected`, in which symbolic texts are filled in already.
pub fn check_request(expected: &Value, case: &Value) -> Result<(), String> {
    let made = encode(case);
    let Some(wanted) = expected.get("request") else {
        return match made {
            Err(_) => Ok(()),
            Ok(request) => Err(format!("expected a failure, got a request to {}", request.url)),
        };
    };
    let made = made?;
    let body: Value = serde_json::from_slice(&made.body).map_err(|e| e.to_string())?;
    let headers: Map<String, Value> =
        made.headers.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
    let mut wanted = wanted.clone();
    if let Some(agent) = wanted["headers"].get_mut("user-agent")
        && agent.as_str().is_some_and(|agent| agent.starts_with("pi/"))
    {
        // Our own name instead of the reference's.
        *agent = USER_AGENT.into();
    }
    same(&wanted, &json!({"method": made.method, "url": made.url, "headers": headers, "body": body}))
}

/// Runs a stream case: byte by byte for the events with their state, then in all other splits for the same outcome.
pub fn check_stream(expected: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let model = Arc::new(common::model(&input["model"]));
    let response = &input["response"];
    let status = response["status"].as_u64().unwrap_or(200);
    let bytes: Vec<Vec<u8>> = response["chunks"].as_array().into_iter().flatten().map(chunk).collect();
    if let Some(text) = early_failure(input, &model, status, &bytes) {
        let aborted = text == ABORTED;
        let mut assembler = Assembler::new(&model, 1);
        let reason = if aborted { "aborted" } else { "error" };
        assembler.fail(StopReason::parse(reason).unwrap_or_default(), text, &mut Vec::new());
        let events = json!([{"type": "error", "reason": reason}]);
        return check_outcome(expected, &events, &assembler.take());
    }
    let (end, kept) = match input["abortAfterChunk"].as_u64() {
        Some(count) => (BodyEnd::Aborted, usize::try_from(count).unwrap_or_default()),
        None if response["end"] == "connection-error" => {
            let fault = IoFault::new(FaultKind::Reset, "connection reset by peer");
            (BodyEnd::Failed(fault), bytes.len())
        }
        None => (BodyEnd::Complete, bytes.len()),
    };
    let body: Vec<u8> = bytes.into_iter().take(kept).flatten().collect();
    let mut encoder = provider::encoder(&model.api).ok_or("no encoder")?;
    // A decoder knows the tools of its request.
    let request = ModelRequest {
        model: &model,
        messages: &common::messages(&input["context"]),
        options: &common::options(&input["options"]),
        credential: &common::credential(&input["options"]),
        now_ms: 1,
    };
    encoder.encode(&request).map_err(|fault| fault.message)?;
    let headers = common::header_list(&response["headers"]);
    let headers = headers.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let begin = || {
        let mut decoder = encoder.decoder(&model, 1);
        decoder.on_head(&headers);
        decoder
    };
    let mut decoder = begin();
    let mut events = Vec::new();
    let mut log = Vec::new();
    for byte in &body {
        let before = log.len();
        decoder.on_bytes(&[*byte], &mut log);
        describe(&log[before..], &mut *decoder, &mut events);
    }
    let before = log.len();
    decoder.on_end(end.clone(), &mut log);
    describe(&log[before..], &mut *decoder, &mut events);
    let message = decoder.take();
    let (other, again) = splits::agree(&body, |pieces| {
        let mut decoder = begin();
        let mut other = Vec::new();
        pieces.iter().for_each(|piece| decoder.on_bytes(piece, &mut other));
        decoder.on_end(end.clone(), &mut other);
        (other, decoder.take())
    })?;
    if other != log || again != message {
        return Err("the outcome depends on who looks at it meanwhile".into());
    }
    check_outcome(expected, &Value::Array(events), &message)
}

fn chunk(value: &Value) -> Vec<u8> {
    let base64 = || {
        let text = value["b64"].as_str().unwrap_or_default();
        base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default()
    };
    value.as_str().map_or_else(base64, |text| text.as_bytes().to_vec())
}

/// Failures before a body is decoded.
fn early_failure(input: &Value, model: &Model, status: u64, bytes: &[Vec<u8>]) -> Option<String> {
    let response = &input["response"];
    if input["abortBeforeRequest"] == true {
        return Some(ABORTED.into());
    }
    if response["end"] == "network-error-before-response" {
        let fault = IoFault::new(FaultKind::Connect, "connection refused (ECONNREFUSED)");
        return Some(request_fault_message(&fault));
    }
    if status < 400 {
        return None;
    }
    let headers = common::header_list(&response["headers"]);
    let headers = headers.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    Some(http_error_message(model, u16::try_from(status).ok()?, &headers, &bytes.concat(), Wall(1)))
}

/// Events as the vectors write them, with the state of the reply at that moment.
fn describe(events: &[StreamEvent], decoder: &mut dyn Decoder, out: &mut Vec<Value>) {
    let partial = decoder.partial().clone();
    let block = |index: usize| partial.content.get(index);
    let call = |index: usize| match block(index) {
        Some(Block::ToolCall(call)) => common::written(|w| call.write(w)),
        _ => Value::Null,
    };
    let text = |index: usize| match block(index) {
        Some(Block::Text(text)) => text.text.to_string(),
        Some(Block::Thinking(thinking)) => thinking.thinking.to_string(),
        _ => String::new(),
    };
    for event in events {
        let at = |kind: &str, index: usize| json!({"type": kind, "contentIndex": index});
        let with = |mut event: Value, key: &str, value: Value| {
            event[key] = value;
            event
        };
        let delta = |kind: &str, index: usize, delta: &str| with(at(kind, index), "delta", delta.into());
        out.push(match event {
            StreamEvent::Start => json!({"type": "start"}),
            StreamEvent::TextStart { index } => at("text_start", *index),
            StreamEvent::TextDelta { index, delta: text } => delta("text_delta", *index, text),
            StreamEvent::TextEnd { index } => with(at("text_end", *index), "content", text(*index).into()),
            StreamEvent::ThinkingStart { index } => at("thinking_start", *index),
            StreamEvent::ThinkingDelta { index, delta: text } => delta("thinking_delta", *index, text),
            StreamEvent::ThinkingEnd { index } => {
                with(at("thinking_end", *index), "content", text(*index).into())
            }
            StreamEvent::ToolCallStart { index } => {
                let mut started = call(*index);
                // The block holds what came with its start; pieces that follow are looked at as partial arguments.
                if let Some(map) = started.as_object_mut() {
                    map.retain(|key, _| matches!(key.as_str(), "id" | "name" | "arguments"));
                }
                with(at("toolcall_start", *index), "partialToolCall", started)
            }
            StreamEvent::ToolCallDelta { index, delta: text } => with(
                delta("toolcall_delta", *index, text),
                "partialArguments",
                decoder.partial_arguments(*index).unwrap_or_default(),
            ),
            StreamEvent::ToolCallEnd { index } => with(at("toolcall_end", *index), "toolCall", call(*index)),
            StreamEvent::Done => json!({"type": "done", "reason": partial.stop_reason.name()}),
            StreamEvent::Error => json!({"type": "error", "reason": partial.stop_reason.name()}),
        });
    }
}

fn check_outcome(expected: &Value, events: &Value, message: &AssistantMessage) -> Result<(), String> {
    let mut got = value(&Message::Assistant(message.clone()));
    let mut events = events.clone();
    let (mut wanted, mut wanted_events) = (expected["message"].clone(), expected["events"].clone());
    for key in ["timestamp", "durationMs"] {
        got.as_object_mut().map(|map| map.remove(key));
        wanted.as_object_mut().map(|map| map.remove(key));
    }
    settle_texts(&mut wanted, &mut got)?;
    settle_texts(&mut wanted_events, &mut events)?;
    same(&wanted_events, &events).map_err(|why| format!("events: {why}"))?;
    same(&wanted, &got).map_err(|why| format!("message: {why}"))
}

/// Texts that are ours: `{mustContain: […]}` is checked and taken out on both sides.
fn settle_texts(wanted: &mut Value, got: &mut Value) -> Result<(), String> {
    match (wanted, got) {
        (Value::Object(wanted), Value::Object(got)) => {
            let ours: Vec<String> = wanted
                .iter()
                .filter(|(_, v)| v.get("mustContain").is_some())
                .map(|(k, _)| k.clone())
                .collect();
            for key in ours {
                let pieces = wanted.remove(&key).unwrap_or_default();
                let Some(Value::String(text)) = got.remove(&key) else {
                    return Err(format!("{key} is missing"));
                };
                for piece in pieces["mustContain"].as_array().into_iter().flatten().filter_map(Value::as_str)
                {
                    if !text.contains(piece) {
                        return Err(format!("{key} {text:?} does not contain {piece:?}"));
                    }
                }
                settle_class(&pieces, &text).map_err(|why| format!("{key} {text:?}: {why}"))?;
            }
            for (key, value) in wanted.iter_mut() {
                if let Some(other) = got.get_mut(key) {
                    settle_texts(value, other)?;
                }
            }
            Ok(())
        }
        (Value::Array(wanted), Value::Array(got)) => {
            wanted.iter_mut().zip(got.iter_mut()).try_for_each(|(a, b)| settle_texts(a, b))
        }
        _ => Ok(()),
    }
}

/// The words of a failure must lead to the right recovery: `{retryable, contextOverflow}`.
fn settle_class(wanted: &Value, text: &str) -> Result<(), String> {
    let failed = AssistantMessage {
        stop_reason: StopReason::Error,
        error_message: Some(text.to_owned()),
        ..AssistantMessage::default()
    };
    for (key, got) in
        [("retryable", retry::is_transient(&failed)), ("contextOverflow", is_overflow(&failed, None))]
    {
        if wanted[key].as_bool().is_some_and(|wanted| wanted != got) {
            return Err(format!("{key} is {got}"));
        }
    }
    Ok(())
}

/// Half a surrogate pair cannot be in a text of ours.
pub fn without_halves(value: &Value) -> Value {
    match value {
        Value::String(text) if text.contains("<<U+") => {
            let mut pieces = text.split("<<U+");
            let first = pieces.next().unwrap_or_default().to_owned();
            let rest = pieces.map(|piece| piece.split_once(">>").map_or(piece, |(_, rest)| rest));
            Value::String(first + &rest.collect::<String>())
        }
        Value::Array(items) => items.iter().map(without_halves).collect(),
        Value::Object(map) => map.iter().map(|(key, item)| (key.clone(), without_halves(item))).collect(),
        other => other.clone(),
    }
}
