//! `model.json` beside `history.json`: thinking goes back under the field it came from.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tau_core::message::Block;
use tau_core::model::Model;
use tau_core::op::Credential;
use tau_core::provider::{self, ModelRequest, RequestOptions};
use tau_tests::messages::read;

/// Checks the assistant messages of the request; 0 without a model file.
pub fn check(folder: &Path) -> Result<usize, String> {
    let file =
        |name: &str| -> Option<Value> { serde_json::from_slice(&fs::read(folder.join(name)).ok()?).ok() };
    let (Some(model), Some(history)) = (file("model.json"), file("history.json")) else { return Ok(0) };
    let text = |key: &str| model[key].as_str().unwrap_or_default().to_owned();
    let model = Model {
        id: text("id"),
        api: text("api"),
        provider: text("provider"),
        base_url: "http://127.0.0.1:1".into(),
        reasoning: model["reasoning"] == true,
        max_tokens: 1000,
        compat: model["compat"].as_object().cloned(),
        ..Model::default()
    };
    let mut messages = read(&history["messages"]);
    let thoughts = |message: &tau_core::message::Message| -> Option<String> {
        let reply = message.as_assistant()?;
        let texts = reply.content.iter().filter_map(|block| match block {
            Block::Thinking(block) => Some(block.thinking.to_string()),
            _ => None,
        });
        Some(texts.collect::<Vec<_>>().join("\n"))
    };
    // A second reply without thinking: the field is there, empty.
    let bare = messages.iter().find_map(|message| message.as_assistant()).cloned().map(|mut reply| {
        reply.content = vec![Block::text("done")];
        reply
    });
    messages.extend(bare.map(|reply| std::sync::Arc::new(tau_core::message::Message::Assistant(reply))));
    let wanted: Vec<String> = messages.iter().filter_map(|message| thoughts(message)).collect();
    let mut encoder = provider::encoder(&model.api).ok_or("no encoder")?;
    let request = ModelRequest {
        model: &model,
        messages: &messages,
        options: &RequestOptions::default(),
        credential: &Credential { api_key: Some("key".into()), ..Credential::default() },
        now_ms: 1,
    };
    let made = encoder.encode(&request).map_err(|fault| fault.message)?;
    let body: Value = serde_json::from_slice(&made.body).map_err(|e| e.to_string())?;
    let sent = body["messages"].as_array().into_iter().flatten().filter(|m| m["role"] == "assistant");
    let got: Vec<String> =
        sent.map(|m| m["reasoning_content"].as_str().unwrap_or("(missing)").to_owned()).collect();
    if got == wanted { Ok(1) } else { Err(format!("expected {wanted:?}, got {got:?}")) }
}
