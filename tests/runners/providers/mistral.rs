//! `mistral-conversations`.

use serde_json::Value;
use tau_core::model::ThinkingLevel;
use tau_core::provider::mistral::{MistralEncoder, TOOL_ERROR_PREFIX};
use tau_core::provider::{Encoder as _, ModelRequest};
use tau_tests::messages::fill;

use super::{completions, exchange};

/// `mistral-request`: the entry `stream` takes the options as they are, `streamSimple` maps them; there no level means
/// `off`.
pub fn request(_: &Value, case: &Value) -> Result<(), String> {
    let expected = fill(&case["expected"], &[("<<TOOL_ERROR_PREFIX>>", TOOL_ERROR_PREFIX)]);
    let mut encoder = MistralEncoder::default();
    completions::check_request(&expected, &case["input"], &mut |request, input| {
        let mut options = request.options.clone();
        if input["entry"] == "stream" {
            return encoder.encode_with(request, options.max_tokens);
        }
        options.reasoning = options.reasoning.or(Some(ThinkingLevel::Off));
        encoder.encode(&ModelRequest { options: &options, ..*request })
    })
}

/// `mistral-stream`
pub fn stream(doc: &Value, case: &Value) -> Result<(), String> {
    let mut case = case.clone();
    let input = &mut case["input"];
    if input.get("context").is_none() {
        input["context"] = doc["defaultContext"].clone();
    }
    exchange::check_stream(&case["expected"], &case)
}
