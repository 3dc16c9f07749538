//! Failures: their codes, words and what identifies them (spec 30 §3.8).

use alloc::format;
use alloc::string::{String, ToString};

use crate::json::{Map, Value};
use crate::op::Headers;
use crate::provider::error::{clean, service_words};

/// Header with the id of a request, for questions to the service.
pub const REQUEST_ID: &str = "x-amzn-requestid";
const ERROR_TYPE: &str = "x-amzn-errortype";

/// Categories that begin a message. Rules for overflow and retries know the words.
const CATEGORIES: &[(&str, &str)] = &[
    ("InternalServerException", "Internal server error"),
    ("ModelStreamErrorException", "Model stream error"),
    ("ServiceUnavailableException", "Service unavailable"),
    ("ThrottlingException", "Throttling error"),
    ("ValidationException", "Validation error"),
];

/// A message that begins with its category.
#[must_use]
pub fn message(code: &str, words: &str) -> String {
    match CATEGORIES.iter().find(|(known, _)| *known == code) {
        Some((_, category)) => format!("{category}: {words}"),
        None => format!("{words} ({})", clean(code)),
    }
}

/// The code of a failure as the service's libraries spell it: `throttlingException` on the wire, and in headers with an
/// address behind it.
#[must_use]
pub fn code(kind: &str) -> String {
    let name = kind.split([':', ',']).next().unwrap_or_default().trim();
    let name = name.rsplit('#').next().unwrap_or_default();
    let mut letters = name.chars();
    letters.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// The code that the head of a refusal tells.
#[must_use]
pub fn code_of(headers: &Headers) -> Option<String> {
    let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(ERROR_TYPE));
    found.map(|(_, value)| code(value)).filter(|code| !code.is_empty())
}

/// The words inside a body.
#[must_use]
pub fn words(body: &str) -> Option<String> {
    let value: Value = serde_json::from_str(body).ok()?;
    service_words(&value)
}

/// What identifies a failure.
#[must_use]
pub fn diagnostic(at: i64, status: Option<u16>, code: Option<String>, request_id: Option<&str>) -> Value {
    let mut details = Map::new();
    let mut add = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            details.insert(key.to_string(), value);
        }
    };
    add("status", status.map(Value::from));
    add("errorCode", code.map(Value::from));
    add("requestId", request_id.map(Value::from));
    serde_json::json!({"type": "bedrock_response_failure", "timestamp": at, "details": details})
}

/// That of a refused request.
#[must_use]
pub fn refusal(at: i64, status: u16, headers: &Headers) -> Value {
    let id = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(REQUEST_ID));
    diagnostic(at, Some(status), code_of(headers), id.map(|(_, value)| clean(value)).as_deref())
}
