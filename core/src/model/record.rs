//! Models as records: the fields of a `models.json` entry with all defaults filled in, and their typed form.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Model, RateTier, Rates};
use crate::json::{Map, Value};

/// Fields of a model, in the spelling of `models.json`.
pub type Record = Map<String, Value>;

/// A field that is a text; else an empty one.
pub(super) fn text<'a>(record: &'a Record, key: &str) -> &'a str {
    record.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Its kind: `chat` unless it says something else.
pub(super) fn kind(record: &Record) -> &str {
    record.get("type").and_then(Value::as_str).unwrap_or("chat")
}

/// Its id, if it is a chat model.
pub(super) fn chat_id(record: &Record) -> Option<&str> {
    record.get("id").and_then(Value::as_str).filter(|_| kind(record) == "chat")
}

/// The typed form. Fields of a wrong type count as absent; records are validated before.
#[must_use]
pub fn to_model(record: &Record) -> Model {
    let text = |key: &str| record.get(key).and_then(Value::as_str).unwrap_or_default().to_string();
    let map = |key: &str| record.get(key).and_then(Value::as_object).cloned();
    let input = |kind: &str| {
        let list = record.get("input").and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|entry| entry == kind))
    };
    Model {
        id: text("id"),
        name: text("name"),
        api: text("api"),
        provider: text("provider"),
        base_url: text("baseUrl"),
        reasoning: record.get("reasoning").and_then(Value::as_bool).unwrap_or_default(),
        text_input: input("text"),
        image_input: input("image"),
        context_window: count(record.get("contextWindow")),
        max_tokens: count(record.get("maxTokens")),
        rates: record.get("cost").map(Rates::of).unwrap_or_default(),
        thinking_levels: map("thinkingLevelMap"),
        headers: headers(record),
        sampling_params: map("samplingParams"),
        sampling_params_by_level: map("samplingParamsByThinkingLevel"),
        compat: map("compat"),
        input_limits: record.get("inputLimits").cloned(),
    }
}

/// Whole tokens; fractions count as one more, so that a configured limit never becomes "unknown".
fn count(value: Option<&Value>) -> u64 {
    let number = value.and_then(Value::as_f64).unwrap_or_default();
    let whole = number as u64;
    if (whole as f64) < number { whole.saturating_add(1) } else { whole }
}

fn headers(record: &Record) -> Vec<(String, Option<String>)> {
    let Some(headers) = record.get("headers").and_then(Value::as_object) else { return Vec::new() };
    let pairs = headers.iter().map(|(name, value)| (name.clone(), value.as_str().map(ToString::to_string)));
    pairs.collect()
}

impl Rates {
    /// The rates of a `cost` object; what is missing or no number costs nothing.
    pub(crate) fn of(cost: &Value) -> Self {
        let Some(cost) = cost.as_object() else { return Self::default() };
        let tiers = cost.get("tiers").and_then(Value::as_array);
        Self {
            input: rate(cost, "input"),
            output: rate(cost, "output"),
            cache_read: rate(cost, "cacheRead"),
            cache_write: rate(cost, "cacheWrite"),
            tiers: tiers.into_iter().flatten().filter_map(Value::as_object).map(tier).collect(),
        }
    }
}

fn tier(cost: &Record) -> RateTier {
    RateTier {
        input_tokens_above: rate(cost, "inputTokensAbove"),
        input: rate(cost, "input"),
        output: rate(cost, "output"),
        cache_read: rate(cost, "cacheRead"),
        cache_write: rate(cost, "cacheWrite"),
    }
}

fn rate(cost: &Record, key: &str) -> f64 {
    cost.get(key).and_then(Value::as_f64).unwrap_or_default()
}
