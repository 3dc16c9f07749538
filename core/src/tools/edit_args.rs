//! Argument shapes of `edit` that models and old sessions use, put right before validation (spec 50 §4.1).

use alloc::vec::Vec;

use crate::json::{Map, Value};

/// Rewrites the arguments into `{path, edits: [{oldText, newText}, …]}` where the intent is clear; everything else
/// passes unchanged to validation.
#[must_use]
pub fn prepare(args: Value) -> Value {
    let Value::Object(mut args) = args else { return args };
    if let Some(edits) = args.get_mut("edits") {
        let given = core::mem::take(edits);
        *edits = as_list(given);
    }
    adopt_top_level(&mut args);
    Value::Object(args)
}

/// A list inside a JSON text, or a single edit, becomes a list.
fn as_list(edits: Value) -> Value {
    match edits {
        Value::String(text) => match serde_json::from_str::<Value>(&text) {
            Ok(list @ Value::Array(_)) => list,
            Ok(edit) if is_edit(&edit) => Value::Array(alloc::vec![edit]),
            _ => Value::String(text),
        },
        edit if is_edit(&edit) => Value::Array(alloc::vec![edit]),
        other => other,
    }
}

fn is_edit(value: &Value) -> bool {
    ["oldText", "newText"].iter().all(|key| value.get(key).is_some_and(Value::is_string))
}

/// A pair `oldText`, `newText` beside `path` is one more edit.
fn adopt_top_level(args: &mut Map<alloc::string::String, Value>) {
    let both = ["oldText", "newText"].iter().all(|key| args.get(*key).is_some_and(Value::is_string));
    if !both {
        return;
    }
    let mut edit = Map::new();
    for key in ["oldText", "newText"] {
        if let Some(text) = args.shift_remove(key) {
            edit.insert(key.into(), text);
        }
    }
    let mut edits = match args.shift_remove("edits") {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    edits.push(Value::Object(edit));
    args.insert("edits".into(), Value::Array(edits));
}
