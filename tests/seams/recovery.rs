//! Failures and what follows: words of overflow and of retries, waits that a service asks for.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tau_core::message::{AssistantMessage, StopReason};
use tau_core::now::Wall;
use tau_core::op::Headers;
use tau_core::overflow::is_overflow;
use tau_core::retry::is_retryable;
use tau_core::retry::request::{Failure, Limits, Next, decide};
use tau_tests::compare::same;

/// Checks `messages.json` (failure texts) and `responses.json` (failed responses) of a case about `core::overflow` or
/// `core::retry`; 0 for other cases.
pub fn check(folder: &Path, case: &Value) -> Result<usize, String> {
    let list = |name: &str| -> Vec<Value> {
        let text = fs::read(folder.join(name)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    };
    let (texts, responses) = (list("messages.json"), list("responses.json"));
    match case["seam"].as_str().unwrap_or_default() {
        "core::overflow" if !texts.is_empty() => {
            let got: Vec<bool> = texts.iter().map(|text| is_overflow(&reply(text), None)).collect();
            verdicts(&case["expect"]["wanted"], &got)
        }
        "core::retry" if !texts.is_empty() => {
            let got: Vec<bool> = texts.iter().map(|text| is_retryable(&reply(text), None)).collect();
            verdicts(&case["pi16"], &got)
        }
        "core::retry" if !responses.is_empty() => {
            let wanted = case["expect"]["decisions"].as_array().ok_or("decisions")?;
            if wanted.len() != responses.len() {
                return Err("as many decisions as responses are expected".into());
            }
            responses.iter().zip(wanted).try_for_each(|(response, wanted)| wait(response, wanted))?;
            Ok(1)
        }
        _ => Ok(0),
    }
}

fn reply(failure: &Value) -> AssistantMessage {
    AssistantMessage {
        stop_reason: StopReason::Error,
        error_message: failure["errorMessage"].as_str().map(str::to_owned),
        ..AssistantMessage::default()
    }
}

/// `null` leaves the verdict open.
fn verdicts(wanted: &Value, got: &[bool]) -> Result<usize, String> {
    let wanted = wanted.as_array().ok_or("no verdicts")?;
    let settled = got.iter().enumerate().map(|(at, got)| match wanted.get(at) {
        Some(Value::Null) => Value::Null,
        _ => Value::Bool(*got),
    });
    same(&json!(wanted), &settled.collect())?;
    Ok(1)
}

/// The first failure of a request: `fail`, `retry`, or `wait N ms`; our own wait is the least (D28).
fn wait(response: &Value, wanted: &Value) -> Result<(), String> {
    const OWN_MS: f64 = 500.0;
    let status = response["status"].as_u64().and_then(|status| u16::try_from(status).ok()).ok_or("status")?;
    let headers: Headers = response["headers"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    let limits = Limits { max_retries: 1, max_delay_ms: 60_000, never: &[] };
    let now = Wall::from_iso("2026-11-20T10:00:00.000Z").ok_or("now")?;
    let next = decide(&limits, 0, &Failure::Status { status, headers: &headers }, now, 0.0);
    let wanted = wanted.as_str().unwrap_or_default();
    let asked = wanted.strip_prefix("wait ").and_then(|rest| rest.strip_suffix(" ms")?.parse::<f64>().ok());
    let agrees = match next {
        Next::Fail | Next::TooLong(_) => wanted == "fail",
        Next::Again(delay) => match asked {
            Some(asked) => delay == asked.max(OWN_MS),
            None => wanted == "retry" && delay == OWN_MS,
        },
    };
    if agrees { Ok(()) } else { Err(format!("{response}: expected {wanted}, got {next:?}")) }
}
