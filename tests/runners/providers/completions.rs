//! `openai-completions`.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tau_core::fault::Fault;
use tau_core::model::ThinkingLevel;
use tau_core::op::HttpRequest;
use tau_core::provider::headers::USER_AGENT;
use tau_core::provider::openai_completions::{CompletionsEncoder, Limits, texts};
use tau_core::provider::{Encoder, ModelRequest, RequestOptions};
use tau_tests::compare::same;
use tau_tests::messages::fill;

use super::{common, exchange};

const TOKENS: &[(&str, &str)] = &[
    ("<<TOOL_IMAGES_FOLLOW>>", texts::TOOL_IMAGES_FOLLOW),
    ("<<TOOL_RESULTS_BRIDGE>>", texts::TOOL_RESULTS_BRIDGE),
];

/// `openai-completions-stream`
pub fn stream(doc: &Value, case: &Value) -> Result<(), String> {
    let mut case = case.clone();
    let input = &mut case["input"];
    if input.get("context").is_none() {
        input["context"] = doc["defaultContext"].clone();
    }
    let mut expected = fill(&case["expected"], TOKENS);
    json_signatures(&mut expected);
    exchange::check_stream(&expected, &case)
}

/// Signatures that hold JSON, in the form in which we write it.
fn json_signatures(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with("[{") => {
            if let Ok(parsed) = serde_json::from_str::<Value>(text) {
                *text = tau_core::json::to_string(&parsed);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(json_signatures),
        Value::Object(map) => map.values_mut().for_each(json_signatures),
        _ => {}
    }
}

/// `openai-completions-request`
pub fn request(_: &Value, case: &Value) -> Result<(), String> {
    let mut encoder = CompletionsEncoder::default();
    check_request(&fill(&case["expected"], TOKENS), &case["input"], &mut |request, input| {
        encode(&mut encoder, request, input)
    })
}

/// Makes a request twice, the second time from the kept body, and compares it with `expected`.
pub fn check_request(
    expected: &Value,
    input: &Value,
    encode: &mut dyn FnMut(&ModelRequest<'_>, &Value) -> Result<HttpRequest, Fault>,
) -> Result<(), String> {
    let input = exchange::without_halves(input);
    let model = common::model(&input["model"]);
    let messages = common::messages(&input["context"]);
    let options = common::options(&input["options"]);
    let credential = common::credential(&input["options"]);
    let request = ModelRequest {
        model: &model,
        messages: &messages,
        options: &options,
        credential: &credential,
        now_ms: 1,
    };
    let made = encode(&request, &input);
    let Some(wanted) = expected.get("request") else {
        return match made {
            Ok(_) => Err("a request was made".into()),
            Err(fault) if fault.message.is_empty() => Err("an error without a text".into()),
            Err(_) => Ok(()),
        };
    };
    let made = made.map_err(|fault| format!("no request: {fault}"))?;
    // A second request with the same messages must be the same to the byte, from the kept body.
    let first = HttpRequest { body: Arc::new(made.body.to_vec()), ..made };
    let again = encode(&request, &input).map_err(|fault| fault.message)?;
    if again.body != first.body {
        return Err("the second body differs from the first".into());
    }
    let body: Value = serde_json::from_slice(&first.body).map_err(|e| format!("body is no JSON: {e}"))?;
    same(&wanted["method"], &json!(first.method))?;
    same(&wanted["url"], &json!(first.url))?;
    headers(&wanted["headers"], &first.headers)?;
    same(&normal(&wanted["body"]), &normal(&body))
}

/// The entry `stream` takes the options as they are, `streamSimple` maps them.
fn encode(
    encoder: &mut CompletionsEncoder,
    request: &ModelRequest<'_>,
    input: &Value,
) -> Result<HttpRequest, Fault> {
    let options = request.options;
    match input["entry"].as_str() {
        Some("stream") => {
            let (max_tokens, effort) = (options.max_tokens, options.reasoning);
            encoder.encode_with(request, Limits { max_tokens, effort, omit_thinking: false })
        }
        _ => {
            let reasoning = options.reasoning.or(Some(ThinkingLevel::Off));
            encoder.encode(&ModelRequest {
                options: &RequestOptions { reasoning, ..options.clone() },
                ..*request
            })
        }
    }
}

/// Compares headers. Our own name stands for the reference's; the routing headers of OpenCode are added in another layer
/// of the reference: the session is checked by `attribution-headers`, our name goes to every request.
fn headers(wanted: &Value, got: &[(String, String)]) -> Result<(), String> {
    let mut map = Map::new();
    let routing = |name: &str, value: &str| {
        name == "x-opencode-session" || (name == "x-opencode-client" && value == "tau")
    };
    for (name, value) in got.iter().filter(|(name, value)| !routing(name, value)) {
        if map.insert(name.clone(), json!(value)).is_some() {
            return Err(format!("header {name} is there twice"));
        }
    }
    let mut wanted = wanted.clone();
    if wanted["user-agent"].as_str().is_some_and(|agent| agent.starts_with("pi/<version>")) {
        wanted["user-agent"] = json!(USER_AGENT);
    }
    same(&wanted, &Value::Object(map))
}

/// Arguments are JSON inside a string: compared as values.
fn normal(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, value)| match value {
                    Value::String(text) if key == "arguments" => {
                        let parsed = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
                        (key.clone(), json!({ "json": parsed }))
                    }
                    _ => (key.clone(), normal(value)),
                })
                .collect(),
        ),
        Value::Array(list) => list.iter().map(normal).collect(),
        _ => value.clone(),
    }
}
