//! `models.json` as a file: its shape, and what is wrong with it (spec 40 §3.4). [`super::compose`] makes models of it.
//!
//! A faulty provider entry is dropped with a message that names file, place and reason; the built-in provider of
//! that name and all other entries stay (decision D50).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::record::Record;
use super::schema;
use crate::json::Value;
use crate::settings::{ConfigFault, jsonc};

/// Why an entry cannot be used although its shape is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComposeFault {
    /// It sets nothing.
    Empty,
    /// `oauth` needs `baseUrl`.
    OauthWithoutBaseUrl,
    /// No `api` anywhere for the model with this index.
    MissingApi(usize),
    /// No `baseUrl` anywhere for the model with this index.
    MissingBaseUrl(usize),
}

impl ComposeFault {
    /// Stable name for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Empty => "empty-provider",
            Self::OauthWithoutBaseUrl => "oauth-without-base-url",
            Self::MissingApi(_) => "missing-api",
            Self::MissingBaseUrl(_) => "missing-base-url",
        }
    }

    fn at_and_reason(&self, provider: &str) -> (String, &'static str) {
        let at = format!("providers.{provider}");
        match self {
            Self::Empty => (
                at,
                "sets nothing; give it models, baseUrl, apiKey, headers, compat, modelOverrides, authHeader or oauth",
            ),
            Self::OauthWithoutBaseUrl => (at + ".oauth", "needs baseUrl beside it"),
            Self::MissingApi(index) => {
                (format!("{at}.models.{index}"), "has no api, and neither has the provider")
            }
            Self::MissingBaseUrl(index) => {
                (format!("{at}.models.{index}"), "has no baseUrl, and neither has the provider")
            }
        }
    }
}

/// A `models.json` as read.
#[derive(Clone, Debug, Default)]
pub struct ModelsFile {
    /// Entries of the right shape, in order.
    pub providers: Vec<(String, Record)>,
    /// Everything that is wrong with the file and with the entries left out.
    pub faults: Vec<ConfigFault>,
}

/// Reads the text of `models.json` and checks shapes. `path` is for messages.
#[must_use]
pub fn read(path: &str, text: &str) -> ModelsFile {
    let mut file = ModelsFile::default();
    let whole = |at: &str, reason: String| ConfigFault { file: path.to_string(), at: at.to_string(), reason };
    let entries = match jsonc::parse(text) {
        Ok(Value::Object(mut top)) => match top.shift_remove("providers") {
            Some(Value::Object(entries)) => entries,
            Some(_) => {
                file.faults.push(whole("providers", "must be an object".to_string()));
                return file;
            }
            None => {
                file.faults.push(whole("providers", "is missing".to_string()));
                return file;
            }
        },
        Ok(_) => {
            file.faults.push(whole("", "must hold one JSON object".to_string()));
            return file;
        }
        Err(reason) => {
            file.faults.push(whole("", reason));
            return file;
        }
    };
    for (id, entry) in entries {
        let offences = schema::check_provider(&format!("providers.{id}"), &entry);
        file.faults.extend(offences.iter().map(|(at, reason)| whole(at, reason.clone())));
        if let (true, Value::Object(entry)) = (offences.is_empty(), entry) {
            file.providers.push((id, entry));
        }
    }
    file
}

/// The message for an entry that cannot be composed.
#[must_use]
pub fn compose_fault(path: &str, provider: &str, fault: &ComposeFault) -> ConfigFault {
    let (at, reason) = fault.at_and_reason(provider);
    ConfigFault { file: path.to_string(), at, reason: reason.to_string() }
}
