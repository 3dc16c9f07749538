//! New tokens for stored sign-ins, provider by provider.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::script::{Go, Response, Send, Tape, fail};
use super::token::{Granted, credential, expiry};
use super::{copilot, form};
use crate::json::{Map, Value};

pub(super) const CODEX_CLIENT: &str = "app_EMoamEEZ73f0CkXaXp7hrann";
pub(super) const CODEX_TOKEN: &str = "https://auth.openai.com/oauth/token";
pub(super) const CHATGPT_TOKEN: &str = "https://auth.openai.com/api/accounts/oauth/token";
pub(super) const CHATGPT_RESOURCE: &str = "https://api.openai.com/v1";
const CHATGPT_SCOPE: &str = "chatgpt.tokens.use.direct";
pub(super) const XAI_CLIENT: &str = "b1a00492-073a-47ea-816f-4c329264a828";
pub(super) const XAI_TOKEN: &str = "https://auth.x.ai/oauth2/token";
pub(super) const KIMI_CLIENT: &str = "17e5f671-d194-4dfb-9706-5516cb48c098";
pub(super) const RADIUS_CLIENT: &str = "pi-gateway";
const META_MINT: &str = "https://api.meta.ai/muse-code/key";

/// A key of Meta counts this long, seconds.
const META_LIFETIME: f64 = 86_400.0;

/// Kimi is asked again this often when it is busy.
const KIMI_RETRIES: u32 = 3;

const WHAT: &str = "renewing the sign-in";

pub(super) fn refresh(tape: &mut Tape<'_>, provider: &str, entry: &Value) -> Go<Value> {
    let token = entry.get("refresh").and_then(Value::as_str).unwrap_or_default();
    let fields = match provider {
        "openai-codex" => codex(tape, entry, token)?,
        "openai" => chatgpt(tape, entry, token)?,
        "github-copilot" => copilot::refresh(tape, entry, token)?,
        "xai" => xai(tape, entry, token)?,
        "kimi-coding" => kimi(tape, entry, token)?,
        "meta" => mint(tape, Some(entry), token)?,
        "radius" => radius(tape, entry, token)?,
        // A key that never runs out.
        "openrouter" => return Ok(entry.clone()),
        _ => return fail(format!("sign-ins of {provider} are not supported")),
    };
    Ok(Value::Object(fields))
}

fn codex(tape: &mut Tape<'_>, entry: &Value, token: &str) -> Go<Map<String, Value>> {
    let pairs = [("grant_type", "refresh_token"), ("refresh_token", token), ("client_id", CODEX_CLIENT)];
    let granted = Granted::read(&tape.http(Send::form(CODEX_TOKEN, &pairs))?.good(WHAT)?)?;
    codex_credential(tape.now, Some(entry), &granted)
}

pub(super) fn codex_credential(now: i64, old: Option<&Value>, granted: &Granted) -> Go<Map<String, Value>> {
    let (refresh, seconds) = (granted.refresh()?, granted.seconds()?);
    let account = granted.account()?;
    let mut fields = credential(old, &granted.access, refresh, expiry(now, seconds, 0));
    fields.insert("accountId".into(), account.into());
    Ok(fields)
}

fn chatgpt(tape: &mut Tape<'_>, entry: &Value, token: &str) -> Go<Map<String, Value>> {
    let Some(client) = entry.get("clientId").and_then(Value::as_str).filter(|id| !id.is_empty()) else {
        return fail("the stored sign-in has no client ID");
    };
    let pairs = [
        ("grant_type", "refresh_token"),
        ("client_id", client),
        ("refresh_token", token),
        ("resource", CHATGPT_RESOURCE),
    ];
    let granted = Granted::read(&tape.http(Send::form(CHATGPT_TOKEN, &pairs).accept_json())?.good(WHAT)?)?;
    chatgpt_credential(tape.now, Some(entry), client, &granted)
}

pub(super) fn chatgpt_credential(
    now: i64,
    old: Option<&Value>,
    client: &str,
    granted: &Granted,
) -> Go<Map<String, Value>> {
    let scopes: Vec<&str> = granted.scope.as_deref().unwrap_or_default().split_whitespace().collect();
    if !scopes.contains(&CHATGPT_SCOPE) {
        return fail(format!("the scope {CHATGPT_SCOPE} was not granted"));
    }
    let expires = expiry(now, granted.seconds()?, 180_000);
    let mut fields = credential(old, &granted.access, granted.refresh()?, expires);
    fields.insert("clientId".into(), client.into());
    fields.insert("scopes".into(), scopes.into());
    Ok(fields)
}

fn xai(tape: &mut Tape<'_>, entry: &Value, token: &str) -> Go<Map<String, Value>> {
    let pairs = [("grant_type", "refresh_token"), ("client_id", XAI_CLIENT), ("refresh_token", token)];
    let granted = Granted::read(&tape.http(Send::form(XAI_TOKEN, &pairs).accept_json())?.good(WHAT)?)?;
    Ok(xai_credential(tape.now, Some(entry), &granted, token))
}

/// Its answer may leave out the lifetime, and a refresh token that stays the same.
pub(super) fn xai_credential(
    now: i64,
    old: Option<&Value>,
    granted: &Granted,
    token: &str,
) -> Map<String, Value> {
    let expires = expiry(now, granted.seconds.unwrap_or(3600.0), 300_000);
    credential(old, &granted.access, granted.refresh.as_deref().unwrap_or(token), expires)
}

fn kimi(tape: &mut Tape<'_>, entry: &Value, token: &str) -> Go<Map<String, Value>> {
    let url = format!("{}/api/oauth/token", tape.hosts.kimi);
    let pairs = [("client_id", KIMI_CLIENT), ("grant_type", "refresh_token"), ("refresh_token", token)];
    for retry in 0.. {
        let answer = tape.try_http(Send::form(&url, &pairs).accept_json())?;
        let busy = match &answer {
            Ok(response) => response.status == 429 || response.status >= 500,
            Err(_) => true,
        };
        if busy && retry < KIMI_RETRIES {
            tape.wait(1000 << retry)?;
            continue;
        }
        let granted = match answer {
            Ok(response) => Granted::read(&response.good(WHAT)?)?,
            Err(why) => return fail(format!("{WHAT} failed: {why}")),
        };
        let expires = expiry(tape.now, granted.seconds()?, 0);
        return Ok(credential(Some(entry), &granted.access, granted.refresh()?, expires));
    }
    fail(WHAT)
}

/// A key of Meta, made from the identity token, which is what is kept as refresh token.
pub(super) fn mint(tape: &mut Tape<'_>, old: Option<&Value>, identity: &str) -> Go<Map<String, Value>> {
    let send = Send::json(META_MINT, &Value::Object(Map::new()));
    let response: Response<'_> =
        tape.http(send.accept_json().bearer(identity).header("x-api-version", "1.0.0"))?;
    if matches!(response.status, 401 | 403) {
        return fail(format!("the sign-in has ended, sign in again: {}", response.told()));
    }
    let answer = response.good("getting a key")?;
    let text = |key: &str| answer.get(key).and_then(Value::as_str);
    if let Some(key) = text("api_key").filter(|key| !key.is_empty()) {
        return Ok(credential(old, key, identity, expiry(tape.now, META_LIFETIME, 0)));
    }
    match text("action_url").and_then(form::web_address) {
        Some(url) => fail(format!("the account is not set up yet: {url}")),
        None => fail("getting a key failed: Invalid answer, it has no api_key"),
    }
}

fn radius(tape: &mut Tape<'_>, entry: &Value, token: &str) -> Go<Map<String, Value>> {
    let url = format!("{}/v1/oauth/token", tape.hosts.radius);
    let pairs = [("grant_type", "refresh_token"), ("client_id", RADIUS_CLIENT), ("refresh_token", token)];
    let granted = Granted::read(&tape.http(Send::form(&url, &pairs).accept_json())?.good(WHAT)?)?;
    radius_credential(tape.now, Some(entry), &granted)
}

pub(super) fn radius_credential(now: i64, old: Option<&Value>, granted: &Granted) -> Go<Map<String, Value>> {
    let expires = expiry(now, granted.seconds()?, 60_000);
    let mut fields = credential(old, &granted.access, granted.refresh()?, expires);
    if let Some(scope) = &granted.scope {
        fields.insert("scope".into(), scope.as_str().into());
    }
    Ok(fields)
}
