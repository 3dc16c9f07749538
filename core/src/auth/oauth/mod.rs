//! Sign-ins: getting a token, and a new one before it runs out (spec 40 §1.8, §2).
//!
//! A [`Script`] is the conversation of one provider. It asks for one thing at a time ([`Ask`]) and is told the
//! answer with the time; randomness, names of hosts and the credential come in at the start.

mod browser;
mod copilot;
pub mod device;
pub mod form;
mod refresh;
pub mod script;
mod sign_in;
mod token;

use alloc::string::String;

use crate::json::Value;

pub use copilot::base_url as copilot_base_url;
pub use script::{Answer, Ask, Loopback, Notice, Prompt, Script, Step};

/// A token is renewed when no more than this is left of it, ms.
pub const WINDOW_MS: i64 = 300_000;

/// A renewal may take this long, ms.
pub const REFRESH_LIMIT_MS: u64 = 15_000;

/// The largest time that is stored: the largest whole number JavaScript holds. Also means "never".
pub const NEVER: i64 = 9_007_199_254_740_991;

/// Providers whose sign-ins this program uses. Anthropic is none of them (decision D6).
pub const PROVIDERS: &[&str] =
    &["github-copilot", "kimi-coding", "meta", "openai", "openai-codex", "openrouter", "radius", "xai"];

/// Whether a stored sign-in of this provider can be used.
#[must_use]
pub fn is_supported(provider: &str) -> bool {
    PROVIDERS.contains(&provider)
}

/// When the token of a stored sign-in runs out, ms since 1970.
#[must_use]
pub fn expires(entry: &Value) -> Option<i64> {
    let expires = entry.get("expires")?;
    // A fraction or a number beyond all times is cut.
    expires.as_i64().or_else(|| expires.as_f64().map(|ms| ms as i64))
}

/// Whether a stored sign-in must be renewed before use. `minimum` is what the caller needs to be left, ms; the
/// window counts in any case.
#[must_use]
pub fn is_due(entry: &Value, now: i64, minimum: Option<i64>) -> bool {
    let window = minimum.unwrap_or_default().max(WINDOW_MS);
    expires(entry).is_none_or(|expires| now.saturating_add(window) >= expires)
}

/// Who signs in where.
#[derive(Clone)]
pub struct SignIn {
    /// Provider id.
    pub provider: String,
    /// Unpredictable texts.
    pub random: Random,
    /// A UUID of this installation; ChatGPT wants one.
    pub device_id: Option<String>,
    /// Name of the program, for services that show it.
    pub agent: Option<String>,
}

/// Unpredictable texts of one sign-in.
#[derive(Clone)]
pub struct Random {
    /// The verifier of PKCE: 43 characters of base64url, 32 random bytes.
    pub verifier: String,
    /// Its SHA-256 as base64url.
    pub challenge: String,
    /// 32 hexadecimal digits.
    pub hex: String,
    /// 43 characters of base64url.
    pub state: String,
    /// 43 more.
    pub nonce: String,
    /// A UUID.
    pub uuid: String,
}

/// Hosts that are not the same everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// Of Kimi: `KIMI_CODE_OAUTH_HOST`, `KIMI_OAUTH_HOST`, else its own.
    pub kimi: String,
    /// The gateway of Radius.
    pub radius: String,
}

impl Hosts {
    /// Reads them from the environment.
    #[must_use]
    pub fn new(env: &dyn Fn(&str) -> Option<String>) -> Self {
        let named = ["KIMI_CODE_OAUTH_HOST", "KIMI_OAUTH_HOST"].into_iter().find_map(|name| {
            env(name)
                .map(|host| host.trim().trim_end_matches('/').into())
                .filter(|host: &String| !host.is_empty())
        });
        Self {
            kimi: named.unwrap_or_else(|| "https://auth.kimi.com".into()),
            radius: "https://radius.pi.dev".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_five_minutes_or_more() {
        for (expires, minimum, due) in [
            (300_001, None, false),
            (300_000, None, true),
            (0, None, true),
            (-1, None, true),
            (NEVER, None, false),
            (300_001, Some(1), false),
            (1_800_000, Some(1_800_000), true),
            (1_800_001, Some(1_800_000), false),
            (NEVER, Some(i64::MAX), true),
        ] {
            let entry = serde_json::json!({ "expires": expires });
            assert_eq!(is_due(&entry, 0, minimum), due, "{expires} {minimum:?}");
        }
        assert!(is_due(&serde_json::json!({}), 0, None));
        assert!(!is_due(&serde_json::json!({"expires": 300_001.5}), 0, None));
    }
}
