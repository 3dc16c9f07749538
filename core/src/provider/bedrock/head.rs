//! Everything of a request but its messages: prompt, tools, limits, thinking.

use alloc::string::String;

use super::family::{Family, is_gov_cloud};
use crate::convert::Fold;
use crate::fault::Fault;
use crate::json::{Value, Writer};
use crate::model::ThinkingLevel;
use crate::provider::flags::Flags;
use crate::provider::marker::Marker;
use crate::provider::{ModelRequest, options, strict};

/// Tokens kept for the answer beside a thinking budget; also the least budget that Claude takes.
const ANSWER_ROOM: u64 = 1024;

/// How a request thinks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Thinking<'a> {
    /// Nothing is said about it.
    Unsaid,
    /// Claude, by effort.
    Adaptive(&'a str),
    /// Claude, by a number of tokens.
    Budget(u64),
    /// OpenAI's open models.
    OssEffort(&'a str),
    /// OpenAI's other models.
    Effort(&'a str),
}

/// Limits of a request after the options of the caller were mapped (spec 30 §1.9).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan<'a> {
    /// How it thinks.
    pub(super) thinking: Thinking<'a>,
    /// Output limit; `None` = the service's.
    pub(super) max_tokens: Option<u64>,
}

impl<'a> Plan<'a> {
    /// Chooses by level and model. `input` is what the messages are estimated to take, in tokens.
    pub(super) fn choose(request: &ModelRequest<'a>, family: Family, input: u64) -> Self {
        let (model, wishes) = (request.model, request.options);
        let clamp = |tokens: u64| options::clamp_to_context(model.context_window, input, tokens);
        let max_tokens = clamp(wishes.max_tokens.unwrap_or(model.max_tokens));
        let level = wishes.reasoning.filter(|level| model.reasoning && *level != ThinkingLevel::Off);
        let thinking = match (family, level) {
            (Family::Other, _) | (_, None) => Thinking::Unsaid,
            (Family::Claude(_), Some(level)) if family.is_adaptive() => {
                Thinking::Adaptive(effort(request, level, family.thinks_harder()))
            }
            (Family::Claude(_), Some(level)) => {
                let (most, budget) =
                    options::adjust_for_thinking(Some(max_tokens), model.max_tokens, level, &wishes.budgets);
                let most = clamp(most);
                let budget = budget.min(most.saturating_sub(ANSWER_ROOM)).max(ANSWER_ROOM);
                return Self { thinking: Thinking::Budget(budget), max_tokens: Some(most) };
            }
            (Family::GptOss, Some(level)) => Thinking::OssEffort(effort(request, level, false)),
            (Family::Gpt, Some(level)) => Thinking::Effort(effort(request, level, false)),
        };
        Self { thinking, max_tokens: Some(max_tokens) }
    }
}

/// The service's word for a level: the model's own, else the usual one.
fn effort<'a>(request: &ModelRequest<'a>, level: ThinkingLevel, harder: bool) -> &'a str {
    if let Some(Some(word)) = request.model.mapped_level(level) {
        return word;
    }
    match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal | ThinkingLevel::Low => "low",
        ThinkingLevel::Medium => "medium",
        ThinkingLevel::XHigh if harder => "xhigh",
        ThinkingLevel::Max if harder => "max",
        ThinkingLevel::High | ThinkingLevel::XHigh | ThinkingLevel::Max => "high",
    }
}

/// The body up to the messages: what stays the same from request to request.
pub(super) fn head(request: &ModelRequest<'_>, state: &Fold<'_>, cache: Marker) -> Result<String, Fault> {
    let mut w = Writer::new();
    w.begin_object();
    let prompt = state.prompt();
    // A blank text block is refused.
    if !prompt.trim().is_empty() {
        w.key("system");
        w.begin_array();
        w.begin_object();
        w.field_str("text", &prompt);
        w.end_object();
        cache.write_block(&mut w);
        w.end_array();
    }
    write_tools(request, state, &mut w)?;
    w.key("messages");
    w.begin_array();
    Ok(w.into_string())
}

fn write_tools(request: &ModelRequest<'_>, state: &Fold<'_>, w: &mut Writer) -> Result<(), Fault> {
    let choice = request.options.tool_choice.as_ref();
    if state.tools.is_empty() || choice.is_some_and(|choice| choice == "none") {
        return Ok(());
    }
    w.key("toolConfig");
    w.begin_object();
    w.key("tools");
    w.begin_array();
    let can = Flags(request.model.compat.as_ref()).flag("supportsStrictMode", false);
    for tool in &state.tools {
        write_tool(tool, can, w)?;
    }
    w.end_array();
    if let Some(choice) = choice {
        w.key("toolChoice");
        write_choice(choice, w);
    }
    w.end_object();
    Ok(())
}

fn write_tool(tool: &Value, can_strict: bool, w: &mut Writer) -> Result<(), Fault> {
    let strict = strict::strict_parameters(tool, can_strict)?;
    w.begin_object();
    w.key("toolSpec");
    w.begin_object();
    w.field_str("name", strict::tool_name(tool));
    let description = tool.get("description").and_then(Value::as_str);
    // An empty one is refused.
    w.field_opt_str("description", description.filter(|text| !text.trim().is_empty()));
    w.key("inputSchema");
    w.begin_object();
    w.key("json");
    match strict.as_ref().or_else(|| tool.get("parameters")) {
        Some(schema) => w.value(schema),
        None => w.raw(r#"{"type":"object","properties":{}}"#),
    }
    w.end_object();
    if strict.is_some() {
        w.field_bool("strict", true);
    }
    w.end_object();
    w.end_object();
    Ok(())
}

fn write_choice(choice: &Value, w: &mut Writer) {
    let named = choice.get("name").and_then(Value::as_str);
    match (choice.as_str(), named) {
        (Some("auto"), _) => w.raw(r#"{"auto":{}}"#),
        (Some(_), _) => w.raw(r#"{"any":{}}"#),
        (None, Some(name)) => {
            w.begin_object();
            w.key("tool");
            w.begin_object();
            w.field_str("name", name);
            w.end_object();
            w.end_object();
        }
        (None, None) => w.value(choice),
    }
}

/// The body behind the messages: limits and wishes, which may change with every request.
pub(super) fn tail(request: &ModelRequest<'_>, plan: &Plan<'_>) -> String {
    let wishes = request.options;
    // Closes the array that the head opened.
    let mut w = Writer::append_to("],".into());
    w.key("inferenceConfig");
    w.begin_object();
    if let Some(limit) = plan.max_tokens {
        w.field_u64("maxTokens", limit);
    }
    let claude_thinks = matches!(plan.thinking, Thinking::Adaptive(_) | Thinking::Budget(_));
    if let Some(temperature) = wishes.temperature.filter(|_| !claude_thinks) {
        w.field_f64("temperature", temperature);
    }
    w.end_object();
    write_thinking(request, plan.thinking, &mut w);
    if let Some(metadata) =
        wishes.metadata.as_ref().filter(|metadata| metadata.values().all(Value::is_string))
    {
        w.key("requestMetadata");
        w.map(metadata);
    }
    w.end_object();
    w.into_string()
}

fn write_thinking(request: &ModelRequest<'_>, thinking: Thinking<'_>, w: &mut Writer) {
    if thinking == Thinking::Unsaid {
        return;
    }
    let shows = !is_gov_cloud(request.model);
    w.key("additionalModelRequestFields");
    w.begin_object();
    match thinking {
        Thinking::Unsaid => {}
        Thinking::Adaptive(effort) => {
            w.key("thinking");
            w.begin_object();
            w.field_str("type", "adaptive");
            if shows {
                w.field_str("display", "summarized");
                // Thinking whose history changed is left out instead of being refused.
                w.key("block_binding");
                w.raw(r#"{"prefix_mismatch_behavior":"drop_block"}"#);
            }
            w.end_object();
            w.key("output_config");
            w.begin_object();
            w.field_str("effort", effort);
            w.end_object();
            if shows {
                w.key("anthropic_beta");
                w.raw(r#"["thinking-binding-controls-2026-08-01"]"#);
            }
        }
        Thinking::Budget(tokens) => {
            w.key("thinking");
            w.begin_object();
            w.field_str("type", "enabled");
            w.field_u64("budget_tokens", tokens);
            if shows {
                w.field_str("display", "summarized");
            }
            w.end_object();
            w.key("anthropic_beta");
            w.raw(r#"["interleaved-thinking-2025-05-14"]"#);
        }
        Thinking::OssEffort(effort) => w.field_str("reasoning_effort", effort),
        Thinking::Effort(effort) => {
            w.key("reasoning");
            w.begin_object();
            w.field_str("effort", effort);
            w.end_object();
        }
    }
    w.end_object();
}
