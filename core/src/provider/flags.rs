//! Reading `model.compat`: flags as configured, and those that several protocols share.

use alloc::string::String;

use crate::json::{Map, Value};
use crate::model::Model;

/// Flags of the configuration; values of a wrong type do not count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flags<'a>(pub(super) Option<&'a Map<String, Value>>);

impl<'a> Flags<'a> {
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.0?.get(key)
    }

    pub(super) fn flag(&self, key: &str, default: bool) -> bool {
        self.get(key).and_then(Value::as_bool).unwrap_or(default)
    }

    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        self.get(key)?.as_str()
    }

    pub(super) fn one_of<T: Copy>(&self, key: &str, table: &[(&str, T)]) -> Option<T> {
        let name = self.text(key)?;
        table.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

/// Headers that keep the requests of a session on one machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Affinity {
    #[default]
    Full,
    NoSession,
    Router,
}

const AFFINITIES: &[(&str, Affinity)] = &[
    ("openai", Affinity::Full),
    ("openai-nosession", Affinity::NoSession),
    ("openrouter", Affinity::Router),
];

impl Affinity {
    /// As configured, else by the service.
    pub(super) fn of(model: &Model) -> Self {
        let found = if is_openrouter(model) { Self::Router } else { Self::Full };
        Flags(model.compat.as_ref()).one_of("sessionAffinityFormat", AFFINITIES).unwrap_or(found)
    }
}

/// Whether requests go to OpenRouter.
pub(super) fn is_openrouter(model: &Model) -> bool {
    model.provider == "openrouter" || model.base_url.contains("openrouter.ai")
}
