//! Texts of failures (spec 30 §8.1).
//!
//! Retry and overflow rules of stored messages go by words, so the words of the service stay in, an HTTP failure
//! starts with its status, and our own texts for broken connections contain a known phrase. No secret gets in.

use alloc::format;
use alloc::string::{String, ToString};

use crate::fault::{FaultKind, IoFault};
use crate::json::Value;
use crate::model::Model;
use crate::now::Wall;
use crate::op::{Headers, host_of};
use crate::provider::{bedrock, openai_responses};

/// Longest text taken from a body, characters.
const MAX_BODY: usize = 4000;
/// Longest excerpt of something that is no answer at all, characters.
const EXCERPT: usize = 200;
/// A page up to this size is shown as it is, bytes.
const SHORT_PAGE: usize = 200;

/// The message of a response with status 400 or above. `body` may be cut; `headers` tell its type; `now` is when it came.
#[must_use]
pub fn http_error_message(model: &Model, status: u16, headers: &Headers, body: &[u8], now: Wall) -> String {
    let text = String::from_utf8_lossy(body);
    let of_plan = openai_responses::Dialect::of(&model.api) == Some(openai_responses::Dialect::Codex);
    if let Some(text) = Some(&text).filter(|_| of_plan).and_then(|text| plan_limit(text, now)) {
        return text;
    }
    let is_html = headers
        .iter()
        .any(|(name, value)| name.eq_ignore_ascii_case("content-type") && value.contains("text/html"));
    let json = serde_json::from_str::<Value>(&text).or_else(|error| first_event(&text).ok_or(error));
    let said = match json {
        Ok(value) => service_words(&value).unwrap_or_else(|| text.trim().to_string()),
        Err(_) if is_html && text.len() > SHORT_PAGE => html_words(&text),
        Err(_) => text.trim().to_string(),
    };
    let said = match redirect(status, headers) {
        Some(target) => format!("redirect to {target}"),
        None if said.is_empty() => "status code (no body)".to_string(),
        None => clean(&said),
    };
    let said = format!("{status} {said}");
    let code = if model.api == bedrock::API { bedrock::failure::code_of(headers) } else { None };
    code.map_or_else(|| said.clone(), |code| bedrock::failure::message(&code, &said))
}

/// Where a redirect leads, without user and query, which may hold secrets.
fn redirect(status: u16, headers: &Headers) -> Option<String> {
    let (_, target) = headers
        .iter()
        .find(|(name, _)| (300..400).contains(&status) && name.eq_ignore_ascii_case("location"))?;
    let target = target.split(['?', '#']).next().unwrap_or_default();
    let path = target
        .split_once("://")
        .map_or(target, |(_, rest)| rest.find('/').map_or("", |at| rest.get(at..).unwrap_or_default()));
    let host = if target.contains("://") { host_of(target) } else { String::new() };
    Some(excerpt(&format!("{host}{path}")))
}

/// The data of the first event that is JSON: some servers tell their failures as a stream, whatever the status.
fn first_event(text: &str) -> Option<Value> {
    let data = |line: &str| serde_json::from_str(line.strip_prefix("data:")?.trim()).ok();
    text.lines().find_map(data)
}

/// The message of a used up ChatGPT plan. It says when to come back and nothing that sounds like a passing failure:
/// trying again does not help. A rate of requests that is too high passes, unless it says when the plan begins anew.
fn plan_limit(body: &str, now: Wall) -> Option<String> {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let error = body.get("error").unwrap_or(&body);
    let word = |key: &str| error.get(key).and_then(Value::as_str);
    let spent = |word: &str| match word {
        "usage_limit_reached" | "usage_not_included" => true,
        "rate_limit_exceeded" => error.get("resets_at").is_some_and(|at| !at.is_null()),
        _ => false,
    };
    if !["code", "type"].iter().any(|key| word(key).is_some_and(spent)) {
        return None;
    }
    let plan = word("plan_type").map(|plan| format!(" ({} plan)", clean(&plan.to_lowercase())));
    let minutes =
        |at: i64| at.saturating_mul(1000).saturating_sub(now.0).max(0).saturating_add(59_999) / 60_000;
    let resets = error.get("resets_at").and_then(Value::as_i64).map(minutes);
    let resets = resets.map(|minutes| format!(" It resets in about {minutes} min."));
    Some(format!(
        "The usage limit of your ChatGPT account is reached{}.{}",
        plan.unwrap_or_default(),
        resets.unwrap_or_default()
    ))
}

/// The words of a service in the shapes that are common: `error.message`, `error`, `message`, `detail`, also inside a
/// list. Type and code are added when the message does not contain them; they name quota and overflow.
#[must_use]
pub fn service_words(value: &Value) -> Option<String> {
    let value = value.as_array().and_then(|list| list.first()).unwrap_or(value);
    let error = match value.get("error") {
        Some(Value::Null) | None => value,
        Some(error) => error,
    };
    if let Some(text) = error.as_str() {
        return Some(text.to_string());
    }
    let message =
        ["message", "Message", "detail", "error_description", "msg"].iter().find_map(|key| error.get(*key));
    let mut text = match message? {
        Value::String(text) => text.clone(),
        other => crate::json::to_string(other),
    };
    for key in ["type", "code", "status"] {
        let word = match error.get(key) {
            Some(Value::String(word)) => word.clone(),
            Some(Value::Number(word)) => word.to_string(),
            _ => continue,
        };
        if !word.is_empty() && !text.contains(word.as_str()) {
            text.push_str(&format!(" ({word})"));
        }
    }
    let raw = error.get("metadata").and_then(|metadata| metadata.get("raw"));
    if let Some(raw) = raw.filter(|raw| !raw.is_null()) {
        let raw = raw.as_str().map_or_else(|| crate::json::to_string(raw), ToString::to_string);
        if !text.contains(raw.as_str()) {
            text.push('\n');
            text.push_str(&raw);
        }
    }
    Some(text)
}

/// Visible text of a page, roughly: tags dropped, blanks joined.
fn html_words(html: &str) -> String {
    let mut text = String::new();
    let mut in_tag = false;
    for c in html.chars().take(4 * MAX_BODY) {
        match c {
            '<' => in_tag = true,
            '>' => {
                in_tag = false;
                text.push(' ');
            }
            c if !in_tag => text.push(c),
            _ => {}
        }
    }
    let words = text.split_whitespace().collect::<alloc::vec::Vec<_>>().join(" ");
    format!("HTML page instead of an API answer: {words}")
}

/// Why a body without a single event is no reply: it is a page, a plain JSON answer, or nothing. Names the host. JSON
/// is a final failure unless the words in it say otherwise, the others are like a lost connection.
#[must_use]
pub fn no_stream_message(model: &Model, body: &str) -> String {
    let host = host_of(&model.base_url);
    let body = body.trim();
    if body.is_empty() {
        return format!("the stream of {host} ended without any event");
    }
    // A server that does not stream this will not do it the next time: only its own words can tell of a passing failure.
    if body.starts_with(['{', '[']) {
        let value = serde_json::from_str::<Value>(body).ok();
        let said = value.as_ref().and_then(service_words);
        let said = said.map_or_else(|| excerpt(body), |words| clean(&words));
        return format!("{host} answered with application/json instead of an event stream: {said}");
    }
    let kind = if body.starts_with('<') { "text/html or XML" } else { "no text/event-stream" };
    format!("{host} ended without an event stream; the body is {kind}: {}", excerpt(body))
}

/// The beginning of a foreign text, fit for a message.
#[must_use]
pub fn excerpt(text: &str) -> String {
    let end = text.char_indices().nth(EXCERPT).map(|(end, _)| end);
    clean(end.and_then(|end| text.get(..end)).unwrap_or(text))
}

/// Makes foreign text fit for a message: length capped, control characters gone, credentials masked.
#[must_use]
pub fn clean(text: &str) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == MAX_BODY {
            out.push_str(" … [cut]");
            break;
        }
        out.push(if c.is_control() && c != '\n' && c != '\t' { ' ' } else { c });
    }
    mask_secrets(&out)
}

/// Masks what looks like a key: `Bearer …`, `sk-…` and other long tokens with a known beginning.
fn mask_secrets(text: &str) -> String {
    const STARTS: &[&str] = &["Bearer ", "bearer ", "sk-", "AIza", "ghp_", "gho_", "xai-", "gsk_"];
    const LEAST: usize = 12;
    let is_token = |c: char| c.is_ascii_alphanumeric() || "-_.~+/=*".contains(c);
    let mut out = String::new();
    let mut rest = text;
    while let Some((at, start)) =
        STARTS.iter().filter_map(|start| rest.find(start).map(|at| (at, *start))).min_by_key(|(at, _)| *at)
    {
        let (before, from) = rest.split_at(at);
        let (head, tail) = from.split_at(start.len());
        let len = tail.find(|c: char| !is_token(c)).unwrap_or(tail.len());
        let (token, after) = tail.split_at(len);
        // In the middle of a word it is no key ("task-…").
        let inside = before.chars().next_back().is_some_and(|c| c.is_ascii_alphanumeric());
        out.push_str(before);
        out.push_str(head);
        out.push_str(if token.len() >= LEAST && !inside { "***" } else { token });
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The message of a request that got no response at all.
#[must_use]
pub fn request_fault_message(fault: &IoFault) -> String {
    let detail = clean(&fault.detail);
    match fault.kind {
        FaultKind::Dns => format!("Connection error: host name could not be resolved (ENOTFOUND): {detail}"),
        FaultKind::TimedOut => format!("Request timed out: {detail}"),
        FaultKind::Reset => format!("Connection lost before the response: {detail}"),
        FaultKind::Proxy => format!("Connection error at the proxy: {detail}"),
        FaultKind::Tls => format!("TLS failure: {detail}"),
        FaultKind::Connect => format!("Connection error: {detail}"),
        FaultKind::Cancelled => "Request was aborted".into(),
        FaultKind::Invalid => format!("The request cannot be made: {detail}"),
        _ => format!("Network error: {detail}"),
    }
}

/// The message of a body that broke while it was read.
#[must_use]
pub fn stream_fault_message(fault: &IoFault) -> String {
    let detail = clean(&fault.detail);
    match fault.kind {
        FaultKind::TimedOut => format!("Timed out while the reply was arriving: {detail}"),
        FaultKind::Tls => format!("TLS failure while the reply was arriving: {detail}"),
        FaultKind::TooBig => format!("The reply is too large: {detail}"),
        _ => format!("Connection lost while the reply was arriving: {detail}"),
    }
}

/// The message of an aborted request.
pub const ABORTED: &str = "Request was aborted";

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn status_words_and_codes_stay() {
        let model = Model { provider: "p".into(), ..Model::default() };
        let text = |status, body: &str| http_error_message(&model, status, &vec![], body.as_bytes(), Wall(0));
        assert_eq!(
            text(429, r#"{"error":{"message":"no","type":"insufficient_quota"}}"#),
            "429 no (insufficient_quota)"
        );
        assert_eq!(text(503, " "), "503 status code (no body)");
        assert_eq!(text(500, "boom"), "500 boom");
        assert_eq!(text(400, r#"[{"error":{"message":"m","code":400}}]"#), "400 m (400)");
        assert_eq!(text(400, r#"{"error":"text"}"#), "400 text");
        assert_eq!(text(400, r#"{"x":1}"#), r#"400 {"x":1}"#);
        let events = "data: {\"error\":{\"message\":\"m\",\"code\":\"c\"}}\n\ndata: [DONE]\n\n";
        assert_eq!(text(500, events), "500 m (c)");
        let to = |target: &str| vec![("Location".into(), target.into())];
        let moved = |target| http_error_message(&model, 302, &to(target), b"<p>Moved</p>", Wall(0));
        assert_eq!(moved("https://u:p@h.example/a/b?token=x#y"), "302 redirect to https://h.example/a/b");
        assert_eq!(moved("https://h.example"), "302 redirect to https://h.example");
        assert_eq!(moved("/login?next=x"), "302 redirect to /login");
        assert_eq!(text(302, ""), "302 status code (no body)");
        let long = "é".repeat(5000);
        assert!(text(500, &long).ends_with("[cut]"));
    }

    #[test]
    fn json_instead_of_a_stream_is_final() {
        use crate::retry::classify::{Class, classify};
        let model = Model { base_url: "https://h.example/v1".into(), ..Model::default() };
        for (body, class, words) in [
            (r#"{"content":[{"text":"hi"}]}"#, Class::Final, "content"),
            (r#"{"error":{"message":"overloaded"}}"#, Class::Transient, "overloaded"),
            (r#"{"error":{"message":"no such model"}}"#, Class::Final, "no such model"),
            ("<html>Sign in</html>", Class::Transient, "Sign in"),
            ("", Class::Transient, "without any event"),
        ] {
            let text = no_stream_message(&model, body);
            assert_eq!(classify(&text), class, "{text}");
            assert!(text.contains("h.example") && text.contains(words), "{text}");
        }
    }

    #[test]
    fn a_used_up_plan_is_final_and_says_when() {
        let model = Model { api: "openai-codex-responses".into(), ..Model::default() };
        let text =
            |status, body: &str| http_error_message(&model, status, &vec![], body.as_bytes(), Wall(60_000));
        let body = r#"{"error":{"type":"usage_limit_reached","plan_type":"Plus","resets_at":3601}}"#;
        assert_eq!(
            text(403, body),
            "The usage limit of your ChatGPT account is reached (plus plan). It resets in about 60 min."
        );
        let spent = r#"{"error":{"code":"usage_not_included"}}"#;
        assert_eq!(text(429, spent), "The usage limit of your ChatGPT account is reached.");
        let busy = r#"{"error":{"code":"rate_limit_exceeded","message":"slow down"}}"#;
        assert_eq!(text(429, busy), "429 slow down (rate_limit_exceeded)");
        assert_eq!(text(429, ""), "429 status code (no body)");
        assert_eq!(text(500, "x"), "500 x");
    }

    #[test]
    fn keys_are_masked() {
        assert_eq!(
            clean("key sk-abcdefghijklmnop wrong; Bearer abcdefghijklmnop\u{7}."),
            "key sk-*** wrong; Bearer *** ."
        );
        assert_eq!(clean("task-abcdefghijklmnop"), "task-abcdefghijklmnop");
        assert_eq!(clean("Bearer token missing"), "Bearer token missing");
    }
}
