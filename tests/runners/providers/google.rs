//! `google-generative-ai` and `google-vertex`.

use serde_json::{Value, json};
use tau_core::model::ThinkingLevel;
use tau_core::provider::google::{
    Amount, Generation, GoogleEncoder, TOOL_IMAGE_FOLLOWS, Thinking, needs_call_ids, strict_tools,
    thinks_by_level,
};
use tau_core::provider::{Encoder as _, ModelRequest};
use tau_tests::compare::same;
use tau_tests::messages::fill;

use super::{completions, exchange};

/// `google-request`, `google-vertex-request`: the entry `stream` takes the options as they are, `streamSimple` maps them;
/// there no level means `off`.
pub fn request(_: &Value, case: &Value) -> Result<(), String> {
    let mut expected = fill(&case["expected"], &[("<<TOOL_IMAGE_FOLLOWS>>", TOOL_IMAGE_FOLLOWS)]);
    let headers = expected.get_mut("request").and_then(|request| request["headers"].as_object_mut());
    if let Some(headers) = headers {
        // The client library of the reference fills in its own where none is wanted.
        headers.retain(|_, value| value != "<client-library default>");
    }
    let mut encoder = GoogleEncoder::default();
    completions::check_request(&expected, &case["input"], &mut |request, input| {
        let mut options = request.options.clone();
        if input["entry"] == "stream" {
            let budget = input["options"]["thinking"]["budgetTokens"].as_i64();
            let thinking = budget.map_or(Thinking::Unsaid, |n| Thinking::Shown(Amount::Budget(n)));
            return encoder.encode_with(request, Generation { max_tokens: options.max_tokens, thinking });
        }
        options.reasoning = options.reasoning.or(Some(ThinkingLevel::Off));
        encoder.encode(&ModelRequest { options: &options, ..*request })
    })
}

/// `google-stream`
pub fn stream(doc: &Value, case: &Value) -> Result<(), String> {
    let mut case = case.clone();
    let input = &mut case["input"];
    if input.get("context").is_none() {
        input["context"] = doc["defaultContext"].clone();
    }
    let mut expected = case["expected"].clone();
    for event in expected["events"].as_array_mut().into_iter().flatten() {
        let index = event["contentIndex"].as_u64().unwrap_or_default();
        for key in ["partialToolCall", "toolCall"] {
            if let Some(call) = event.get_mut(key) {
                made_id(call, index);
            }
        }
    }
    for (block, index) in expected["message"]["content"].as_array_mut().into_iter().flatten().zip(0..) {
        made_id(block, index);
    }
    exchange::check_stream(&expected, &case)
}

/// An id that the decoder makes: name, time of the request (1), which request it is (the first), place of the block.
fn made_id(call: &mut Value, index: u64) {
    if let Some(Value::String(id)) = call.get_mut("id") {
        *id = id.replace("_<TIME>_<N>", &format!("_1_1-{index}"));
    }
}

/// `google-model-rules`
pub fn model_rules(_: &Value, case: &Value) -> Result<(), String> {
    let id = case["input"].as_str().ok_or("not a text")?;
    let got = json!({
        "usesThinkingLevel": thinks_by_level(id),
        "requiresToolCallId": needs_call_ids(id),
        "strictTools": strict_tools(id),
    });
    same(&case["expected"], &got)
}
