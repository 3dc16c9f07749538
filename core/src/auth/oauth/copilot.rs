//! GitHub Copilot: a token of GitHub is kept, a short one for Copilot is made from it; the account decides about models.
//!
//! Requests say who we are; they do not claim to come from another program (decision D6).

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::NEVER;
use super::device::{self, Addresses, Code};
use super::form::host_name;
use super::script::{Go, Notice, Prompt, Send, Tape, fail};
use super::token::credential;
use crate::json::{Map, Value};
use crate::model::catalog::Catalog;

const CLIENT: &str = "Iv1.b507a08c87ecfe98";
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

/// Signing in with a code, then the models of the account.
pub(super) fn sign_in(tape: &mut Tape<'_>) -> Go<Map<String, Value>> {
    let message = "Domain of GitHub Enterprise; empty for github.com";
    let domain = tape.prompt(Prompt::Text { message, placeholder: "company.ghe.com" })?.trim();
    let domain = match (domain, host_name(domain)) {
        ("", _) => None,
        (_, Some(host)) => Some(host),
        (_, None) => return fail("this is no domain of GitHub Enterprise"),
    };
    let host = domain.as_deref().unwrap_or("github.com").to_owned();
    let url = format!("https://{host}/login/device/code");
    let send = Send::form(&url, &[("client_id", CLIENT), ("scope", "read:user")]).accept_json();
    let code = Code::read(&tape.http(send.header("user-agent", AGENT))?.good("signing in")?, Addresses::Web)?;
    let pace = code.show(tape)?;
    let url = format!("https://{host}/login/oauth/access_token");
    let pairs = [("client_id", CLIENT), ("device_code", &*code.device), ("grant_type", device::GRANT)];
    let granted = device::poll(tape, pace, true, &mut |tape| {
        device::read(&tape.http(Send::form(&url, &pairs).accept_json().header("user-agent", AGENT))?)
    })?;
    let Some(github) = granted.get("access_token").and_then(Value::as_str) else {
        return fail("Invalid answer of the service: access_token is missing");
    };
    let mut fields = token(tape, None, domain.as_deref(), github)?;
    if let Some(domain) = domain {
        fields.insert("enterpriseUrl".into(), domain.into());
    }
    let base = base_url(&Value::Object(fields.clone()));
    let models = patient_models(tape, &base, access(&fields))?;
    let mut ids = chosen(&models, &base);
    for id in enabled(tape, &base, access(&fields), &models)? {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    fields.insert("availableModelIds".into(), ids.into());
    Ok(fields)
}

/// The list of models; a service that is busy right after the sign-in is asked twice more within five seconds.
fn patient_models(tape: &mut Tape<'_>, base: &str, token: &str) -> Go<Vec<Value>> {
    const RETRIES: u32 = 2;
    const LIMIT_MS: i64 = 5000;
    let began = tape.now;
    for retry in 0..RETRIES {
        let url = format!("{base}/models");
        let response = tape.http(models_request(&url, token))?;
        if response.status != 429 {
            return listed(&response.good("listing the models of Copilot")?);
        }
        let seconds = response.header("retry-after").and_then(|text| text.trim().parse::<u64>().ok());
        let wait = seconds.map_or(500 << retry, |seconds| seconds.saturating_mul(1000));
        let end = tape.now.saturating_add(i64::try_from(wait).unwrap_or(i64::MAX));
        if end.saturating_sub(began) > LIMIT_MS {
            return fail(format!("listing the models of Copilot failed: {}", response.told()));
        }
        tape.wait(wait)?;
    }
    models(tape, base, token)
}

/// Models that wait for the consent of the account: it is given, as the person chose to sign in for them.
fn enabled(tape: &mut Tape<'_>, base: &str, token: &str, models: &[Value]) -> Go<Vec<String>> {
    let waits = |model: &&Value| {
        let state = model.get("policy").and_then(|policy| policy.get("state"));
        state.is_some_and(|state| state == "unconfigured")
    };
    let catalog = Catalog::default();
    let known = |id: &&str| catalog.find("github-copilot", id).is_some();
    let ids: Vec<&str> =
        models.iter().filter(waits).filter_map(|model| model.get("id")?.as_str()).filter(known).collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    tape.tell(Notice::Progress("Enabling models …".to_owned()))?;
    let mut done = Vec::new();
    for id in ids {
        let url = format!("{base}/models/{id}/policy");
        let body: Value = [("state".to_owned(), Value::from("enabled"))].into_iter().collect();
        let send = told(Send::json(&url, &body).bearer(token));
        let send = send.header("openai-intent", "chat-policy").header("x-interaction-type", "chat-policy");
        if tape.try_http(send)?.is_ok_and(|response| response.is_good()) {
            done.push(id.to_owned());
        }
    }
    Ok(done)
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
fn token(
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

fn access(fields: &Map<String, Value>) -> &str {
    fields.get("access").and_then(Value::as_str).unwrap_or_default()
}

/// The models the service lists.
fn models(tape: &mut Tape<'_>, base: &str, token: &str) -> Go<Vec<Value>> {
    let url = format!("{base}/models");
    listed(&tape.http(models_request(&url, token))?.good("listing the models of Copilot")?)
}

fn models_request<'a>(url: &'a str, token: &str) -> Send<'a> {
    told(Send::get(url).accept_json().bearer(token)).header("x-github-api-version", "2026-06-01")
}

fn listed(answer: &Value) -> Go<Vec<Value>> {
    match answer.get("data").and_then(Value::as_array) {
        Some(models) => Ok(models.clone()),
        None => fail("listing the models of Copilot failed: Invalid answer, data is missing"),
    }
}

/// Ids of the models one may choose: those of the picker; where single people have none there, those allowed.
fn chosen(models: &[Value], base: &str) -> Vec<String> {
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
fn told(send: Send<'_>) -> Send<'_> {
    send.header("user-agent", AGENT).header("editor-version", AGENT).header("editor-plugin-version", AGENT)
}
