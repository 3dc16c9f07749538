//! Streamed tool arguments, their repair and final parse, and small text functions.

use serde_json::{Map, Value, json};
use tau_core::json::{self, PartialArgs, finish_text, repair};
use tau_core::text::utf16;
use tau_tests::compare::same;

/// A lone UTF-16 unit is written `<<U+XXXX>>` in vectors; it never enters a string here.
fn without_units(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(strip_units(text)),
        Value::Array(items) => items.iter().map(without_units).collect(),
        Value::Object(map) => map.iter().map(|(k, v)| (strip_units(k), without_units(v))).collect(),
        other => other.clone(),
    }
}

fn strip_units(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<<U+") {
        out.push_str(before);
        let Some((_, tail)) = after.split_once(">>") else { return text.into() };
        rest = tail;
    }
    out + rest
}

fn final_value(result: Result<Value, json::ArgsError>, raw: &str) -> Result<Value, String> {
    match result {
        Ok(arguments) => Ok(json!({ "arguments": arguments, "malformed": false })),
        Err(error) if error.text.contains(raw) => Ok(json!({ "arguments": {}, "malformed": true })),
        Err(error) => Err(format!("the error does not repeat the text: {error}")),
    }
}

/// Snapshots after every chunk, then the final value.
pub fn partial(_: &Value, case: &Value) -> Result<(), String> {
    let mut args = PartialArgs::new();
    let mut steps = Vec::new();
    let chunks = case["input"]["chunks"].as_array().ok_or("no chunks")?;
    let wanted = case["expected"]["steps"].as_array().ok_or("no steps")?;
    for (chunk, wanted) in chunks.iter().zip(wanted) {
        let chunk = strip_units(chunk.as_str().ok_or("not a text")?);
        args.push(&chunk);
        let value = args.value().unwrap_or_else(|| json!({ "undefined": true }));
        let mut step = json!({ "append": chunk, "value": value, "arguments": args.snapshot() });
        // Long cases do not repeat every field.
        step.as_object_mut().ok_or("no object")?.retain(|key, _| wanted.get(key).is_some());
        steps.push(step);
    }
    let raw = args.raw().to_owned();
    let last = final_value(args.finish(), &raw)?;
    same(&without_units(&case["expected"]), &json!({ "steps": steps, "final": last }))
}

/// The provider sends the complete text after the streamed one.
pub fn replace(_: &Value, case: &Value) -> Result<(), String> {
    let mut args = PartialArgs::new();
    args.push(case["input"]["streamed"].as_str().ok_or("no text")?);
    args.snapshot();
    let delta = args.replace(case["input"]["complete"].as_str().ok_or("no text")?).map(str::to_owned);
    let arguments = args.snapshot();
    let last = args.finish().unwrap_or_else(|_| Value::Object(Map::new()));
    same(&case["expected"], &json!({ "delta": delta, "arguments": arguments, "finalArguments": last }))
}

/// Repair of strings.
pub fn repaired(_: &Value, case: &Value) -> Result<(), String> {
    let fixed = repair(case["input"].as_str().ok_or("no text")?);
    let parsed = json::parse(&fixed).ok();
    same(&case["expected"], &json!({ "repaired": fixed, "valid": parsed.is_some(), "parsed": parsed }))
}

/// The final parse of a call's text.
pub fn last(_: &Value, case: &Value) -> Result<(), String> {
    let text = case["input"].as_str().unwrap_or_default();
    same(&case["expected"], &final_value(finish_text(text), text)?)
}

/// Unpaired surrogates are removed.
pub fn surrogates(_: &Value, case: &Value) -> Result<(), String> {
    let units = case["input"]["utf16"].as_array().ok_or("no units")?;
    let units = units.iter().filter_map(Value::as_u64).filter_map(|u| u16::try_from(u).ok());
    let text = utf16::from_units(units);
    same(&case["expected"], &json!({ "utf16": text.encode_utf16().collect::<Vec<_>>() }))
}
