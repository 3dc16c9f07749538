//! The history as a target model sees it.

use std::sync::Arc;

use serde_json::{Value, json};
use tau_core::convert::{self, Memo, Target, sanitize_id, short_hash};
use tau_core::message::{AssistantMessage, Message};
use tau_tests::compare::same;
use tau_tests::messages::{fill, read, value, values};

/// `transform-messages`
pub fn transform(_: &Value, case: &Value) -> Result<(), String> {
    let input = fill(&case["input"], &[]);
    let messages = read(&input["messages"]);
    let text = |key: &str| input["model"][key].as_str().unwrap_or_default();
    let anthropic = |id: &str, _: &AssistantMessage| sanitize_id(id, 64).into_owned();
    let target = Target {
        provider: text("provider"),
        api: text("api"),
        model: text("id"),
        images: input["model"]["input"].as_array().is_some_and(|kinds| kinds.contains(&json!("image"))),
        ids: (input["idNormalizer"] == "anthropic").then_some(&anthropic),
        max_id: 64,
    };
    let mut memo = Memo::default();
    let adapted = convert::transform(&messages, &target, 123_456_789, &mut memo);
    let again = convert::transform(&messages, &target, 5, &mut memo);
    if !adapted.iter().map(Arc::as_ptr).eq(again.iter().map(Arc::as_ptr)) {
        return Err("a second request got other messages".into());
    }
    let mut got = values(&adapted);
    for (message, source) in got.as_array_mut().into_iter().flatten().zip(&adapted) {
        if source.timestamp() == 123_456_789 {
            message["timestamp"] = "<NOW>".into();
        }
    }
    same(&fill(&case["expected"], &[]), &got)
}

/// `transcript-fold`: the parts for protocols without system messages inside a conversation.
pub fn fold(_: &Value, case: &Value) -> Result<(), String> {
    let (input, expected) = (&case["input"], &case["expected"]);
    let messages = read(&expected["normalizedMessages"]);
    let state = convert::fold(&messages);
    let names: Vec<&Value> = state.tools.iter().map(|tool| &tool["name"]).collect();
    let (systems, others): (Vec<_>, Vec<_>) =
        messages.iter().cloned().partition(|m| matches!(**m, Message::System(_)));
    let leading = state.message().map(|system| value(&Message::System(system)));
    let collapsed: Value = leading.into_iter().chain(others.iter().map(|m| value(m))).collect();
    if input["messages"].as_array().map(Vec::len) > expected["normalizedMessages"].as_array().map(Vec::len) {
        return Err("normalizing lost messages".into());
    }
    let split = json!({"requestTools": names, "foldedSystemMessages": systems.len()});
    same(&expected["collapsed"], &collapsed)?;
    same(&expected["currentPrompt"], &state.prompt().into())?;
    same(&expected["currentTools"], &json!(names))?;
    same(&expected["split"]["none"], &split)
}

/// `short-hash`
pub fn hash(_: &Value, case: &Value) -> Result<(), String> {
    same(&case["expected"], &short_hash(case["input"].as_str().ok_or("not a text")?).into())
}
