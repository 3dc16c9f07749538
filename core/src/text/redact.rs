//! Secrets that come back: services repeat a key in the text that refuses it.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::op::Credential;

/// What stands in the place of a secret.
const HIDDEN: &str = "[hidden]";
/// Shorter values are no secrets, and hiding them would make holes into ordinary words.
const SHORTEST: usize = 8;
/// Words in the names of headers whose values are secret.
const SECRET_NAMES: &[&str] = &["auth", "key", "token", "secret", "cookie"];

/// Secrets of one request. `Debug` tells how many there are.
#[derive(Default)]
pub struct Secrets(Vec<String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

impl From<&Credential> for Secrets {
    fn from(credential: &Credential) -> Self {
        let is_secret = |name: &str| {
            let name = name.to_ascii_lowercase();
            SECRET_NAMES.iter().any(|word| name.contains(word))
        };
        let headers = credential.headers.iter().filter(|(name, _)| is_secret(name));
        let values = headers.filter_map(|(_, value)| value.as_deref());
        let all = credential.api_key.as_deref().into_iter().chain(values);
        // A header names its kind before the secret: "Bearer x".
        let bare = all.map(|value| value.rsplit(' ').next().unwrap_or(value));
        let mut secrets: Vec<String> =
            bare.filter(|value| value.len() >= SHORTEST).map(String::from).collect();
        // The longest first: one may contain another.
        crate::order::sort(&mut secrets, |a, b| b.len().cmp(&a.len()));
        secrets.dedup();
        Self(secrets)
    }
}

impl Secrets {
    /// Hides every secret in a text.
    pub fn hide(&self, text: &mut String) {
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                *text = text.replace(secret.as_str(), HIDDEN);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;

    #[test]
    fn secrets_are_hidden_and_words_stay() {
        let credential = Credential {
            api_key: Some("key-for-tests".into()),
            headers: [
                ("Authorization", Some("Bearer key-for-tests-2")),
                ("x-title", Some("a long title")),
                ("x-token", Some("short")),
                ("cookie", None),
            ]
            .map(|(name, value)| (name.to_string(), value.map(String::from)))
            .into(),
            ..Credential::default()
        };
        let secrets = Secrets::from(&credential);
        let mut text = "no key-for-tests, key-for-tests-2; a long title, short".into();
        secrets.hide(&mut text);
        assert_eq!(text, "no [hidden], [hidden]; a long title, short");
        assert_eq!(format!("{secrets:?}"), "Secrets(2)");
    }
}
