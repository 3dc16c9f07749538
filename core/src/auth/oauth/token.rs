//! What token endpoints answer, and what becomes of it in `auth.json`.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use super::script::{Go, fail};
use super::{NEVER, form};
use crate::json::{Map, Value};

/// Where the account stands in an access token of `ChatGPT`.
const ACCOUNT_CLAIM: &str = "https://api.openai.com/auth";

/// What a token endpoint granted.
pub(super) struct Granted {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    /// Lifetime, seconds.
    pub(super) seconds: Option<f64>,
    pub(super) scope: Option<String>,
}

impl Granted {
    pub(super) fn read(fields: &Value) -> Go<Self> {
        let text = |key: &str| fields.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let Some(access) = text("access_token") else { return missing("access_token") };
        let access = access.to_owned();
        let refresh = text("refresh_token").map(ToOwned::to_owned);
        let scope = text("scope").map(ToOwned::to_owned);
        let seconds = fields.get("expires_in").and_then(Value::as_f64).filter(|seconds| seconds.is_finite());
        Ok(Self { access, refresh, seconds, scope })
    }

    pub(super) fn refresh(&self) -> Go<&str> {
        self.refresh.as_deref().map_or_else(|| missing("refresh_token"), Ok)
    }

    pub(super) fn seconds(&self) -> Go<f64> {
        self.seconds.map_or_else(|| missing("expires_in"), Ok)
    }

    /// The account of a `ChatGPT` token.
    pub(super) fn account(&self) -> Go<String> {
        let claims = form::token_claims(&self.access).unwrap_or_default();
        let account = claims.get(ACCOUNT_CLAIM).and_then(|claim| claim.get("chatgpt_account_id"));
        match account.and_then(Value::as_str).filter(|account| !account.is_empty()) {
            Some(account) => Ok(account.to_owned()),
            None => fail("the token names no account (accountId)"),
        }
    }
}

fn missing<T>(field: &str) -> Go<T> {
    fail(format!("Invalid answer of the service: {field} is missing"))
}

/// The time `seconds` after `now`, less `margin` ms.
pub(super) fn expiry(now: i64, seconds: f64, margin: i64) -> i64 {
    let lifetime = (seconds * 1000.0) as i64;
    now.saturating_add(lifetime).saturating_sub(margin).clamp(0, NEVER)
}

/// A credential as it is stored. What an older one held beyond that stays.
pub(super) fn credential(
    old: Option<&Value>,
    access: &str,
    refresh: &str,
    expires: i64,
) -> Map<String, Value> {
    let mut fields = old.and_then(Value::as_object).cloned().unwrap_or_default();
    fields.insert("type".to_owned(), "oauth".into());
    fields.insert("access".to_owned(), access.into());
    fields.insert("refresh".to_owned(), refresh.into());
    fields.insert("expires".to_owned(), expires.into());
    fields
}
