//! Request headers: merging in layers, who we are, and what some services want to know (spec 30 §7).
//!
//! We send our own name only (D6). Attribution is off unless the host turns it on (D7).

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::message::Message;
use crate::model::Model;
use crate::op::{Headers, host_of};

/// `User-Agent` of every request, unless the host sets another one.
pub const USER_AGENT: &str = concat!("tau/", env!("CARGO_PKG_VERSION"));

/// Our name for services that want one.
const CLIENT: &str = "tau";

/// Name and value; `None` deletes what earlier layers set.
pub type HeaderList = Vec<(String, Option<String>)>;

/// How the embedding program introduces itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `User-Agent`; `None` = [`USER_AGENT`].
    pub user_agent: Option<String>,
    /// Shown in dashboards of routers that support it; `None` = nothing is sent.
    pub attribution: Option<Attribution>,
}

/// What routers are told about the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribution {
    /// Name of the program.
    pub name: String,
    /// Its home page.
    pub url: String,
    /// Categories.
    pub categories: Vec<String>,
}

/// Headers in the making. Names compare without case; later layers win; `None` deletes.
#[derive(Clone, Debug, Default)]
pub struct HeaderSet(Headers);

impl HeaderSet {
    /// An empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Sets one header.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.delete(name);
        self.0.push((name.to_ascii_lowercase(), value.into()));
    }

    /// Removes one header.
    pub fn delete(&mut self, name: &str) {
        self.0.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    }

    /// Lays a layer over the set.
    pub fn merge(&mut self, layer: &[(String, Option<String>)]) {
        for (name, value) in layer {
            match value {
                Some(value) => self.set(name, value.as_str()),
                None => self.delete(name),
            }
        }
    }

    /// The value of a header.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The headers in order, names in lower case.
    #[must_use]
    pub fn into_headers(self) -> Headers {
        self.0
    }
}

/// The lowest layer: who we are, and attribution for services that take it.
#[must_use]
pub fn identity(model: &Model, identity: Option<&Arc<Identity>>) -> HeaderList {
    let agent = identity.and_then(|id| id.user_agent.as_deref()).unwrap_or(USER_AGENT);
    let mut list = alloc::vec![("user-agent".to_owned(), Some(agent.to_owned()))];
    if is_opencode(model) {
        // Asked for by the service (seed 003 §6.2), with attribution or without.
        list.push(("x-opencode-client".to_owned(), Some(CLIENT.to_owned())));
    }
    if let Some(attribution) = identity.and_then(|id| id.attribution.as_ref()) {
        list.extend(attribution_headers(model, attribution));
    }
    list
}

/// Attribution for the service of a model; empty for services without such headers.
#[must_use]
pub fn attribution_headers(model: &Model, attribution: &Attribution) -> HeaderList {
    let header = |name: &str, value: String| (name.to_owned(), Some(value));
    let mut list = Vec::new();
    if model.provider == "openrouter" || model.base_url.contains("openrouter.ai") {
        list.push(header("http-referer", attribution.url.clone()));
        list.push(header("x-openrouter-title", attribution.name.clone()));
        if !attribution.categories.is_empty() {
            list.push(header("x-openrouter-categories", attribution.categories.join(",")));
        }
    } else if model.provider == "nvidia" || host_name(&model.base_url) == "integrate.api.nvidia.com" {
        let mut letters = attribution.name.chars();
        let first = letters.next().map(|c| c.to_ascii_uppercase());
        list.push(header("x-billing-invoke-origin", first.into_iter().chain(letters).collect()));
    } else if is_opencode(model) {
        list.push(header("x-opencode-client", attribution.name.clone()));
    }
    list
}

/// Routing of OpenCode: every request of a conversation names it (seed 003 §6.2), unless the caller does.
#[must_use]
pub fn opencode_session(
    model: &Model,
    session_id: Option<&str>,
    caller: &[(String, Option<String>)],
) -> HeaderList {
    const NAME: &str = "x-opencode-session";
    let set = |(name, value): &(String, Option<String>)| {
        name.eq_ignore_ascii_case(NAME) && value.as_ref().is_some_and(|value| !value.is_empty())
    };
    match session_id.filter(|id| !id.is_empty() && is_opencode(model) && !caller.iter().any(set)) {
        Some(id) => alloc::vec![(NAME.to_owned(), Some(id.to_owned()))],
        None => Vec::new(),
    }
}

fn is_opencode(model: &Model) -> bool {
    matches!(model.provider.as_str(), "opencode" | "opencode-go")
        || host_name(&model.base_url) == "opencode.ai"
}

/// What GitHub Copilot wants to know about a request: who caused it, which its last message tells, and whether it
/// holds `images`.
#[must_use]
pub fn copilot(last: Option<&Message>, images: bool) -> HeaderList {
    let by_user = last.is_none_or(|last| matches!(last, Message::User(_)));
    let header = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
    let mut list = alloc::vec![
        header("x-initiator", if by_user { "user" } else { "agent" }),
        header("openai-intent", "conversation-edits"),
    ];
    if images {
        list.push(header("copilot-vision-request", "true"));
    }
    list
}

/// Host of an address, without scheme, user info and port; empty when it is none.
fn host_name(url: &str) -> String {
    let origin = host_of(url);
    let host = origin.split_once("://").map_or("", |(_, host)| host);
    host.split(':').next().unwrap_or_default().to_ascii_lowercase()
}

/// The first `limit` characters of a cache key (code points, `prompt_cache_key` takes 64).
#[must_use]
pub fn clip_key(key: &str, limit: usize) -> &str {
    key.char_indices().nth(limit).and_then(|(end, _)| key.get(..end)).unwrap_or(key)
}
