//! Signing in, provider by provider.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use super::browser::{self, Back, Paste, Visit};
use super::device::{self, Addresses, Code, Pace, Poll};
use super::refresh::{
    CHATGPT_RESOURCE, CHATGPT_TOKEN, CODEX_CLIENT, CODEX_TOKEN, KIMI_CLIENT, RADIUS_CLIENT, XAI_CLIENT,
    XAI_TOKEN, chatgpt_credential, codex_credential, mint, radius_credential, xai_credential,
};
use super::script::{Go, Notice, Prompt, Response, Send, Stop, Tape, fail};
use super::token::{Granted, credential, expiry};
use super::{NEVER, SignIn, copilot};
use crate::json::{Map, Value};

const CODEX_REDIRECT: &str = "http://localhost:1455/auth/callback";
const CODEX_PORT: u16 = 1455;
const CODEX_PATH: &str = "/auth/callback";
const CODEX_DEVICE: &str = "https://auth.openai.com/api/accounts/deviceauth";
const CHATGPT_REDIRECT: &str = "http://127.0.0.1:1455/auth/callback";
const META_CLIENT: &str = "1031625952748946";
const RADIUS_SCOPE: &str = "gateway offline_access";
const RADIUS_REDIRECT: &str = "http://127.0.0.1:1456/oauth/callback";
const OPENROUTER_KEYS: &str = "https://openrouter.ai/api/v1/auth/keys";

const WHAT: &str = "signing in";

/// Ids and names of ways to sign in.
pub(super) type Ways = &'static [(&'static str, &'static str)];

const CODEX_WAYS: Ways = &[("browser", "in a browser of this machine"), ("device_code", "with a code")];
const RADIUS_WAYS: Ways = &[("browser", "in a browser of this machine"), ("device-code", "with a code")];

pub(super) fn sign_in(tape: &mut Tape<'_>, wish: &SignIn) -> Go<Value> {
    let fields = match wish.provider.as_str() {
        "openai-codex" => match choose(tape, CODEX_WAYS)? {
            "browser" => codex_browser(tape, wish)?,
            _ => codex_device(tape)?,
        },
        "openai" => chatgpt(tape, wish)?,
        "github-copilot" => copilot::sign_in(tape)?,
        "xai" => xai(tape)?,
        "kimi-coding" => kimi(tape)?,
        "meta" => meta(tape)?,
        "radius" => match choose(tape, RADIUS_WAYS)? {
            "browser" => radius_browser(tape, wish)?,
            _ => radius_device(tape)?,
        },
        "openrouter" => openrouter(tape, wish)?,
        other => return fail(format!("signing in to {other} is not supported")),
    };
    Ok(Value::Object(fields))
}

fn choose(tape: &mut Tape<'_>, ways: Ways) -> Go<&'static str> {
    let chosen = tape.prompt(Prompt::Select { message: "How do you want to sign in?", ways })?;
    match ways.iter().find(|(id, _)| *id == chosen) {
        Some((id, _)) => Ok(id),
        None => fail("this is not a way to sign in"),
    }
}

fn codex_browser(tape: &mut Tape<'_>, wish: &SignIn) -> Go<Map<String, Value>> {
    let random = &wish.random;
    let address = browser::address(
        "https://auth.openai.com/oauth/authorize",
        &[
            ("response_type", "code"),
            ("client_id", CODEX_CLIENT),
            ("redirect_uri", CODEX_REDIRECT),
            ("scope", "openid profile email offline_access"),
            ("code_challenge", &random.challenge),
            ("code_challenge_method", "S256"),
            ("state", &random.hex),
            ("id_token_add_organizations", "true"),
            ("codex_cli_simplified_flow", "true"),
            ("originator", wish.agent.as_deref().unwrap_or("pi")),
        ],
    );
    let listening = browser::listen(tape, CODEX_PORT, CODEX_PATH, Some(&random.hex))?.is_some();
    let visit =
        Visit { address: &address, redirect: CODEX_REDIRECT, state: Some(&random.hex), paste: Paste::Code };
    let back = browser::visit(tape, &visit, listening)?;
    if back.from_browser {
        tape.show(200)?;
    }
    codex_exchange(tape, &back.code, &random.verifier, CODEX_REDIRECT)
}

fn codex_exchange(tape: &mut Tape<'_>, code: &str, verifier: &str, redirect: &str) -> Go<Map<String, Value>> {
    let pairs = [
        ("grant_type", "authorization_code"),
        ("client_id", CODEX_CLIENT),
        ("code", code),
        ("code_verifier", verifier),
        ("redirect_uri", redirect),
    ];
    let granted = Granted::read(&tape.http(Send::form(CODEX_TOKEN, &pairs))?.good(WHAT)?)?;
    codex_credential(tape.now, None, &granted)
}

fn codex_device(tape: &mut Tape<'_>) -> Go<Map<String, Value>> {
    const LIFETIME: f64 = 900.0;
    let object = |pairs: &[(&str, &str)]| -> Value {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect()
    };
    let url = format!("{CODEX_DEVICE}/usercode");
    let response = tape.http(Send::json(&url, &object(&[("client_id", CODEX_CLIENT)])))?;
    if response.status == 404 {
        return fail("signing in with a device code is not enabled for this account; choose the browser");
    }
    let answer = response.good(WHAT)?;
    let text = |key: &str| answer.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (Some(device), Some(user)) = (text("device_auth_id"), text("user_code")) else {
        return fail("Invalid answer of the service: device_auth_id or user_code is missing");
    };
    let interval = answer.get("interval").and_then(|value| match value {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_f64(),
    });
    let interval = interval.filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0);
    let pace = Pace::new(tape.now, interval, Some(LIFETIME));
    tape.tell(Notice::DeviceCode {
        code: user.to_owned(),
        address: "https://auth.openai.com/codex/device".to_owned(),
        interval,
        expires: Some(LIFETIME),
    })?;
    let url = format!("{CODEX_DEVICE}/token");
    let body = object(&[("device_auth_id", device), ("user_code", user)]);
    let granted = device::poll(tape, pace, false, &mut |tape| {
        let response = tape.http(Send::json(&url, &body))?;
        match (response.status, response.error_code().as_deref()) {
            (403 | 404, _) | (_, Some("deviceauth_authorization_pending")) => Ok(Poll::Pending),
            (_, Some("slow_down")) => Ok(Poll::SlowDown(None)),
            _ => response.good(WHAT).map(Poll::Complete),
        }
    })?;
    let text = |key: &str| granted.get(key).and_then(Value::as_str);
    match (text("authorization_code"), text("code_verifier")) {
        (Some(code), Some(verifier)) => {
            codex_exchange(tape, code, verifier, "https://auth.openai.com/deviceauth/callback")
        }
        _ => fail("Invalid answer of the service: authorization_code or code_verifier is missing"),
    }
}

fn chatgpt(tape: &mut Tape<'_>, wish: &SignIn) -> Go<Map<String, Value>> {
    let Some(device) = wish.device_id.as_deref().filter(|id| is_uuid(id)) else {
        return fail("signing in to ChatGPT needs a device ID that is a UUID");
    };
    let random = &wish.random;
    let host_id = format!("urn:uuid:{}", device.to_ascii_lowercase());
    let address = browser::address(
        "https://auth.openai.com/api/accounts/authorize",
        &[
            ("client_id", "dynamic_agent_client"),
            ("agent_name_hint", wish.agent.as_deref().unwrap_or("Pi")),
            ("ext_agent_host_id", &host_id),
            ("response_type", "code"),
            ("redirect_uri", CHATGPT_REDIRECT),
            ("resource", CHATGPT_RESOURCE),
            ("scope", "openid profile email offline_access resource.invoke chatgpt.tokens.use.direct"),
            ("state", &random.state),
            ("code_challenge", &random.challenge),
            ("code_challenge_method", "S256"),
            ("nonce", &random.nonce),
        ],
    );
    if browser::listen(tape, CODEX_PORT, CODEX_PATH, Some(&random.state))?.is_none() {
        return fail(format!(
            "port {CODEX_PORT} of this machine is taken; end the program that uses it, and try again"
        ));
    }
    let visit = Visit {
        address: &address,
        redirect: CHATGPT_REDIRECT,
        state: Some(&random.state),
        paste: Paste::Address,
    };
    let Back { code, client, from_browser } = browser::visit(tape, &visit, true)?;
    let Some(client) = client.filter(|client| !client.is_empty()) else {
        return fail("the answer holds no client ID");
    };
    tape.tell(Notice::Progress("Signing in …".to_owned()))?;
    if from_browser {
        tape.show(200)?;
    }
    let pairs = [
        ("grant_type", "authorization_code"),
        ("client_id", client.as_str()),
        ("code", code.as_str()),
        ("code_verifier", random.verifier.as_str()),
        ("redirect_uri", CHATGPT_REDIRECT),
        ("resource", CHATGPT_RESOURCE),
    ];
    let answer = tape.http(Send::form(CHATGPT_TOKEN, &pairs).accept_json())?.good(WHAT)?;
    if answer.get("id_token").and_then(Value::as_str).is_none_or(str::is_empty) {
        return fail("Invalid answer of the service: id_token is missing");
    }
    chatgpt_credential(tape.now, None, &client, &Granted::read(&answer)?)
}

/// Whether a text is a UUID, whatever its case and version.
fn is_uuid(text: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    let mut groups = text.split('-');
    let hex = |group: &str| group.bytes().all(|c| c.is_ascii_hexdigit());
    lengths.iter().all(|len| groups.next().is_some_and(|group| group.len() == *len && hex(group)))
        && groups.next().is_none()
}

/// Shows a code and asks until a token is granted.
fn by_code(
    tape: &mut Tape<'_>,
    code: &Code,
    wait_first: bool,
    send: &dyn Fn() -> Send<'static>,
) -> Go<Value> {
    let pace = code.show(tape)?;
    device::poll(tape, pace, wait_first, &mut |tape| device::read(&tape.http(send())?))
}

fn xai(tape: &mut Tape<'_>) -> Go<Map<String, Value>> {
    let pairs = [
        ("client_id", XAI_CLIENT),
        ("scope", "openid profile email offline_access grok-cli:access api:access"),
        ("referrer", "pi"),
    ];
    let send = Send::form("https://auth.x.ai/oauth2/device/code", &pairs).accept_json();
    let code = Code::read(&tape.http(send)?.good(WHAT)?, Addresses::Encrypted)?;
    let granted = by_code(tape, &code, true, &|| {
        let pairs =
            [("grant_type", device::GRANT), ("client_id", XAI_CLIENT), ("device_code", code.device.as_str())];
        Send::form(XAI_TOKEN, &pairs).accept_json()
    })?;
    let granted = Granted::read(&granted)?;
    let refresh = granted.refresh()?;
    Ok(xai_credential(tape.now, None, &granted, refresh))
}

fn kimi(tape: &mut Tape<'_>) -> Go<Map<String, Value>> {
    let host = tape.hosts.kimi.clone();
    let url = format!("{host}/api/oauth/device_authorization");
    let send = Send::form(&url, &[("client_id", KIMI_CLIENT)]).accept_json();
    let mut code = Code::read(&tape.http(send)?.good(WHAT)?, Addresses::Complete)?;
    code.interval = code.interval.or(Some(5.0));
    code.expires = code.expires.or(Some(900.0));
    let url = format!("{host}/api/oauth/token");
    let pace = code.show(tape)?;
    let pairs =
        [("client_id", KIMI_CLIENT), ("device_code", code.device.as_str()), ("grant_type", device::GRANT)];
    let granted = device::poll(tape, pace, true, &mut |tape| {
        device::read(&tape.http(Send::form(&url, &pairs).accept_json())?)
    })?;
    let granted = Granted::read(&granted)?;
    let expires = expiry(tape.now, granted.seconds()?, 0);
    Ok(credential(None, &granted.access, granted.refresh()?, expires))
}

fn meta(tape: &mut Tape<'_>) -> Go<Map<String, Value>> {
    let send = Send::form("https://auth.meta.com/oidc/device/authorization/", &[("client_id", META_CLIENT)]);
    let code = Code::read(&tape.http(send.accept_json())?.good(WHAT)?, Addresses::Web)?;
    let granted = by_code(tape, &code, true, &|| {
        let pairs =
            [("grant_type", device::GRANT), ("device_code", &*code.device), ("client_id", META_CLIENT)];
        Send::form("https://auth.meta.com/oidc/device/token/", &pairs).accept_json()
    })?;
    let identity = Granted::read(&granted)?.access;
    tape.tell(Notice::Progress("Getting a key …".to_owned()))?;
    mint(tape, None, &identity)
}

fn radius_browser(tape: &mut Tape<'_>, wish: &SignIn) -> Go<Map<String, Value>> {
    let (gateway, random) = (tape.hosts.radius.clone(), &wish.random);
    let url = format!("{gateway}/v1/oauth");
    let found = tape.http(Send::get(&url).accept_json())?.good(WHAT)?;
    let endpoint = browser::trusted(found.get("authorizationEndpoint").and_then(Value::as_str))?;
    let address = browser::address(
        endpoint,
        &[
            ("response_type", "code"),
            ("client_id", RADIUS_CLIENT),
            ("redirect_uri", RADIUS_REDIRECT),
            ("scope", RADIUS_SCOPE),
            ("code_challenge", &random.challenge),
            ("code_challenge_method", "S256"),
            ("handoff", "url"),
            ("state", &random.uuid),
        ],
    );
    if browser::listen(tape, 1456, "/oauth/callback", Some(&random.uuid))?.is_none() {
        return fail(
            "port 1456 of this machine is taken; end the program that uses it, or sign in with a code",
        );
    }
    tape.tell(Notice::Progress("Waiting for the browser …".to_owned()))?;
    let visit = Visit {
        address: &address,
        redirect: RADIUS_REDIRECT,
        state: Some(&random.uuid),
        paste: Paste::Never,
    };
    let back = browser::visit(tape, &visit, true)?;
    let url = format!("{gateway}/v1/oauth/token");
    let pairs = [
        ("grant_type", "authorization_code"),
        ("client_id", RADIUS_CLIENT),
        ("redirect_uri", RADIUS_REDIRECT),
        ("code", back.code.as_str()),
        ("code_verifier", random.verifier.as_str()),
    ];
    let response = tape.http(Send::form(&url, &pairs).accept_json());
    shown(tape, back.from_browser, response, |now, answer| {
        radius_credential(now, None, &Granted::read(&answer)?)
    })
}

/// Exchanges a code while the browser waits, and tells it how that ended.
fn shown(
    tape: &mut Tape<'_>,
    from_browser: bool,
    response: Go<Response<'_>>,
    read: impl FnOnce(i64, Value) -> Go<Map<String, Value>>,
) -> Go<Map<String, Value>> {
    let now = tape.now;
    let result = match response {
        Err(Stop::Ask(ask)) => return Err(Stop::Ask(ask)),
        Err(failed) => Err(failed),
        Ok(response) => response.good(WHAT).and_then(|answer| read(now, answer)),
    };
    if from_browser {
        tape.show(if result.is_ok() { 200 } else { 502 })?;
    }
    result
}

fn radius_device(tape: &mut Tape<'_>) -> Go<Map<String, Value>> {
    let gateway = tape.hosts.radius.clone();
    let url = format!("{gateway}/v1/oauth/device");
    let send = Send::form(&url, &[("client_id", RADIUS_CLIENT), ("scope", RADIUS_SCOPE)]).accept_json();
    let code = Code::read(&tape.http(send)?.good(WHAT)?, Addresses::Web)?;
    let pace = code.show(tape)?;
    let url = format!("{gateway}/v1/oauth/token");
    let pairs = [("grant_type", device::GRANT), ("client_id", RADIUS_CLIENT), ("device_code", &*code.device)];
    let granted = device::poll(tape, pace, false, &mut |tape| {
        device::read(&tape.http(Send::form(&url, &pairs).accept_json())?)
    })?;
    radius_credential(tape.now, None, &Granted::read(&granted)?)
}

fn openrouter(tape: &mut Tape<'_>, wish: &SignIn) -> Go<Map<String, Value>> {
    let random = &wish.random;
    let path = format!("/oauth/callback/{}", random.uuid);
    let port = browser::listen(tape, 0, &path, None)?;
    tape.tell(Notice::Progress("Waiting for the browser …".to_owned()))?;
    let redirect = format!("http://127.0.0.1:{}{path}", port.unwrap_or(0));
    let address = browser::address(
        "https://openrouter.ai/auth",
        &[
            ("callback_url", &*redirect),
            ("code_challenge", &random.challenge),
            ("code_challenge_method", "S256"),
        ],
    );
    let visit = Visit { address: &address, redirect: &redirect, state: None, paste: Paste::Code };
    let back = browser::visit(tape, &visit, port.is_some())?;
    if !back.from_browser {
        tape.tell(Notice::Progress("Getting a key …".to_owned()))?;
    }
    let pairs = [
        ("code", &*back.code),
        ("code_verifier", random.verifier.as_str()),
        ("code_challenge_method", "S256"),
    ];
    let body: Value = pairs.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
    let response = tape.http(Send::json(OPENROUTER_KEYS, &body).accept_json());
    shown(tape, back.from_browser, response, |_, answer| {
        match answer.get("key").and_then(Value::as_str).filter(|key| !key.is_empty()) {
            Some(key) => Ok(credential(None, key, "", NEVER)),
            None => fail("Invalid answer of the service: key is missing"),
        }
    })
}
