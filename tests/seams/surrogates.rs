//! Half a surrogate pair: `arguments.json` is the argument text of a call, `session-line.jsonl` a stored record.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tau_core::json::Writer;
use tau_core::model::Model;
use tau_core::provider::{self, BodyEnd};
use tau_core::session::{Want, open};

/// The files of the folder that are there.
pub fn check(folder: &Path) -> Result<usize, String> {
    Ok(arguments(folder)? + stored(folder)?)
}

/// The record after a header and a first entry is read and can be sent; 0 without the file.
fn stored(folder: &Path) -> Result<usize, String> {
    let Ok(line) = fs::read_to_string(folder.join("session-line.jsonl")) else { return Ok(0) };
    let time = "2026-09-02T02:26:29.000Z";
    let header = json!({"type": "session", "version": 3, "id": "s", "timestamp": time, "cwd": "/"});
    let first = json!({"type": "message", "id": "e1", "parentId": null, "timestamp": time,
        "message": {"role": "user", "content": "first", "timestamp": 1}});
    let file = format!("{header}\n{first}\n{line}");
    let (session, _) =
        open(file.as_bytes(), "/s.jsonl".into(), "/", Want::Everything).map_err(|e| e.to_string())?;
    let messages = &session.context().messages;
    if messages.len() != 2 {
        return Err(format!("{} messages are left of two", messages.len()));
    }
    let mut writer = Writer::new();
    messages[1].write(&mut writer);
    let sent: Value = serde_json::from_str(writer.as_str()).map_err(|e| e.to_string())?;
    let texts = sent["content"].to_string().replace('\u{fffd}', "");
    if texts.contains("cut ") { Ok(1) } else { Err(format!("content {texts}")) }
}

/// Streams the text as arguments, and once more as content, in every protocol of the family; 0 without the file.
fn arguments(folder: &Path) -> Result<usize, String> {
    let Ok(arguments) = fs::read_to_string(folder.join("arguments.json")) else { return Ok(0) };
    // The same escape in the outer JSON, where a strict parser refuses the whole event.
    let text = "half \\ud83d end \\ud83d\\ude00";
    let chunk = |delta: Value| json!({"choices": [{"delta": delta, "finish_reason": "tool_calls"}]});
    let call = json!({"tool_calls": [{"id": "c", "function": {"name": "t", "arguments": arguments}}]});
    let chat = [chunk(call), chunk(json!({"content": "@"}))];
    let decode = |api: &str, events: &[Value]| decode(api, events, text, &arguments);
    decode("openai-completions", &chat)?;
    let item =
        json!({"type": "function_call", "id": "fc", "call_id": "c", "name": "t", "arguments": arguments});
    let events = [
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": {"type": "message"}}),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": "@"}),
        json!({"type": "response.completed", "response": {"status": "completed"}}),
    ];
    decode("openai-responses", &events)?;
    let parts = |parts: Value| json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]});
    let call = json!({"functionCall": {"id": "c", "name": "t", "args": "<args>"}});
    decode("google-generative-ai", &[parts(json!([call])), parts(json!([{"text": "@"}]))])?;
    Ok(3)
}

/// Decodes events in which `@` stands for a text, and `<args>` for arguments that are no text but JSON.
fn decode(api: &str, events: &[Value], text: &str, arguments: &str) -> Result<(), String> {
    let encoder = provider::encoder(api).ok_or("no encoder")?;
    let model = Arc::new(Model { api: api.into(), ..Model::default() });
    let mut decoder = encoder.decoder(&model, 1);
    let mut out = Vec::new();
    for event in events {
        let body = format!(
            "data: {}\n\n",
            event.to_string().replace('@', text).replace("\"<args>\"", arguments.trim())
        );
        decoder.on_bytes(body.as_bytes(), &mut out);
    }
    decoder.on_end(BodyEnd::Complete, &mut out);
    let reply = decoder.take();
    let call = reply.tool_calls().next().ok_or("no call")?;
    let clean = |text: &str| text.replace('\u{fffd}', "");
    let label = clean(call.arguments["label"].as_str().unwrap_or_default());
    if label != "half  end" || call.arguments["ok"] != "😀" || call.arguments_error.is_some() {
        return Err(format!("{api}: arguments {}", call.arguments));
    }
    let text: String = reply.content.iter().filter_map(|block| block.as_text()).collect();
    if clean(&text) == "half  end 😀" { Ok(()) } else { Err(format!("{api}: text {text:?}")) }
}
