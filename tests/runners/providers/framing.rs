//! Byte chunks to events.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tau_core::wire::sse::{SseDecoder, SseEvent};
use tau_tests::compare::same;

/// Chunks are texts or `{b64}`.
fn chunk(value: &Value) -> Result<Vec<u8>, String> {
    match (value.as_str(), value["b64"].as_str()) {
        (Some(text), _) => Ok(text.as_bytes().to_vec()),
        (_, Some(text)) => STANDARD.decode(text).map_err(|e| e.to_string()),
        _ => Err(format!("not a chunk: {value}")),
    }
}

/// Server-sent events; given chunks, one chunk, and byte by byte.
pub fn sse(_: &Value, case: &Value) -> Result<(), String> {
    let given = case["input"]["chunks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let chunks = given.iter().map(chunk).collect::<Result<Vec<_>, _>>()?;
    let whole = chunks.concat();
    let bytes = whole.iter().map(|&byte| vec![byte]).collect();
    for chunks in [chunks, vec![whole], bytes] {
        let mut events = Vec::new();
        let mut sink =
            |e: SseEvent<'_>| events.push(json!({ "event": e.named.then_some(e.event), "data": e.data }));
        let mut decoder = SseDecoder::new();
        chunks.iter().for_each(|chunk| decoder.feed(chunk, &mut sink));
        decoder.finish(&mut sink);
        same(&case["expected"], &Value::Array(events))?;
    }
    Ok(())
}
