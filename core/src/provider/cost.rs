//! What a reply cost (spec 30 §1.5).

use crate::json::Value;
use crate::message::{Cost, Usage};
use crate::model::{Model, RateTier, Rates};
use crate::provider::flags::is_openrouter;

/// Cost of a usage at the given rates. The tier with the largest threshold below the whole input applies to the whole
/// request; cache writes kept for an hour cost twice the input rate.
#[must_use]
pub fn cost(rates: &Rates, usage: &Usage) -> Cost {
    let total_in = to_f64(usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write));
    let tier = rates
        .tiers
        .iter()
        .filter(|tier| total_in > tier.input_tokens_above)
        .max_by(|a, b| a.input_tokens_above.total_cmp(&b.input_tokens_above));
    let [input, output, cache_read, cache_write] = match tier {
        Some(t) => [t.input, t.output, t.cache_read, t.cache_write],
        None => [rates.input, rates.output, rates.cache_read, rates.cache_write],
    };
    let per_token = |rate: f64, tokens: u64| rate / 1e6 * to_f64(tokens);
    let hour = usage.cache_write_1h.unwrap_or(0);
    let short = usage.cache_write.saturating_sub(hour);
    let mut cost = Cost {
        input: per_token(input, usage.input),
        output: per_token(output, usage.output),
        cache_read: per_token(cache_read, usage.cache_read),
        cache_write: (cache_write * to_f64(short) + 2.0 * input * to_f64(hour)) / 1e6,
        total: 0.0,
        total_from_provider: Some(false),
    };
    cost.total = cost.input + cost.output + cost.cache_read + cost.cache_write;
    cost
}

/// Sets the cost of a usage: computed, with the total replaced by the billed one where the router reports it in a form
/// that can be trusted. `reported` is the usage object of the response.
pub fn apply(model: &Model, usage: &mut Usage, reported: Option<&Value>) {
    bound(usage);
    usage.cost = cost(&model.rates, usage);
    if is_openrouter(model)
        && let Some(total) = reported.and_then(billed)
    {
        usage.cost.total = total;
        usage.cost.total_from_provider = Some(true);
    }
}

/// Figures that no reply has are cut to the largest that every reader of a session reads as it was written.
pub(super) fn bound(usage: &mut Usage) {
    const MOST: u64 = (1 << 53) - 1;
    let Usage { input, output, cache_read, cache_write, cache_write_1h, reasoning, total_tokens, cost: _ } =
        usage;
    let optional = [cache_write_1h, reasoning].into_iter().flatten();
    for figure in [input, output, cache_read, cache_write, total_tokens].into_iter().chain(optional) {
        *figure = (*figure).min(MOST);
    }
    // A part of the writes.
    usage.cache_write_1h = usage.cache_write_1h.map(|hour| hour.min(usage.cache_write));
}

/// The billed total of a usage object: only when it says whether the user's own upstream key was used, and then with
/// the upstream cost.
fn billed(reported: &Value) -> Option<f64> {
    let amount = |value: Option<&Value>| value.and_then(Value::as_f64).filter(|n| n.is_finite() && *n >= 0.0);
    let cost = amount(reported.get("cost"))?;
    if !reported.get("is_byok")?.as_bool()? {
        return Some(cost);
    }
    let details = reported.get("cost_details")?;
    let upstream = match details.get("upstream_inference_cost") {
        Some(Value::Null) => {
            amount(details.get("upstream_inference_prompt_cost"))?
                + amount(details.get("upstream_inference_completions_cost"))?
        }
        other => amount(other)?,
    };
    Some(cost + upstream)
}

/// Rates from the price list of OpenRouter's catalogue: texts in USD per token, tiers as overrides. Overrides for hours
/// or days are left out.
#[must_use]
pub fn openrouter_rates(pricing: &Value) -> Rates {
    const KEYS: [&str; 4] = ["prompt", "completion", "input_cache_read", "input_cache_write"];
    let price = |list: &Value, key: &str| list.get(key).map(per_million);
    let [input, output, cache_read, cache_write] = KEYS.map(|key| price(pricing, key).unwrap_or(0.0));
    let overrides = pricing.get("overrides").and_then(Value::as_array).into_iter().flatten();
    let tier = |entry: &Value| {
        let timed = entry.as_object()?.keys().any(|key| key.starts_with("utc_"));
        let input_tokens_above = entry.get("min_prompt_tokens")?.as_f64().filter(|_| !timed)?;
        Some(RateTier {
            input_tokens_above,
            input: price(entry, "prompt").unwrap_or(input),
            output: price(entry, "completion").unwrap_or(output),
            cache_read: price(entry, "input_cache_read").unwrap_or(cache_read),
            cache_write: price(entry, "input_cache_write").unwrap_or(cache_write),
        })
    };
    Rates { input, output, cache_read, cache_write, tiers: overrides.filter_map(tier).collect() }
}

/// A price per token (a number, or a text that begins with one) as price per million, six decimals.
fn per_million(price: &Value) -> f64 {
    let per_token = match price {
        Value::String(text) => leading_number(text),
        other => other.as_f64(),
    };
    let micro = per_token.filter(|n| n.is_finite() && *n > 0.0).unwrap_or(0.0) * 1e12;
    // Saturates far above any price.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let rounded = (micro + 0.5) as u64;
    to_f64(rounded) / 1e6
}

/// The longest beginning of a text that is a number.
fn leading_number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let number = text.find(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c)).unwrap_or(text.len());
    (1..=number).rev().find_map(|end| text.get(..end)?.parse().ok())
}

#[allow(clippy::cast_precision_loss)]
const fn to_f64(tokens: u64) -> f64 {
    tokens as f64
}
