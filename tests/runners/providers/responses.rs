//! `openai-responses`, `azure-openai-responses` and `openai-codex-responses`.

use serde_json::{Value, json};
use tau_core::fault::Fault;
use tau_core::model::ThinkingLevel;
use tau_core::op::HttpRequest;
use tau_core::provider::ModelRequest;
use tau_core::provider::openai_responses::{Dialect, Limits, ResponsesEncoder};
use tau_core::tokens::request::context_usage;
use tau_tests::messages::fill;

use super::{common, completions, exchange};

/// `*-responses-request`, `openai-codex-request`
pub fn request(_: &Value, case: &Value) -> Result<(), String> {
    let mut expected = fill(&case["expected"], &[]);
    if let Some(headers) = expected.pointer_mut("/request/headers").and_then(Value::as_object_mut) {
        // Bodies are sent as they are, under our own name.
        headers.remove("content-encoding");
        if headers.get("originator").is_some_and(|name| name == "pi") {
            headers.insert("originator".into(), "tau".into());
        }
    }
    let input = with_options(&case["input"]);
    let api = input["model"]["api"].as_str().unwrap_or_default();
    let mut encoder = ResponsesEncoder::new(Dialect::of(api).ok_or("another protocol")?);
    completions::check_request(&expected, &input, &mut |request, input| encode(&mut encoder, request, input))
}

/// The entry `stream` takes the options as they are; `streamSimple` maps them, and no level means `off`.
fn encode(
    encoder: &mut ResponsesEncoder,
    request: &ModelRequest<'_>,
    input: &Value,
) -> Result<HttpRequest, Fault> {
    let options = request.options;
    let limits = if input["entry"] == "stream" {
        let effort = common::level(&input["options"]["reasoningEffort"]);
        Limits { max_tokens: options.max_tokens, effort, omit_thinking: false }
    } else {
        let mut options = options.clone();
        options.reasoning = options.reasoning.or(Some(ThinkingLevel::Off));
        let input = match request.model.context_window {
            0 => 0,
            _ => context_usage(request.messages).tokens,
        };
        Limits::of(&ModelRequest { options: &options, ..*request }, input)
    };
    encoder.encode_with(request, limits)
}

/// Options that only the entry `stream` takes, where our requests have them: the tier is a body field, an Azure option
/// comes before the variable of its name.
fn with_options(input: &Value) -> Value {
    let mut input = input.clone();
    if input["entry"] != "stream" {
        return input;
    }
    let options = input["options"].clone();
    if let Some(tier) = options["serviceTier"].as_str() {
        input["options"]["samplingParams"] = json!({ "service_tier": tier });
    }
    for (option, variable) in [
        ("azureBaseUrl", "AZURE_OPENAI_BASE_URL"),
        ("azureResourceName", "AZURE_OPENAI_RESOURCE_NAME"),
        ("azureApiVersion", "AZURE_OPENAI_API_VERSION"),
    ] {
        if let Some(value) = options.get(option) {
            input["options"]["env"][variable] = value.clone();
        }
    }
    input
}

/// `openai-responses-stream`, `openai-codex-stream`
pub fn stream(doc: &Value, case: &Value) -> Result<(), String> {
    let mut case = case.clone();
    case["input"] = with_options(&case["input"]);
    let input = &mut case["input"];
    if input.get("context").is_none() {
        input["context"] = doc["defaultContext"].clone();
    }
    let mut expected = case["expected"].clone();
    let notes = expected["message"].get_mut("diagnostics").and_then(Value::as_array_mut);
    for note in notes.into_iter().flatten() {
        // A note of the reference's recorder; the time is ours.
        note.as_object_mut().map(|note| note.remove("hasError"));
        note["timestamp"] = json!(1);
    }
    exchange::check_stream(&expected, &case)
}
