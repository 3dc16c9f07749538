//! What the model says: event streams of the chat protocol.

use serde_json::{Value, json};

use super::dice::Dice;

/// An answer that can be sent.
pub(crate) struct Answer {
    chunks: Vec<Value>,
    usage: Option<(u64, u64)>,
}

impl Answer {
    fn new() -> Self {
        Self { chunks: Vec::new(), usage: None }
    }

    fn chunk(&mut self, delta: Value, finish: Value) {
        self.chunks.push(json!({
            "id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }));
    }

    /// Tokens of the request and of the answer, as the server counts them.
    pub(crate) fn usage(&mut self, input: u64, output: u64) {
        self.usage = Some((input, output));
    }

    /// The stream; its last line may be missing.
    pub(crate) fn bytes(&self, rng: &mut Dice) -> Vec<u8> {
        let mut out = Vec::new();
        let mut push = |event: &str| out.extend_from_slice(format!("data: {event}\n\n").as_bytes());
        self.chunks.iter().for_each(|chunk| push(&chunk.to_string()));
        if let Some((input, output)) = self.usage {
            let usage =
                json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output});
            push(&json!({"id": "u", "choices": [], "usage": usage}).to_string());
        }
        if rng.below(10) > 0 {
            push("[DONE]");
        }
        out
    }
}

/// An answer to a conversation; `round` makes ids unique.
pub(crate) fn reply(rng: &mut Dice, round: u64, body: &Value, talk: u64) -> Answer {
    let has_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let mut answer = Answer::new();
    answer.chunk(json!({"role": "assistant", "content": ""}), Value::Null);
    for i in 0..rng.below(4) {
        answer.chunk(json!({"content": text(rng, i, talk)}), Value::Null);
    }
    let calls = if has_tools && rng.below(3) > 0 { rng.below(4) } else { 0 };
    for i in 0..calls {
        call(rng, round, i, &mut answer);
    }
    let finish = match rng.below(20) {
        0 => "length",
        1 => "content_filter",
        2 => "strange",
        _ if calls > 0 => "tool_calls",
        _ => "stop",
    };
    if rng.below(25) > 0 {
        answer.chunk(json!({}), finish.into());
    }
    answer
}

/// A summary, or what some models take for one.
pub(crate) fn summary(rng: &mut Dice, round: u64, talk: u64) -> Answer {
    let mut answer = Answer::new();
    let mut finish = "stop";
    match rng.below(12) {
        0 => {}
        1 => answer.chunk(json!({"content": " \n"}), Value::Null),
        2 => {
            call(rng, round, 0, &mut answer);
            finish = "tool_calls";
        }
        3 => {
            answer.chunk(json!({"content": "## Goal\nHalf of"}), Value::Null);
            finish = "length";
        }
        _ => {
            answer.chunk(json!({"content": format!("## Goal\nsummary {round}\n")}), Value::Null);
            answer.chunk(json!({"content": text(rng, 0, talk)}), Value::Null);
        }
    }
    answer.chunk(json!({}), finish.into());
    answer
}

/// A stream that fails.
pub(crate) fn failure(said: &str) -> Answer {
    let mut answer = Answer::new();
    answer.chunks.push(json!({"error": {"message": said}}));
    answer
}

/// Nothing: the input took all the room.
pub(crate) fn cut(limit: u64) -> Answer {
    let mut answer = Answer::new();
    answer.chunk(json!({"role": "assistant", "content": ""}), Value::Null);
    answer.chunk(json!({}), "length".into());
    answer.usage(limit, 0);
    answer
}

fn text(rng: &mut Dice, i: u64, talk: u64) -> String {
    format!("word {i} ünï {}\n", "x".repeat(rng.below(talk) as usize))
}

fn call(rng: &mut Dice, round: u64, i: u64, answer: &mut Answer) {
    let (name, args) = tool(rng);
    // Some servers repeat ids, some give none.
    let id = match rng.below(12) {
        0 => "dup".to_owned(),
        1 => String::new(),
        _ => format!("call_{round}_{i}"),
    };
    let function = json!({"name": name, "arguments": ""});
    answer.chunk(
        json!({"tool_calls": [{"index": i, "id": id, "type": "function", "function": function}]}),
        Value::Null,
    );
    let text: Vec<char> = args.chars().collect();
    for piece in text.chunks(1 + rng.below(19) as usize) {
        let piece: String = piece.iter().collect();
        answer.chunk(json!({"tool_calls": [{"index": i, "function": {"arguments": piece}}]}), Value::Null);
    }
}

fn tool(rng: &mut Dice) -> (&'static str, String) {
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
