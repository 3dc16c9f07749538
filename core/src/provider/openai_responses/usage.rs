//! Tokens and cost of a response.

use super::Dialect;
use crate::json::Value;
use crate::message::Usage;
use crate::model::Model;
use crate::provider::cost;

/// Tokens and cost of a usage object; zero without one.
pub(super) fn usage(model: &Model, reported: &Value) -> Usage {
    let count = |value: Option<&Value>| value.and_then(whole).unwrap_or(0);
    let inner = |outer: &str, key: &str| count(reported.get(outer).and_then(|details| details.get(key)));
    let mut usage = Usage::default();
    if reported.is_object() {
        usage.cache_read = inner("input_tokens_details", "cached_tokens");
        usage.cache_write = inner("input_tokens_details", "cache_write_tokens");
        let cached = usage.cache_read.saturating_add(usage.cache_write);
        usage.input = count(reported.get("input_tokens")).saturating_sub(cached);
        usage.output = count(reported.get("output_tokens"));
        usage.reasoning = Some(inner("output_tokens_details", "reasoning_tokens"));
        let sum = usage.context_tokens();
        usage.total_tokens = reported.get("total_tokens").and_then(whole).unwrap_or(sum);
    }
    cost::apply(model, &mut usage, Some(reported));
    usage
}

/// A number as a count; negative ones are 0.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_f64().map(|n| n as u64))
}

/// What a service tier does to the price (spec 30 §1.5).
pub(super) fn tier_factor(
    dialect: Dialect,
    model: &str,
    requested: Option<&str>,
    reported: Option<&str>,
) -> f64 {
    let named = match (dialect, reported) {
        (Dialect::Azure, _) => return 1.0,
        // ChatGPT reports the default while it serves what was asked for.
        (Dialect::Codex, Some("default")) => {
            requested.filter(|tier| matches!(*tier, "flex" | "priority")).or(reported)
        }
        _ => reported.or(requested),
    };
    match named {
        Some("flex") => 0.5,
        Some("priority" | "fast") if model == "gpt-5.5" => 2.5,
        Some("priority") => 2.0,
        Some("fast") if dialect == Dialect::OpenAi => 2.0,
        _ => 1.0,
    }
}

/// The usage with every part of its computed cost multiplied; a billed one is what it is.
pub(super) fn times(mut usage: Usage, factor: f64) -> Usage {
    let cost = &mut usage.cost;
    if cost.total_from_provider == Some(true) {
        return usage;
    }
    for part in
        [&mut cost.input, &mut cost.output, &mut cost.cache_read, &mut cost.cache_write, &mut cost.total]
    {
        *part *= factor;
    }
    usage
}
