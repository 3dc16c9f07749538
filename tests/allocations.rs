//! Allocation budget of the hot path: a delta costs about one allocation and its own length, whatever came before.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tau_core::fault::{FaultKind, IoFault};
use tau_core::input::Reply;
use tau_core::message::{AssistantMessage, Block, Message, StopReason, ToolCall, ToolResultMessage, Usage};
use tau_core::provider::event_stream::crc32;
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
fn chunks(n: usize, per_chunk: usize, event: &[u8]) -> Vec<Vec<u8>> {
    let chunk = event.repeat(per_chunk);
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

/// An event with its name in front.
fn named(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
}

fn unnamed(event: &Value) -> String {
    format!("data: {event}\n\n")
}

/// A frame of an AWS event stream.
fn frame(name: &str, payload: &Value) -> Vec<u8> {
    let mut headers = Vec::new();
    for (key, value) in [(":event-type", name), (":message-type", "event")] {
        headers.push(key.len() as u8);
        headers.extend(key.bytes());
        headers.push(7);
        headers.extend((value.len() as u16).to_be_bytes());
        headers.extend(value.bytes());
    }
    let payload = payload.to_string();
    let mut out = Vec::new();
    out.extend(((16 + headers.len() + payload.len()) as u32).to_be_bytes());
    out.extend((headers.len() as u32).to_be_bytes());
    out.extend(crc32(&out).to_be_bytes());
    out.extend(headers);
    out.extend(payload.bytes());
    out.extend(crc32(&out).to_be_bytes());
    out
}

/// Tests of one process share the counters: one test, one case after the other.
#[test]
fn budgets() {
    a_delta_costs_one_allocation_and_its_own_length();
    a_turn_costs_the_same_whatever_came_before();
}

/// Name, protocol, beginning of a reply, one delta as often as wanted, its length.
type Stream = (&'static str, &'static str, Vec<u8>, Vec<u8>, u64);

fn streams() -> Vec<Stream> {
    let text = "x".repeat(100);
    let begun = |block: Value| {
        let start = json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}});
        let block = json!({"type": "content_block_start", "index": 0, "content_block": block});
        [named(&start), named(&block)].concat().into_bytes()
    };
    let anthropic = |delta: Value| {
        named(&json!({"type": "content_block_delta", "index": 0, "delta": delta})).into_bytes()
    };
    let added = |item: Value| {
        named(&json!({"type": "response.output_item.added", "output_index": 0, "item": item})).into_bytes()
    };
    let responses = |kind: &str, delta: &str| {
        let event = json!({"type": format!("response.{kind}.delta"), "sequence_number": 4, "item_id": "i",
            "output_index": 0, "content_index": 0, "delta": delta});
        named(&event).into_bytes()
    };
    let google = |part: Value| {
        let chunk = json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 9, "totalTokenCount": 18},
            "modelVersion": "m1", "responseId": "r"});
        unnamed(&chunk).into_bytes()
    };
    let mistral = |delta: Value| {
        let chunk = json!({"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m1",
            "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
        unnamed(&chunk).into_bytes()
    };
    let call = |arguments: &str| {
        mistral(
            json!({"tool_calls": [{"index": 0, "id": "abcdefghi", "function": {"name": "write", "arguments": arguments}}]}),
        )
    };
    let bedrock = |delta: Value| frame("contentBlockDelta", &json!({"contentBlockIndex": 0, "delta": delta}));
    let opened = |start: Value| {
        let mut bytes = frame("messageStart", &json!({"role": "assistant"}));
        if !start.is_null() {
            bytes.extend(frame("contentBlockStart", &json!({"contentBlockIndex": 0, "start": start})));
        }
        bytes
    };
    let (open, piece) = ("{\"path\":\"a\",\"content\":\"", "yyyyyyyyyyyyyyyyyyyy");
    vec![
        ("openai text", "openai-completions", Vec::new(), openai_text().into_bytes(), 100),
        ("openai arguments", "openai-completions", openai_call_start(), openai_arguments().into_bytes(), 20),
        (
            "anthropic text",
            "anthropic-messages",
            begun(json!({"type": "text", "text": ""})),
            anthropic(json!({"type": "text_delta", "text": text})),
            100,
        ),
        (
            "anthropic thinking",
            "anthropic-messages",
            begun(json!({"type": "thinking", "thinking": ""})),
            anthropic(json!({"type": "thinking_delta", "thinking": text})),
            100,
        ),
        (
            "anthropic arguments",
            "anthropic-messages",
            [
                begun(json!({"type": "tool_use", "id": "t", "name": "write", "input": {}})),
                anthropic(json!({"type": "input_json_delta", "partial_json": open})),
            ]
            .concat(),
            anthropic(json!({"type": "input_json_delta", "partial_json": piece})),
            20,
        ),
        (
            "responses text",
            "openai-responses",
            added(json!({"type": "message", "id": "i", "content": []})),
            responses("output_text", &text),
            100,
        ),
        (
            "responses thinking",
            "openai-responses",
            added(json!({"type": "reasoning", "id": "i", "summary": []})),
            responses("reasoning_summary_text", &text),
            100,
        ),
        (
            "responses arguments",
            "openai-responses",
            added(
                json!({"type": "function_call", "id": "i", "call_id": "c", "name": "write", "arguments": open}),
            ),
            responses("function_call_arguments", piece),
            20,
        ),
        ("google text", "google-generative-ai", Vec::new(), google(json!({"text": text})), 100),
        (
            "google thinking",
            "google-generative-ai",
            Vec::new(),
            google(json!({"text": text, "thought": true})),
            100,
        ),
        ("mistral text", "mistral-conversations", Vec::new(), mistral(json!({"content": text})), 100),
        ("mistral arguments", "mistral-conversations", call(open), call(piece), 20),
        ("bedrock text", "bedrock-converse-stream", opened(Value::Null), bedrock(json!({"text": text})), 100),
        (
            "bedrock arguments",
            "bedrock-converse-stream",
            [
                opened(json!({"toolUse": {"toolUseId": "t", "name": "write"}})),
                bedrock(json!({"toolUse": {"input": open}})),
            ]
            .concat(),
            bedrock(json!({"toolUse": {"input": piece}})),
            20,
        ),
    ]
}

fn a_delta_costs_one_allocation_and_its_own_length() {
    for (name, api, start, event, delta) in streams() {
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
        println!("{name}: {per_delta:.2} allocations, {} bytes per delta of {delta}", bytes / n as u64);
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
    let apis = [
        "openai-completions",
        "openai-responses",
        "anthropic-messages",
        "google-generative-ai",
        "mistral-conversations",
        "bedrock-converse-stream",
    ];
    for api in apis {
        for model in ["m1", "another"] {
            let [few, many] = [10, 1000].map(|turns| more_turns(api, model, turns));
            let name = format!("{api}, history of {model}: {few:?} after 10 turns, {many:?} after 1000");
            println!("{name}");
            // A list that happens to be full may grow; a copy of a list of all messages in each turn is far more.
            assert!(many.0 <= few.0 + few.0 / 50 && many.1 <= few.1 + few.1 / 4, "{name}");
        }
    }
}
