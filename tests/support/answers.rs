//! What a service of each protocol says: an answer of two words, the beginning of one, a failure in its midst.

use serde_json::{Value, json};

use crate::clouds::{exception, frame, in_frames};
use crate::server::{Part, Reply};

/// What follows the address of a server in a `baseUrl` of the protocol.
#[must_use]
pub fn path(api: &str) -> &'static str {
    match api {
        "openai-completions" | "openai-responses" | "azure-openai-responses" => "/v1",
        "google-generative-ai" => "/v1beta",
        _ => "",
    }
}

fn is_bedrock(api: &str) -> bool {
    api == "bedrock-converse-stream"
}

fn plain(event: &Value) -> String {
    format!("data: {event}\n\n")
}

fn named(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}

fn framed(name: &str, event: &Value) -> Vec<u8> {
    frame([(":event-type", name), (":message-type", "event")], event.to_string().as_bytes())
}

/// Bytes of an answer of two words, event by event; the last one ends it.
#[must_use]
pub fn parts(api: &str) -> Vec<Part> {
    let events: Vec<Vec<u8>> = match api {
        "bedrock-converse-stream" => {
            let delta = |text: &str| {
                framed("contentBlockDelta", &json!({"contentBlockIndex": 0, "delta": {"text": text}}))
            };
            let begin = framed("messageStart", &json!({"role": "assistant"}));
            let stop = framed("contentBlockStop", &json!({"contentBlockIndex": 0}));
            let end = framed("messageStop", &json!({"stopReason": "end_turn"}));
            let usage = framed(
                "metadata",
                &json!({"usage": {"inputTokens": 5, "outputTokens": 2, "totalTokens": 7}}),
            );
            vec![[begin, delta("two ")].concat(), [delta("words"), stop].concat(), [end, usage].concat()]
        }
        api => texts(api).into_iter().map(String::into_bytes).collect(),
    };
    events.into_iter().map(Part::Bytes).collect()
}

fn texts(api: &str) -> Vec<String> {
    match api {
        "openai-completions" | "mistral-conversations" => {
            let chunk = |content: &str, end: Value| {
                plain(
                    &json!({"id": "r", "choices": [{"index": 0, "delta": {"content": content}, "finish_reason": end}]}),
                )
            };
            let last = chunk("", json!("stop")) + "data: [DONE]\n\n";
            vec![chunk("two ", Value::Null), chunk("words", Value::Null), last]
        }
        "anthropic-messages" => {
            let delta = |text: &str| {
                named(
                    &json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
                )
            };
            let begin = json!({"type": "message_start", "message": {"id": "r", "type": "message", "role": "assistant", "content": [],
                "usage": {"input_tokens": 5, "output_tokens": 0}}});
            let block = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
            let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}});
            vec![
                named(&begin) + &named(&block) + &delta("two "),
                delta("words") + &named(&json!({"type": "content_block_stop", "index": 0})),
                named(&end) + &named(&json!({"type": "message_stop"})),
            ]
        }
        "google-generative-ai" | "google-vertex" => {
            let chunk = |text: &str| json!({"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "index": 0}]});
            let mut last = chunk("");
            last["candidates"][0]["finishReason"] = "STOP".into();
            vec![plain(&chunk("two ")), plain(&chunk("words")), plain(&last)]
        }
        _ => {
            let item = json!({"type": "message", "id": "m", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "two words", "annotations": []}]});
            let delta = |text: &str| {
                named(
                    &json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "m", "delta": text}),
                )
            };
            let begin = json!({"type": "response.created", "response": {"id": "r"}});
            let added = json!({"type": "response.output_item.added", "output_index": 0,
                "item": {"type": "message", "id": "m", "role": "assistant", "content": []}});
            let part = json!({"type": "response.content_part.added", "output_index": 0, "content_index": 0,
                "item_id": "m", "part": {"type": "output_text", "text": ""}});
            let done = json!({"type": "response.output_item.done", "output_index": 0, "item": item});
            let end = json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [item],
                "usage": {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}}});
            vec![
                named(&begin) + &named(&added) + &named(&part) + &delta("two "),
                delta("words") + &named(&done),
                named(&end),
            ]
        }
    }
}

/// A stream of the protocol's own type.
#[must_use]
pub fn stream(api: &str, parts: Vec<Part>) -> Reply {
    if is_bedrock(api) { in_frames(parts) } else { Reply::stream(parts) }
}

/// An answer of two words.
#[must_use]
pub fn good(api: &str) -> Reply {
    stream(api, parts(api))
}

/// The beginning of an answer, and then something else, or nothing.
#[must_use]
pub fn broken(api: &str, then: Option<Part>) -> Reply {
    let mut parts = parts(api);
    parts.pop();
    parts.extend(then);
    stream(api, parts)
}

/// An event that is whole and makes no sense.
#[must_use]
pub fn malformed(api: &str) -> Part {
    const HALF: &[u8] = b"{\"half\": ";
    Part::Bytes(if is_bedrock(api) {
        frame([(":event-type", "contentBlockDelta"), (":message-type", "event")], HALF)
    } else {
        [b"event: content_block_delta\ndata: ", HALF, b"\n\n"].concat()
    })
}

/// The first half of an answer's first event.
///
/// # Panics
/// When answers are empty.
#[must_use]
pub fn half(api: &str) -> Part {
    let Some(Part::Bytes(bytes)) = parts(api).into_iter().next() else { panic!("no answer of {api}") };
    let event = if is_bedrock(api) {
        100
    } else {
        bytes.windows(2).position(|two| two == b"\n\n").unwrap_or_default()
    };
    Part::Bytes(bytes[..event - 20].to_vec())
}

/// A line, or a frame, that begins well and goes on for `bytes`.
#[must_use]
pub fn endless(api: &str, bytes: usize) -> Vec<Part> {
    let begin = if is_bedrock(api) { b"\x00\x10".to_vec() } else { b"data: {\"x\": \"".to_vec() };
    vec![Part::Bytes(begin), Part::Repeat(b"0123456789abcdef".to_vec(), bytes / 16)]
}

/// A failure that the service tells in the midst of its answer.
#[must_use]
pub fn failure(api: &str, message: &str) -> Part {
    let event = match api {
        "bedrock-converse-stream" => {
            return exception("internalServerException", &json!({"message": message}));
        }
        "anthropic-messages" => {
            named(&json!({"type": "error", "error": {"type": "api_error", "message": message}}))
        }
        "google-generative-ai" | "google-vertex" => {
            plain(&json!({"error": {"code": 500, "message": message, "status": "INTERNAL"}}))
        }
        "mistral-conversations" => {
            plain(&json!({"object": "error", "message": message, "type": "internal", "code": 3000}))
        }
        "openai-completions" => plain(&json!({"error": {"message": message, "code": 500}})),
        _ => named(&json!({"type": "response.failed", "response": {"id": "r", "status": "failed",
            "error": {"code": "server_error", "message": message}}})),
    };
    Part::Bytes(event.into_bytes())
}
