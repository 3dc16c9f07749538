//! Small pure functions of the wire room.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use serde_json::{Value, json};
use tau_core::message::Usage;
use tau_core::model::{Model, ThinkingLevel};
use tau_core::provider::{cost, headers, options, strict};
use tau_core::tokens::request;
use tau_tests::compare::same;

use super::common;

/// `cost`
pub fn price(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let model = Model {
        rates: common::rates(input.get("modelCost").unwrap_or_else(|| &input["rates"])),
        // Only OpenRouter reports what it billed.
        provider: if input.get("reported").is_some() { "openrouter".into() } else { String::new() },
        ..Model::default()
    };
    let mut usage = Usage::from_value(&input["usage"]).unwrap_or_default();
    cost::apply(&model, &mut usage, input.get("reported"));
    same(&case["expected"], &common::written(|w| usage.cost.write(w)))
}

/// `header-merge`
pub fn header_merge(_: &Value, case: &Value) -> Result<(), String> {
    let mut set = headers::HeaderSet::new();
    for layer in case["input"].as_array().into_iter().flatten() {
        set.merge(&common::header_list(layer));
    }
    let got = set.into_headers();
    let got = if got.is_empty() { Value::Null } else { header_object(got) };
    same(&lower(&case["expected"]), &got)
}

/// `attribution-headers`
pub fn attribution(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let model = common::model(input);
    let identity = common::identity(&input["identity"]);
    let attribution = identity.as_ref().and_then(|id| id.attribution.as_ref());
    let list = attribution.map(|a| headers::attribution_headers(&model, a)).unwrap_or_default();
    same(&lower(&case["expected"]["attribution"]), &layer_object(list))?;
    let session = headers::opencode_session(&model, input["sessionId"].as_str(), &[]);
    let session = if session.is_empty() { Value::Null } else { layer_object(session) };
    same(&case["expected"]["session"], &session)
}

/// `copilot-headers`
pub fn copilot(_: &Value, case: &Value) -> Result<(), String> {
    let messages = common::messages(&case["input"]);
    let images = messages.iter().any(|message| message.has_image());
    let list = headers::copilot(messages.last().map(|last| &**last), images);
    same(&lower(&case["expected"]), &layer_object(list))
}

/// `prompt-cache-key`
pub fn cache_key(_: &Value, case: &Value) -> Result<(), String> {
    same(&case["expected"], &json!(headers::clip_key(case["input"].as_str().unwrap_or_default(), 64)))
}

fn header_object(list: Vec<(String, String)>) -> Value {
    Value::Object(list.into_iter().map(|(name, value)| (name, json!(value))).collect())
}

fn layer_object(list: Vec<(String, Option<String>)>) -> Value {
    Value::Object(list.into_iter().map(|(name, value)| (name, json!(value))).collect())
}

fn lower(value: &Value) -> Value {
    match value.as_object() {
        Some(map) => {
            Value::Object(map.iter().map(|(name, v)| (name.to_ascii_lowercase(), v.clone())).collect())
        }
        None => value.clone(),
    }
}

/// `option-mapping`
pub fn option_mapping(_: &Value, case: &Value) -> Result<(), String> {
    let args = &case["args"];
    let level = common::level(&args["level"]).unwrap_or_default();
    let budgets = common::budgets(&args["customBudgets"]);
    let got = match case["fn"].as_str().unwrap_or_default() {
        "adjustMaxTokensForThinking" => {
            let model_max = args["modelMaxTokens"].as_u64().ok_or("modelMaxTokens")?;
            let base = args["baseMaxTokens"].as_u64();
            let (max_tokens, budget) = options::adjust_for_thinking(base, model_max, level, &budgets);
            json!({"maxTokens": max_tokens, "thinkingBudget": budget})
        }
        "clampMaxTokensToContext" => {
            let chars = usize::try_from(args["userTextChars"].as_u64().ok_or("userTextChars")?).unwrap();
            let model = Model {
                context_window: args["contextWindow"].as_u64().unwrap_or_default(),
                ..Model::default()
            };
            let messages =
                common::messages(&json!({"messages": [{"role": "user", "content": "x".repeat(chars)}]}));
            let input = request::context_usage(&messages).tokens;
            json!(options::output_limit(&model, input, args["maxTokens"].as_u64()))
        }
        "clampThinkingLevel" => {
            let model = common::model(args);
            let names: Vec<_> = model.levels().map(ThinkingLevel::name).collect();
            json!({"supported": names, "clamped": model.clamp(level).name()})
        }
        "clampThinkingBudgetToAnswerRoom" => {
            json!(options::budget_under(level, &budgets, args["ceiling"].as_u64().unwrap_or_default()))
        }
        "resolveSamplingParams" => {
            let model = Model {
                reasoning: args["reasoning"] == true,
                sampling_params: args["modelParams"].as_object().cloned(),
                sampling_params_by_level: args["byLevel"].as_object().cloned(),
                ..Model::default()
            };
            json!(options::sampling_params(&model, level, args["requestParams"].as_object()))
        }
        other => return Err(format!("unknown function {other}")),
    };
    same(&case["expected"], &got)
}

/// `strict-schema`
pub fn strict_schema(_: &Value, case: &Value) -> Result<(), String> {
    let got = strict::strict_schema(&case["input"]);
    same(&case["expected"], &got.unwrap_or(Value::Null))
}
