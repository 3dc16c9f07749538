//! `bedrock-converse-stream`.

use serde_json::{Value, json};
use tau_core::model::ThinkingLevel;
use tau_core::op::HttpRequest;
use tau_core::provider::anthropic::{ERROR_IMAGE_MOVED, REASONING_REDACTED, error_images_caption};
use tau_core::provider::bedrock::{BedrockEncoder, EMPTY_TEXT, failure};
use tau_core::provider::headers::USER_AGENT;
use tau_core::provider::{Encoder as _, ModelRequest};
use tau_tests::compare::same;
use tau_tests::messages::fill;

use super::{common, completions, exchange};

/// `bedrock-request`: the entry `stream` takes the options as they are, `streamSimple` maps them.
pub fn request(_: &Value, case: &Value) -> Result<(), String> {
    let caption = error_images_caption("t1", "read");
    let tokens = [
        ("<<EMPTY_TEXT>>", EMPTY_TEXT),
        ("<<ERROR_IMAGE_MOVED>>", ERROR_IMAGE_MOVED),
        ("<<ERROR_IMAGES_CAPTION id=t1 tool=read>>", caption.as_str()),
    ];
    let mut expected = fill(&case["expected"], &tokens);
    if let Some(wanted) = expected.get_mut("request") {
        let base = case["input"]["model"]["baseUrl"].as_str().unwrap_or_default();
        wanted["url"] = json!(format!("{base}{}", wanted["path"].as_str().unwrap_or_default()));
        wanted["headers"]["user-agent"] = json!(USER_AGENT);
    }
    let mut encoder = BedrockEncoder::default();
    completions::check_request(&expected, &case["input"], &mut |request, input| {
        let mut options = request.options.clone();
        options.metadata = input["options"]["requestMetadata"].as_object().cloned();
        let made = if input["entry"] == "stream" {
            let request = ModelRequest { options: &options, ..*request };
            encoder.encode_with(&request, options.max_tokens)
        } else {
            options.reasoning = options.reasoning.or(Some(ThinkingLevel::Off));
            encoder.encode(&ModelRequest { options: &options, ..*request })
        };
        made.map(masked)
    })
}

/// Parts of a signature that change with the time, as the vectors mask them; the signature has tests of its own.
fn masked(mut request: HttpRequest) -> HttpRequest {
    request.headers.retain(|(name, _)| name != "x-amz-date");
    for (_, value) in request.headers.iter_mut().filter(|(_, value)| value.starts_with("AWS4-")) {
        let parts: Vec<String> = value
            .split(", ")
            .map(|part| match part.split_once('=') {
                Some(("SignedHeaders", _)) => "SignedHeaders=<LIST>".to_owned(),
                Some(("Signature", _)) => "Signature=<SIG>".to_owned(),
                _ => part
                    .split('/')
                    .enumerate()
                    .map(|(at, p)| if at == 1 { "<DATE>" } else { p })
                    .collect::<Vec<_>>()
                    .join("/"),
            })
            .collect();
        *value = parts.join(", ");
    }
    request
}

/// `bedrock-stream`
pub fn stream(doc: &Value, case: &Value) -> Result<(), String> {
    let mut case = case.clone();
    let mut expected = fill(&case["expected"], &[("<<REASONING_REDACTED>>", REASONING_REDACTED)]);
    for note in expected["message"].get_mut("diagnostics").and_then(Value::as_array_mut).into_iter().flatten()
    {
        // A note of the reference's recorder; the time is ours.
        note.as_object_mut().map(|note| note.remove("hasError"));
        note["timestamp"] = json!(1);
    }
    let input = &mut case["input"];
    input["model"] = doc["defaultModel"].clone();
    input["context"] = json!({ "messages": [{ "role": "user", "content": "x", "timestamp": 1 }] });
    input["options"] = json!({ "apiKey": "k" });
    let response = &mut input["response"];
    let status = response["status"].as_u64().unwrap_or_default();
    if status < 400 {
        response["chunks"] = json!([{ "b64": response["bytesBase64"] }]);
        response["headers"] = json!({ "x-amzn-requestid": "req-1" });
    } else {
        // The hub adds what identifies a refusal.
        response["chunks"] = json!([response["body"]]);
        let headers = common::header_list(&response["headers"]);
        let headers = headers.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let note = failure::refusal(1, u16::try_from(status).unwrap_or_default(), &headers);
        let wanted = expected["message"].as_object_mut().and_then(|message| message.remove("diagnostics"));
        same(&wanted.unwrap_or_default(), &json!([note]))?;
    }
    exchange::check_stream(&expected, &case)
}
