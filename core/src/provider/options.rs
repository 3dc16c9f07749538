//! From the options of a caller to the numbers of a request (spec 30 §1.9).

use alloc::string::String;

use super::ThinkingBudgets;
use crate::convert::History;
use crate::json::{Map, Value};
use crate::model::{Model, ThinkingLevel};

/// Room kept for the answer when a thinking budget meets a ceiling, tokens.
const ANSWER_ROOM: u64 = 1024;

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

/// Estimated tokens of the messages, where they matter: a model of unknown size has no room that they could fill.
pub fn input_tokens(model: &Model, history: &mut History) -> u64 {
    if model.context_window == 0 { 0 } else { history.tokens() }
}

/// Output limit of a request beside `input` estimated tokens: what the caller wants or the model's ceiling, clamped to
/// the context.
#[must_use]
pub fn output_limit(model: &Model, input: u64, wanted: Option<u64>) -> u64 {
    clamp_to_context(model.context_window, input, wanted.unwrap_or(model.max_tokens))
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
