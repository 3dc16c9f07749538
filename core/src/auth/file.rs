//! `auth.json`: provider id → credential (spec 40 §1.3). Text in, text out.

use alloc::string::String;
use alloc::vec::Vec;

use crate::json::{Map, Value, to_pretty};
use crate::settings::jsonc;

/// A file that could be read.
#[derive(Clone, Default, PartialEq)]
pub struct AuthFile {
    entries: Map<String, Value>,
}

/// Kinds of credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `type: "api_key"`.
    ApiKey,
    /// `type: "oauth"`.
    OAuth,
}

impl Kind {
    /// The stored name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ApiKey => "api_key",
            Self::OAuth => "oauth",
        }
    }
}

/// Why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthFileFault {
    /// Not JSON; where it goes wrong.
    Unreadable(String),
    /// JSON, but not an object.
    NotAnObject,
    /// The entry of this provider is not a credential.
    InvalidCredential(String),
}

impl AuthFileFault {
    /// Stable name for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "unreadable",
            Self::NotAnObject => "not-an-object",
            Self::InvalidCredential(_) => "invalid-credential",
        }
    }
}

impl core::fmt::Display for AuthFileFault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Unreadable(reason) => f.write_str(reason),
            Self::NotAnObject => f.write_str("must hold one JSON object"),
            Self::InvalidCredential(provider) => write!(f, "the entry \"{provider}\" is not a credential"),
        }
    }
}

impl core::fmt::Debug for AuthFile {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.entries.keys()).finish()
    }
}

impl AuthFile {
    /// Reads a file as it stands. A BOM is accepted, comments are not. Entries are not looked at.
    ///
    /// # Errors
    /// When it is not a JSON object.
    pub fn parse(text: &str) -> Result<Self, AuthFileFault> {
        match serde_json::from_str(jsonc::without_bom(text)) {
            Ok(Value::Object(entries)) => Ok(Self { entries }),
            Ok(_) => Err(AuthFileFault::NotAnObject),
            Err(error) => Err(AuthFileFault::Unreadable(alloc::format!(
                "not valid JSON (line {}, column {})",
                error.line(),
                error.column()
            ))),
        }
    }

    /// Checks every entry; for a view that must not gloss over anything.
    ///
    /// # Errors
    /// The first entry that is not a credential.
    pub fn validate(&self) -> Result<(), AuthFileFault> {
        match self.entries.iter().find(|(_, entry)| kind(entry).is_none()) {
            Some((provider, _)) => Err(AuthFileFault::InvalidCredential(provider.clone())),
            None => Ok(()),
        }
    }

    /// Providers and kinds of their credentials. Resolves and runs nothing.
    #[must_use]
    pub fn list(&self) -> Vec<(&str, Kind)> {
        self.entries.iter().filter_map(|(provider, entry)| Some((provider.as_str(), kind(entry)?))).collect()
    }

    /// All entries, also what is no credential.
    pub fn all(&self) -> impl Iterator<Item = (&str, Option<Kind>)> {
        self.entries.iter().map(|(provider, entry)| (provider.as_str(), kind(entry)))
    }

    /// The raw entry of a provider.
    #[must_use]
    pub fn entry(&self, provider: &str) -> Option<&Value> {
        self.entries.get(provider)
    }

    /// Puts a credential in the place of the provider's; a new provider comes last.
    pub fn set(&mut self, provider: &str, entry: Value) {
        self.entries.insert(provider.into(), entry);
    }

    /// Takes the credential of a provider out; the others keep their order.
    pub fn remove(&mut self, provider: &str) {
        self.entries.shift_remove(provider);
    }

    /// The text of the file: indented by two, no line end after it.
    #[must_use]
    pub fn to_text(&self) -> String {
        to_pretty(&Value::Object(self.entries.clone()))
    }
}

/// The kind of a well-formed credential.
#[must_use]
pub fn kind(entry: &Value) -> Option<Kind> {
    let fields = entry.as_object()?;
    let text = |key: &str| fields.get(key).is_some_and(Value::is_string);
    let texts = |value: &Value| value.as_object().is_some_and(|map| map.values().all(Value::is_string));
    match fields.get("type")?.as_str()? {
        "api_key" => {
            let key = !fields.contains_key("key") || text("key");
            let env = fields.get("env").is_none_or(texts);
            (key && env).then_some(Kind::ApiKey)
        }
        "oauth" => {
            let expires = fields.get("expires").and_then(Value::as_f64).is_some_and(f64::is_finite);
            (text("access") && text("refresh") && expires).then_some(Kind::OAuth)
        }
        _ => None,
    }
}
