//! Failures: their words, their waits, their retries. Both areas have files of this kind.

use serde_json::{Value, json};
use tau_core::message::{AssistantMessage, StopReason, Usage};
use tau_core::now::Wall;
use tau_core::op::Headers;
use tau_core::overflow::{is_overflow, is_recoverable_length};
use tau_core::retry::request::{Failure, Limits, Next, decide};
use tau_core::retry::{DelayTooLong, backoff_ms, is_retryable, is_transient};
use tau_tests::compare::same;

/// The reply that a case describes flatly.
fn reply(input: &Value) -> AssistantMessage {
    let usage = |key: &str| input["usage"][key].as_u64().unwrap_or_default();
    AssistantMessage {
        stop_reason: input["stopReason"].as_str().and_then(StopReason::parse).unwrap_or_default(),
        error_message: input["errorMessage"].as_str().map(str::to_owned),
        provider: input["provider"].as_str().unwrap_or_default().to_owned(),
        usage: Usage {
            input: usage("input"),
            output: input["output"].as_u64().unwrap_or_else(|| usage("output")),
            cache_read: usage("cacheRead"),
            ..Usage::default()
        },
        ..AssistantMessage::default()
    }
}

/// `agent-retry-delay`, in which the result stands in an object or alone.
pub fn delay(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let base = input["baseDelayMs"].as_f64().ok_or("baseDelayMs")?;
    let attempt = u64::try_from(input["attempt"].as_i64().ok_or("attempt")?).unwrap_or_default();
    let cap = input["maxAgentDelayMs"].as_f64().unwrap_or(60_000.0);
    let wanted = case["expected"].get("delayMs").unwrap_or_else(|| &case["expected"]);
    same(wanted, &json!(backoff_ms(base, attempt, cap)))
}

/// `retryable`
pub fn retryable(_: &Value, case: &Value) -> Result<(), String> {
    let reply = reply(&case["input"]);
    let got = json!({
        "retryable": is_transient(&reply),
        "agentWouldRetry": is_retryable(&reply, Some(200_000)),
    });
    same(&case["expected"], &got)
}

/// `overflow`
pub fn overflow(_: &Value, case: &Value) -> Result<(), String> {
    let window = case["input"]["contextWindow"].as_u64();
    same(&case["expected"], &json!({"overflow": is_overflow(&reply(&case["input"]), window)}))
}

/// `error-classification`
pub fn classification(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let window = input.get("contextWindow").map_or(Some(200_000), Value::as_u64);
    let reply = reply(input);
    let got = json!({"retryable": is_transient(&reply), "contextOverflow": is_overflow(&reply, window)});
    same(&case["expected"], &got)
}

/// `recoverable-length`, in which the limit has two names and a negative one is none.
pub fn recoverable_length(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let limit = input.get("modelMaxTokens").unwrap_or_else(|| &input["desiredMaxOutput"]);
    let limit = u64::try_from(limit.as_i64().ok_or("limit")?).unwrap_or_default();
    let wanted = case["expected"].get("recoverable").unwrap_or_else(|| &case["expected"]);
    same(wanted, &json!(is_recoverable_length(&reply(input), limit)))
}

/// What came of the attempts of one request.
struct Outcome {
    name: &'static str,
    attempts: u64,
    delays: Vec<f64>,
    too_long: Option<DelayTooLong>,
}

/// Sends a request as often as the rules want; `attempt(n)` describes the failure of the n-th attempt, if it fails.
fn run<'a>(input: &Value, now: Wall, attempt: impl Fn(u64) -> Option<&'a Value>) -> Outcome {
    let never: Vec<u16> = serde_json::from_value(input["noRetryStatuses"].clone()).unwrap_or_default();
    let limits = Limits {
        max_retries: input["maxRetries"].as_u64().unwrap_or_default(),
        max_delay_ms: input["maxRetryDelayMs"].as_u64().unwrap_or(60_000),
        never: &never,
    };
    let unit = input["random"].as_f64().unwrap_or_default();
    let mut outcome = Outcome { name: "ok", attempts: 0, delays: Vec::new(), too_long: None };
    loop {
        let failed = attempt(outcome.attempts);
        outcome.attempts += 1;
        let Some(failed) = failed else { return outcome };
        if failed["abortNow"] == true {
            outcome.name = "aborted";
            return outcome;
        }
        let headers: Headers = failed["headers"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect();
        let failure = match failed["status"].as_u64().and_then(|status| u16::try_from(status).ok()) {
            _ if failed["plain"] == true || failed["noHeaders"] == true => Failure::Other,
            Some(status) => Failure::Status { status, headers: &headers },
            None => Failure::Connection,
        };
        match decide(&limits, outcome.attempts - 1, &failure, now, unit) {
            Next::Again(delay) => outcome.delays.push(delay),
            Next::Fail => {
                outcome.name = "error";
                return outcome;
            }
            Next::TooLong(too_long) => {
                outcome.name = "delay-too-long";
                outcome.too_long = Some(too_long);
                return outcome;
            }
        }
    }
}

/// `provider-retry` of `runtime/`: one response per attempt, the last one repeats.
pub fn request(doc: &Value, case: &Value) -> Result<(), String> {
    let now = doc["now"].as_str().and_then(Wall::from_iso).ok_or("now")?;
    let responses = case["input"]["responses"].as_array().ok_or("responses")?;
    let outcome = run(&case["input"], now, |attempt| {
        let index = usize::try_from(attempt).unwrap_or(usize::MAX);
        responses.get(index).or_else(|| responses.last()).filter(|response| response["ok"] != true)
    });
    let mut got = json!({
        "outcome": outcome.name,
        "attempts": outcome.attempts,
        "delaysMs": outcome.delays,
    });
    if let Some(too_long) = outcome.too_long {
        got["tooLong"] = json!({
            "requestedSeconds": too_long.asked_s,
            "maxSeconds": too_long.allowed_s,
            "includesProviderMessage": too_long.message("words of the service").contains("words of the service"),
        });
    }
    same(&case["expected"], &got)
}

/// `provider-retry` of `providers/`: a list of failures, then success.
pub fn request_then_success(_: &Value, case: &Value) -> Result<(), String> {
    let errors = case["input"]["errors"].as_array().ok_or("errors")?;
    let now = Wall::from_iso("2026-11-20T10:00:00.000Z").ok_or("now")?;
    let outcome = run(&case["input"], now, |attempt| errors.get(usize::try_from(attempt).ok()?));
    let rejected = outcome.too_long.is_some();
    let name = if rejected { "error" } else { outcome.name };
    let mut got = json!({"outcome": name, "attempts": outcome.attempts, "delaysMs": outcome.delays});
    if name == "error" {
        got["retryDelayRejected"] = rejected.into();
    }
    same(&case["expected"], &got)
}
