//! `anthropic-messages`: requests ([`Anthropic`]) and streamed replies (spec 30 §3.1).
//!
//! An API key goes into `x-api-key`; a bearer token is given as a header. No client of another vendor is imitated
//! (D6). Server-side threads and system messages inside a conversation are not used: the history is sent whole, with
//! cache markers.

mod compat;
mod decode;
mod head;
mod messages;
mod wire;

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use self::compat::Compat;
use super::body::{BodyCache, Resume, Unit, rows};
use super::headers::{self, HeaderSet};
use super::marker::Marker;
use super::{CacheRetention, Decoder, Encoder, ModelRequest, options};
use crate::convert::{History, Target, sanitize_id};
use crate::fault::Fault;
use crate::json::Writer;
use crate::message::AssistantMessage;
use crate::model::Model;
use crate::op::{Headers, HttpRequest};

/// Text of a tool result whose images follow after all results; an error result may not hold images.
pub const ERROR_IMAGE_MOVED: &str = "(the image follows after the tool results)";
/// Thinking that the service hides.
pub const REASONING_REDACTED: &str = "[thinking hidden by the provider]";

/// Variables of workload identity federation; the first [`FEDERATION_NEEDS`] must be there.
pub const FEDERATION: [&str; 5] = [
    "ANTHROPIC_FEDERATION_RULE_ID",
    "ANTHROPIC_ORGANIZATION_ID",
    "ANTHROPIC_IDENTITY_TOKEN_FILE",
    "ANTHROPIC_SERVICE_ACCOUNT_ID",
    "ANTHROPIC_WORKSPACE_ID",
];
/// How many of [`FEDERATION`] must be there.
pub const FEDERATION_NEEDS: usize = 3;
/// Name of the beta that a token of federation needs.
const FEDERATED: &str = "oauth-2025-04-20";

const DEFAULT_BASE: &str = "https://api.anthropic.com";
const VERSION: &str = "2023-06-01";
/// Longest id of a tool call.
const MAX_ID: usize = 64;

/// What stands above the images of an error result.
#[must_use]
pub fn error_images_caption(call_id: &str, tool: &str) -> String {
    format!("Images of the failed call {call_id} of tool {tool}:")
}

/// The encoder.
#[derive(Debug, Default)]
pub struct Anthropic {
    history: History,
    body: BodyCache,
    /// What the encoding of messages depends on besides the messages.
    shape: Option<messages::Shape>,
}

impl Encoder for Anthropic {
    fn encode(&mut self, request: &ModelRequest<'_>) -> Result<HttpRequest, Fault> {
        let compat = Compat::of(request.model);
        let ids = |id: &str, _: &AssistantMessage| sanitize_id(id, MAX_ID).into_owned();
        let target = Target {
            provider: &request.model.provider,
            api: &request.model.api,
            model: &request.model.id,
            images: request.model.image_input,
            ids: Some(&ids),
            max_id: MAX_ID,
        };
        self.history.update(request.messages, &target, request.now_ms);
        let plan =
            head::Plan::choose(request, &compat, options::input_tokens(request.model, &mut self.history));
        let state = self.history.fold();
        let headers =
            request_headers(request, &compat, plan.thinking, !state.tools.is_empty(), &self.history)?;
        let cache = Marker::of(request.options.cache, compat.long_cache());
        let head = head::head(request, &compat, &state, cache)?;
        let tail = head::tail(request, &compat, &plan);
        let body = self.encode_messages(&head, &tail, cache, &compat);
        let options = request.options;
        Ok(HttpRequest {
            method: "POST",
            url: format!("{}/v1/messages?beta=true", base_url(request)),
            headers,
            body,
            head_timeout_ms: options.head_timeout_ms,
            idle_timeout_ms: options.idle_timeout_ms,
            proxy: options.proxy.clone(),
        })
    }

    fn decoder(&self, model: &Arc<Model>, now_ms: i64) -> Box<dyn Decoder> {
        Box::new(decode::AnthropicDecoder::new(model, now_ms))
    }
}

impl Anthropic {
    fn encode_messages(
        &mut self,
        head: &str,
        tail: &str,
        cache: Marker,
        compat: &Compat<'_>,
    ) -> Arc<Vec<u8>> {
        let shape = messages::Shape { empty_signature: compat.allow_empty_signature() };
        if self.shape != Some(shape) {
            self.body.clear();
            self.shape = Some(shape);
        }
        let history = self.history.messages();
        let mut from = self.body.resume(history);
        let mut units = rows(history, from.messages);
        let mut last = last_that_speaks(&mut units, shape);
        if last.is_none() {
            // What is marked stands before them.
            from = Resume::default();
            units = rows(history, 0);
            last = last_that_speaks(&mut units, shape);
        }
        if let Some(last) = last
            && !matches!(last.sources, [one] if one.as_assistant().is_some())
        {
            last.flavour = cache.flavour();
        }
        self.body.build(head, tail, from, &units, |unit: &Unit<'_>, w: &mut Writer| {
            messages::write_unit(unit.sources, Marker::from_flavour(unit.flavour), shape, w);
        })
    }
}

fn last_that_speaks<'u, 'm>(units: &'u mut [Unit<'m>], shape: messages::Shape) -> Option<&'u mut Unit<'m>> {
    units.iter_mut().rev().find(|unit| messages::says_something(unit, shape))
}

fn base_url<'a>(request: &'a ModelRequest<'_>) -> &'a str {
    let base = request.credential.base_url.as_deref().unwrap_or(&request.model.base_url);
    let base = if base.is_empty() { DEFAULT_BASE } else { base };
    base.trim_end_matches('/')
}

/// Layers in their order, later ones win (spec 30 §7).
fn request_headers(
    request: &ModelRequest<'_>,
    compat: &Compat<'_>,
    thinking: head::Thinking<'_>,
    has_tools: bool,
    history: &History,
) -> Result<Headers, Fault> {
    let (model, options) = (request.model, request.options);
    let mut set = HeaderSet::new();
    set.merge(&headers::identity(model, options.identity.as_ref()));
    set.set("accept", "application/json");
    set.set("content-type", "application/json");
    set.set("anthropic-version", VERSION);
    set.set("anthropic-dangerous-direct-browser-access", "true");
    let mut betas = head::betas(compat, thinking, has_tools);
    if request.credential.env.iter().any(|(name, _)| name == FEDERATION[0]) {
        betas.push(FEDERATED);
    }
    set.set("anthropic-beta", betas.join(","));
    if let Some(key) = api_key(request)? {
        if model.provider == "github-copilot" {
            set.set("authorization", format!("Bearer {key}"));
        } else {
            set.set("x-api-key", key);
        }
    }
    let session = options.session_id.as_deref().filter(|id| !id.is_empty());
    let affinity =
        session.filter(|_| options.cache != CacheRetention::None).zip(compat.affinity_header(model));
    if let Some((id, name)) = affinity {
        set.set(name, id);
    }
    set.merge(&headers::opencode_session(model, session, &options.headers));
    set.merge(&model.headers);
    if model.provider == "github-copilot" {
        let last = history.messages().last().map(|last| &**last);
        set.merge(&headers::copilot(last, history.has_images()));
    }
    set.merge(&request.credential.headers);
    set.merge(&options.headers);
    tidy_betas(&mut set);
    let authorized = ["authorization", "x-api-key", "cf-aig-authorization"]
        .iter()
        .any(|name| set.get(name).is_some_and(|value| !value.trim().is_empty()));
    if !authorized {
        return Err(Fault::new(
            "no_key",
            format!(
                "No API key for provider {}. Set its key in the environment (ANTHROPIC_API_KEY for anthropic), \
                 in auth.json, or with --api-key.",
                model.provider
            ),
        ));
    }
    Ok(set.into_headers())
}

fn api_key<'a>(request: &ModelRequest<'a>) -> Result<Option<&'a str>, Fault> {
    let key = request.credential.api_key.as_deref().map(str::trim).filter(|key| !key.is_empty());
    if key.is_some_and(|key| key.contains("sk-ant-oat")) {
        return Err(Fault::new(
            "unsupported_credential",
            "This is the token of a Claude subscription. It only works for Anthropic's own programs; use an API key \
             (ANTHROPIC_API_KEY).",
        ));
    }
    Ok(key)
}

/// A configured list replaces ours: names trimmed, each once; an empty list is not sent.
fn tidy_betas(set: &mut HeaderSet) {
    const NAME: &str = "anthropic-beta";
    let Some(list) = set.get(NAME).map(ToOwned::to_owned) else { return };
    let mut names: Vec<&str> = Vec::new();
    for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    set.delete(NAME);
    if !names.is_empty() {
        set.set(NAME, names.join(","));
    }
}
