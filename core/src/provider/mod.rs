//! **Wire**: one request to a model, as bytes out and events in.
//!
//! Each protocol has one encoder (messages → body) and one decoder (body bytes → [`StreamEvent`]s); vendors differ
//! by flags only. Decoders are push parsers: they take bytes in any split and fold them into one growing
//! [`AssistantMessage`], so that a delta costs its own length and nothing more.

pub mod advice;
pub mod anthropic;
pub mod assemble;
pub mod azure;
pub mod bedrock;
pub mod body;
mod borrow;
pub mod cost;
pub mod demo;
pub mod error;
pub mod event_stream;
mod flags;
pub mod google;
mod grammar;
mod halves;
pub mod headers;
mod marker;
pub mod mistral;
pub mod openai_completions;
pub mod openai_responses;
pub mod options;
mod request;
mod sse_reply;
pub mod stop;
pub mod strict;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::fault::{Fault, IoFault};
use crate::json::{Map, Value};
use crate::message::{AssistantMessage, Message};
use crate::model::{Model, ThinkingLevel};
use crate::op::{Credential, Headers, HttpRequest};

/// How long a provider should keep prompt prefixes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheRetention {
    /// No markers.
    None,
    /// The provider's default.
    #[default]
    Short,
    /// As long as the provider offers.
    Long,
}

/// Thinking budgets in tokens per level; `None` = the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThinkingBudgets {
    /// Minimal.
    pub minimal: Option<u64>,
    /// Low.
    pub low: Option<u64>,
    /// Medium.
    pub medium: Option<u64>,
    /// High.
    pub high: Option<u64>,
}

/// Options of one request, the same for every protocol (spec 30 §1.8, "simple" set).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestOptions {
    /// Thinking level. `Off` is said to protocols that have a word for it; `None`: the request says nothing about
    /// thinking.
    pub reasoning: Option<ThinkingLevel>,
    /// At level `Off` the run says nothing about thinking ([`Self::reasoning`] is `None`): the choice `omit`.
    pub omit_thinking: bool,
    /// Budgets for protocols that think by tokens.
    pub budgets: ThinkingBudgets,
    /// Output cap of this request.
    pub max_tokens: Option<u64>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Extra body fields.
    pub sampling_params: Option<Map<String, Value>>,
    /// Prompt cache retention.
    pub cache: CacheRetention,
    /// Session id, for cache keys and affinity.
    pub session_id: Option<String>,
    /// `auto`, `none`, `any`/`required`, or a protocol-specific object.
    pub tool_choice: Option<Value>,
    /// `user_id` for Anthropic.
    pub metadata: Option<Map<String, Value>>,
    /// Extra headers; `None` deletes a default.
    pub headers: Vec<(String, Option<String>)>,
    /// How the embedding program introduces itself; `None` = as Tau, without attribution.
    pub identity: Option<Arc<headers::Identity>>,
    /// Limits and proxy for the exchange, see [`HttpRequest`].
    pub head_timeout_ms: Option<u64>,
    /// Limit between two pieces of the body, ms.
    pub idle_timeout_ms: Option<u64>,
    /// Longest time of one request with its whole reply, ms; `None` = no limit.
    pub total_timeout_ms: Option<u64>,
    /// Proxy setting.
    pub proxy: Option<String>,
    /// How often a request that brought no response is sent again.
    pub max_retries: u64,
    /// Longest wait before that which a service may ask for, ms; 0 = any.
    pub max_retry_delay_ms: u64,
}

impl RequestOptions {
    /// The options of a request at a thinking level; `omit` is looked at.
    #[must_use]
    pub fn at(&self, level: ThinkingLevel) -> Self {
        let said = level != ThinkingLevel::Off || !self.omit_thinking;
        Self { reasoning: said.then_some(level), ..self.clone() }
    }
}

/// One request: public messages (system, user, assistant, toolResult) for one model.
#[derive(Clone, Copy, Debug)]
pub struct ModelRequest<'a> {
    /// The target.
    pub model: &'a Model,
    /// The messages, already converted to the four public roles.
    pub messages: &'a [Arc<Message>],
    /// The options.
    pub options: &'a RequestOptions,
    /// Credentials resolved for this request.
    pub credential: &'a Credential,
    /// Unix ms now; stamped on synthetic results.
    pub now_ms: i64,
}

/// What a decoder reports. Texts grow by deltas; the whole state is [`Decoder::partial`].
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// The reply begins.
    Start,
    /// A text block begins.
    TextStart {
        /// Index in the content.
        index: usize,
    },
    /// A text block grew.
    TextDelta {
        /// Index in the content.
        index: usize,
        /// What was added.
        delta: String,
    },
    /// A text block is complete; its text is in the content.
    TextEnd {
        /// Index in the content.
        index: usize,
    },
    /// A thinking block begins.
    ThinkingStart {
        /// Index in the content.
        index: usize,
    },
    /// A thinking block grew.
    ThinkingDelta {
        /// Index in the content.
        index: usize,
        /// What was added.
        delta: String,
    },
    /// A thinking block is complete.
    ThinkingEnd {
        /// Index in the content.
        index: usize,
    },
    /// A tool call begins; id and name are in the content and may still be empty.
    ToolCallStart {
        /// Index in the content.
        index: usize,
    },
    /// Arguments of a tool call grew.
    ToolCallDelta {
        /// Index in the content.
        index: usize,
        /// Raw JSON text that was added.
        delta: String,
    },
    /// A tool call is complete.
    ToolCallEnd {
        /// Index in the content.
        index: usize,
    },
    /// The reply is complete; take it with [`Decoder::take`]. Nothing follows.
    Done,
    /// The reply failed (or was aborted); take it with [`Decoder::take`]. Nothing follows.
    Error,
}

/// How a body ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    /// The server closed it properly.
    Complete,
    /// It broke.
    Failed(IoFault),
    /// We cancelled it.
    Aborted,
}

/// A push decoder of one response body.
pub trait Decoder: Send {
    /// The headers of the response came. Most protocols find nothing in them.
    fn on_head(&mut self, _headers: &Headers) {}

    /// Takes bytes of a 2xx body and appends what they mean. Bytes after the terminal event are ignored.
    fn on_bytes(&mut self, bytes: &[u8], out: &mut Vec<StreamEvent>);

    /// The body ended. Appends the terminal event if none came yet.
    fn on_end(&mut self, end: BodyEnd, out: &mut Vec<StreamEvent>);

    /// The reply so far; the final one after the terminal event, until taken.
    fn partial(&self) -> &AssistantMessage;

    /// The final reply, without copying. Call once, after the terminal event.
    fn take(&mut self) -> AssistantMessage;

    /// Best-effort arguments of the tool call at `index` while it streams. Costs the text that is new since the last
    /// look and a copy of the value.
    fn partial_arguments(&mut self, index: usize) -> Option<Value>;
}

/// An encoder of one protocol. It remembers what it encoded last, so that unchanged messages (same `Arc`s, same
/// target) are not encoded again.
pub trait Encoder: Send {
    /// Builds the HTTP request.
    ///
    /// # Errors
    /// When the request cannot be made at all (no credential, unusable address, a schema that cannot be strict).
    fn encode(&mut self, request: &ModelRequest<'_>) -> Result<HttpRequest, Fault>;

    /// A decoder for the response to a request made by this encoder for `model`.
    fn decoder(&self, model: &Arc<Model>, now_ms: i64) -> Box<dyn Decoder>;
}

/// The wire protocols of this build; without that of the demo, which is no service.
pub const APIS: [&str; 9] = [
    openai_completions::API,
    "openai-responses",
    "azure-openai-responses",
    "openai-codex-responses",
    "anthropic-messages",
    google::API,
    google::VERTEX,
    mistral::API,
    bedrock::API,
];

/// Whether this build speaks a wire protocol.
#[must_use]
pub fn speaks(api: &str) -> bool {
    api == demo::API || APIS.contains(&api)
}

/// The encoder of a wire protocol; `None` for one this build does not speak.
#[must_use]
pub fn encoder(api: &str) -> Option<Box<dyn Encoder>> {
    match api {
        demo::API => Some(Box::new(demo::Tour)),
        "anthropic-messages" => Some(Box::new(anthropic::Anthropic::default())),
        bedrock::API => Some(Box::new(bedrock::BedrockEncoder::default())),
        google::API | google::VERTEX => Some(Box::new(google::GoogleEncoder::default())),
        mistral::API => Some(Box::new(mistral::MistralEncoder::default())),
        openai_completions::API => Some(Box::new(openai_completions::CompletionsEncoder::default())),
        _ => openai_responses::Dialect::of(api).map(|dialect| {
            let encoder: Box<dyn Encoder> = Box::new(openai_responses::ResponsesEncoder::new(dialect));
            encoder
        }),
    }
}

/// How often a refused request of a protocol is sent again when the settings do not say more.
#[must_use]
pub fn least_retries(api: &str) -> u64 {
    // What the libraries of AWS do: throttling is a part of everyday life there.
    if api == bedrock::API { 2 } else { 0 }
}
