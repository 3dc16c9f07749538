//! `arguments.json`: argument text of a call with half a surrogate pair in it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tau_core::model::Model;
use tau_core::provider::{self, BodyEnd};

/// Streams the text as arguments, and once more as content; 0 without the file.
pub fn check(folder: &Path) -> Result<usize, String> {
    let Ok(arguments) = fs::read_to_string(folder.join("arguments.json")) else { return Ok(0) };
    let chunk =
        |delta: serde_json::Value| json!({"choices": [{"delta": delta, "finish_reason": "tool_calls"}]});
    let call = json!({"tool_calls": [{"id": "c", "function": {"name": "t", "arguments": arguments}}]});
    // The same escape in the outer JSON, where a strict parser refuses the whole event.
    let broken = chunk(json!({"content": "@"})).to_string().replace('@', "half \\ud83d end \\ud83d\\ude00");
    let body = format!("data: {}\n\ndata: {broken}\n\n", chunk(call));
    let encoder = provider::encoder("openai-completions").ok_or("no encoder")?;
    let model = Arc::new(Model { api: "openai-completions".into(), ..Model::default() });
    let mut decoder = encoder.decoder(&model, 1);
    let mut events = Vec::new();
    decoder.on_bytes(body.as_bytes(), &mut events);
    decoder.on_end(BodyEnd::Complete, &mut events);
    let reply = decoder.take();
    let call = reply.tool_calls().next().ok_or("no call")?;
    let clean = |text: &str| text.replace('\u{fffd}', "");
    let label = clean(call.arguments["label"].as_str().unwrap_or_default());
    if label != "half  end" || call.arguments["ok"] != "😀" || call.arguments_error.is_some() {
        return Err(format!("arguments {}", call.arguments));
    }
    let text: String = reply.content.iter().filter_map(|block| block.as_text()).collect();
    if clean(&text) == "half  end 😀" { Ok(1) } else { Err(format!("text {text:?}")) }
}
