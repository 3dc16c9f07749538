//! Long texts in vectors: written in parts, compared by length, digest and ends.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// A text given as a string or as a list of parts; a part is a string or `[string, repeat count]`.
#[must_use]
pub fn text(spec: &Value) -> String {
    match spec {
        Value::Array(parts) => parts.iter().map(part).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

fn part(part: &Value) -> String {
    match part {
        Value::Array(pair) => {
            let count = pair.get(1).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
            pair.first().and_then(Value::as_str).unwrap_or_default().repeat(count.unwrap_or(0))
        }
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

/// The text in the form in which `expected` gives it: as it is, or as `{bytes, sha256, head, tail}` (the parts
/// that `expected` has).
#[must_use]
pub fn like(expected: &Value, text: &str) -> Value {
    let Value::Object(wanted) = expected else { return Value::String(text.to_owned()) };
    let points: Vec<char> = text.chars().collect();
    let ends = 24.min(points.len());
    let digest: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let mut shape = json!({
        "bytes": text.len(),
        "sha256": digest,
        "head": points[..ends].iter().collect::<String>(),
        "tail": points[points.len() - ends..].iter().collect::<String>(),
    });
    if let Some(shape) = shape.as_object_mut() {
        shape.retain(|key, _| wanted.contains_key(key));
    }
    shape
}
