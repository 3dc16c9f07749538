//! What is special about models of ChatGPT plans (spec 30 §3.5).

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::fault::Fault;
use crate::json::{self, Value};
use crate::provider::ModelRequest;
use crate::provider::headers::HeaderSet;
use crate::provider::request::{authorised, base_url, checked_url};

/// Who asks; our own name (D6).
pub(super) const ORIGINATOR: &str = "tau";

const DEFAULT_BASE: &str = "https://chatgpt.com/backend-api";

/// Where the service keeps its own claims in a token.
const CLAIM: &str = "https://api.openai.com/auth";

/// The address of a request.
pub(super) fn url(request: &ModelRequest<'_>) -> Result<String, Fault> {
    let base = Some(base_url(request)).filter(|base| !base.is_empty()).unwrap_or(DEFAULT_BASE);
    checked_url(base, &request.model.provider)?;
    Ok(if base.ends_with("/codex/responses") {
        base.to_owned()
    } else if base.ends_with("/codex") {
        format!("{base}/responses")
    } else {
        format!("{base}/codex/responses")
    })
}

/// The headers that nobody may change.
pub(super) fn finish_headers(set: &mut HeaderSet, key: Option<&str>, provider: &str) -> Result<(), Fault> {
    let Some(key) = key else { return authorised(&HeaderSet::new(), &[], provider) };
    let Some(account) = account(key) else {
        return Err(Fault::new(
            "bad_token",
            format!(
                "The token of provider \"{provider}\" names no ChatGPT account: it must be the access token of a sign-in."
            ),
        ));
    };
    set.set("authorization", format!("Bearer {key}"));
    set.set("chatgpt-account-id", account);
    set.set("openai-beta", "responses=experimental");
    set.set("accept", "text/event-stream");
    set.set("content-type", "application/json");
    Ok(())
}

/// A token that proves nothing and is for the same account, for a record of what happened; `None` for one that names
/// no account.
pub(crate) fn token_without_secret(token: &str) -> Option<String> {
    let mut w = json::Writer::new();
    w.begin_object();
    w.key("https://api.openai.com/auth");
    w.begin_object();
    w.field_str("chatgpt_account_id", &account(token)?);
    w.end_object();
    w.end_object();
    Some(format!("***.{}.***", crate::text::base64::encode_url(w.into_string().as_bytes())))
}

/// The account that a token is for.
fn account(token: &str) -> Option<String> {
    let mut parts = token.split('.');
    let (Some(_), Some(payload), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    let payload = json::parse(&String::from_utf8(decode(payload)?).ok()?).ok()?;
    let account = payload.get(CLAIM)?.get("chatgpt_account_id").and_then(Value::as_str)?;
    Some(account.to_owned()).filter(|account| !account.is_empty())
}

/// Base64, of either alphabet, with padding or without.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let (mut bits, mut count) = (0_u32, 0);
    for c in text.trim_end_matches('=').bytes() {
        let six = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'-' | b'+' => 62,
            b'_' | b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count & 0xff) as u8);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_of_a_token() {
        let claims =
            "eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjdC0xMjMifX0";
        for (token, account_id) in [
            (format!("h.{claims}.s"), Some("acct-123")),
            (format!("h.{claims}=.s"), Some("acct-123")),
            (format!("h.{claims}"), None),
            (format!("h.{claims}.s.x"), None),
            ("a.e30=.c".into(), None),
            ("a.!!.c".into(), None),
        ] {
            assert_eq!(account(&token).as_deref(), account_id, "{token}");
        }
    }
}
