//! Allocation budgets of the hot paths (spec 70 §6.1): they hold on any machine, however loaded.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
#![allow(unsafe_code, reason = "a counting allocator is one")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use serde_json::json;
use tau_core::message::{AssistantMessage, Block, Message, StopReason, ToolCall, ToolResultMessage, Usage};
use tau_core::model::Model;
use tau_core::op::Credential;
use tau_core::provider::{ModelRequest, RequestOptions, encoder};

struct Counting;

thread_local! {
    static COUNT: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

fn note(bytes: usize) {
    let _ = COUNT.try_with(|count| {
        let (calls, sum) = count.get();
        count.set((calls + 1, sum + bytes as u64));
    });
}

// SAFETY: every method forwards to the system allocator; counting touches only a cell of this thread.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note(new_size.saturating_sub(layout.size()));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations and bytes of `work` on this thread.
fn measured<T>(work: impl FnOnce() -> T) -> (u64, u64, T) {
    let before = COUNT.with(Cell::get);
    let result = work();
    let after = COUNT.with(Cell::get);
    (after.0 - before.0, after.1 - before.1, result)
}

fn model(api: &str) -> Model {
    Model {
        id: "m".into(),
        api: api.into(),
        provider: "p".into(),
        base_url: "http://127.0.0.1:1".into(),
        context_window: 10_000_000,
        max_tokens: 1000,
        ..Model::default()
    }
}

/// Feeds `count` equal events; allocations and bytes per event.
fn per_event(api: &str, first: &str, event: &str, count: u64) -> (f64, f64) {
    let model = Arc::new(model(api));
    let encoder = encoder(api).expect("a protocol");
    let mut decoder = encoder.decoder(&model, 1);
    let mut out = Vec::with_capacity(16);
    decoder.on_bytes(first.as_bytes(), &mut out);
    let (calls, bytes, ()) = measured(|| {
        for _ in 0..count {
            out.clear();
            decoder.on_bytes(event.as_bytes(), &mut out);
        }
    });
    assert!(!out.is_empty(), "the events mean something");
    (calls as f64 / count as f64, bytes as f64 / count as f64)
}

#[test]
fn a_delta_costs_one_allocation() {
    const COUNT: u64 = 20_000;
    let chunk = |delta: serde_json::Value| {
        format!("data: {}\n\n", json!({"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta}]}))
    };
    let text = chunk(json!({"content": "0123456789"}));
    let (calls, bytes) = per_event("openai-completions", &text, &text, COUNT);
    assert!(calls <= 1.02, "text delta: {calls} allocations");
    assert!(bytes <= 60.0, "text delta: {bytes} bytes");

    let call = |id: &str, name: &str, arguments: &str| {
        chunk(
            json!({"tool_calls": [{"index": 0, "id": id, "function": {"name": name, "arguments": arguments}}]}),
        )
    };
    let first = call("c1", "write", "{\"content\":\"");
    let more = chunk(json!({"tool_calls": [{"index": 0, "function": {"arguments": "0123456789"}}]}));
    let (calls, bytes) = per_event("openai-completions", &first, &more, COUNT);
    assert!(calls <= 1.02, "argument delta: {calls} allocations");
    assert!(bytes <= 60.0, "argument delta: {bytes} bytes");
}

#[test]
fn a_delta_of_an_item_costs_one_allocation() {
    const COUNT: u64 = 20_000;
    let event = |event: serde_json::Value| format!("event: x\ndata: {event}\n\n");
    let added = |item: serde_json::Value| {
        event(json!({"type": "response.output_item.added", "output_index": 0, "item": item}))
    };
    let delta = |kind: &str| {
        event(json!({
            "type": format!("response.{kind}.delta"), "item_id": "i_1", "output_index": 0, "content_index": 0,
            "sequence_number": 9, "delta": "0123456789", "logprobs": [],
        }))
    };
    let text = (added(json!({"type": "message", "id": "i_1"})), delta("output_text"));
    let call =
        json!({"type": "function_call", "id": "i_1", "call_id": "c", "name": "write", "arguments": ""});
    let call = (added(call), delta("function_call_arguments"));
    for (added, delta) in [text, call] {
        let (calls, bytes) = per_event("openai-responses", &added, &delta, COUNT);
        assert!(calls <= 1.02, "{calls} allocations");
        assert!(bytes <= 60.0, "{bytes} bytes");
    }
}

#[test]
fn the_cost_of_a_delta_does_not_grow() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"0123456789\"}}]}\n\n";
    let (_, few) = per_event("openai-completions", text, text, 5_000);
    let (_, many) = per_event("openai-completions", text, text, 80_000);
    assert!(many <= few * 2.5, "{few} bytes an event at first, {many} later");
}

fn turn(number: usize, size: usize) -> [Arc<Message>; 2] {
    let call = ToolCall {
        id: format!("call_{number}"),
        name: "read".into(),
        arguments: Arc::new(json!({"path": "a"})),
        ..ToolCall::default()
    };
    let reply = AssistantMessage {
        content: vec![Block::ToolCall(call)],
        api: "openai-completions".into(),
        provider: "p".into(),
        model: "m".into(),
        stop_reason: StopReason::ToolUse,
        usage: Usage { input: 10, total_tokens: 10, ..Usage::default() },
        timestamp: 2,
        ..AssistantMessage::default()
    };
    let result = ToolResultMessage {
        tool_call_id: format!("call_{number}"),
        tool_name: "read".into(),
        content: vec![Block::text("x".repeat(size))],
        timestamp: 3,
        ..ToolResultMessage::default()
    };
    [Arc::new(Message::Assistant(reply)), Arc::new(Message::ToolResult(result))]
}

#[test]
fn unchanged_messages_are_not_encoded_again() {
    for api in ["openai-completions", "anthropic-messages", "openai-responses"] {
        let model = model(api);
        let mut messages = vec![Arc::new(Message::user("go", Vec::new(), 1))];
        messages.extend((0..100).flat_map(|number| turn(number, 50_000)));
        let mut encoder = encoder(api).expect("a protocol");
        let credential = Credential { api_key: Some("k".into()), ..Credential::default() };
        let mut encode = |messages: &[Arc<Message>]| {
            let options = RequestOptions::default();
            let request = ModelRequest {
                model: &model,
                messages,
                options: &options,
                credential: &credential,
                now_ms: 9,
            };
            measured(|| encoder.encode(&request).expect("a request").body.len())
        };
        let (_, first, len) = encode(&messages);
        assert!(len > 5_000_000 && first > 5_000_000, "{api}");
        messages.extend(turn(100, 1000));
        let (_, second, longer) = encode(&messages);
        assert!(longer > len, "{api}");
        // The buffer may grow once, by a realloc in place; the history is not copied or written again.
        let (_, third, _) = encode(&messages);
        assert!(third < 200_000, "{api}: {third} bytes for a repeated request");
        assert!(second < 6_000_000, "{api}: {second} bytes for one more turn");
    }
}
