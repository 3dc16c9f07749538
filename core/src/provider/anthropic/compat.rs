//! Flags by which services that speak this protocol differ (spec 30 §3.1).

use alloc::string::String;

use crate::json::{Map, Value};
use crate::model::{Model, Rates};

/// The flags of a model, with defaults for what is not configured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compat<'a>(Option<&'a Map<String, Value>>);

impl<'a> Compat<'a> {
    pub(super) const fn of(model: &'a Model) -> Self {
        Self(model.compat.as_ref())
    }

    fn flag(&self, name: &str, default: bool) -> bool {
        self.0.and_then(|map| map.get(name)?.as_bool()).unwrap_or(default)
    }

    /// Tool arguments are streamed as they are written when asked for by a field of the tool.
    pub(super) fn eager_tools(&self) -> bool {
        self.flag("supportsEagerToolInputStreaming", true)
    }

    pub(super) fn long_cache(&self) -> bool {
        self.flag("supportsLongCacheRetention", true)
    }

    pub(super) fn cache_on_tools(&self) -> bool {
        self.flag("supportsCacheControlOnTools", true)
    }

    pub(super) fn temperature(&self) -> bool {
        self.flag("supportsTemperature", true)
    }

    /// Thinking without a signature may go back as thinking.
    pub(super) fn allow_empty_signature(&self) -> bool {
        self.flag("allowEmptySignature", false)
    }

    pub(super) fn strict_tools(&self) -> bool {
        self.flag("supportsStrictTools", false)
    }

    /// The model thinks by effort, not by a budget.
    pub(super) fn adaptive_thinking(&self) -> bool {
        self.flag("forceAdaptiveThinking", false)
    }

    /// Name of the header that keeps a session on one backend.
    pub(super) fn affinity_header(&self, model: &Model) -> Option<&'static str> {
        let openrouter = model.provider == "openrouter" || model.base_url.contains("openrouter.ai");
        if !self.flag("sendSessionAffinityHeaders", openrouter) {
            return None;
        }
        let format = self.0.and_then(|map| map.get("sessionAffinityFormat")?.as_str());
        Some(if openrouter || format == Some("openrouter") { "x-session-id" } else { "x-session-affinity" })
    }

    /// Models the service may answer with instead.
    pub(super) fn fallbacks(&self) -> impl Iterator<Item = &'a Value> {
        let list = self.0.and_then(|map| map.get("allowedFallbackModels")?.as_array());
        list.into_iter().flatten()
    }

    /// Prices of a fallback model.
    pub(super) fn fallback_rates(&self, model: &str) -> Option<Rates> {
        self.fallbacks().find(|item| fallback_id(item) == Some(model))?.get("cost").map(Rates::of)
    }
}

/// Model id of an entry of the fallback list.
pub(super) fn fallback_id(item: &Value) -> Option<&str> {
    item.get("model")?.as_str()
}
