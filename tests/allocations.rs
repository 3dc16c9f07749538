//! Allocation budget of the hot path: a delta costs about one allocation and its own length, whatever came before.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use tau_core::fault::{FaultKind, IoFault};
use tau_core::input::Reply;
use tau_core::message::{AssistantMessage, Block, Message, StopReason, ToolCall, ToolResultMessage, Usage};
use tau_core::tools::{BUILTIN_NAMES, BuiltinOptions, builtins};
use tau_tests::drive::Driven;

struct Counting;

static COUNT: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on to the system allocator unchanged; only counters are touched besides.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(new_size.saturating_sub(layout.size()) as u64, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations and bytes of a piece of work.
fn measure(work: impl FnOnce()) -> (u64, u64) {
    let before = (COUNT.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed));
    work();
    (COUNT.load(Ordering::Relaxed) - before.0, BYTES.load(Ordering::Relaxed) - before.1)
}

/// `n` events in chunks of `per_chunk`, as a server with a slow reader sends them.
fn chunks(n: usize, per_chunk: usize, event: &str) -> Vec<Vec<u8>> {
    let chunk = event.repeat(per_chunk).into_bytes();
    vec![chunk; n / per_chunk]
}

fn openai_text() -> String {
    let delta = json!({"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m1",
        "choices": [{"index": 0, "delta": {"content": "x".repeat(100)}, "finish_reason": null}]});
    format!("data: {delta}\n\n")
}

fn openai_arguments() -> String {
    let delta = json!({"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m1",
        "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": "yyyyyyyyyyyyyyyyyyyy"}}]}, "finish_reason": null}]});
    format!("data: {delta}\n\n")
}

fn openai_call_start() -> Vec<u8> {
    let start = json!({"id": "r", "choices": [{"index": 0, "delta": {"tool_calls": [
        {"index": 0, "id": "c1", "type": "function", "function": {"name": "write", "arguments": "{\"path\":\"a\",\"content\":\""}}]}}]});
    format!("data: {start}\n\n").into_bytes()
}

fn anthropic(event: serde_json::Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
}

/// Tests of one process share the counters: one test, one case after the other.
#[test]
fn budgets() {
    a_delta_costs_one_allocation_and_its_own_length();
    a_turn_costs_the_same_whatever_came_before();
}

fn a_delta_costs_one_allocation_and_its_own_length() {
    let anthropic_start = [
        anthropic(json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}})),
        anthropic(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})),
    ]
    .concat();
    let anthropic_text = anthropic(
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x".repeat(100)}}),
    );
    let cases: [(&str, &str, Vec<u8>, String, u64); 3] = [
        ("openai text", "openai-completions", Vec::new(), openai_text(), 100),
        ("openai arguments", "openai-completions", openai_call_start(), openai_arguments(), 20),
        ("anthropic text", "anthropic-messages", anthropic_start.into_bytes(), anthropic_text, 100),
    ];
    for (name, api, start, event, delta) in cases {
        let mut driven = Driven::new(api, builtins(BUILTIN_NAMES, BuiltinOptions::default()), Vec::new());
        driven.chunk(start);
        // Warm up: buffers reach their size.
        for chunk in chunks(2_000, 50, &event) {
            driven.chunk(chunk);
        }
        let n = 20_000;
        let input = chunks(n, 50, &event);
        let mut events = 0;
        let (count, bytes) = measure(|| events = input.into_iter().map(|chunk| driven.chunk(chunk)).sum());
        assert!(events >= n, "{name}: {events} events for {n} deltas");
        let per_delta = count as f64 / n as f64;
        assert!(per_delta <= 1.2, "{name}: {per_delta:.2} allocations per delta");
        // The delta for the event, the delta in the message (grown by doubling), queue entries.
        let budget = 4 * delta + 64;
        let per_delta = bytes / n as u64;
        assert!(per_delta <= budget, "{name}: {per_delta} bytes per delta of {delta}, budget {budget}");
    }
}

/// A question, a reply with a call, its result, an answer: of the model that is asked, or of another one, whose ids
/// and signatures have to be rewritten.
fn turn(n: usize, model: &str) -> [Message; 4] {
    let reply = |content: Vec<Block>, stop_reason| {
        Message::Assistant(AssistantMessage {
            content,
            api: "openai-completions".into(),
            provider: "mock".into(),
            model: model.into(),
            stop_reason,
            usage: Usage { input: 900, total_tokens: 900, ..Usage::default() },
            timestamp: 2,
            ..AssistantMessage::default()
        })
    };
    let id = format!("call_{n}|item");
    let call = ToolCall { id: id.clone(), name: "read".into(), ..ToolCall::default() };
    let result = ToolResultMessage {
        tool_call_id: id,
        tool_name: "read".into(),
        content: vec![Block::text("contents")],
        ..ToolResultMessage::default()
    };
    [
        Message::user(format!("question {n}"), Vec::new(), 1),
        reply(vec![Block::ToolCall(call)], StopReason::ToolUse),
        Message::ToolResult(result),
        reply(vec![Block::text("an answer")], StopReason::Stop),
    ]
}

/// Allocations of twenty more turns with so many before them; bytes that are not the request's own.
fn more_turns(api: &str, model: &str, turns: usize) -> (u64, u64) {
    let history = (0..turns).flat_map(|n| turn(n, model)).collect();
    let mut driven = Driven::new(api, builtins(BUILTIN_NAMES, BuiltinOptions::default()), history);
    let mut go = || {
        // Aborted replies end a turn without a word of the protocol.
        driven.reply(Reply::Failed(IoFault::new(FaultKind::Cancelled, "")));
        driven.drain();
        driven.request.body = Arc::default();
        driven.prompt("and more");
    };
    // The first grow buffers to twice their size.
    (0..3).for_each(|_| go());
    measure(|| (0..20).for_each(|_| go()))
}

fn a_turn_costs_the_same_whatever_came_before() {
    for api in ["openai-completions", "openai-responses", "anthropic-messages"] {
        for model in ["m1", "another"] {
            let [few, many] = [10, 1000].map(|turns| more_turns(api, model, turns));
            let name = format!("{api}, history of {model}: {few:?} after 10 turns, {many:?} after 1000");
            println!("{name}");
            // A list that happens to be full may grow; a copy of a list of all messages in each turn is far more.
            assert!(many.0 <= few.0 + few.0 / 50 && many.1 <= few.1 + few.1 / 4, "{name}");
        }
    }
}
