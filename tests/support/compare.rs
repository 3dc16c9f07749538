//! Comparison of JSON values with a readable first difference.

use serde_json::Value;

/// The first difference between two values as `path: expected …, got …`; `None` when they are equal.
///
/// Integers and floats of the same value are equal; floats may differ by 1e-12.
#[must_use]
pub fn difference(expected: &Value, got: &Value) -> Option<String> {
    diff_at("$", expected, got)
}

fn diff_at(path: &str, expected: &Value, got: &Value) -> Option<String> {
    match (expected, got) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                match b.get(key) {
                    Some(other) => {
                        if let Some(found) = diff_at(&format!("{path}.{key}"), value, other) {
                            return Some(found);
                        }
                    }
                    None => return Some(format!("{path}.{key}: expected {}, missing", brief(value))),
                }
            }
            b.iter()
                .find(|(key, _)| !a.contains_key(*key))
                .map(|(key, v)| format!("{path}.{key}: unexpected {}", brief(v)))
        }
        (Value::Array(a), Value::Array(b)) => {
            for (i, (x, y)) in a.iter().zip(b).enumerate() {
                if let Some(found) = diff_at(&format!("{path}[{i}]"), x, y) {
                    return Some(found);
                }
            }
            (a.len() != b.len()).then(|| {
                let extra = if a.len() > b.len() { &a[b.len()] } else { &b[a.len()] };
                format!("{path}: expected {} items, got {}; first extra: {}", a.len(), b.len(), brief(extra))
            })
        }
        (Value::Number(a), Value::Number(b)) => {
            let same =
                a == b || matches!((a.as_f64(), b.as_f64()), (Some(x), Some(y)) if (x - y).abs() <= 1e-12);
            (!same).then(|| format!("{path}: expected {a}, got {b}"))
        }
        _ if expected == got => None,
        _ => Some(format!("{path}: expected {}, got {}", brief(expected), brief(got))),
    }
}

/// A value as short text for messages.
#[must_use]
pub fn brief(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(600) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

/// `Ok` when the values are equal, else the first difference.
///
/// # Errors
/// The first difference as text.
pub fn same(expected: &Value, got: &Value) -> Result<(), String> {
    difference(expected, got).map_or(Ok(()), Err)
}
