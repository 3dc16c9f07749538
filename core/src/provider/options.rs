//! From the options of a caller to the numbers of a request (spec 30 §1.9).

use alloc::string::String;
use alloc::sync::Arc;

use super::ThinkingBudgets;
use crate::json::{self, Map, Value, Writer};
use crate::message::{Block, Content, Message, SystemMessage};
use crate::model::{Model, ThinkingLevel};

/// Room kept for the answer when a thinking budget meets a ceiling, tokens.
const ANSWER_ROOM: u64 = 1024;
/// An image counts as this many UTF-16 units.
const IMAGE_UNITS: u64 = 4800;

/// Tokens to think at a level. `xhigh` and `max` use the budget of `high`; `off` has none.
#[must_use]
pub fn thinking_budget(level: ThinkingLevel, custom: &ThinkingBudgets) -> u64 {
    match level {
        ThinkingLevel::Off => 0,
        ThinkingLevel::Minimal => custom.minimal.unwrap_or(1024),
        ThinkingLevel::Low => custom.low.unwrap_or(2048),
        ThinkingLevel::Medium => custom.medium.unwrap_or(8192),
        ThinkingLevel::High | ThinkingLevel::XHigh | ThinkingLevel::Max => custom.high.unwrap_or(16384),
    }
}

/// Output limit and thinking budget of a request that thinks: the budget is added to the wanted output (or the model's
/// ceiling is used), and gives way when there is no room for an answer.
#[must_use]
pub fn adjust_for_thinking(
    base: Option<u64>,
    model_max: u64,
    level: ThinkingLevel,
    custom: &ThinkingBudgets,
) -> (u64, u64) {
    let budget = thinking_budget(level, custom);
    let max_tokens = base.map_or(model_max, |base| base.saturating_add(budget).min(model_max));
    if max_tokens <= budget {
        return (max_tokens, budget.min(max_tokens.saturating_sub(ANSWER_ROOM)));
    }
    (max_tokens, budget)
}

/// The thinking budget of a level under an output ceiling; 0 = no room.
#[must_use]
pub fn budget_under(level: ThinkingLevel, custom: &ThinkingBudgets, ceiling: u64) -> u64 {
    thinking_budget(level, custom).min(ceiling.saturating_sub(ANSWER_ROOM))
}

/// Output limit that still fits into the context window beside `input` estimated tokens. `window` 0 = unknown.
#[must_use]
pub fn clamp_to_context(window: u64, input: u64, max_tokens: u64) -> u64 {
    const MARGIN: u64 = 4096;
    const GOOD_ROOM: u64 = 32_768;
    if window == 0 {
        return max_tokens.max(1);
    }
    let margin = MARGIN.max(ceil(0.15 * to_f64(input)));
    let mut room = window.saturating_sub(input).saturating_sub(margin);
    if room < GOOD_ROOM {
        room = window.saturating_sub(input).saturating_sub(MARGIN).min(GOOD_ROOM);
    }
    max_tokens.min(room.max(1))
}

/// Output limit of a request: what the caller wants or the model's ceiling, clamped to the context.
#[must_use]
pub fn output_limit(model: &Model, messages: &[Arc<Message>], wanted: Option<u64>) -> u64 {
    let wanted = wanted.unwrap_or(model.max_tokens);
    let input = if model.context_window == 0 { 0 } else { estimate_context(messages) };
    clamp_to_context(model.context_window, input, wanted)
}

/// Extra body fields: the model's, then those of the level, then the request's; later ones win. `None` when there are
/// no such settings at all.
#[must_use]
pub fn sampling_params(
    model: &Model,
    level: ThinkingLevel,
    request: Option<&Map<String, Value>>,
) -> Option<Map<String, Value>> {
    let by_level = model.sampling_params_by_level.as_ref();
    let of_level = by_level.and_then(|levels| levels.get(model.clamp(level).name())?.as_object());
    let layers = [model.sampling_params.as_ref(), of_level, request];
    if layers.iter().all(Option::is_none) {
        return None;
    }
    let mut merged = Map::new();
    for (key, value) in layers.into_iter().flatten().flatten() {
        merged.insert(key.clone(), value.clone());
    }
    Some(merged)
}

/// Estimated input tokens: the last usage a provider reported, plus estimates of what came after it. A usage that is
/// older than a message before it belongs to another view of the history and does not count.
#[must_use]
pub fn estimate_context(messages: &[Arc<Message>]) -> u64 {
    let mut newest = i64::MIN;
    let mut anchor = None;
    for (index, message) in messages.iter().enumerate() {
        if let Some(reply) = message.as_assistant()
            && !reply.stop_reason.is_failure()
            && reply.usage.context_tokens() > 0
            && reply.timestamp >= newest
        {
            anchor = Some((index, reply.usage.context_tokens()));
        }
        newest = newest.max(message.timestamp());
    }
    let (start, base) = anchor.map_or((0, 0), |(index, tokens)| (index + 1, tokens));
    let later = messages.get(start..).unwrap_or_default();
    later.iter().fold(base, |sum, message| sum.saturating_add(estimate_message(message)))
}

/// Estimated tokens of one message: UTF-16 units by 3.5, rounded up; images count a fixed size.
#[must_use]
pub fn estimate_message(message: &Message) -> u64 {
    let units = match message {
        Message::System(m) => system_units(m),
        Message::User(m) => content_units(&m.content),
        Message::Assistant(m) => m.content.iter().map(block_units).sum(),
        Message::ToolResult(m) => m.content.iter().map(block_units).sum(),
        _ => 0,
    };
    units.saturating_mul(2).div_ceil(7)
}

fn system_units(message: &SystemMessage) -> u64 {
    let sections = message.sections.iter().filter_map(|(_, text)| text.as_deref());
    let texts: u64 = core::iter::once(message.content.as_str()).chain(sections).map(utf16_len).sum();
    let lists = [&message.tools_added, &message.tools_removed];
    let tools = lists.into_iter().flatten().filter(|list| !list.is_empty()).map(|list| {
        let mut w = Writer::new();
        w.begin_array();
        list.iter().for_each(|tool| w.value(tool));
        w.end_array();
        utf16_len(w.as_str())
    });
    texts + tools.sum::<u64>()
}

fn content_units(content: &Content) -> u64 {
    match content {
        Content::Text(text) => utf16_len(text),
        Content::Blocks(blocks) => blocks.iter().map(block_units).sum(),
    }
}

fn block_units(block: &Block) -> u64 {
    match block {
        Block::Text(block) => utf16_len(&block.text),
        Block::Thinking(block) => utf16_len(&block.thinking),
        Block::Image(_) => IMAGE_UNITS,
        Block::ToolCall(call) => utf16_len(&call.name) + utf16_len(&json::to_string(&call.arguments)),
        Block::Other(_) => 0,
    }
}

/// Length in UTF-16 units: one per character, two above U+FFFF. Counts bytes, so that it runs at memory speed.
fn utf16_len(text: &str) -> u64 {
    let units = |b: u8| u32::from(b & 0xc0 != 0x80) + u32::from(b >= 0xf0);
    text.as_bytes().chunks(1 << 16).map(|part| u64::from(part.iter().map(|b| units(*b)).sum::<u32>())).sum()
}

#[allow(clippy::cast_precision_loss)]
const fn to_f64(n: u64) -> f64 {
    n as f64
}

/// Rounds a number that is not negative up.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn ceil(x: f64) -> u64 {
    let whole = x as u64;
    if to_f64(whole) < x { whole + 1 } else { whole }
}
