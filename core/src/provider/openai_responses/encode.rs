//! The request of the Responses protocol.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;

use super::compat::Compat;
use super::decode::ResponsesDecoder;
use super::head::{self, Head};
use super::items::{Items, foreign_call_id, units};
use super::{Dialect, codex};
use crate::convert::{History, Target};
use crate::fault::Fault;
use crate::message::AssistantMessage;
use crate::model::{Model, ThinkingLevel};
use crate::op::HttpRequest;
use crate::provider::azure::Endpoint;
use crate::provider::body::BodyCache;
use crate::provider::grammar::{FreeForm, free_form};
use crate::provider::request::post;
use crate::provider::{Decoder, Encoder, ModelRequest, options};

/// Longest part of a call id.
const MAX_ID: usize = 64;

/// Encoder of this protocol; keeps the last body.
#[derive(Debug)]
pub struct ResponsesEncoder {
    dialect: Dialect,
    cache: BodyCache,
    history: History,
    /// What the cached items depend on besides the messages: provider, protocol and id of the model, and the tools
    /// whose calls are free-form.
    target: [String; 3],
    free_form: FreeForm,
    /// The service tier that was asked for.
    tier: Option<String>,
}

/// Numbers of a request after the options of the caller were mapped (spec 30 §1.9).
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Output limit; `None` = not sent.
    pub max_tokens: Option<u64>,
    /// Thinking level, also `Off`; `None` = the caller named none.
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
        Self {
            max_tokens: Some(options::output_limit(request.model, input, wanted)),
            // A model that cannot be told to stop thinking is told nothing.
            effort: request.options.reasoning.map(|level| match level {
                ThinkingLevel::Off => level,
                level => request.model.clamp(level),
            }),
            omit_thinking: request.options.reasoning.is_none(),
        }
    }
}

impl Encoder for ResponsesEncoder {
    fn encode(&mut self, request: &ModelRequest<'_>) -> Result<HttpRequest, Fault> {
        self.read(request);
        let limits = Limits::of(request, options::input_tokens(request.model, &mut self.history));
        self.write(request, limits)
    }

    fn decoder(&self, model: &Arc<Model>, now_ms: i64) -> Box<dyn Decoder> {
        let (free_form, tier) = (self.free_form.clone(), self.tier.clone());
        Box::new(ResponsesDecoder::new(self.dialect, model, free_form, tier, now_ms))
    }
}

impl ResponsesEncoder {
    /// An encoder for one dialect.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            cache: BodyCache::default(),
            history: History::default(),
            target: [const { String::new() }; 3],
            free_form: FreeForm::new(),
            tier: None,
        }
    }

    /// Encodes with limits that are given as they are.
    ///
    /// # Errors
    /// When there is no credential, the address is unusable, or a tool demands more than the model can do.
    pub fn encode_with(&mut self, request: &ModelRequest<'_>, limits: Limits) -> Result<HttpRequest, Fault> {
        self.read(request);
        self.write(request, limits)
    }

    fn read(&mut self, request: &ModelRequest<'_>) {
        let (model, dialect) = (request.model, self.dialect);
        let knows_items = matches!(model.provider.as_str(), "openai" | "openai-codex" | "opencode")
            || (dialect == Dialect::Azure && model.provider == "azure");
        let rule = |id: &str, reply: &AssistantMessage| {
            let same_service = reply.provider == model.provider && reply.api == model.api;
            foreign_call_id(id, knows_items, same_service)
        };
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
        let headers = head::headers(request, self.dialect, self.history.has_images())?;
        let (url, deployment) = match self.dialect {
            Dialect::OpenAi => (head::endpoint(request)?, None),
            Dialect::Azure => {
                let endpoint = Endpoint::of(request)?;
                (endpoint.url("responses"), Some(endpoint.deployment))
            }
            Dialect::Codex => (codex::url(request)?, None),
        };
        let body = self.body(request, limits, deployment.as_deref())?;
        Ok(post(request, url, headers, body))
    }

    fn body(
        &mut self,
        request: &ModelRequest<'_>,
        limits: Limits,
        deployment: Option<&str>,
    ) -> Result<Arc<alloc::vec::Vec<u8>>, Fault> {
        let (model, dialect) = (request.model, self.dialect);
        let compat = Compat::of(model, dialect);
        let free = if compat.grammar { free_form(&self.history.fold().tools) } else { FreeForm::new() };
        self.keep_target(model, free);

        let folded = self.history.fold();
        let head = Head { request, limits, dialect, compat, deployment, folded: &folded };
        let head = head.write(&mut self.tier)?;
        let items = Items { model, free_form: &self.free_form };
        let history = self.history.messages();
        let from = self.cache.resume(history);
        let units = units(history, from.messages, |reply| self.cache.flavour(reply).unwrap_or_default());
        Ok(self.cache.build(&head, "]}", from, &units, |unit, w| items.write(unit, w)))
    }

    /// Drops the cached items when something changed that all of them depend on.
    fn keep_target(&mut self, model: &Model, free_form: FreeForm) {
        let names = [&model.provider, &model.api, &model.id];
        if self.target.each_ref() != names || self.free_form != free_form {
            self.cache.clear();
            self.target = names.map(String::clone);
            self.free_form = free_form;
        }
    }
}
