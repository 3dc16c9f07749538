//! Prices.

use serde_json::{Value, json};
use tau_core::provider::cost::openrouter_rates;
use tau_tests::compare::same;

pub use crate::runners::providers::pure::price;

/// `openrouter-cost`
pub fn openrouter(_: &Value, case: &Value) -> Result<(), String> {
    let rates = openrouter_rates(&case["input"]["pricing"]);
    let mut got = json!({
        "input": rates.input,
        "output": rates.output,
        "cacheRead": rates.cache_read,
        "cacheWrite": rates.cache_write,
    });
    if !rates.tiers.is_empty() {
        let tier = |tier: &tau_core::model::RateTier| {
            json!({
                "inputTokensAbove": tier.input_tokens_above,
                "input": tier.input,
                "output": tier.output,
                "cacheRead": tier.cache_read,
                "cacheWrite": tier.cache_write,
            })
        };
        got["tiers"] = rates.tiers.iter().map(tier).collect();
    }
    same(&case["expected"], &got)
}
