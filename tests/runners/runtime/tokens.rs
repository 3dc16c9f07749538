//! Token estimates.

use serde_json::{Value, json};
use tau_core::message::{Message, Usage};
use tau_core::tokens::{self, ContextUsage};
use tau_tests::compare::same;
use tau_tests::messages::read;

fn message(case: &Value) -> Result<Message, String> {
    Message::from_value(&case["input"]["message"]).ok_or_else(|| "not a message".into())
}

/// `token-estimate`
pub fn session(_: &Value, case: &Value) -> Result<(), String> {
    same(&case["expected"], &json!({"tokens": tokens::message_tokens(&message(case)?)}))
}

/// `ai-token-estimate`
pub fn request(_: &Value, case: &Value) -> Result<(), String> {
    same(&case["expected"], &json!({"tokens": tokens::request::message_tokens(&message(case)?)}))
}

/// `usage-total`
pub fn usage_total(_: &Value, case: &Value) -> Result<(), String> {
    let usage = Usage::from_value(&case["input"]["usage"]).ok_or("not a usage")?;
    same(&case["expected"], &json!({"tokens": usage.context_tokens()}))
}

pub fn shown(usage: ContextUsage) -> Value {
    json!({
        "tokens": usage.tokens,
        "usageTokens": usage.usage_tokens,
        "trailingTokens": usage.trailing_tokens,
        "lastUsageIndex": usage.last_usage,
    })
}

/// `context-usage`
pub fn context(_: &Value, case: &Value) -> Result<(), String> {
    let messages = read(&case["input"]["messages"]);
    let usage = tokens::context_usage(&messages);
    if tokens::Estimator::default().context_usage(&messages) != usage {
        return Err("the estimator disagrees with the plain estimate".into());
    }
    same(&case["expected"], &shown(usage))
}

/// `ai-context-usage`
pub fn request_context(_: &Value, case: &Value) -> Result<(), String> {
    same(&case["expected"], &shown(tokens::request::context_usage(&read(&case["input"]["messages"]))))
}

/// `lone-surrogates`: an unpaired unit never enters a text, so the estimate is that of the rest.
pub fn lone_surrogates(_: &Value, case: &Value) -> Result<(), String> {
    let units: Vec<u16> =
        serde_json::from_value(case["input"]["units"].clone()).map_err(|e| e.to_string())?;
    let text = String::from_utf16_lossy(&units).replace('\u{fffd}', "");
    let message = if case["input"]["kind"] == "user" {
        json!({"role": "user", "content": text})
    } else {
        let key = case["input"]["key"].as_str().unwrap_or_default();
        let call = json!({"type": "toolCall", "id": "c", "name": case["input"]["toolName"], "arguments": {key: text}});
        json!({"role": "assistant", "content": [call]})
    };
    let message = Message::from_value(&message).ok_or("not a message")?;
    same(&case["expected"], &json!({"tokens": tokens::message_tokens(&message)}))
}
