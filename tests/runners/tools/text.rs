//! Cutting and cleaning of text.

use serde_json::{Value, json};
use tau_core::text::truncate::{
    self, Limits, MAX_BYTES, MAX_LINE_UNITS, MAX_LINES, Truncation, truncate_head, truncate_line,
    truncate_tail,
};
use tau_core::text::user_shell::UserShellOutput;
use tau_core::text::{ansi, clean, utf16};
use tau_tests::compare::same;
use tau_tests::text_spec::{like, text};

fn size(value: &Value, default: usize) -> usize {
    value.as_u64().map_or(default, |n| usize::try_from(n).unwrap_or(usize::MAX))
}

fn cut(case: &Value, cut: fn(&str, Limits) -> Truncation) -> Result<(), String> {
    let options = &case["input"]["options"];
    let limits =
        Limits { lines: size(&options["maxLines"], MAX_LINES), bytes: size(&options["maxBytes"], MAX_BYTES) };
    let mut got = cut(&text(&case["input"]["text"]), limits).to_value();
    got["content"] = like(&case["expected"]["content"], got["content"].as_str().unwrap_or_default());
    same(&case["expected"], &got)
}

/// `truncate.json`
pub fn truncate(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let whole = text(&input["text"]);
    let units = usize::try_from(input["n"].as_i64().unwrap_or_default()).unwrap_or(0);
    match case["fn"].as_str().unwrap_or_default() {
        "truncateHead" => cut(case, truncate_head),
        "truncateTail" => cut(case, truncate_tail),
        "truncateLine" => {
            let (kept, was) = truncate_line(&whole, size(&input["maxChars"], MAX_LINE_UNITS));
            let kept = like(&case["expected"]["kept"], kept);
            same(&case["expected"], &json!({ "kept": kept, "wasTruncated": was }))
        }
        "sliceHead" => same(&case["expected"], &json!({ "text": utf16::head(&whole, units) })),
        "sliceTail" => same(&case["expected"], &json!({ "text": utf16::tail(&whole, units) })),
        "formatSize" => {
            let bytes = input["bytes"].as_u64().ok_or("no size")?;
            same(&case["expected"], &json!({ "text": truncate::format_size(bytes) }))
        }
        other => Err(format!("unknown function {other}")),
    }
}

/// `ansi.json`
pub fn ansi(_: &Value, case: &Value) -> Result<(), String> {
    let input = text(&case["input"]["text"]);
    let got = match case["fn"].as_str().unwrap_or_default() {
        "stripAnsi" => json!({ "text": ansi::strip(&input) }),
        "sanitizeBinaryOutput" => json!({ "text": clean::drop_unwanted(&input) }),
        "splitIncompleteAnsiSuffix" => {
            let (complete, pending) = ansi::split_unfinished(&input);
            json!({
                "complete": like(&case["expected"]["complete"], complete),
                "pending": like(&case["expected"]["pending"], pending),
            })
        }
        other => return Err(format!("unknown function {other}")),
    };
    same(&case["expected"], &got)
}

fn bytes(chunk: &Value) -> Vec<u8> {
    let Some(hex) = chunk["hex"].as_str() else { return text(&chunk["text"]).into_bytes() };
    (0..hex.len()).step_by(2).filter_map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok()).collect()
}

/// `user-bash.json`: the pure part, the process itself is played.
pub fn user_bash(_: &Value, case: &Value) -> Result<(), String> {
    let (input, expected) = (&case["input"], &case["expected"]);
    let mut output = UserShellOutput::new();
    let mut deltas: Vec<String> = Vec::new();
    for chunk in input["chunks"].as_array().ok_or("no chunks")? {
        deltas.push(output.push(&bytes(chunk)));
    }
    if input["fail"] == true {
        // A command that could not start has no record: only the absence of output is ours to check.
        return if deltas.is_empty() && output.tail().tail.content.is_empty() {
            Ok(())
        } else {
            Err("output of a command that did not start".into())
        };
    }
    deltas.push(output.finish());
    deltas.retain(|delta| !delta.is_empty());
    let end = output.tail();
    let cancelled = input["abort"] == true;
    let mut got = json!({
        "output": like(&expected["output"], &end.tail.content),
        "exitCode": if cancelled { Value::Null } else { json!(input["exitCode"].as_i64().unwrap_or(0)) },
        "cancelled": cancelled,
        "truncated": end.truncated,
        "fullOutputPath": output.is_large() || end.tail.truncated(),
    });
    if let Some(count) = expected.get("deltaCount") {
        got["deltaCount"] = count.clone();
        same(count, &json!(deltas.len()))?;
    }
    if let Some(list) = expected["deltas"].as_array() {
        same(&json!(list.len()), &json!(deltas.len()))?;
        got["deltas"] = list.iter().zip(&deltas).map(|(wanted, delta)| like(wanted, delta)).collect();
    }
    if let Some(full) = expected.get("fullOutput") {
        got["fullOutput"] = like(full, &deltas.concat());
    }
    same(expected, &got)
}
