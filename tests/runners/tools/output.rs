//! `output-accumulator.json`.

use serde_json::{Value, json};
use tau_core::text::truncate::Limits;
use tau_core::tools::output::OutputTail;
use tau_tests::compare::same;
use tau_tests::text_spec;
use tau_tests::tree::from_hex;

/// The tail window of shell output, without cleaning.
pub fn output_accumulator(_: &Value, case: &Value) -> Result<(), String> {
    let (input, expected) = (&case["input"], &case["expected"]);
    let default = Limits::default();
    let number = |key: &str, or: usize| input["options"][key].as_u64().map_or(or, |n| n as usize);
    let limits =
        Limits { lines: number("maxLines", default.lines), bytes: number("maxBytes", default.bytes) };
    let mut tail = OutputTail::new(limits);
    let after = expected["afterEachChunk"].as_array().cloned().unwrap_or_default();
    for (index, chunk) in input["chunks"].as_array().into_iter().flatten().enumerate() {
        tail.push(match chunk["hex"].as_str() {
            Some(hex) => from_hex(hex),
            None => text_spec::text(&chunk["text"]).into_bytes(),
        });
        if let Some(want) = after.get(index) {
            same(want, &shown(want, &tail)).map_err(|why| format!("after chunk {index}: {why}"))?;
        }
    }
    tail.finish();
    same(&expected["final"], &shown(&expected["final"], &tail))
}

fn shown(want: &Value, tail: &OutputTail) -> Value {
    let shot = tail.snapshot(|text| text.into());
    let mut got = shot.tail.to_value();
    got["content"] = text_spec::like(&want["content"], &shot.tail.content);
    got["currentLineBytes"] = json!(tail.open_line_bytes());
    // Whether the backend keeps the raw output in a file is decided by its own counts; they agree with these.
    got["tempFile"] = json!(shot.tail.truncated());
    got
}
