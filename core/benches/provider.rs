//! The wire room: decoding a long stream, encoding a long history (about 10 MB), one more turn. Throughput counts bytes on
//! the wire; `anthropic` has the decoder of its protocol.

#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::json;
use tau_core::message::{AssistantMessage, Block, Message, StopReason, ToolCall, ToolResultMessage};
use tau_core::model::Model;
use tau_core::op::Credential;
use tau_core::provider::event_stream::crc32;
use tau_core::provider::{BodyEnd, ModelRequest, RequestOptions, encoder};

fn model(api: &str) -> Model {
    Model {
        id: "m".into(),
        api: api.into(),
        provider: "bench".into(),
        base_url: "http://127.0.0.1:1/v1".into(),
        text_input: true,
        context_window: 1_000_000,
        max_tokens: 32_000,
        ..Model::default()
    }
}

fn chunk(delta: &serde_json::Value) -> String {
    let chunk = json!({
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": null}],
    });
    format!("data: {chunk}\n\n")
}

const PIECE: &str =
    "0123456789 abcdefghij 0123456789 abcdefghij 0123456789 abcdefghij 0123456789 abcdefghij\n 0123456789 ";

fn decode(c: &mut Criterion) {
    let text: String = (0..20_000).map(|_| chunk(&json!({"content": PIECE}))).collect();
    let arguments: String = (0..20_000)
        .map(|i| {
            let arguments = if i == 0 { "{\"content\":\"" } else { "let x = 1;\\n  " };
            chunk(&json!({"tool_calls": [{"index": 0, "id": if i == 0 { "call_1" } else { "" }, "function": {"name": if i == 0 { "write" } else { "" }, "arguments": arguments}}]}))
        })
        .collect();
    run(c, "openai-completions", &[("text", &text), ("arguments", &arguments)]);
}

fn decode_items(c: &mut Criterion) {
    let event = |kind: &str, mut data: serde_json::Value| {
        data["type"] = json!(format!("response.{kind}"));
        format!("event: response.{kind}\ndata: {data}\n\n")
    };
    let stream = |item: serde_json::Value, kind: &str, piece: &str| {
        let added = event("output_item.added", json!({"output_index": 0, "item": item}));
        let delta = event(
            kind,
            json!({"sequence_number": 4, "item_id": "msg_bb17e4167cb3438699720ab8", "output_index": 0, "content_index": 0, "delta": piece, "logprobs": []}),
        );
        added + &delta.repeat(20_000)
    };
    let message = json!({"type": "message", "id": "msg_bb17e4167cb3438699720ab8", "content": []});
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "write", "arguments": "{\"content\":\""});
    let small = stream(message.clone(), "output_text.delta", " small");
    let text = stream(message, "output_text.delta", PIECE);
    let arguments = stream(call, "function_call_arguments.delta", "let x = 1;\\n  ");
    run(c, "openai-responses", &[("small", &small), ("text", &text), ("arguments", &arguments)]);
}

fn decode_google(c: &mut Criterion) {
    let event = |part: serde_json::Value| {
        let event = json!({
            "candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0}],
            "usageMetadata": {"promptTokenCount": 900, "candidatesTokenCount": 17, "totalTokenCount": 917,
                "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 900}]},
            "modelVersion": "gemini-3-pro", "responseId": "bb17e4167cb3438699720ab8",
        });
        format!("data: {event}\r\n\r\n")
    };
    let small = event(json!({"text": " small"})).repeat(20_000);
    let text = event(json!({"text": PIECE})).repeat(20_000);
    let thinking = event(json!({"text": PIECE, "thought": true})).repeat(20_000);
    run(c, "google-generative-ai", &[("small", &small), ("text", &text), ("thinking", &thinking)]);
}

fn decode_mistral(c: &mut Criterion) {
    let small = chunk(&json!({"content": " small"})).repeat(20_000);
    let text = chunk(&json!({"content": PIECE})).repeat(20_000);
    let call = |arguments: &str| {
        chunk(
            &json!({"tool_calls": [{"index": 0, "id": "abcdefghi", "function": {"name": "write", "arguments": arguments}}]}),
        )
    };
    let arguments = call("{\"content\":\"") + &call("let x = 1;\\n  ").repeat(20_000);
    run(c, "mistral-conversations", &[("small", &small), ("text", &text), ("arguments", &arguments)]);
}

/// A frame of an AWS event stream.
fn frame(name: &str, payload: &serde_json::Value) -> Vec<u8> {
    let mut headers = Vec::new();
    for (key, value) in
        [(":event-type", name), (":content-type", "application/json"), (":message-type", "event")]
    {
        headers.push(u8::try_from(key.len()).unwrap());
        headers.extend(key.bytes());
        headers.push(7);
        headers.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        headers.extend(value.bytes());
    }
    let payload = payload.to_string();
    let mut out = Vec::new();
    out.extend(u32::try_from(16 + headers.len() + payload.len()).unwrap().to_be_bytes());
    out.extend(u32::try_from(headers.len()).unwrap().to_be_bytes());
    out.extend(crc32(&out).to_be_bytes());
    out.extend(headers);
    out.extend(payload.bytes());
    out.extend(crc32(&out).to_be_bytes());
    out
}

fn decode_frames(c: &mut Criterion) {
    let delta = |delta: serde_json::Value| {
        frame("contentBlockDelta", &json!({"contentBlockIndex": 0, "delta": delta, "p": "abcdefghijk"}))
    };
    let start = frame("messageStart", &json!({"role": "assistant"}));
    let stream = |delta: Vec<u8>| [start.clone(), delta.repeat(20_000)].concat();
    let small = stream(delta(json!({"text": " small"})));
    let text = stream(delta(json!({"text": PIECE})));
    let call = json!({"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "t", "name": "write"}}});
    let mut arguments = [start.clone(), frame("contentBlockStart", &call)].concat();
    arguments.extend(delta(json!({"toolUse": {"input": "{\"content\":\""}})));
    arguments.extend(delta(json!({"toolUse": {"input": "let x = 1;\\n  "}})).repeat(20_000));
    run(c, "bedrock-converse-stream", &[("small", &small), ("text", &text), ("arguments", &arguments)]);
}

fn run<B: AsRef<[u8]>>(c: &mut Criterion, api: &str, bodies: &[(&str, &B)]) {
    let model = Arc::new(model(api));
    let mut group = c.benchmark_group(format!("decode_{}", api.replace('-', "_")));
    for (name, body) in bodies {
        let body = body.as_ref();
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(*name, |b| {
            b.iter(|| {
                let mut decoder = encoder(api).unwrap().decoder(&model, 1);
                let mut out = Vec::new();
                for piece in body.chunks(64 << 10) {
                    decoder.on_bytes(piece, &mut out);
                    black_box(&out);
                    out.clear();
                }
                decoder.on_end(BodyEnd::Complete, &mut out);
                decoder.take()
            });
        });
    }
    group.finish();
}

fn history(api: &str, turns: usize) -> Vec<Arc<Message>> {
    let mut list = vec![Arc::new(Message::user("go", Vec::new(), 1))];
    for turn in 0..turns {
        let call = ToolCall {
            id: format!("call_{turn}"),
            name: "read".into(),
            arguments: Arc::new(json!({"path": "src/main.rs", "offset": turn})),
            ..ToolCall::default()
        };
        list.push(Arc::new(Message::Assistant(AssistantMessage {
            content: vec![Block::text("I look at the file."), Block::ToolCall(call)],
            api: api.into(),
            provider: "bench".into(),
            model: "m".into(),
            stop_reason: StopReason::ToolUse,
            timestamp: 2,
            ..AssistantMessage::default()
        })));
        list.push(Arc::new(Message::ToolResult(ToolResultMessage {
            tool_call_id: format!("call_{turn}"),
            tool_name: "read".into(),
            content: vec![Block::text("fn main() {\n    println!(\"hello\");\n}\n".repeat(1000))],
            timestamp: 3,
            ..ToolResultMessage::default()
        })));
    }
    list
}

fn encode(c: &mut Criterion) {
    let apis = [
        "openai-completions",
        "openai-responses",
        "anthropic-messages",
        "google-generative-ai",
        "mistral-conversations",
        "bedrock-converse-stream",
    ];
    apis.into_iter().for_each(|api| encode_api(c, api));
}

fn encode_api(c: &mut Criterion, api: &str) {
    let model = model(api);
    let options = RequestOptions::default();
    let credential = Credential { api_key: Some("k".into()), ..Credential::default() };
    let mut group = c.benchmark_group(format!("encode_{}", api.replace('-', "_")));
    for turns in [25_usize, 250] {
        let list = history(api, turns);
        let request = |messages| ModelRequest {
            model: &model,
            messages,
            options: &options,
            credential: &credential,
            now_ms: 1,
        };
        let size = encoder(api).unwrap().encode(&request(&list)).unwrap().body.len();
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(format!("fresh_{turns}"), |b| {
            b.iter(|| encoder(api).unwrap().encode(&request(&list)).unwrap());
        });
        group.bench_function(format!("one_more_turn_after_{turns}"), |b| {
            let shorter = &list[..list.len() - 2];
            b.iter_batched(
                || {
                    let mut encoder = encoder(api).unwrap();
                    drop(encoder.encode(&request(shorter)).unwrap());
                    encoder
                },
                |mut encoder| (encoder.encode(&request(&list)).unwrap(), encoder),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, decode, decode_items, decode_google, decode_mistral, decode_frames, encode);
criterion_main!(benches);
