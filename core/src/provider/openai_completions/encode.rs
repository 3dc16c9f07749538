//! The request of chat completions (spec 30 §3.2).

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::compat::{CacheKey, Compat};
use super::decode::CompletionsDecoder;
use super::messages::{self, Items, mark};
use super::reasoning::Thinking;
use super::tools::write_tools;
use crate::convert::{History, Target, sanitize_id, short_hash};
use crate::fault::Fault;
use crate::json::{Map, Value, Writer};
use crate::model::{Model, ThinkingLevel};
use crate::op::HttpRequest;
use crate::provider::azure::Endpoint;
use crate::provider::body::{BodyCache, Resume};
use crate::provider::flags::Affinity;
use crate::provider::grammar::{FreeForm, free_form};
use crate::provider::headers::{self, HeaderSet};
use crate::provider::request::{authorised, base_url, cache_session, checked_url, post};
use crate::provider::{CacheRetention, Decoder, Encoder, ModelRequest, options};

/// Longest call id that is made from ids of other protocols.
const MAX_ID: usize = 40;
/// Longest cache key, characters.
const MAX_CACHE_KEY: usize = 64;

/// Encoder of this protocol; keeps the last body.
#[derive(Debug, Default)]
pub struct CompletionsEncoder {
    cache: BodyCache,
    history: History,
    /// What the cached items depend on besides the messages.
    profile: Option<Profile>,
    grammar: FreeForm,
    finish_reason: Option<bool>,
}

#[derive(Debug, PartialEq)]
struct Profile {
    names: [String; 3],
    images: bool,
    reasoning: bool,
    compat: Compat,
    marker: Option<Value>,
    grammar: FreeForm,
}

/// Numbers of a request after the options of the caller were mapped (spec 30 §1.9).
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Output limit; `None` = not sent.
    pub max_tokens: Option<u64>,
    /// Thinking level; `None` = off.
    pub effort: Option<ThinkingLevel>,
    /// Nothing is said about thinking.
    pub omit_thinking: bool,
}

impl Limits {
    /// Maps the options: the output limit is clamped to the context beside `input` estimated tokens, the level to what
    /// the model supports.
    #[must_use]
    pub fn of(request: &ModelRequest<'_>, input: u64) -> Self {
        let wanted = request.options.max_tokens;
        let level = request.options.reasoning.map(|level| match level {
            // A model that cannot be told to stop thinking is told nothing.
            ThinkingLevel::Off => level,
            level => request.model.clamp(level),
        });
        Self {
            max_tokens: Some(options::output_limit(request.model, input, wanted)),
            effort: level.filter(|level| *level != ThinkingLevel::Off),
            omit_thinking: level.is_none(),
        }
    }
}

impl Encoder for CompletionsEncoder {
    fn encode(&mut self, request: &ModelRequest<'_>) -> Result<HttpRequest, Fault> {
        self.read(request);
        let limits = Limits::of(request, options::input_tokens(request.model, &mut self.history));
        self.write(request, limits)
    }

    fn decoder(&self, model: &Arc<Model>, now_ms: i64) -> Box<dyn Decoder> {
        let finish_reason = self.finish_reason.unwrap_or_else(|| Compat::of(model).finish_reason);
        Box::new(CompletionsDecoder::new(model, finish_reason, self.grammar.clone(), now_ms))
    }
}

impl CompletionsEncoder {
    /// Encodes with limits that are given as they are.
    ///
    /// # Errors
    /// When there is no credential, the address is unusable, or a tool demands more than the model can do.
    pub fn encode_with(&mut self, request: &ModelRequest<'_>, limits: Limits) -> Result<HttpRequest, Fault> {
        self.read(request);
        self.write(request, limits)
    }

    fn read(&mut self, request: &ModelRequest<'_>) {
        let model = request.model;
        let openai = model.provider == "openai";
        let rule = |id: &str, _: &_| call_id(id, openai);
        let target = Target {
            provider: &model.provider,
            api: &model.api,
            model: &model.id,
            images: model.image_input,
            ids: Some(&rule),
            max_id: MAX_ID,
        };
        self.history.update(request.messages, &target, request.now_ms);
    }

    fn write(&mut self, request: &ModelRequest<'_>, limits: Limits) -> Result<HttpRequest, Fault> {
        let compat = Compat::of(request.model);
        let headers = request_headers(request, &compat, self.history.has_images())?;
        let (url, deployment) = if at_azure(request.model) {
            let endpoint = Endpoint::of(request)?;
            (endpoint.url("chat/completions"), Some(endpoint.deployment))
        } else {
            let base = base_url(request);
            checked_url(base, &request.model.provider)?;
            (format!("{base}/chat/completions"), None)
        };
        let body = self.body(request, limits, &compat, deployment.as_deref())?;
        Ok(post(request, url, headers, body))
    }

    fn body(
        &mut self,
        request: &ModelRequest<'_>,
        limits: Limits,
        compat: &Compat,
        deployment: Option<&str>,
    ) -> Result<Arc<Vec<u8>>, Fault> {
        let model = request.model;
        let marker = marker(compat, request.options.cache);
        let grammar = if compat.grammar { free_form(&self.history.fold().tools) } else { FreeForm::new() };
        self.grammar.clone_from(&grammar);
        self.finish_reason = Some(compat.finish_reason);
        self.keep_profile(model, compat, marker.as_ref(), grammar);

        let items = Items {
            compat,
            reasoning: model.reasoning,
            provider: &model.provider,
            marker: marker.as_ref(),
            grammar: &self.grammar,
        };
        let name = deployment.unwrap_or(&model.id);
        let head = head(request, name, limits, &items, &self.history)?;
        let history = self.history.messages();
        let mut from = self.cache.resume(history);
        let mut units = messages::units(history, from.messages, &items);
        if marker.is_some() && !mark(&mut units) {
            // What is marked stands before them.
            from = Resume::default();
            units = messages::units(history, 0, &items);
            mark(&mut units);
        }
        Ok(self.cache.build(&head, "]}", from, &units, |unit, w| items.write(unit, w)))
    }

    /// Drops the cached items when something changed that all of them depend on.
    fn keep_profile(&mut self, model: &Model, compat: &Compat, marker: Option<&Value>, grammar: FreeForm) {
        let profile = Profile {
            names: [model.provider.clone(), model.api.clone(), model.id.clone()],
            images: model.image_input,
            reasoning: model.reasoning,
            compat: compat.clone(),
            marker: marker.cloned(),
            grammar,
        };
        if self.profile.as_ref() != Some(&profile) {
            self.cache.clear();
            self.profile = Some(profile);
        }
    }
}

/// Everything before the items of the messages, the system text included. `name` is the model's on the wire.
fn head(
    request: &ModelRequest<'_>,
    name: &str,
    limits: Limits,
    items: &Items<'_>,
    history: &History,
) -> Result<String, Fault> {
    let folded = history.fold();
    let fields = fields(request, limits, items.compat, !folded.tools.is_empty());
    let mut w = Writer::new();
    w.begin_object();
    w.field_str("model", name);
    w.field_bool("stream", true);
    let level = limits.effort.unwrap_or_default();
    let extra = options::sampling_params(request.model, level, request.options.sampling_params.as_ref());
    let extra = extra.unwrap_or_default();
    // What is named by the caller wins; the two fields that our reading depends on stay ours.
    let own = |key: &str| !extra.contains_key(key);
    for (key, value) in fields.iter().filter(|(key, _)| own(key)) {
        w.member(key, value);
    }
    if own("tools") {
        if !folded.tools.is_empty() {
            w.key("tools");
            write_tools(&folded.tools, items, &mut w)?;
        } else if items.compat.tools_with_history && history.has_calls() {
            w.key("tools");
            w.begin_array();
            w.end_array();
        }
    }
    for (key, value) in
        extra.iter().filter(|(key, _)| !matches!(key.as_str(), "model" | "messages" | "stream"))
    {
        w.member(key, value);
    }
    w.key("messages");
    w.begin_array();
    let prompt = folded.prompt();
    if !prompt.is_empty() {
        items.system(&prompt, &mut w);
    }
    Ok(w.into_string())
}

/// The small fields of the body, in build order.
fn fields(
    request: &ModelRequest<'_>,
    limits: Limits,
    compat: &Compat,
    has_tools: bool,
) -> Map<String, Value> {
    let (model, options) = (request.model, request.options);
    let mut body = Map::new();
    let mut put = |key: &str, value: Value| {
        body.insert(key.to_owned(), value);
    };
    let long = options.cache == CacheRetention::Long && compat.long_cache;
    if let Some(session) = cache_session(request) {
        let wanted = match compat.cache_key {
            CacheKey::Enabled => true,
            CacheKey::Disabled => false,
            CacheKey::Auto => model.base_url.contains("api.openai.com") || long,
        };
        if wanted {
            put("prompt_cache_key", headers::clip_key(session, MAX_CACHE_KEY).into());
        }
    }
    if long {
        put("prompt_cache_retention", "24h".into());
    }
    if compat.usage_in_streaming {
        put("stream_options", serde_json::json!({"include_usage": true}));
    }
    if compat.store {
        put("store", false.into());
    }
    if let Some(limit) = limits.max_tokens.filter(|limit| *limit > 0) {
        put(&compat.max_tokens_field, limit.into());
    }
    if let Some(temperature) = options.temperature {
        put("temperature", temperature.into());
    }
    if compat.zai_tool_stream && has_tools {
        put("tool_stream", true.into());
    }
    if let Some(choice) = &options.tool_choice {
        put("tool_choice", choice.clone());
    }
    if let Some(priority) = &compat.vllm_priority {
        put("priority", priority.clone());
    }
    let thinking = Thinking {
        model,
        compat,
        effort: limits.effort,
        budgets: &options.budgets,
        ceiling: limits.max_tokens.filter(|limit| *limit > 0).unwrap_or(model.max_tokens),
    };
    if !limits.omit_thinking {
        thinking.write(&mut body);
    }
    if let Some(routing) = &compat.openrouter_routing {
        body.insert("provider".to_owned(), routing.clone());
    }
    if let Some(routing) = &compat.vercel_routing {
        let known = |key: &str| Some((key.to_owned(), routing.get(key)?.clone()));
        let gateway: Map<String, Value> = ["only", "order"].into_iter().filter_map(known).collect();
        if !gateway.is_empty() {
            body.insert("providerOptions".to_owned(), serde_json::json!({ "gateway": gateway }));
        }
    }
    body
}

/// Anthropic's cache marker for routers that pass it on.
fn marker(compat: &Compat, cache: CacheRetention) -> Option<Value> {
    if !compat.anthropic_cache {
        return None;
    }
    match cache {
        CacheRetention::None => None,
        CacheRetention::Long if compat.long_cache => {
            Some(serde_json::json!({"type": "ephemeral", "ttl": "1h"}))
        }
        CacheRetention::Short | CacheRetention::Long => Some(serde_json::json!({"type": "ephemeral"})),
    }
}

/// Headers in layers; an error when nothing authorises the request.
fn request_headers(request: &ModelRequest<'_>, compat: &Compat, images: bool) -> Result<HeaderSet, Fault> {
    let (model, options, credential) = (request.model, request.options, request.credential);
    let mut set = HeaderSet::new();
    set.merge(&headers::identity(model, options.identity.as_ref()));
    set.set("accept", "application/json");
    set.set("content-type", "application/json");
    if let Some(key) = credential.api_key.as_deref().filter(|key| !key.trim().is_empty()) {
        if at_azure(model) {
            set.set("api-key", key);
        } else {
            set.set("authorization", format!("Bearer {key}"));
        }
    }
    set.merge(&model.headers);
    if model.provider == "github-copilot" {
        let last = request.messages.last().map(|last| &**last);
        set.merge(&headers::copilot(last, images));
    }
    if let Some(session) = cache_session(request).filter(|_| compat.session_affinity) {
        let names: &[&str] = match compat.affinity_format {
            Affinity::Full => &["session_id", "x-client-request-id", "x-session-affinity"],
            Affinity::NoSession => &["x-client-request-id", "x-session-affinity"],
            Affinity::Router => &["x-session-id"],
        };
        names.iter().for_each(|name| set.set(name, session));
    }
    set.merge(&headers::opencode_session(model, options.session_id.as_deref(), &options.headers));
    set.merge(&credential.headers);
    set.merge(&options.headers);
    authorised(&set, &["authorization", "cf-aig-authorization", "api-key"], &model.provider)?;
    Ok(set)
}

/// Whether the model is a deployment at Azure, which has its own addresses and its own header for the key.
fn at_azure(model: &Model) -> bool {
    model.provider == "azure"
}

/// A call id of another model in a form that this protocol takes (spec 30 §2).
fn call_id(id: &str, openai: bool) -> String {
    const PART: usize = 64;
    let Some((call, item)) = id.split_once('|') else {
        return if openai { headers::clip_key(id, MAX_ID).to_owned() } else { id.to_owned() };
    };
    let (call, item) = (sanitize_id(call, PART), sanitize_id(item, PART));
    let whole = if item.is_empty() { call.clone().into_owned() } else { format!("{call}_{item}") };
    if whole.len() <= MAX_ID {
        return whole;
    }
    let hash = short_hash(id);
    let hash = headers::clip_key(&hash, 8);
    let room = (MAX_ID - 1).saturating_sub(hash.len()).max(1);
    format!("{}_{hash}", headers::clip_key(&call, room))
}
