//! `anthropic-messages`.

use serde_json::Value;
use tau_core::provider::anthropic::{ERROR_IMAGE_MOVED, REASONING_REDACTED, error_images_caption};
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

/// `anthropic-sequences`: requests that continue a thread kept by the server. A step that continues one carries the
/// thread in its body, which no request of ours does.
pub fn sequence(_: &Value, case: &Value) -> Result<(), String> {
    let steps = case["steps"].as_array().ok_or("no steps")?;
    for step in steps {
        let requests = step["expected"]["requests"].as_array().ok_or("no requests")?;
        let threaded = |request: &&Value| {
            request["anthropicBeta"].as_str().is_some_and(|beta| beta.contains("message-threads"))
        };
        if let Some(request) = requests.iter().find(threaded) {
            return Err(format!(
                "message threads are not built: {}",
                tau_tests::compare::brief(&request["body"])
            ));
        }
    }
    Ok(())
}
