//! Hot paths of `anthropic-messages`: decoding long replies, encoding long histories, adapting foreign ones.
//!
//! Throughput of decoders counts bytes on the wire. `turn` is one more turn on top of a history that was sent before.

#![allow(missing_docs, clippy::expect_used)]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use tau_core::convert::{Target, prepare, sanitize_id};
use tau_core::message::{
    AssistantMessage, Block, Message, TextBlock, ThinkingBlock, ToolCall, ToolResultMessage,
};
use tau_core::model::Model;
use tau_core::op::Credential;
use tau_core::provider::{BodyEnd, ModelRequest, RequestOptions, encoder};
use tau_core::tokens;

const API: &str = "anthropic-messages";

fn event(name: &str, data: &str) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// A reply of one block in `count` deltas.
fn reply(block: &str, delta: impl Fn(usize) -> String, count: usize) -> Vec<u8> {
    let start = r#"{"type":"message_start","message":{"id":"m","model":"c","usage":{"input_tokens":1,"output_tokens":1}}}"#;
    let mut body = event("message_start", start);
    let block = format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#);
    body += &event("content_block_start", &block);
    for n in 0..count {
        let data = format!(r#"{{"type":"content_block_delta","index":0,"delta":{}}}"#, delta(n));
        body += &event("content_block_delta", &data);
    }
    body += &event("content_block_stop", r#"{"type":"content_block_stop","index":0}"#);
    body += &event("message_delta", r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#);
    body += &event("message_stop", r#"{"type":"message_stop"}"#);
    body.into_bytes()
}

fn text_reply() -> Vec<u8> {
    let words = "lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore ";
    let delta = |n: usize| {
        format!(r#"{{"type":"text_delta","text":"{}"}}"#, &words[..if n.is_multiple_of(9) { 40 } else { 99 }])
    };
    reply(r#"{"type":"text","text":""}"#, delta, 100_000)
}

fn call_reply() -> Vec<u8> {
    let delta = |n: usize| match n {
        0 => r#"{"type":"input_json_delta","partial_json":"{\"path\":\"a\",\"content\":\""}"#.to_owned(),
        109_999 => r#"{"type":"input_json_delta","partial_json":"\"}"}"#.to_owned(),
        _ if n.is_multiple_of(12) => {
            r#"{"type":"input_json_delta","partial_json":"line of code\\n"}"#.to_owned()
        }
        _ => r#"{"type":"input_json_delta","partial_json":"let value = 17;   "}"#.to_owned(),
    };
    reply(r#"{"type":"tool_use","id":"t","name":"write","input":{}}"#, delta, 110_000)
}

fn decode(body: &[u8], model: &Arc<Model>) -> AssistantMessage {
    let encoder = encoder(API).expect("the protocol");
    let mut decoder = encoder.decoder(model, 1);
    let mut events = Vec::new();
    for chunk in body.chunks(16 * 1024) {
        decoder.on_bytes(chunk, &mut events);
        black_box(&events);
        events.clear();
    }
    decoder.on_end(BodyEnd::Complete, &mut events);
    decoder.take()
}

/// Turns of a user, a reply with a call, and its result; about 10 kB each.
fn history(turns: usize, provider: &str) -> Vec<Arc<Message>> {
    let output = "some output of a tool, with \"quotes\" and\nlines\n".repeat(190);
    let mut list = Vec::new();
    for n in 0..turns {
        let id = format!("toolu_{n}");
        list.push(Arc::new(Message::user(format!("question {n} ").repeat(20), Vec::new(), 1)));
        let call = ToolCall {
            id: id.clone(),
            name: "bash".into(),
            arguments: Arc::new(serde_json::json!({"command": format!("ls -la /tmp/{n}")})),
            ..ToolCall::default()
        };
        let thinking = ThinkingBlock {
            thinking: "let me think about it ".repeat(20).into(),
            signature: Some("c2lnbmF0dXJl".repeat(10).as_str().into()),
            redacted: false,
        };
        let text = TextBlock { text: "I will look into it. ".repeat(10).into(), signature: None };
        list.push(Arc::new(Message::Assistant(AssistantMessage {
            content: vec![Block::Thinking(thinking), Block::Text(text), Block::ToolCall(call)],
            api: API.into(),
            provider: provider.into(),
            model: "m".into(),
            ..AssistantMessage::default()
        })));
        list.push(Arc::new(Message::ToolResult(ToolResultMessage {
            tool_call_id: id,
            tool_name: "bash".into(),
            content: vec![Block::text(output.clone())],
            ..ToolResultMessage::default()
        })));
    }
    list
}

fn model() -> Arc<Model> {
    Arc::new(Model {
        id: "m".into(),
        api: API.into(),
        provider: "p".into(),
        base_url: "http://127.0.0.1".into(),
        max_tokens: 1000,
        ..Model::default()
    })
}

fn decoding(c: &mut Criterion) {
    let model = model();
    let mut group = c.benchmark_group("anthropic/decode");
    group.sample_size(10);
    for (name, body) in [("text", text_reply()), ("arguments", call_reply())] {
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(name, |b| b.iter(|| decode(&body, &model)));
    }
    group.finish();
}

fn encoding(c: &mut Criterion) {
    let (model, options) = (model(), RequestOptions::default());
    let credential = Credential { api_key: Some("key".into()), ..Credential::default() };
    let mut group = c.benchmark_group("anthropic/encode");
    group.sample_size(10);
    for provider in ["p", "foreign"] {
        let list = history(1000, provider);
        let request = |messages| ModelRequest {
            model: &model,
            messages,
            options: &options,
            credential: &credential,
            now_ms: 1,
        };
        let size =
            encoder(API).and_then(|mut e| e.encode(&request(&list)).ok()).map_or(0, |made| made.body.len());
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(format!("first/{provider}"), |b| {
            b.iter_batched(
                || encoder(API).expect("the protocol"),
                |mut encoder| encoder.encode(&request(&list)).expect("a request"),
                BatchSize::PerIteration,
            );
        });
        let mut encoder = encoder(API).expect("the protocol");
        let mut end = list.len() - 30;
        group.bench_function(format!("turn/{provider}"), |b| {
            b.iter(|| {
                end = if end >= list.len() { list.len() - 30 } else { end + 3 };
                encoder.encode(&request(&list[..end])).expect("a request").body.len()
            });
        });
    }
    group.finish();
}

fn converting(c: &mut Criterion) {
    let mut group = c.benchmark_group("context");
    group.sample_size(10);
    let ids = |id: &str, _: &AssistantMessage| sanitize_id(id, 64).into_owned();
    let target = Target { provider: "p", api: API, model: "m", images: false, ids: Some(&ids), max_id: 64 };
    for provider in ["p", "foreign"] {
        let list = history(1000, provider);
        group.bench_function(format!("prepare/{provider}"), |b| b.iter(|| prepare(&list, &target, 1).len()));
        group.bench_function(format!("estimate/{provider}"), |b| b.iter(|| tokens::context_usage(&list)));
    }
    group.finish();
}

criterion_group!(benches, decoding, encoding, converting);
criterion_main!(benches);
