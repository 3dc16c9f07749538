//! Growth (spec 70 §6.1): four times the data costs about four times as much, and a turn hardly depends on what came before
//! it. Measured in processor time of one thread, the best of three, so that other load does not count.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tau_core::message::{AssistantMessage, Block, Message, StopReason};
use tau_core::model::catalog::Catalog;
use tau_core::session::{Want, open};
use tau_core::text::truncate::Limits;
use tau_core::tools::output::OutputTail;
use tau_core::tools::{BUILTIN_NAMES, BuiltinOptions, builtins};
use tau_tests::drive::Driven;
use tau_tests::usage::{assert_linear, best, thread_time};

const API: &str = "openai-completions";

/// Processor time of work on this thread.
fn timed(work: impl FnOnce()) -> Duration {
    let start = thread_time();
    work();
    thread_time() - start
}

fn event(delta: &Value, finish: &Value) -> Vec<u8> {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    format!("data: {}\n\n", json!({"id": "r", "model": "m1", "choices": [choice]})).into_bytes()
}

fn driven(history: Vec<Message>) -> Driven {
    Driven::new(API, builtins(BUILTIN_NAMES, BuiltinOptions::default()), history)
}

fn text(driven: &mut Driven, text: &str) {
    driven.chunk(event(&json!({"content": text}), &Value::Null));
}

fn arguments(driven: &mut Driven, piece: &str) {
    let call = json!({"index": 0, "function": {"arguments": piece}});
    driven.chunk(event(&json!({"tool_calls": [call]}), &Value::Null));
}

#[test]
fn a_text() {
    let cost = |deltas: usize| {
        let mut driven = driven(Vec::new());
        timed(|| (0..deltas).for_each(|_| text(&mut driven, "words and more words ")))
    };
    assert_linear("text", cost, 3000);
}

/// Arguments of one call in so many pieces.
fn call(start: &str, piece: &str, pieces: usize) -> Duration {
    let mut driven = driven(Vec::new());
    let first = json!({"index": 0, "id": "c1", "type": "function",
        "function": {"name": "write", "arguments": start}});
    driven.chunk(event(&json!({"tool_calls": [first]}), &Value::Null));
    timed(|| (0..pieces).for_each(|_| arguments(&mut driven, piece)))
}

#[test]
fn an_argument() {
    assert_linear("string", |n| call("{\"content\":\"", "words and more words ", n), 3000);
    // The largest have 10,000 items and 1,000 levels.
    assert_linear("items", |n| call("{\"edits\":[", "{\"oldText\":\"a\",\"newText\":\"b\"},", n), 2500);
    assert_linear("levels", |n| call("{\"a\":", "[{\"b\":", n), 125);
}

#[test]
fn a_session() {
    let file = |entries: usize| {
        let at = "2026-01-01T00:00:00.000Z";
        let header = json!({"type": "session", "version": 3, "id": "s", "timestamp": at, "cwd": "/w"});
        let mut lines = header.to_string() + "\n";
        for n in 0..entries {
            let parent = n.checked_sub(1).map(|n| format!("{n:08x}"));
            let message = json!({"role": "user", "content": "words and more words", "timestamp": 1});
            let entry = json!({"type": "message", "id": format!("{n:08x}"), "parentId": parent,
                "timestamp": at, "message": message});
            lines += &(entry.to_string() + "\n");
        }
        lines.into_bytes()
    };
    let cost = |entries| {
        let bytes = file(entries);
        timed(|| {
            let (session, _) = open(&bytes, "/s".into(), "/w", Want::default()).unwrap();
            assert_eq!(session.context().messages.len(), entries);
        })
    };
    assert_linear("session", cost, 2000);
}

#[test]
fn models_of_a_file() {
    let file = |count: usize| {
        let models: Vec<Value> =
            (0..count).map(|n| json!({"id": format!("m{n}"), "headers": {"a": "b"}})).collect();
        let over = |n: usize| (format!("m{n}"), json!({"name": "N"}));
        let changes: serde_json::Map<String, Value> = (0..count).map(over).collect();
        let provider =
            json!({"baseUrl": "http://h", "api": API, "models": models, "modelOverrides": changes});
        json!({"providers": {"p": provider}}).to_string()
    };
    let cost = |count: usize| {
        let text = file(count);
        timed(|| {
            let catalog = Catalog::load("models.json", Ok(Some(&text)));
            let shown =
                catalog.entries().iter().filter(|e| e.name == "N" && e.facts().context_window > 0).count();
            assert_eq!(shown, count);
            assert!(catalog.unmatched().is_empty());
        })
    };
    assert_linear("models", cost, 500);
}

#[test]
fn output_of_a_command() {
    let line = b"a line of output that is neither long nor short\n".repeat(200);
    let cost = |pieces: usize| {
        let mut tail = OutputTail::new(Limits::default());
        timed(|| {
            (0..pieces).for_each(|_| tail.push(line.clone()));
            tail.finish();
            assert_eq!(tail.snapshot(|text| text.into()).tail.total_lines, pieces * 200);
        })
    };
    assert_linear("output", cost, 500);
}

fn turn(n: usize) -> [Message; 2] {
    let reply = AssistantMessage {
        content: vec![Block::text("a few words")],
        api: API.into(),
        provider: "mock".into(),
        model: "m1".into(),
        stop_reason: StopReason::Stop,
        timestamp: 2,
        ..AssistantMessage::default()
    };
    [Message::user(format!("question {n}"), Vec::new(), 1), Message::Assistant(reply)]
}

/// Cost of twenty more turns, each from the answer to the next request, with so many turns before them.
fn more_turns(turns: usize) -> Duration {
    let mut driven = driven((0..turns).flat_map(turn).collect());
    let mut go = |text_of_prompt: &str| {
        text(&mut driven, "an answer");
        driven.chunk(event(&json!({}), &json!("stop")));
        // Without it the size of the whole history would have to be estimated.
        let usage = json!({"prompt_tokens": 900, "completion_tokens": 3, "total_tokens": 903});
        driven.chunk(format!("data: {}\n\n", json!({"choices": [], "usage": usage})).into_bytes());
        driven.end();
        // As after sending: the buffer goes back to the encoder.
        driven.request.body = Arc::default();
        driven.prompt(text_of_prompt);
    };
    // The first grows buffers.
    go("more");
    timed(|| (0..20).for_each(|_| go("and more")))
}

#[test]
fn a_turn() {
    let [few, many] = [10, 1000].map(|turns| best(|| more_turns(turns)));
    println!("20 turns: {few:?} after 10, {many:?} after 1000");
    // What is the same as last time is found by a walk over addresses, which is slow without optimisation.
    let limit = if cfg!(debug_assertions) { 3.0 } else { 1.3 };
    assert!(
        many.as_secs_f64() <= few.as_secs_f64() * limit,
        "20 turns cost {few:?} after 10 turns, {many:?} after 1000"
    );
}
