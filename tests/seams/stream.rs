//! A response body and what its reply must be.

use std::borrow::Cow;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tau_core::message::{AssistantMessage, Block};
use tau_core::model::Model;
use tau_core::provider::{self, BodyEnd};
use tau_tests::compare::same;
use tau_tests::splits;

use super::gemini;

const HOST: &str = "models.example";

/// Decodes a body in every split, also at the offsets of `splits.json`; compares with `expect`.
pub fn check(folder: &Path, case: &Value, body: &[u8]) -> Result<usize, String> {
    let text = String::from_utf8_lossy(body);
    let bodies: Vec<(&str, Cow<'_, [u8]>)> = if text.contains("message_start") {
        vec![("anthropic-messages", body.into())]
    } else if text.contains("\"response.") {
        vec![("openai-responses", body.into())]
    } else if text.contains("chat.completion") || text.contains("data:") {
        let gemini = gemini::body(&text).map(|body| ("google-generative-ai", body.into_bytes().into()));
        let chat = ["openai-completions", "mistral-conversations"].map(|api| (api, body.into()));
        chat.into_iter().chain(gemini).collect()
    } else {
        let all =
            ["anthropic-messages", "openai-completions", "google-generative-ai", "mistral-conversations"];
        all.map(|api| (api, body.into())).to_vec()
    };
    let mut checked = 0;
    for (api, body) in &bodies {
        let body: &[u8] = body;
        let Some(encoder) = provider::encoder(api) else { continue };
        let base_url = format!("http://{HOST}/v1");
        let model = Arc::new(Model { id: "m".into(), api: (*api).into(), base_url, ..Model::default() });
        let decode = |pieces: &[&[u8]]| {
            let mut decoder = encoder.decoder(&model, 1);
            let mut events = Vec::new();
            pieces.iter().for_each(|piece| decoder.on_bytes(piece, &mut events));
            decoder.on_end(BodyEnd::Complete, &mut events);
            (events, decoder.take())
        };
        let whole = splits::agree(body, decode)?;
        for at in offsets(folder).into_iter().filter(|at| *at <= body.len()) {
            let (head, tail) = body.split_at(at);
            if decode(&[head, tail]) != whole {
                return Err(format!("split at {at}, the outcome is another one"));
            }
        }
        compare(&case["expect"], &whole.1).map_err(|why| format!("{api}: {why}"))?;
        if text.trim_start().starts_with('<') {
            names_the_page(&whole.1).map_err(|why| format!("{api}: {why}"))?;
        }
        checked += 1;
    }
    Ok(checked)
}

/// A page instead of a reply: the failure tells from where and what it is, not all of it.
fn names_the_page(reply: &AssistantMessage) -> Result<(), String> {
    let error = reply.error_message.as_deref().unwrap_or_default();
    let good = error.contains(HOST) && error.contains("html") && error.len() < 500;
    if good { Ok(()) } else { Err(format!("the failure {error:?}")) }
}

/// A case that only tells the length of a text: one event that long, in pieces of 16 KiB.
pub fn check_generated(folder: &Path, case: &Value) -> Result<usize, String> {
    let Some(length) = case["expect"]["textLength"].as_u64() else { return Ok(0) };
    if folder.join("body.sse").exists() {
        return Ok(0);
    }
    let text = "A".repeat(usize::try_from(length).map_err(|e| e.to_string())?);
    let chunk = |delta: &Value, finish: &Value| json!({"object": "chat.completion.chunk", "choices": [{"delta": delta, "finish_reason": finish}]});
    let (begin, end) = (chunk(&json!({"content": text}), &Value::Null), chunk(&json!({}), &json!("stop")));
    let body = format!("data: {begin}\n\ndata: {end}\n\ndata: [DONE]\n\n");
    let gemini = gemini::body(&body).ok_or("no such body of Gemini")?;
    for (api, body) in
        [("openai-completions", &body), ("mistral-conversations", &body), ("google-generative-ai", &gemini)]
    {
        let Some(encoder) = provider::encoder(api) else { continue };
        let mut decoder = encoder.decoder(&Arc::new(Model::default()), 1);
        let mut events = Vec::new();
        body.as_bytes().chunks(16 << 10).for_each(|piece| decoder.on_bytes(piece, &mut events));
        decoder.on_end(BodyEnd::Complete, &mut events);
        compare(&case["expect"], &decoder.take()).map_err(|why| format!("{api}: {why}"))?;
    }
    Ok(1)
}

/// All offsets in `splits.json`, however they are nested.
fn offsets(folder: &Path) -> Vec<usize> {
    fn collect(value: &Value, out: &mut Vec<usize>) {
        match value {
            Value::Number(number) => out.extend(number.as_u64().and_then(|n| usize::try_from(n).ok())),
            Value::Array(items) => items.iter().for_each(|item| collect(item, out)),
            Value::Object(map) => map.values().for_each(|item| collect(item, out)),
            _ => {}
        }
    }
    let mut out = Vec::new();
    let text = fs::read_to_string(folder.join("splits.json")).unwrap_or_default();
    if let Ok(value) = serde_json::from_str(&text) {
        collect(&value, &mut out);
    }
    out
}

fn compare(expect: &Value, reply: &AssistantMessage) -> Result<(), String> {
    let texts: String = reply.content.iter().filter_map(Block::as_text).collect();
    let calls = |wanted: &Value| -> Value {
        let keys =
            wanted[0].as_object().map(|map| map.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
        let call = |call: &tau_core::message::ToolCall| {
            let mut value = json!({"id": call.id, "name": call.name, "arguments": *call.arguments});
            value.as_object_mut().into_iter().for_each(|map| map.retain(|key, _| keys.contains(key)));
            value
        };
        reply.tool_calls().map(call).collect()
    };
    for (key, wanted) in expect.as_object().into_iter().flatten() {
        let got = match key.as_str() {
            "text" => json!(texts),
            "textLength" => json!(texts.encode_utf16().count()),
            "stopReason" => json!(reply.stop_reason.name()),
            "toolCalls" | "preferredToolCalls" => calls(wanted),
            "usage" => json!({
                "input": reply.usage.input,
                "output": reply.usage.output,
                "totalTokens": reply.usage.context_tokens(),
            }),
            "retryable" => json!(reads_as_retryable(reply.error_message.as_deref().unwrap_or_default())),
            // The loop's business: a call that was cut is never run.
            "executed" => continue,
            other => return Err(format!("nothing checks {other}")),
        };
        same(wanted, &got).map_err(|why| format!("{key}: {why}"))?;
    }
    Ok(())
}

/// Phrases of spec 30 §8.3 that the texts of these cases go by.
fn reads_as_retryable(text: &str) -> bool {
    let text = text.to_lowercase();
    ["overloaded", "ended without", "before message_stop", "server_error", "connection lost"]
        .iter()
        .any(|phrase| text.contains(phrase))
}
