//! From vector JSON to the types of the core.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::sync::Arc;

use serde_json::Value;
use tau_core::json::Map;
use tau_core::message::{Message, SystemMessage};
use tau_core::model::{Model, RateTier, Rates, ThinkingLevel};
use tau_core::op::Credential;
use tau_core::provider::headers::{Attribution, Identity};
use tau_core::provider::{CacheRetention, RequestOptions, ThinkingBudgets};

/// Text at a key, empty when absent.
pub fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn map(value: &Value) -> Option<Map<String, Value>> {
    value.as_object().cloned()
}

/// Name → text or null.
pub fn header_list(value: &Value) -> Vec<(String, Option<String>)> {
    let entries = value.as_object().into_iter().flatten();
    entries.map(|(name, value)| (name.clone(), value.as_str().map(str::to_owned))).collect()
}

/// A price list.
pub fn rates(value: &Value) -> Rates {
    let rate = |value: &Value, key: &str| value[key].as_f64().unwrap_or_default();
    let tier = |value: &Value| RateTier {
        input_tokens_above: rate(value, "inputTokensAbove"),
        input: rate(value, "input"),
        output: rate(value, "output"),
        cache_read: rate(value, "cacheRead"),
        cache_write: rate(value, "cacheWrite"),
    };
    Rates {
        input: rate(value, "input"),
        output: rate(value, "output"),
        cache_read: rate(value, "cacheRead"),
        cache_write: rate(value, "cacheWrite"),
        tiers: value["tiers"].as_array().into_iter().flatten().map(tier).collect(),
    }
}

/// A model.
pub fn model(value: &Value) -> Model {
    let takes = |kind: &str| value["input"].as_array().is_some_and(|list| list.iter().any(|v| v == kind));
    Model {
        id: text(value, "id"),
        name: text(value, "name"),
        api: text(value, "api"),
        provider: text(value, "provider"),
        base_url: text(value, "baseUrl"),
        reasoning: value["reasoning"].as_bool().unwrap_or_default(),
        text_input: takes("text"),
        image_input: takes("image"),
        context_window: value["contextWindow"].as_u64().unwrap_or_default(),
        max_tokens: value["maxTokens"].as_u64().unwrap_or_default(),
        rates: rates(&value["cost"]),
        thinking_levels: map(&value["thinkingLevelMap"]),
        headers: header_list(&value["headers"]),
        sampling_params: map(&value["samplingParams"]),
        sampling_params_by_level: map(&value["samplingParamsByThinkingLevel"]),
        compat: map(&value["compat"]),
        input_limits: value.get("inputLimits").cloned(),
    }
}

/// The messages of a context, prompt and tools in a leading system message.
pub fn messages(context: &Value) -> Vec<Arc<Message>> {
    let prompt = text(context, "systemPrompt");
    let tools = context["tools"].as_array().filter(|list| !list.is_empty()).cloned();
    let mut list = Vec::new();
    if !prompt.is_empty() || tools.is_some() {
        let system = SystemMessage { content: prompt.into(), tools_added: tools, ..SystemMessage::default() };
        list.push(Arc::new(Message::System(system)));
    }
    let stored = context["messages"].as_array().into_iter().flatten();
    list.extend(stored.map(|value| Arc::new(Message::from_value(value).expect("a message"))));
    list
}

/// A thinking level; unknown names are a mistake of the vector.
pub fn level(value: &Value) -> Option<ThinkingLevel> {
    value.as_str().map(|name| ThinkingLevel::parse(name).expect("a level"))
}

/// Thinking budgets.
pub fn budgets(value: &Value) -> ThinkingBudgets {
    ThinkingBudgets {
        minimal: value["minimal"].as_u64(),
        low: value["low"].as_u64(),
        medium: value["medium"].as_u64(),
        high: value["high"].as_u64(),
    }
}

/// The options of a request.
pub fn options(value: &Value) -> RequestOptions {
    RequestOptions {
        reasoning: level(&value["reasoning"]),
        budgets: budgets(&value["thinkingBudgets"]),
        max_tokens: value["maxTokens"].as_u64(),
        temperature: value["temperature"].as_f64(),
        sampling_params: map(&value["samplingParams"]),
        cache: match value["cacheRetention"].as_str() {
            Some("none") => CacheRetention::None,
            Some("long") => CacheRetention::Long,
            _ => CacheRetention::Short,
        },
        session_id: value["sessionId"].as_str().map(str::to_owned),
        tool_choice: value.get("toolChoice").cloned(),
        metadata: map(&value["metadata"]),
        headers: header_list(&value["headers"]),
        identity: identity(&value["identity"]),
        ..RequestOptions::default()
    }
}

/// How the host introduces itself.
pub fn identity(value: &Value) -> Option<Arc<Identity>> {
    let attribution = value["attribution"].as_object().map(|attribution| Attribution {
        name: attribution["name"].as_str().unwrap_or_default().to_owned(),
        url: attribution["url"].as_str().unwrap_or_default().to_owned(),
        categories: (attribution.get("categories").and_then(Value::as_array).into_iter().flatten())
            .filter_map(|v| v.as_str().map(str::to_owned))
            .collect(),
    });
    let user_agent = value["userAgent"]["custom"].as_str().map(str::to_owned);
    value.is_object().then(|| Arc::new(Identity { user_agent, attribution }))
}

/// The credential of a request.
pub fn credential(options: &Value) -> Credential {
    let env = options["env"].as_object().into_iter().flatten();
    let env = env.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    Credential {
        api_key: options["apiKey"].as_str().map(str::to_owned),
        env: env.collect(),
        ..Credential::default()
    }
}

/// A written value back as JSON.
pub fn written(write: impl FnOnce(&mut tau_core::json::Writer)) -> Value {
    let mut w = tau_core::json::Writer::new();
    write(&mut w);
    serde_json::from_str(w.as_str()).expect("valid JSON")
}
