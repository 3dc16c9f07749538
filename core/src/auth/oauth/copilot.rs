//! GitHub Copilot: a token of GitHub is kept, a short one for Copilot is made from it; the account decides about models.
//!
//! Requests say who we are; they do not claim to come from another program (decision D6).

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::NEVER;
use super::form::host_name;
use super::script::{Go, Send, Tape, fail};
use super::token::credential;
use crate::json::{Map, Value};

const OWN_HOST: &str = "https://api.individual.githubcopilot.com";
const AGENT: &str = concat!("tau/", env!("CARGO_PKG_VERSION"));
const SHORTENED_S: i64 = 300;

/// Where requests with this token go: a host named in the token, that of the enterprise, else that of single people.
#[must_use]
pub fn base_url(entry: &Value) -> String {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
    let named = text("access").split(';').find_map(|part| part.trim().strip_prefix("proxy-ep="));
    if let Some(host) = named.and_then(host_name) {
        return match host.strip_prefix("proxy.") {
            Some(rest) => format!("https://api.{rest}"),
            None => format!("https://{host}"),
        };
    }
    match host_name(text("enterpriseUrl")) {
        Some(domain) => format!("https://copilot-api.{domain}"),
        None => OWN_HOST.to_owned(),
    }
}

/// A token for Copilot and the list of models.
pub(super) fn refresh(tape: &mut Tape<'_>, old: &Value, github: &str) -> Go<Map<String, Value>> {
    let domain = old.get("enterpriseUrl").and_then(Value::as_str).and_then(host_name);
    let mut fields = token(tape, Some(old), domain.as_deref(), github)?;
    let url = base_url(&Value::Object(fields.clone()));
    let models = models(tape, &url, access(&fields))?;
    fields.insert("availableModelIds".into(), chosen(&models, &url).into());
    Ok(fields)
}

/// The credential without its models.
pub(super) fn token(
    tape: &mut Tape<'_>,
    old: Option<&Value>,
    domain: Option<&str>,
    github: &str,
) -> Go<Map<String, Value>> {
    let url = format!("https://api.{}/copilot_internal/v2/token", domain.unwrap_or("github.com"));
    let answer = tape.http(told(Send::get(&url).accept_json().bearer(github)))?;
    let answer = answer.good("getting a token for Copilot")?;
    let token = answer.get("token").and_then(Value::as_str).filter(|token| !token.is_empty());
    let (Some(token), Some(seconds)) = (token, answer.get("expires_at").and_then(Value::as_i64)) else {
        return fail("getting a token for Copilot failed: Invalid answer, token or expires_at is missing");
    };
    let expires = seconds.saturating_sub(SHORTENED_S).saturating_mul(1000).clamp(0, NEVER);
    Ok(credential(old, token, github, expires))
}

pub(super) fn access(fields: &Map<String, Value>) -> &str {
    fields.get("access").and_then(Value::as_str).unwrap_or_default()
}

/// The models the service lists.
fn models(tape: &mut Tape<'_>, base: &str, token: &str) -> Go<Vec<Value>> {
    let url = format!("{base}/models");
    let send = told(Send::get(&url).accept_json().bearer(token)).header("x-github-api-version", "2026-06-01");
    let answer = tape.http(send)?.good("listing the models of Copilot")?;
    match answer.get("data").and_then(Value::as_array) {
        Some(models) => Ok(models.clone()),
        None => fail("listing the models of Copilot failed: Invalid answer, data is missing"),
    }
}

/// Ids of the models one may choose: those of the picker; where single people have none there, those allowed.
pub(super) fn chosen(models: &[Value], base: &str) -> Vec<String> {
    let state = |model: &Value| model.get("policy")?.get("state")?.as_str().map(ToOwned::to_owned);
    let picked = |model: &Value| model.get("model_picker_enabled") == Some(&Value::Bool(true));
    let takes_tools = |model: &Value| {
        let supports = model.get("capabilities").and_then(|all| all.get("supports"));
        supports.and_then(|all| all.get("tool_calls")) != Some(&Value::Bool(false))
    };
    let ids = |wanted: &dyn Fn(&Value) -> bool| -> Vec<String> {
        let wanted = models.iter().filter(|model| takes_tools(model) && wanted(model));
        wanted.filter_map(|model| model.get("id")?.as_str().map(ToOwned::to_owned)).collect()
    };
    if base == OWN_HOST && !models.iter().any(picked) {
        return ids(&|model| state(model).as_deref() == Some("enabled"));
    }
    ids(&|model| picked(model) && state(model).as_deref() != Some("disabled"))
}

/// Who asks.
pub(super) fn told(send: Send<'_>) -> Send<'_> {
    send.header("user-agent", AGENT).header("editor-version", AGENT).header("editor-plugin-version", AGENT)
}
