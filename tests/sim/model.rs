//! A model server that answers chat requests with random event streams.

use serde_json::{Value, json};

use super::dice::Dice;

/// The bytes of a stream for a request; `round` makes ids unique.
pub(crate) fn reply(rng: &mut Dice, round: u64, body: &Value) -> Vec<u8> {
    let has_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let mut out = Vec::new();
    let mut chunk = |delta: Value, finish: Value| {
        let event = json!({
            "id": format!("r{round}"), "object": "chat.completion.chunk", "created": 1, "model": "m1",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        });
        out.extend_from_slice(format!("data: {event}\n\n").as_bytes());
    };
    chunk(json!({"role": "assistant", "content": ""}), Value::Null);
    for i in 0..rng.below(4) {
        chunk(json!({"content": format!("word {i} ünï\n")}), Value::Null);
    }
    let calls = if has_tools && rng.below(3) > 0 && round < 40 { rng.below(4) } else { 0 };
    for i in 0..calls {
        let (name, args) = call(rng);
        // Some servers repeat ids, some give none.
        let id = match rng.below(12) {
            0 => "dup".to_owned(),
            1 => String::new(),
            _ => format!("call_{round}_{i}"),
        };
        chunk(
            json!({"tool_calls": [{"index": i, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}]}),
            Value::Null,
        );
        let text: Vec<char> = args.chars().collect();
        for piece in text.chunks(1 + rng.below(9) as usize) {
            let piece: String = piece.iter().collect();
            chunk(json!({"tool_calls": [{"index": i, "function": {"arguments": piece}}]}), Value::Null);
        }
    }
    let finish = match rng.below(20) {
        0 => "length",
        1 => "content_filter",
        2 => "strange",
        _ if calls > 0 => "tool_calls",
        _ => "stop",
    };
    if rng.below(25) > 0 {
        chunk(json!({}), finish.into());
    }
    if rng.below(2) > 0 {
        let usage = json!({"id": "u", "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}});
        out.extend_from_slice(format!("data: {usage}\n\n").as_bytes());
    }
    if rng.below(10) > 0 {
        out.extend_from_slice(b"data: [DONE]\n\n");
    }
    out
}

fn call(rng: &mut Dice) -> (&'static str, String) {
    let path = ["a.txt", "b.txt", "sub/c.txt", "none.txt", "/w"][rng.below(5) as usize];
    match rng.below(11) {
        0 => ("read", json!({"path": path}).to_string()),
        1 => ("write", json!({"path": path, "content": "one\ntwo\n"}).to_string()),
        2 | 3 => {
            ("edit", json!({"path": path, "edits": [{"oldText": "two", "newText": "TWO\ntwo"}]}).to_string())
        }
        4 => ("bash", json!({"command": "true"}).to_string()),
        5 => ("bash", json!({"command": "sleep 9", "timeout": 0.5}).to_string()),
        6 => ("ls", json!({}).to_string()),
        7 => ("alpha", json!({"n": 1}).to_string()),
        8 => ("beta", json!({"n": 2}).to_string()),
        9 => ("nobody", "{}".into()),
        _ => ("read", "{\"path\": \"a.t".into()),
    }
}
