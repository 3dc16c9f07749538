//! Everything of a request but its items: headers, address, options, tools and the system text.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use super::compat::Compat;
use super::encode::Limits;
use super::{Dialect, codex};
use crate::convert::Fold;
use crate::fault::Fault;
use crate::json::{Map, Value, Writer};
use crate::model::{Model, ThinkingLevel};
use crate::provider::flags::Affinity;
use crate::provider::grammar::grammar;
use crate::provider::headers::{self, HeaderSet};
use crate::provider::request::{authorised, base_url, cache_session, checked_url};
use crate::provider::strict::{strict_parameters, tool_name};
use crate::provider::{CacheRetention, ModelRequest, options};

/// Longest cache key, characters.
const MAX_CACHE_KEY: usize = 64;
/// Smallest output limit that the service takes.
const MIN_OUTPUT: u64 = 16;

/// Facts of one body.
pub(super) struct Head<'a> {
    pub(super) request: &'a ModelRequest<'a>,
    pub(super) limits: Limits,
    pub(super) dialect: Dialect,
    pub(super) compat: Compat,
    /// Stands for the id of the model.
    pub(super) deployment: Option<&'a str>,
    pub(super) folded: &'a Fold<'a>,
}

impl Head<'_> {
    /// The body up to its first message; tells the service tier it asks for.
    pub(super) fn write(&self, tier: &mut Option<String>) -> Result<String, Fault> {
        let model = self.request.model;
        let mut body = self.fields();
        // What the caller names wins.
        for (key, value) in self.extra() {
            if !matches!(key.as_str(), "model" | "input" | "stream") {
                body.insert(key, value);
            }
        }
        *tier = body.get("service_tier").and_then(Value::as_str).map(ToOwned::to_owned);
        let mut w = Writer::new();
        w.begin_object();
        w.field_str("model", self.deployment.unwrap_or(&model.id));
        w.field_bool("stream", true);
        body.iter().for_each(|(key, value)| w.member(key, value));
        if !self.folded.tools.is_empty() && !body.contains_key("tools") {
            w.key("tools");
            self.tools(&mut w)?;
        }
        w.key("input");
        w.begin_array();
        let prompt = self.folded.prompt();
        if !prompt.is_empty() {
            let developer = model.reasoning && self.compat.developer_role;
            w.begin_object();
            w.field_str("role", if developer { "developer" } else { "system" });
            w.field_str("content", &prompt);
            w.end_object();
        }
        Ok(w.into_string())
    }

    /// Body fields of the configuration. ChatGPT takes only those that it knows.
    fn extra(&self) -> Map<String, Value> {
        let level = self.limits.effort.unwrap_or_default();
        let request = self.request.options.sampling_params.as_ref();
        let mut extra = options::sampling_params(self.request.model, level, request).unwrap_or_default();
        if self.dialect == Dialect::Codex {
            extra.retain(|key, _| key == "service_tier");
        }
        extra
    }

    /// The small fields, in build order.
    fn fields(&self) -> Map<String, Value> {
        let (request, compat, dialect) = (self.request, &self.compat, self.dialect);
        let options = request.options;
        let plain = !is_sign_in(request);
        let mut body = Map::new();
        let mut put = |key: &str, value: Value| {
            body.insert(key.to_owned(), value);
        };
        // Azure caches by key whatever is asked for.
        let session = match dialect {
            Dialect::Azure => options.session_id.as_deref().filter(|id| !id.is_empty()),
            _ => cache_session(request),
        };
        if let Some(session) = session.filter(|_| compat.cache_key) {
            put("prompt_cache_key", headers::clip_key(session, MAX_CACHE_KEY).into());
        }
        if dialect == Dialect::OpenAi && plain {
            match options.cache {
                CacheRetention::Long if compat.explicit_cache => {
                    put("prompt_cache_options", one("ttl", "30m"));
                }
                CacheRetention::None if compat.explicit_cache => {
                    put("prompt_cache_options", one("mode", "explicit"));
                }
                CacheRetention::Long if compat.long_cache => put("prompt_cache_retention", "24h".into()),
                _ => {}
            }
        }
        put("store", false.into());
        if dialect == Dialect::Codex {
            put("text", one("verbosity", "low"));
            put("parallel_tool_calls", true.into());
            put("tool_choice", "auto".into());
        }
        let limit = self.limits.max_tokens.filter(|limit| *limit > 0 && plain);
        if let Some(limit) = limit.filter(|_| compat.max_output_tokens) {
            put("max_output_tokens", limit.max(MIN_OUTPUT).into());
        }
        if let Some(temperature) = options.temperature.filter(|_| plain) {
            put("temperature", temperature.into());
        }
        if let Some(choice) = &options.tool_choice {
            put("tool_choice", choice.clone());
        }
        let (reasoning, encrypted) = self.reasoning();
        if let Some(reasoning) = reasoning {
            put("reasoning", reasoning);
        }
        if encrypted {
            put("include", Value::Array(alloc::vec!["reasoning.encrypted_content".into()]));
        }
        body
    }

    /// How much to think, and whether the reasoning comes back as something that can be sent again.
    fn reasoning(&self) -> (Option<Value>, bool) {
        let model = self.request.model;
        let codex = self.dialect == Dialect::Codex;
        if !model.reasoning || self.limits.omit_thinking {
            return (None, codex);
        }
        let level = self.limits.effort.unwrap_or_default();
        let off = level == ThinkingLevel::Off;
        let word = match (model.mapped_level(level), off) {
            (Some(None), true) => None,
            (None, true) if model.provider == "github-copilot" => None,
            (None, true) => Some("none"),
            (mapped, _) => Some(mapped.flatten().unwrap_or_else(|| level.name())),
        };
        let summary = !off || (codex && self.limits.effort.is_some());
        let reasoning = word.map(|word| {
            let mut fields = Map::new();
            fields.insert("effort".to_owned(), word.into());
            if summary {
                fields.insert("summary".to_owned(), "auto".into());
            }
            Value::Object(fields)
        });
        (reasoning, codex || !off || model.provider == "xai")
    }

    fn tools(&self, w: &mut Writer) -> Result<(), Fault> {
        w.begin_array();
        for tool in &self.folded.tools {
            let grammar = grammar(tool).filter(|_| self.compat.grammar);
            w.begin_object();
            w.field_str("type", if grammar.is_some() { "custom" } else { "function" });
            w.field_str("name", tool_name(tool));
            w.field_opt_str("description", tool.get("description").and_then(Value::as_str));
            if let Some(grammar) = grammar {
                w.key("format");
                w.begin_object();
                w.field_str("type", "grammar");
                w.field_str("syntax", grammar.syntax);
                w.field_str("definition", grammar.definition);
                w.end_object();
            } else {
                let strict = strict_parameters(tool, self.compat.strict)?;
                if let Some(parameters) = strict.as_ref().or_else(|| tool.get("parameters")) {
                    w.field_value("parameters", parameters);
                }
                if self.compat.strict {
                    w.key("strict");
                    match (&strict, self.dialect) {
                        (None, Dialect::Codex) => w.null(),
                        (strict, _) => w.bool(strict.is_some()),
                    }
                }
            }
            w.end_object();
        }
        w.end_array();
        Ok(())
    }
}

fn one(key: &str, value: &str) -> Value {
    Value::Object([(key.to_owned(), value.into())].into_iter().collect())
}

/// Whether the key is the token of a ChatGPT sign-in used at OpenAI's own address, where fewer fields are taken.
fn is_sign_in(request: &ModelRequest<'_>) -> bool {
    let key = request.credential.api_key.as_deref().unwrap_or("sk-");
    request.model.provider == "openai"
        && base_url(request) == "https://api.openai.com/v1"
        && !key.starts_with("sk-")
}

/// The address at OpenAI and compatible services.
pub(super) fn endpoint(request: &ModelRequest<'_>) -> Result<String, Fault> {
    let base = base_url(request);
    checked_url(base, &request.model.provider)?;
    Ok(format!("{base}/responses"))
}

/// Headers in layers; an error when nothing authorises the request.
pub(super) fn headers(
    request: &ModelRequest<'_>,
    dialect: Dialect,
    images: bool,
) -> Result<HeaderSet, Fault> {
    let (model, options, credential) = (request.model, request.options, request.credential);
    let mut set = HeaderSet::new();
    set.merge(&headers::identity(model, options.identity.as_ref()));
    set.set("accept", "application/json");
    set.set("content-type", "application/json");
    let key = credential.api_key.as_deref().filter(|key| !key.trim().is_empty());
    if let Some(key) = key {
        match dialect {
            Dialect::Azure => set.set("api-key", key),
            _ => set.set("authorization", format!("Bearer {key}")),
        }
    }
    if dialect == Dialect::Codex {
        set.set("originator", codex::ORIGINATOR);
    }
    set.merge(&model.headers);
    if model.provider == "github-copilot" {
        let last = request.messages.last().map(|last| &**last);
        set.merge(&headers::copilot(last, images));
    }
    affinity(&mut set, model, cache_session(request), dialect);
    set.merge(&headers::opencode_session(model, options.session_id.as_deref(), &options.headers));
    set.merge(&credential.headers);
    set.merge(&options.headers);
    if dialect == Dialect::Codex {
        codex::finish_headers(&mut set, key, &model.provider)?;
    }
    authorised(&set, &["authorization", "cf-aig-authorization", "api-key"], &model.provider)?;
    Ok(set)
}

/// Headers that keep a session on one machine.
fn affinity(set: &mut HeaderSet, model: &Model, session: Option<&str>, dialect: Dialect) {
    let Some(session) = session else { return };
    let (session, format) = match dialect {
        Dialect::Azure => return,
        Dialect::Codex => (headers::clip_key(session, MAX_CACHE_KEY), Affinity::Full),
        Dialect::OpenAi => (session, Affinity::of(model)),
    };
    let names: &[&str] = match format {
        Affinity::Full => &["session-id", "x-client-request-id"],
        Affinity::NoSession => &["x-client-request-id"],
        Affinity::Router => &["x-session-id"],
    };
    names.iter().for_each(|name| set.set(name, session));
}
