//! Byte chunks to lines.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tau_core::wire::jsonl::{JsonLine, JsonLines};
use tau_tests::compare::same;

/// Lines of JSON text.
pub fn jsonl(_: &Value, case: &Value) -> Result<(), String> {
    let mut lines = Vec::new();
    let mut sink = |line: JsonLine<'_>| lines.push(line.text().into_owned());
    let mut splitter = JsonLines::new();
    for chunk in case["input"]["chunksBase64"].as_array().ok_or("no chunks")? {
        let bytes = STANDARD.decode(chunk.as_str().unwrap_or_default()).map_err(|e| e.to_string())?;
        splitter.feed(&bytes, &mut sink);
    }
    splitter.finish(&mut sink);
    same(&case["expected"], &json!({ "lines": lines }))
}
