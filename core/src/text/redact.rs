//! Secrets that come back: services repeat a key in the text that refuses it.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use memchr::memmem::Finder;

use crate::op::{AwsAccess, Credential};
use crate::text::base64;

/// What stands in the place of a secret.
const HIDDEN: &str = "[hidden]";
/// Shorter values are no secrets, and hiding them would make holes into ordinary words.
const SHORTEST: usize = 8;
/// Words in the names of headers whose values are secret.
const SECRET_NAMES: &[&str] = &["auth", "key", "token", "secret", "cookie"];

/// Secrets of one request. `Debug` tells how many there are.
#[derive(Default)]
pub struct Secrets {
    all: Vec<String>,
    /// A run of letters and digits of each: it is written as it is, whatever stands around it. `None` when a secret has none
    /// that is long enough.
    runs: Option<Vec<Finder<'static>>>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.all.len())
    }
}

impl From<&Credential> for Secrets {
    fn from(credential: &Credential) -> Self {
        let headers = credential.headers.iter().filter(|(name, _)| is_secret(name));
        let values = headers.filter_map(|(_, value)| value.as_deref());
        let aws = match &credential.aws {
            Some(AwsAccess::Bearer(token)) => [Some(token.as_str()), None],
            Some(AwsAccess::Keys(keys)) => [Some(keys.secret.as_str()), keys.session.as_deref()],
            None => [None, None],
        };
        let all = credential.api_key.as_deref().into_iter().chain(values).chain(aws.into_iter().flatten());
        // A header names its kind before the secret: "Bearer x".
        let bare = all.map(|value| value.rsplit(' ').next().unwrap_or(value));
        let mut secrets: Vec<String> =
            bare.filter(|value| value.len() >= SHORTEST).map(String::from).collect();
        // The longest first: one may contain another.
        crate::order::sort(&mut secrets, |a, b| b.len().cmp(&a.len()));
        secrets.dedup();
        Self::of(secrets)
    }
}

impl Secrets {
    fn of(all: Vec<String>) -> Self {
        let run = |secret: &String| {
            let runs = secret.split(|c: char| !c.is_ascii_alphanumeric());
            let longest = runs.max_by_key(|run| run.len()).filter(|run| run.len() >= 4);
            longest.map(|run| Finder::new(run).into_owned())
        };
        Self { runs: all.iter().map(run).collect(), all }
    }

    /// With those in an address: the password of a user, as it is and as a header carries it, and what a query calls a
    /// key.
    #[must_use]
    pub fn and_of_address(mut self, url: &str) -> Self {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let user =
            place.split('/').next().and_then(|authority| authority.rsplit_once('@')).map(|(user, _)| user);
        let password = user.and_then(|user| user.split_once(':')).map(|(_, password)| password.into());
        let header = user.map(|user| base64::encode(user.as_bytes()));
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let keys = pairs.filter(|(name, _)| is_secret(name)).map(|(_, value)| value.into());
        let more = password.into_iter().chain(header).chain(keys);
        let more: Vec<String> = more.filter(|value: &String| value.len() >= SHORTEST).collect();
        if more.is_empty() {
            return self;
        }
        self.all.extend(more);
        // The longest first: one may contain another.
        crate::order::sort(&mut self.all, |a, b| b.len().cmp(&a.len()));
        self.all.dedup();
        Self::of(self.all)
    }

    /// Bytes without the secrets in them; `None` when there are none.
    #[must_use]
    pub fn hidden(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let is_in_none = |runs: &Vec<Finder<'_>>| runs.iter().all(|run| run.find(bytes).is_none());
        if self.all.is_empty() || self.runs.as_ref().is_some_and(is_in_none) {
            return None;
        }
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        let before = text.len();
        self.hide(&mut text);
        let found = text.len() != before || text.contains(HIDDEN);
        found.then(|| text.into_bytes())
    }

    /// Hides every secret in a text, also where it is written as JSON or a URL would.
    pub fn hide(&self, text: &mut String) {
        for secret in &self.all {
            let mut out = String::new();
            let mut rest = text.as_str();
            while let Some((at, len)) = find(rest, secret) {
                out.push_str(rest.get(..at).unwrap_or_default());
                out.push_str(HIDDEN);
                rest = rest.get(at + len..).unwrap_or_default();
            }
            if !out.is_empty() {
                out.push_str(rest);
                *text = out;
            }
        }
    }
}

/// Whether values of such a name are secrets.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|word| name.contains(word))
}

/// The first place of a secret in a text, and how long it is written there.
fn find(text: &str, secret: &str) -> Option<(usize, usize)> {
    let starts = text.char_indices().map(|(at, _)| at);
    starts.filter_map(|at| Some((at, written(text.get(at..)?, secret)?))).next()
}

/// How many bytes at the beginning of a text are the secret, in any mix of the ways to write a character.
fn written(text: &str, secret: &str) -> Option<usize> {
    let mut rest = text.as_bytes();
    for c in secret.bytes() {
        rest = match rest {
            [b'\\', b'u', b'0', b'0', high, low, rest @ ..] if hex(*high, *low) == Some(c) => rest,
            [b'%', high, low, rest @ ..] if hex(*high, *low) == Some(c) => rest,
            [b'\\', own, rest @ ..] if *own == c => rest,
            [own, rest @ ..] if *own == c => rest,
            _ => return None,
        };
    }
    Some(text.len() - rest.len())
}

fn hex(high: u8, low: u8) -> Option<u8> {
    let digit = |c: u8| char::from(c).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(high)? * 16 + digit(low)?)
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

    #[test]
    fn secrets_of_addresses() {
        for (url, text, expected) in [
            (
                "https://u:long-password@h/v1",
                "no long-password, dTpsb25nLXBhc3N3b3Jk",
                "no [hidden], [hidden]",
            ),
            ("https://h/v1?api-key=long-key-1&v=long-value", "long-key-1 long-value", "[hidden] long-value"),
            ("https://h/a@b:c/d?x", "h a@b:c", "h a@b:c"),
            ("h:8080/v1", "8080", "8080"),
        ] {
            let secrets = Secrets::default().and_of_address(url);
            let mut text = text.into();
            secrets.hide(&mut text);
            assert_eq!(text, expected, "{url}");
        }
    }

    #[test]
    fn other_ways_to_write_it() {
        let secrets = Secrets::of(alloc::vec!["ab/cd+ef=\\é".into()]);
        for (text, expected) in [
            ("ab/cd+ef=\\é", "[hidden]"),
            ("x ab\\/cd+ef=\\\\é y", "x [hidden] y"),
            ("k=ab%2Fcd%2bef%3D%5C%C3%A9&l=1", "k=[hidden]&l=1"),
            ("ab\\u002fcd+ef=\\éé", "[hidden]é"),
            ("ab/cd+ef=", "ab/cd+ef="),
            ("éab/cd+ef=\\éab/cd+ef=\\é%", "é[hidden][hidden]%"),
            ("%", "%"),
            ("", ""),
        ] {
            let mut text = text.into();
            secrets.hide(&mut text);
            assert_eq!(text, expected);
        }
    }
}
