//! `anthropic-messages`.

use serde_json::{Value, json};
use tau_core::provider::anthropic::{ERROR_IMAGE_MOVED, REASONING_REDACTED, error_images_caption};
use tau_tests::compare::same;
use tau_tests::messages::fill;

use super::exchange;

const TOKENS: &[(&str, &str)] =
    &[("<<ERROR_IMAGE_MOVED>>", ERROR_IMAGE_MOVED), ("<<REASONING_REDACTED>>", REASONING_REDACTED)];

/// Captions carry the call id and the tool in their token.
fn captions(value: &Value) -> Value {
    match value {
        Value::String(text) => {
            let inner =
                text.strip_prefix("<<ERROR_IMAGES_CAPTION id=").and_then(|rest| rest.strip_suffix(">>"));
            match inner.and_then(|inner| inner.split_once(" tool=")) {
                Some((id, tool)) => error_images_caption(id, tool).into(),
                None => value.clone(),
            }
        }
        Value::Array(items) => items.iter().map(captions).collect(),
        Value::Object(map) => map.iter().map(|(key, item)| (key.clone(), captions(item))).collect(),
        other => other.clone(),
    }
}

/// `anthropic-request`
pub fn request(_: &Value, case: &Value) -> Result<(), String> {
    exchange::check_request(&captions(&fill(&case["expected"], TOKENS)), case)
}

/// `anthropic-stream`
pub fn stream(_: &Value, case: &Value) -> Result<(), String> {
    exchange::check_stream(&fill(&case["expected"], TOKENS), case)
}

/// `anthropic-sequences`: every request of a conversation, made from the history of its step. Steps that send a
/// request again after a refusal expect more than one; the first is compared.
pub fn sequence(_: &Value, case: &Value) -> Result<(), String> {
    for (index, step) in case["steps"].as_array().ok_or("no steps")?.iter().enumerate() {
        let input = json!({"input": step["input"]});
        let made = exchange::encode(&input)?;
        let body: Value = serde_json::from_slice(&made.body).map_err(|e| e.to_string())?;
        let wanted = captions(&fill(&step["expected"]["requests"][0]["body"], TOKENS));
        same(&wanted, &body).map_err(|e| format!("step {index}: {e}"))?;
    }
    Ok(())
}
