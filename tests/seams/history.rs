//! A stored history and the rules that every request built from it keeps.

use std::collections::BTreeSet;
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
        rules(api, &turns).map_err(|why| format!("{api}: {why} in {body}"))?;
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

/// One message of a request, whatever the protocol.
#[derive(Debug, Default)]
struct Turn {
    role: String,
    calls: Vec<String>,
    results: Vec<String>,
    texts: Vec<String>,
}

fn outline(body: &Value) -> Vec<Turn> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut turns = Vec::new();
    for item in body["input"].as_array().into_iter().flatten() {
        let is_reply = matches!(item["type"].as_str(), Some("message" | "function_call"));
        let role = if is_reply { "assistant".into() } else { text(&item["role"]) };
        // The items of one reply stand in a row.
        let joins = is_reply && turns.last().is_some_and(|turn: &Turn| turn.role == role);
        if !joins {
            turns.push(Turn { role, ..Turn::default() });
        }
        let Some(turn) = turns.last_mut() else { continue };
        match item["type"].as_str() {
            Some("function_call") => turn.calls.push(text(&item["call_id"])),
            Some("function_call_output") => {
                turn.results.push(text(&item["call_id"]));
                turn.texts.push(item["output"].as_str().map_or_else(|| "blocks".into(), str::to_owned));
            }
            _ => {
                let parts = item["content"].as_array().into_iter().flatten();
                turn.texts.extend(parts.map(|part| text(&part["text"])));
            }
        }
    }
    for content in body["contents"].as_array().into_iter().flatten() {
        let role = if content["role"] == "model" { "assistant" } else { "user" };
        let mut turn = Turn { role: role.into(), ..Turn::default() };
        for part in content["parts"].as_array().into_iter().flatten() {
            turn.texts.extend(part["text"].as_str().map(str::to_owned));
            turn.calls.extend(part["functionCall"].get("id").map(text));
            if let Some(result) = part.get("functionResponse") {
                turn.results.push(text(&result["id"]));
                let answer = result["response"].as_object().and_then(|answer| answer.values().next());
                turn.texts.push(answer.map(text).unwrap_or_default());
            }
        }
        turns.push(turn);
    }
    for message in body["messages"].as_array().into_iter().flatten() {
        let mut turn = Turn { role: text(&message["role"]), ..Turn::default() };
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            turn.calls.push(text(&call["id"]));
        }
        if message["role"] == "tool" {
            turn.results.push(text(&message["tool_call_id"]));
        }
        match &message["content"] {
            Value::String(content) => turn.texts.push(content.clone()),
            Value::Array(blocks) if blocks.is_empty() => turn.texts.push(String::new()),
            content => {
                for block in content.as_array().into_iter().flatten() {
                    // Bedrock names a block by its only key.
                    turn.calls.extend(block["toolUse"].get("toolUseId").map(text));
                    if let Some(result) = block.get("toolResult") {
                        turn.results.push(text(&result["toolUseId"]));
                        let parts = result["content"].as_array().into_iter().flatten();
                        turn.texts.extend(parts.filter_map(|part| part["text"].as_str().map(str::to_owned)));
                    }
                    if block.get("type").is_none() {
                        turn.texts.extend(block["text"].as_str().map(str::to_owned));
                    }
                    match block["type"].as_str() {
                        Some("text") => turn.texts.push(text(&block["text"])),
                        Some("tool_use") => turn.calls.push(text(&block["id"])),
                        Some("tool_result") => {
                            turn.results.push(text(&block["tool_use_id"]));
                            turn.texts.push(
                                block["content"].as_str().map_or_else(|| "blocks".into(), str::to_owned),
                            );
                        }
                        _ => {}
                    }
                }
            }
        }
        turns.push(turn);
    }
    turns
}

/// What endpoints demand: ids unique and in their alphabet, each call answered once directly after it, no blank text.
fn rules(api: &str, turns: &[Turn]) -> Result<(), String> {
    let marks = match api {
        "openai-completions" => "_-.:",
        "mistral-conversations" => "",
        _ => "_-",
    };
    let mut seen = BTreeSet::new();
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for turn in turns {
        if let Some(blank) = turn.texts.iter().find(|text| text.trim().is_empty()) {
            return Err(format!("blank text {blank:?}"));
        }
        for id in &turn.results {
            if !open.remove(id.as_str()) {
                return Err(format!("a result for {id}, which is not open"));
            }
        }
        if turn.results.is_empty() && !open.is_empty() {
            return Err(format!("{open:?} have no result"));
        }
        for id in &turn.calls {
            let in_alphabet = id.chars().all(|c| c.is_ascii_alphanumeric() || marks.contains(c));
            if id.is_empty() || id.len() > 64 || !in_alphabet {
                return Err(format!("the id {id:?}"));
            }
            if !seen.insert(id.as_str()) {
                return Err(format!("the id {id} twice"));
            }
            open.insert(id);
        }
        if !turn.calls.is_empty() && turn.role != "assistant" {
            return Err("calls outside a reply".into());
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} have no result at the end")) }
}
