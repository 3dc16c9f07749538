//! How `modelOverrides` and `compat` of `models.json` merge into a model (spec 40 §3.3).

use alloc::string::{String, ToString};

use super::record::Record;
use crate::json::{Map, Value};

/// Maps inside `compat` that merge instead of being replaced.
const DEEP_COMPAT: [&str; 4] =
    ["openRouterRouting", "vercelGatewayRouting", "chatTemplateKwargs", "chatTemplateArgs"];

/// Puts an override over a record. `api` and `baseUrl` cannot be overridden; headers are kept elsewhere.
pub(super) fn apply_override(model: &mut Record, over: &Record) {
    for (key, value) in over {
        match (key.as_str(), value) {
            ("name" | "reasoning" | "input" | "contextWindow" | "maxTokens", value) => {
                model.insert(key.clone(), value.clone());
            }
            ("thinkingLevelMap" | "promptCache" | "samplingParams" | "cost", Value::Object(new)) => {
                with_object(model, key, |old| old.extend(new.clone()));
            }
            // Per level, per parameter.
            ("samplingParamsByThinkingLevel", Value::Object(new)) => {
                with_object(model, key, |old| merge_levels(old, new, 1));
            }
            // The limits themselves, those of images, those of resizing.
            ("inputLimits", Value::Object(new)) => with_object(model, key, |old| merge_levels(old, new, 2)),
            ("compat", Value::Object(new)) => merge_compat(model, new),
            _ => {}
        }
    }
}

/// Merges flags into the `compat` of a record: flat, but for the four maps of [`DEEP_COMPAT`].
pub(super) fn merge_compat(model: &mut Record, new: &Record) {
    with_object(model, "compat", |own| {
        for (key, value) in new {
            match (own.get_mut(key), value) {
                (Some(Value::Object(old)), Value::Object(new)) if DEEP_COMPAT.contains(&key.as_str()) => {
                    old.extend(new.clone());
                }
                _ => {
                    own.insert(key.clone(), value.clone());
                }
            }
        }
    });
}

/// Merges fields, and objects in them down to `depth`.
fn merge_levels(old: &mut Record, new: &Record, depth: u8) {
    for (key, value) in new {
        match (old.get_mut(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) if depth > 0 => merge_levels(old, new, depth - 1),
            _ => {
                old.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Changes the object under a key; makes one if there is none.
fn with_object(record: &mut Record, key: &str, change: impl FnOnce(&mut Map<String, Value>)) {
    let mut map = match record.get_mut(key).map(Value::take) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    change(&mut map);
    record.insert(key.to_string(), Value::Object(map));
}
