//! Everything of a request but its messages: prompt, tools, limits, thinking, beta names.

use alloc::string::String;
use alloc::vec::Vec;

use super::compat::{Compat, fallback_id};
use crate::convert::Fold;
use crate::fault::Fault;
use crate::json::{Value, Writer};
use crate::model::ThinkingLevel;
use crate::provider::marker::Marker;
use crate::provider::{ModelRequest, options, strict};

/// Tokens kept for the answer beside a thinking budget.
const ANSWER_ROOM: u64 = 1024;
/// Least tokens to think with.
const LEAST_BUDGET: u64 = 1024;

/// How a request thinks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Thinking<'a> {
    /// Nothing is said about it.
    Unsaid,
    /// Told not to.
    Disabled,
    /// By effort.
    Adaptive(&'a str),
    /// By a number of tokens.
    Budget(u64),
}

/// Thinking and the output limit that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan<'a> {
    pub(super) thinking: Thinking<'a>,
    max_tokens: u64,
}

impl<'a> Plan<'a> {
    /// Chooses by level, model and flags (spec 30 §1.9). Without a level nothing is said (seed 003 "omit").
    /// `input` is what the messages are estimated to take, in tokens.
    pub(super) fn choose(request: &ModelRequest<'a>, compat: &Compat<'_>, input: u64) -> Self {
        let (model, wishes) = (request.model, request.options);
        let clamp = |tokens: u64| options::clamp_to_context(model.context_window, input, tokens);
        let max_tokens = clamp(wishes.max_tokens.unwrap_or(model.max_tokens));
        let thinking = match wishes.reasoning {
            _ if !model.reasoning => Thinking::Unsaid,
            None => Thinking::Unsaid,
            Some(ThinkingLevel::Off) if model.mapped_level(ThinkingLevel::Off) == Some(None) => {
                Thinking::Unsaid
            }
            Some(ThinkingLevel::Off) => Thinking::Disabled,
            Some(level) if compat.adaptive_thinking() => Thinking::Adaptive(effort(request, level)),
            Some(level) => {
                let (most, budget) =
                    options::adjust_for_thinking(Some(max_tokens), model.max_tokens, level, &wishes.budgets);
                let most = clamp(most);
                let budget = budget.min(most.saturating_sub(ANSWER_ROOM));
                // The service refuses a smaller budget. With interleaved thinking it may be above the limit of the reply.
                let thinking = Thinking::Budget(budget.max(LEAST_BUDGET));
                return Self { thinking, max_tokens: most };
            }
        };
        Self { thinking, max_tokens }
    }
}

/// The service's word for a level.
fn effort<'a>(request: &ModelRequest<'a>, level: ThinkingLevel) -> &'a str {
    if let Some(Some(word)) = request.model.mapped_level(level) {
        return word;
    }
    match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal | ThinkingLevel::Low => "low",
        ThinkingLevel::Medium => "medium",
        ThinkingLevel::High | ThinkingLevel::XHigh | ThinkingLevel::Max => "high",
    }
}

/// Names of beta features the request needs.
pub(super) fn betas(compat: &Compat<'_>, thinking: Thinking<'_>, has_tools: bool) -> Vec<&'static str> {
    let mut names = Vec::new();
    if has_tools && !compat.eager_tools() {
        names.push("fine-grained-tool-streaming-2025-05-14");
    }
    if matches!(thinking, Thinking::Budget(_)) {
        names.push("interleaved-thinking-2025-05-14");
    }
    if compat.fallbacks().next().is_some() {
        names.push("server-side-fallback-2026-07-01");
    }
    names
}

/// The body up to the messages: what stays the same from request to request.
pub(super) fn head(
    request: &ModelRequest<'_>,
    compat: &Compat<'_>,
    state: &Fold<'_>,
    cache: Marker,
) -> Result<String, Fault> {
    let mut w = Writer::new();
    w.begin_object();
    w.field_str("model", &request.model.id);
    w.field_bool("stream", true);
    let prompt = state.prompt();
    // A blank text block is refused.
    if !prompt.trim().is_empty() {
        w.key("system");
        w.begin_array();
        w.begin_object();
        w.field_str("type", "text");
        w.field_str("text", &prompt);
        cache.write_field(&mut w);
        w.end_object();
        w.end_array();
    }
    if let Some((last, others)) = state.tools.split_last() {
        w.key("tools");
        w.begin_array();
        for tool in others {
            write_tool(tool, compat, Marker::None, &mut w)?;
        }
        let marker = if compat.cache_on_tools() { cache } else { Marker::None };
        write_tool(last, compat, marker, &mut w)?;
        w.end_array();
    }
    w.key("messages");
    w.begin_array();
    Ok(w.into_string())
}

/// The body behind the messages: limits and wishes, which may change with every request.
pub(super) fn tail(request: &ModelRequest<'_>, compat: &Compat<'_>, plan: &Plan<'_>) -> String {
    let wishes = request.options;
    // Closes the array that the head opened.
    let mut w = Writer::append_to("],".into());
    w.field_u64("max_tokens", plan.max_tokens);
    let thinks = matches!(plan.thinking, Thinking::Adaptive(_) | Thinking::Budget(_));
    if let Some(temperature) = wishes.temperature.filter(|_| !thinks && compat.temperature()) {
        w.field_f64("temperature", temperature);
    }
    write_thinking(plan.thinking, &mut w);
    match &wishes.tool_choice {
        None => {}
        Some(Value::String(kind)) => {
            w.key("tool_choice");
            w.begin_object();
            w.field_str("type", kind);
            w.end_object();
        }
        Some(choice) => w.field_value("tool_choice", choice),
    }
    if let Some(user) = wishes.metadata.as_ref().and_then(|metadata| metadata.get("user_id")?.as_str()) {
        w.key("metadata");
        w.begin_object();
        w.field_str("user_id", user);
        w.end_object();
    }
    let mut fallbacks = compat.fallbacks().filter_map(fallback_id).peekable();
    if fallbacks.peek().is_some() {
        w.key("fallbacks");
        w.begin_array();
        for model in fallbacks {
            w.begin_object();
            w.field_str("model", model);
            w.end_object();
        }
        w.end_array();
    }
    w.end_object();
    w.into_string()
}

fn write_thinking(thinking: Thinking<'_>, w: &mut Writer) {
    match thinking {
        Thinking::Unsaid => {}
        Thinking::Disabled => {
            w.key("thinking");
            w.raw(r#"{"type":"disabled"}"#);
        }
        Thinking::Adaptive(effort) => {
            w.key("thinking");
            w.raw(r#"{"type":"adaptive","display":"summarized"}"#);
            w.key("output_config");
            w.begin_object();
            w.field_str("effort", effort);
            w.end_object();
        }
        Thinking::Budget(tokens) => {
            w.key("thinking");
            w.begin_object();
            w.field_str("type", "enabled");
            w.field_u64("budget_tokens", tokens);
            w.field_str("display", "summarized");
            w.end_object();
        }
    }
}

fn write_tool(tool: &Value, compat: &Compat<'_>, marker: Marker, w: &mut Writer) -> Result<(), Fault> {
    let parameters = tool.get("parameters");
    let enforceable = compat.strict_tools() && parameters.is_none_or(is_enforceable);
    let strict = strict::strict_parameters(tool, enforceable)?;
    let text = |key: &str| tool.get(key).and_then(Value::as_str).unwrap_or_default();
    w.begin_object();
    w.field_str("name", text("name"));
    w.field_str("description", text("description"));
    if compat.eager_tools() {
        w.field_bool("eager_input_streaming", true);
    }
    match strict {
        Some(schema) => {
            w.field_bool("strict", true);
            w.field_value("input_schema", &schema);
        }
        None => write_schema(parameters, w),
    }
    marker.write_field(w);
    w.end_object();
    Ok(())
}

/// The service takes an object schema with few keywords at its root.
fn write_schema(parameters: Option<&Value>, w: &mut Writer) {
    let member = |key: &str| parameters.and_then(|schema| schema.get(key));
    w.key("input_schema");
    w.begin_object();
    w.field_str("type", "object");
    for (key, empty) in [("properties", "{}"), ("required", "[]")] {
        w.key(key);
        match member(key) {
            Some(value) => w.value(value),
            None => w.raw(empty),
        }
    }
    for key in ["additionalProperties", "$defs", "definitions"] {
        if let Some(value) = member(key) {
            w.field_value(key, value);
        }
    }
    w.end_object();
}

/// Keywords that the service does not enforce while sampling.
const NOT_ENFORCED: &[&str] = &[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "maxItems",
    "uniqueItems",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
];

const FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// Whether the service can hold a model to all of a schema.
fn is_enforceable(schema: &Value) -> bool {
    match schema {
        Value::Array(items) => items.iter().all(is_enforceable),
        Value::Object(map) => map.iter().all(|(key, value)| match key.as_str() {
            // The keys below are names of properties, not keywords.
            "properties" => value.as_object().is_none_or(|list| list.values().all(is_enforceable)),
            "minItems" => matches!(value.as_u64(), Some(0 | 1)),
            "format" => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
            "enum" | "const" | "default" | "examples" => true,
            key => !NOT_ENFORCED.contains(&key) && is_enforceable(value),
        }),
        _ => true,
    }
}
