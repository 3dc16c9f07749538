//! A stored history and the rules that every request built from it keeps.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tau_core::message::{Block, Message};
use tau_core::model::Model;
use tau_core::op::Credential;
use tau_core::provider::{self, ModelRequest, RequestOptions};
use tau_tests::compare::same;
use tau_tests::messages::read;
use tau_tests::outline::{Demands, Turn, outline, rules};

const APIS: &[&str] = &[
    "anthropic-messages",
    "bedrock-converse-stream",
    "google-generative-ai",
    "mistral-conversations",
    "openai-completions",
    "openai-responses",
];

/// Builds a request of every protocol we speak (or for the model of `model.json`) from `{"messages": […]}` and checks
/// it; 0 for other files.
pub fn check(folder: &Path, case: &Value, bytes: &[u8]) -> Result<usize, String> {
    let Ok(file) = serde_json::from_slice::<Value>(bytes) else { return Ok(0) };
    if !file["messages"].is_array() {
        return Ok(0);
    }
    let messages = read(&file["messages"]);
    let failed: Vec<&str> = messages
        .iter()
        .filter_map(|message| message.as_assistant())
        .filter(|reply| reply.stop_reason.is_failure())
        .flat_map(|reply| reply.content.iter().filter_map(Block::as_text))
        .collect();
    let mut checked = 0;
    for &api in APIS {
        let Some(mut encoder) = provider::encoder(api) else { continue };
        let own = fs::read_to_string(folder.join("model.json")).ok();
        let own: Option<Value> = own.and_then(|text| serde_json::from_str(&text).ok());
        if own.as_ref().is_some_and(|own| own["api"] != api) {
            continue;
        }
        let model = target(api, own.as_ref());
        let options = RequestOptions::default();
        let credential = Credential { api_key: Some("key".into()), ..Credential::default() };
        let request = ModelRequest {
            model: &model,
            messages: &messages,
            options: &options,
            credential: &credential,
            now_ms: 99,
        };
        let made = encoder.encode(&request).map_err(|fault| fault.message)?;
        let body: Value = serde_json::from_slice(&made.body).map_err(|e| e.to_string())?;
        let turns = outline(&body);
        let again = provider::encoder(api).and_then(|mut encoder| encoder.encode(&request).ok());
        if again.is_none_or(|again| again.body != made.body) {
            return Err(format!("{api}: the same history gives another request"));
        }
        rules(Demands::of(api), &turns).map_err(|why| format!("{api}: {why} in {body}"))?;
        if model
            .compat
            .as_ref()
            .is_some_and(|flags| flags["requiresReasoningContentOnAssistantMessages"] == true)
        {
            thinking_comes_back(&messages, &body)?;
        }
        if failed.iter().any(|text| body.to_string().contains(text)) {
            return Err(format!("{api}: a failed reply is sent again"));
        }
        let ids = |pick: fn(&Turn) -> &Vec<String>| json!(turns.iter().flat_map(pick).collect::<Vec<_>>());
        for (key, got) in [("callIds", ids(|turn| &turn.calls)), ("resultIds", ids(|turn| &turn.results))] {
            // Mistral takes ids of its own form only, so there the number counts.
            let own_form = api == "mistral-conversations"
                && got.as_array().map(Vec::len) == case["expect"][key].as_array().map(Vec::len);
            if let Some(wanted) = case["expect"].get(key).filter(|_| !own_form) {
                same(wanted, &got).map_err(|why| format!("{api}: {key}: {why}"))?;
            }
        }
        checked += 1;
    }
    if messages.iter().any(|message| matches!(**message, Message::Other(_))) {
        return Err("the case holds a message that cannot be read".into());
    }
    Ok(checked)
}

/// The model a request is for: of another provider than the history, unless the case names it.
fn target(api: &str, own: Option<&Value>) -> Model {
    let text = |key: &str, other: &str| own.and_then(|own| own[key].as_str()).unwrap_or(other).to_owned();
    // Newer models of Gemini name calls by id.
    let id = if api == "google-generative-ai" { "gemini-3-pro" } else { "target" };
    Model {
        id: text("id", id),
        api: api.into(),
        provider: text("provider", "other"),
        base_url: "http://127.0.0.1:1".into(),
        max_tokens: 1000,
        reasoning: own.is_some_and(|own| own["reasoning"] == true),
        compat: own.and_then(|own| own["compat"].as_object().cloned()),
        ..Model::default()
    }
}

/// Each reply carries its thinking under the field it came from; empty when it had none.
fn thinking_comes_back(messages: &[Arc<Message>], body: &Value) -> Result<(), String> {
    let replies = body["messages"].as_array().into_iter().flatten().filter(|m| m["role"] == "assistant");
    for (sent, stored) in replies.zip(messages.iter().filter_map(|message| message.as_assistant())) {
        let thinking: String = stored
            .content
            .iter()
            .filter_map(|block| match block {
                Block::Thinking(thinking) => Some(thinking.thinking.as_str()),
                _ => None,
            })
            .collect();
        same(&json!(thinking), &sent["reasoning_content"])
            .map_err(|why| format!("reasoning_content: {why}"))?;
    }
    Ok(())
}
