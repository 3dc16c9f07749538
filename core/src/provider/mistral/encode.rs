//! Requests.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::call_id;
use super::decode::MistralDecoder;
use super::messages::{write, write_system};
use crate::convert::{AGAIN, Fold, History, Target};
use crate::fault::Fault;
use crate::json::{Value, Writer};
use crate::message::AssistantMessage;
use crate::model::{Model, ThinkingLevel};
use crate::op::HttpRequest;
use crate::provider::body::{BodyCache, Unit};
use crate::provider::flags::Flags;
use crate::provider::headers::{self, HeaderSet};
use crate::provider::request::{authorised, base_url, cache_session, checked_url, post};
use crate::provider::strict::{strict_parameters, tool_name};
use crate::provider::{Decoder, Encoder, ModelRequest, options};

const DEFAULT_BASE: &str = "https://api.mistral.ai";

/// The encoder; keeps the last body.
#[derive(Debug, Default)]
pub struct MistralEncoder {
    history: History,
    body: BodyCache,
    /// Requests so far.
    requests: u32,
}

impl Encoder for MistralEncoder {
    fn encode(&mut self, request: &ModelRequest<'_>) -> Result<HttpRequest, Fault> {
        self.read(request);
        let input = options::input_tokens(request.model, &mut self.history);
        self.write(request, Some(options::output_limit(request.model, input, request.options.max_tokens)))
    }

    fn decoder(&self, model: &Arc<Model>, now_ms: i64) -> Box<dyn Decoder> {
        Box::new(MistralDecoder::new(model, self.requests, now_ms))
    }
}

impl MistralEncoder {
    /// Encodes with an output limit that is given as it is; `None` = not sent.
    ///
    /// # Errors
    /// When there is no credential, the address is unusable, or a tool demands more than the model can do.
    pub fn encode_with(
        &mut self,
        request: &ModelRequest<'_>,
        max_tokens: Option<u64>,
    ) -> Result<HttpRequest, Fault> {
        self.read(request);
        self.write(request, max_tokens)
    }

    fn read(&mut self, request: &ModelRequest<'_>) {
        let model = request.model;
        let rule = |id: &str, _: &AssistantMessage| match id.split_once(AGAIN) {
            Some((id, attempt)) => call_id(id, attempt.parse().unwrap_or_default()),
            None => call_id(id, 0),
        };
        let target = Target {
            provider: &model.provider,
            api: &model.api,
            model: &model.id,
            images: model.image_input,
            ids: Some(&rule),
            // All nine characters are the id: there is no room for a mark.
            max_id: 0,
        };
        self.history.update(request.messages, &target, request.now_ms);
    }

    fn write(&mut self, request: &ModelRequest<'_>, max_tokens: Option<u64>) -> Result<HttpRequest, Fault> {
        let headers = request_headers(request)?;
        let base = Some(base_url(request)).filter(|base| !base.is_empty()).unwrap_or(DEFAULT_BASE);
        checked_url(base, &request.model.provider)?;
        let state = self.history.fold();
        let head = head(request, &state)?;
        let tail = tail(request, max_tokens, !state.tools.is_empty());
        self.requests = self.requests.wrapping_add(1);
        let history = self.history.messages();
        let from = self.body.resume(history);
        let changed = history.get(from.messages..).unwrap_or_default();
        let units: Vec<Unit<'_>> = changed.iter().map(Unit::single).collect();
        let body = self.body.build(&head, &tail, from, &units, write);
        Ok(post(request, format!("{base}/v1/chat/completions"), headers, body))
    }
}

/// The body up to the messages, the system text included.
fn head(request: &ModelRequest<'_>, state: &Fold<'_>) -> Result<String, Fault> {
    let mut w = Writer::new();
    w.begin_object();
    w.field_str("model", &request.model.id);
    w.field_opt_str("prompt_cache_key", cache_session(request));
    if !state.tools.is_empty() {
        let supported = Flags(request.model.compat.as_ref()).flag("supportsStrictMode", false);
        w.key("tools");
        w.begin_array();
        for tool in &state.tools {
            write_tool(tool, supported, &mut w)?;
        }
        w.end_array();
    }
    w.key("messages");
    w.begin_array();
    let prompt = state.prompt();
    if !prompt.is_empty() {
        write_system(&prompt, &mut w);
    }
    Ok(w.into_string())
}

fn write_tool(tool: &Value, supported: bool, w: &mut Writer) -> Result<(), Fault> {
    let strict = strict_parameters(tool, supported)?;
    w.begin_object();
    w.field_str("type", "function");
    w.key("function");
    w.begin_object();
    w.field_str("name", tool_name(tool));
    w.field_opt_str("description", tool.get("description").and_then(Value::as_str));
    if let Some(parameters) = strict.as_ref().or_else(|| tool.get("parameters")) {
        w.field_value("parameters", parameters);
    }
    w.field_bool("strict", strict.is_some());
    w.end_object();
    w.end_object();
    Ok(())
}

/// The body behind the messages: limits and wishes, which may change with every request.
fn tail(request: &ModelRequest<'_>, max_tokens: Option<u64>, has_tools: bool) -> String {
    let options = request.options;
    // Closes the array that the head opened.
    let mut w = Writer::append_to("],".into());
    w.field_bool("stream", true);
    if let Some(temperature) = options.temperature {
        w.field_f64("temperature", temperature);
    }
    if let Some(limit) = max_tokens {
        w.field_u64("max_tokens", limit);
    }
    if let Some(choice) = options.tool_choice.as_ref().filter(|_| has_tools) {
        w.field_value("tool_choice", choice);
    }
    match thinking(request) {
        Thinking::Unsaid => {}
        Thinking::Effort(word) => w.field_str("reasoning_effort", word),
        Thinking::Prompt => w.field_str("prompt_mode", "reasoning"),
    }
    w.end_object();
    w.into_string()
}

/// How the model is told to think.
enum Thinking<'a> {
    Unsaid,
    Effort(&'a str),
    /// By a prompt of the service.
    Prompt,
}

/// Models with a map of levels take an effort, others only know a mode.
fn thinking<'a>(request: &ModelRequest<'a>) -> Thinking<'a> {
    let model = request.model;
    let Some(wanted) = request.options.reasoning.filter(|_| model.reasoning) else { return Thinking::Unsaid };
    let level = model.clamp(wanted);
    if wanted == ThinkingLevel::Off || level == ThinkingLevel::Off {
        let off = model.mapped_level(ThinkingLevel::Off).flatten();
        return off.map_or(Thinking::Unsaid, Thinking::Effort);
    }
    match model.thinking_levels {
        Some(_) => Thinking::Effort(model.mapped_level(level).flatten().unwrap_or("high")),
        None => Thinking::Prompt,
    }
}

/// Layers in their order, later ones win (spec 30 §7).
fn request_headers(request: &ModelRequest<'_>) -> Result<HeaderSet, Fault> {
    let (model, options, credential) = (request.model, request.options, request.credential);
    let mut set = HeaderSet::new();
    set.merge(&headers::identity(model, options.identity.as_ref()));
    set.set("accept", "text/event-stream");
    set.set("content-type", "application/json");
    if let Some(key) = credential.api_key.as_deref().map(str::trim).filter(|key| !key.is_empty()) {
        set.set("authorization", format!("Bearer {key}"));
    }
    if let Some(session) = cache_session(request) {
        set.set("x-affinity", session);
    }
    set.merge(&headers::opencode_session(model, options.session_id.as_deref(), &options.headers));
    set.merge(&model.headers);
    set.merge(&credential.headers);
    set.merge(&options.headers);
    authorised(&set, &["authorization", "cf-aig-authorization"], &model.provider)?;
    Ok(set)
}
