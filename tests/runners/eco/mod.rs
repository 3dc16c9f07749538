//! Vectors of `eco/`: what servers of other people sent.

use std::sync::Arc;

use serde_json::{Value, json};
use tau_core::fault::{FaultKind, IoFault};
use tau_core::message::{AssistantMessage, Message, StopReason};
use tau_core::model::Model;
use tau_core::now::Wall;
use tau_core::provider::anthropic::REASONING_REDACTED;
use tau_core::provider::{self, BodyEnd, StreamEvent, error};
use tau_tests::compare::same;
use tau_tests::messages::value;
use tau_tests::splits;
use tau_tests::vectors::{VectorFile, file};

/// Files of this area.
pub const FILES: &[VectorFile] = &[
    file("wire-anthropic-messages", capture),
    file("wire-google-generative-ai", capture),
    file("wire-openai-completions", capture),
    file("wire-openai-responses", capture),
];

/// `wire-*`: a captured response, in every split.
fn capture(_: &Value, case: &Value) -> Result<(), String> {
    let (input, expected) = (&case["input"], &worded(&case["expected"]));
    let api = input["api"].as_str().ok_or("no api")?;
    let body = input["body"].as_str().ok_or("no body")?.as_bytes();
    let model = Arc::new(Model { id: "m".into(), api: api.into(), ..Model::default() });
    let status = input["status"].as_u64().and_then(|status| u16::try_from(status).ok()).ok_or("no status")?;
    let reply = if status >= 400 {
        refused(&model, status, body)
    } else {
        let end = if input["end"] == "reset" {
            BodyEnd::Failed(IoFault::new(FaultKind::Reset, "reset"))
        } else {
            BodyEnd::Complete
        };
        let encoder = provider::encoder(api).ok_or("no encoder")?;
        let (_, reply) = splits::agree(body, |pieces| {
            let mut decoder = encoder.decoder(&model, 1);
            let mut events: Vec<StreamEvent> = Vec::new();
            pieces.iter().for_each(|piece| decoder.on_bytes(piece, &mut events));
            decoder.on_end(end.clone(), &mut events);
            (events, decoder.take())
        })?;
        reply
    };
    compare(expected, reply)
}

/// Thinking that the service hides has our own words.
fn worded(expected: &Value) -> Value {
    let mut expected = expected.clone();
    for block in expected["content"].as_array_mut().into_iter().flatten() {
        if block["redacted"] == true {
            block["thinking"] = REASONING_REDACTED.into();
        }
    }
    expected
}

fn refused(model: &Model, status: u16, body: &[u8]) -> AssistantMessage {
    AssistantMessage {
        stop_reason: StopReason::Error,
        error_message: Some(error::http_error_message(model, status, &Vec::new(), body, Wall(1))),
        ..AssistantMessage::default()
    }
}

fn compare(expected: &Value, reply: AssistantMessage) -> Result<(), String> {
    let has_error = reply.error_message.as_deref().is_some_and(|text| !text.is_empty());
    let got = value(&Message::Assistant(reply));
    for (key, wanted) in expected.as_object().into_iter().flatten() {
        let mut got = if key == "hasError" { json!(has_error) } else { got[key].clone() };
        let wanted = &made_ids(wanted, &got);
        for block in got.as_array_mut().into_iter().flatten() {
            // Not captured; such a call never runs.
            let unreadable = block.as_object_mut().and_then(|block| block.remove("argumentsError"));
            if unreadable.is_some() && block["arguments"] != json!({}) {
                return Err("arguments that could not be read are kept".into());
            }
        }
        if let (Some(wanted), Some(got)) = (wanted.as_object(), got.as_object_mut()) {
            got.retain(|key, _| wanted.contains_key(key));
        }
        same(wanted, &got).map_err(|why| format!("{key}: {why}"))?;
    }
    Ok(())
}

/// Ids that the decoder makes out of the name and numbers that change: only the name must be the same.
fn made_ids(wanted: &Value, got: &Value) -> Value {
    let mut wanted = wanted.clone();
    for (at, block) in wanted.as_array_mut().into_iter().flatten().enumerate() {
        let name = format!("{}_", block["name"].as_str().unwrap_or_default());
        let numbers = block["id"].as_str().and_then(|id| id.strip_prefix(&name));
        let is_made =
            numbers.is_some_and(|n| n.len() > 13 && n.chars().all(|c| c.is_ascii_digit() || c == '_'));
        if is_made && got[at]["id"].as_str().is_some_and(|id| id.starts_with(&name)) {
            block["id"] = got[at]["id"].clone();
        }
    }
    wanted
}
