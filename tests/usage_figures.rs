//! Figures of tokens as services send them, and as none should: no protocol trips over one, and what comes out can be
//! added up.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use serde_json::{Value, json};
use tau_core::json::{Writer, parse};
use tau_core::message::{AssistantMessage, Message, StopReason};
use tau_core::model::{Model, Rates};
use tau_core::provider::{APIS, BodyEnd, encoder};
use tau_tests::clouds::frame;

/// The usage of a reply in the words of a protocol, and where figures stand in it.
fn usage(api: &str) -> (Value, &'static [&'static str]) {
    match api {
        "anthropic-messages" => (
            json!({"input_tokens": 50, "output_tokens": 20, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 10,
                "cache_creation": {"ephemeral_1h_input_tokens": 4, "ephemeral_5m_input_tokens": 6}}),
            &[
                "/input_tokens",
                "/output_tokens",
                "/cache_read_input_tokens",
                "/cache_creation_input_tokens",
                "/cache_creation",
                "/cache_creation/ephemeral_1h_input_tokens",
            ],
        ),
        "google-generative-ai" | "google-vertex" => (
            json!({"promptTokenCount": 90, "cachedContentTokenCount": 40, "candidatesTokenCount": 15, "thoughtsTokenCount": 5,
                "totalTokenCount": 110}),
            &[
                "/promptTokenCount",
                "/cachedContentTokenCount",
                "/candidatesTokenCount",
                "/thoughtsTokenCount",
                "/totalTokenCount",
            ],
        ),
        "bedrock-converse-stream" => (
            json!({"inputTokens": 50, "outputTokens": 20, "cacheReadInputTokens": 40, "cacheWriteInputTokens": 10,
                "totalTokens": 120, "cacheDetails": [{"ttl": "1h", "inputTokens": 4}]}),
            &[
                "/inputTokens",
                "/outputTokens",
                "/cacheReadInputTokens",
                "/cacheWriteInputTokens",
                "/totalTokens",
                "/cacheDetails",
                "/cacheDetails/0",
                "/cacheDetails/0/inputTokens",
            ],
        ),
        "openai-completions" | "mistral-conversations" => (
            json!({"prompt_tokens": 90, "completion_tokens": 20, "total_tokens": 110,
                "prompt_tokens_details": {"cached_tokens": 40}, "completion_tokens_details": {"reasoning_tokens": 5}}),
            &[
                "/prompt_tokens",
                "/completion_tokens",
                "/total_tokens",
                "/prompt_tokens_details",
                "/prompt_tokens_details/cached_tokens",
                "/completion_tokens_details",
                "/completion_tokens_details/reasoning_tokens",
            ],
        ),
        _ => (
            json!({"input_tokens": 90, "output_tokens": 20, "total_tokens": 110,
                "input_tokens_details": {"cached_tokens": 40}, "output_tokens_details": {"reasoning_tokens": 5}}),
            &[
                "/input_tokens",
                "/output_tokens",
                "/total_tokens",
                "/input_tokens_details",
                "/input_tokens_details/cached_tokens",
                "/output_tokens_details",
                "/output_tokens_details/reasoning_tokens",
            ],
        ),
    }
}

/// A reply with a usage that is given as JSON text.
fn body(api: &str, usage: &str) -> Vec<u8> {
    // Text, for some figures are none of serde_json.
    let put = |event: Value| event.to_string().replace("\"USAGE\"", usage);
    let line = |event: Value| {
        let name = event["type"].as_str().map(|name| format!("event: {name}\n")).unwrap_or_default();
        format!("{name}data: {}\n\n", put(event))
    };
    let lines = match api {
        "anthropic-messages" => {
            line(
                json!({"type": "message_start", "message": {"id": "r", "type": "message", "role": "assistant", "content": [],
                "usage": "USAGE"}}),
            ) + &line(
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "x"}}),
            ) + &line(json!({"type": "content_block_stop", "index": 0}))
                + &line(
                    json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": "USAGE"}),
                )
                + &line(json!({"type": "message_stop"}))
        }
        "google-generative-ai" | "google-vertex" => line(json!({"usageMetadata": "USAGE", "candidates": [
            {"content": {"role": "model", "parts": [{"text": "x"}]}, "finishReason": "STOP"}]})),
        "openai-completions" | "mistral-conversations" => {
            line(json!({"id": "r", "usage": "USAGE", "choices": [
                {"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}]}))
                + "data: [DONE]\n\n"
        }
        "bedrock-converse-stream" => {
            let frames = [
                ("messageStart", json!({"role": "assistant"})),
                ("contentBlockDelta", json!({"contentBlockIndex": 0, "delta": {"text": "x"}})),
                ("contentBlockStop", json!({"contentBlockIndex": 0})),
                ("messageStop", json!({"stopReason": "end_turn"})),
                ("metadata", json!({"usage": "USAGE"})),
            ];
            let frames = frames.map(|(name, event)| {
                frame([(":event-type", name), (":message-type", "event")], put(event).as_bytes())
            });
            return frames.concat();
        }
        _ => {
            let item = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "x", "annotations": []}]});
            line(json!({"type": "response.created", "response": {"id": "r"}}))
                + &line(json!({"type": "response.output_item.done", "output_index": 0, "item": item}))
                + &line(
                    json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "usage": "USAGE"}}),
                )
        }
    };
    lines.into_bytes()
}

fn reply(api: &str, usage: &str) -> AssistantMessage {
    let rates = Rates { input: 2.0, output: 10.0, cache_read: 0.5, cache_write: 3.0, ..Rates::default() };
    let model = Model { id: "m".into(), api: api.into(), provider: "p".into(), rates, ..Model::default() };
    let mut decoder = encoder(api).unwrap().decoder(&Arc::new(model), 1);
    let mut events = Vec::new();
    decoder.on_bytes(&body(api, usage), &mut events);
    decoder.on_end(BodyEnd::Complete, &mut events);
    decoder.take()
}

fn written(message: &Message) -> String {
    let mut w = Writer::new();
    message.write(&mut w);
    w.into_string()
}

#[test]
fn usual_figures() {
    for api in APIS {
        let usage = reply(api, &usage(api).0.to_string()).usage;
        assert_eq!((usage.input, usage.output, usage.cache_read), (50, 20, 40), "{api}");
        let writes = matches!(api, "anthropic-messages" | "bedrock-converse-stream");
        assert_eq!(
            (usage.cache_write, usage.cache_write_1h),
            if writes { (10, Some(4)) } else { (0, None) },
            "{api}"
        );
        assert_eq!(usage.total_tokens, if writes { 120 } else { 110 }, "{api}");
        let written = if writes { 6.0 * 3.0 + 4.0 * 2.0 * 2.0 } else { 0.0 };
        let cost = (50.0 * 2.0 + 20.0 * 10.0 + 40.0 * 0.5 + written) / 1e6;
        assert!((usage.cost.total - cost).abs() < 1e-12, "{api}: {} is not {cost}", usage.cost.total);
    }
}

#[test]
fn odd_figures() {
    const ODD: &[&str] = &[
        "null",
        "-1",
        "-1e300",
        "1.5",
        "1e30",
        "1e300",
        "18446744073709551615",
        "9223372036854775808",
        "\"12\"",
        "[]",
        "{}",
        "true",
        "[1,2]",
        "0",
        "-0.0",
        "1e-5",
    ];
    for api in APIS {
        let (usual, places) = usage(api);
        let missing = ODD.iter().map(|odd| (*odd).to_owned());
        let replaced = places.iter().flat_map(|place| {
            let mut marked = usual.clone();
            *marked.pointer_mut(place).unwrap() = "ODD".into();
            ODD.iter().map(move |odd| marked.to_string().replace("\"ODD\"", odd))
        });
        for text in missing.chain(replaced) {
            let reply = reply(api, &text);
            assert_eq!(reply.stop_reason, StopReason::Stop, "{api}: {:?} for {text}", reply.error_message);
            let (usage, cost) = (&reply.usage, &reply.usage.cost);
            let parts = [cost.input, cost.output, cost.cache_read, cost.cache_write, cost.total];
            assert!(parts.iter().all(|part| part.is_finite() && *part >= 0.0), "{api}: {parts:?} for {text}");
            assert!(usage.cache_write_1h.unwrap_or(0) <= usage.cache_write, "{api}: {usage:?} for {text}");
            // What is stored is read again as it was.
            let stored = written(&Message::Assistant(reply));
            let read = Message::from_value(&parse(&stored).unwrap()).unwrap();
            assert_eq!(written(&read), stored, "{api}: {text}");
        }
    }
}
