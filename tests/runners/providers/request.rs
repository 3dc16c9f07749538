//! `*-request.json`: model, context and options in, one exact HTTP request out.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tau_core::convert;
use tau_core::fault::Fault;
use tau_core::message::Message;
use tau_core::op::HttpRequest;
use tau_core::provider::headers::USER_AGENT;
use tau_core::provider::openai_completions::{CompletionsEncoder, Limits, texts};
use tau_core::provider::{Encoder, ModelRequest};
use tau_tests::compare::same;

use super::common;

/// `openai-completions-request`
pub fn completions(_: &Value, case: &Value) -> Result<(), String> {
    let input = plain(&case["input"]);
    run(&input, &case["expected"], |request, entry| {
        let mut encoder = CompletionsEncoder::default();
        match entry {
            "streamSimple" => encoder.encode(request),
            _ => encoder.encode_with(
                request,
                Limits { max_tokens: request.options.max_tokens, effort: request.options.reasoning },
            ),
        }
    })
}

/// Encodes the input of a case and compares what comes out.
pub fn run(
    input: &Value,
    expected: &Value,
    encode: impl FnOnce(&ModelRequest<'_>, &str) -> Result<HttpRequest, Fault>,
) -> Result<(), String> {
    let model = common::model(&input["model"]);
    let messages: Vec<Arc<Message>> = common::messages(&input["context"]);
    let options = common::options(&input["options"]);
    let credential = common::credential(&input["options"]);
    let request = ModelRequest {
        model: &model,
        messages: &messages,
        options: &options,
        credential: &credential,
        now_ms: 1,
    };
    let got = encode(&request, input["entry"].as_str().unwrap_or_default());
    let Some(wanted) = expected.get("request") else {
        return match got {
            Ok(_) => Err("a request was made".into()),
            Err(fault) if fault.message.is_empty() => Err("an error without a text".into()),
            Err(_) => Ok(()),
        };
    };
    let got = got.map_err(|fault| format!("no request: {fault}"))?;
    let body: Value = serde_json::from_slice(&got.body).map_err(|e| format!("body is no JSON: {e}"))?;
    same(&wanted["method"], &json!(got.method))?;
    same(&wanted["url"], &json!(got.url))?;
    headers(&wanted["headers"], &got.headers)?;
    same(&normal(&filled(&wanted["body"])), &normal(&body))
}

/// Compares headers. Our own name stands for the reference's; the routing header of OpenCode is added in another layer
/// of the reference and is checked by `attribution-headers`.
fn headers(wanted: &Value, got: &[(String, String)]) -> Result<(), String> {
    let mut map = Map::new();
    for (name, value) in got.iter().filter(|(name, _)| name != "x-opencode-session") {
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

/// Input with lone surrogates taken out: they never get into a string.
fn plain(value: &Value) -> Value {
    map_strings(value, &|text| text.replace("<<U+D83D>>", "").replace("<<U+DE48>>", ""))
}

/// Expected values with our own texts put in.
pub fn filled(value: &Value) -> Value {
    const TEXTS: &[(&str, &str)] = &[
        ("<<IMAGE_OMITTED>>", convert::IMAGE_OMITTED),
        ("<<TOOL_IMAGE_OMITTED>>", convert::TOOL_IMAGE_OMITTED),
        ("<<SEE_IMAGE>>", convert::SEE_IMAGE),
        ("<<NO_TOOL_OUTPUT>>", convert::NO_TOOL_OUTPUT),
        ("<<NO_RESULT>>", convert::NO_RESULT),
        ("<<TOOL_IMAGES_FOLLOW>>", texts::TOOL_IMAGES_FOLLOW),
        ("<<TOOL_RESULTS_BRIDGE>>", texts::TOOL_RESULTS_BRIDGE),
    ];
    map_strings(value, &|text| {
        TEXTS.iter().fold(text.to_owned(), |text, (token, own)| text.replace(token, own))
    })
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
        Value::Array(list) => Value::Array(list.iter().map(normal).collect()),
        _ => value.clone(),
    }
}

fn map_strings(value: &Value, change: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(text)),
        Value::Array(list) => list.iter().map(|v| map_strings(v, change)).collect(),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, v)| (key.clone(), map_strings(v, change))).collect())
        }
        _ => value.clone(),
    }
}
