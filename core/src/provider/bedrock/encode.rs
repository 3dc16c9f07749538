//! Requests.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use super::address::{self, is_on};
use super::decode::BedrockDecoder;
use super::family::Family;
use super::head::{self, Plan};
use super::messages::Shape;
use crate::auth::sigv4::{self, Keys, Scope};
use crate::convert::{History, Target, sanitize_id};
use crate::fault::Fault;
use crate::json::Writer;
use crate::message::AssistantMessage;
use crate::model::Model;
use crate::now::Wall;
use crate::op::{AwsAccess, HttpRequest};
use crate::provider::body::{BodyCache, Resume, Unit, turns};
use crate::provider::headers::{self, HeaderSet};
use crate::provider::marker::Marker;
use crate::provider::request::post;
use crate::provider::{Decoder, Encoder, ModelRequest, options};

/// Longest id of a tool call.
const MAX_ID: usize = 64;
const SERVICE: &str = "bedrock";

/// The encoder; keeps the last body.
#[derive(Debug, Default)]
pub struct BedrockEncoder {
    history: History,
    body: BodyCache,
    /// What the encoding of messages depends on besides the messages.
    shape: Option<Shape>,
}

impl Encoder for BedrockEncoder {
    fn encode(&mut self, request: &ModelRequest<'_>) -> Result<HttpRequest, Fault> {
        let family = Family::of(request.model);
        self.read(request);
        let plan = Plan::choose(request, family, options::input_tokens(request.model, &mut self.history));
        self.write(request, family, &plan)
    }

    fn decoder(&self, model: &Arc<Model>, now_ms: i64) -> Box<dyn Decoder> {
        Box::new(BedrockDecoder::new(model, now_ms))
    }
}

impl BedrockEncoder {
    /// Encodes with limits that are given as they are; Claude wants an output limit in any case.
    ///
    /// # Errors
    /// When there is no credential, the address is unusable, or a tool demands more than the model can do.
    pub fn encode_with(
        &mut self,
        request: &ModelRequest<'_>,
        max_tokens: Option<u64>,
    ) -> Result<HttpRequest, Fault> {
        let family = Family::of(request.model);
        self.read(request);
        let own = Some(request.model.max_tokens).filter(|_| family.is_claude());
        let plan = Plan { thinking: head::Thinking::Unsaid, max_tokens: max_tokens.or(own) };
        self.write(request, family, &plan)
    }

    fn read(&mut self, request: &ModelRequest<'_>) {
        let model = request.model;
        let rule = |id: &str, _: &AssistantMessage| sanitize_id(id, MAX_ID).into_owned();
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

    fn write(
        &mut self,
        request: &ModelRequest<'_>,
        family: Family,
        plan: &Plan<'_>,
    ) -> Result<HttpRequest, Fault> {
        let access = Access::of(request)?;
        let (region, url) = address::place(request)?;
        let caches = family.caches() || is_on(request, "AWS_BEDROCK_FORCE_CACHE");
        let cache = if caches { Marker::of(request.options.cache, true) } else { Marker::None };
        let head = head::head(request, &self.history.fold(), cache)?;
        let tail = head::tail(request, plan);
        let body = self.write_messages(&head, &tail, cache, Shape { claude: family.is_claude() });
        let mut made = post(request, url, request_headers(request, &access), body);
        if let Access::Keys(keys) = access {
            let scope = Scope { region: &region, service: SERVICE };
            sigv4::sign(&mut made, &keys, scope, Wall(request.now_ms));
        }
        Ok(made)
    }

    fn write_messages(
        &mut self,
        head: &str,
        tail: &str,
        cache: Marker,
        shape: Shape,
    ) -> Arc<alloc::vec::Vec<u8>> {
        if self.shape != Some(shape) {
            self.body.clear();
            self.shape = Some(shape);
        }
        let history = self.history.messages();
        let says = |unit: &Unit<'_>| unit.sources.iter().any(|message| shape.says_something(message));
        let mut from = self.body.resume(history);
        let mut units = turns(history, from.messages);
        let mut last = units.iter().rposition(says);
        if last.is_none() {
            // What is marked stands before them.
            from = Resume::default();
            units = turns(history, 0);
            last = units.iter().rposition(says);
        }
        if let Some(last) = last.and_then(|at| units.get_mut(at))
            && last.sources.first().is_some_and(|one| one.as_assistant().is_none())
        {
            last.flavour = cache.flavour();
        }
        self.body.build(head, tail, from, &units, |unit: &Unit<'_>, w: &mut Writer| {
            shape.write(unit.sources, Marker::from_flavour(unit.flavour), w);
        })
    }
}

/// What authorises a request.
enum Access<'a> {
    Bearer(&'a str),
    Keys(Keys),
}

impl<'a> Access<'a> {
    /// A key of the provider is a bearer token; `AWS_BEDROCK_SKIP_AUTH=1` is for gateways that authorise by themselves.
    fn of(request: &ModelRequest<'a>) -> Result<Self, Fault> {
        let credential = request.credential;
        let key = credential.api_key.as_deref().map(str::trim).filter(|key| !key.is_empty());
        match (key, &credential.aws) {
            _ if is_on(request, "AWS_BEDROCK_SKIP_AUTH") => Ok(Self::Keys(Keys {
                id: "dummy-access-key".into(),
                secret: "dummy-secret-key".into(),
                session: None,
            })),
            (Some(key), _) => Ok(Self::Bearer(key)),
            (None, Some(AwsAccess::Bearer(token))) => Ok(Self::Bearer(token.trim())),
            (None, Some(AwsAccess::Keys(keys))) => Ok(Self::Keys(keys.clone())),
            (None, None) => Err(Fault::new(
                "no_key",
                format!(
                    "No credentials for provider \"{}\": set AWS_BEARER_TOKEN_BEDROCK, AWS_PROFILE, or \
                     AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
                    request.model.provider
                ),
            )),
        }
    }
}

/// Layers in their order, later ones win (spec 30 §7). What AWS reads itself is not for the user to set.
fn request_headers(request: &ModelRequest<'_>, access: &Access<'_>) -> HeaderSet {
    let (model, options) = (request.model, request.options);
    let mut set = HeaderSet::new();
    set.merge(&headers::identity(model, options.identity.as_ref()));
    set.set("content-type", "application/json");
    for layer in [&model.headers, &request.credential.headers, &options.headers] {
        let own = layer.iter().filter(|(name, _)| !is_reserved(name)).cloned();
        set.merge(&own.collect::<alloc::vec::Vec<(String, Option<String>)>>());
    }
    if let Access::Bearer(token) = access {
        set.set("authorization", format!("Bearer {token}"));
    }
    set
}

fn is_reserved(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("x-amz-") || name == "authorization" || name == "host"
}
