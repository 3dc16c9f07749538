//! Arguments of the built-in tools before they run.

use std::sync::Arc;

use serde_json::{Value, json};
use tau_core::json::{error_text, to_string, validate};
use tau_core::tools::prepare_edit;
use tau_tests::compare::same;

/// `tool-args.json`
pub fn checked(doc: &Value, case: &Value) -> Result<(), String> {
    let tool = case["input"]["tool"].as_str().ok_or("no tool")?;
    let given = case["input"]["args"].clone();
    let args = Arc::new(if tool == "edit" { prepare_edit(given) } else { given });
    let expected = &case["expected"];
    match validate(&doc["schemas"][tool], &args) {
        Ok(value) => same(expected, &json!({ "ok": true, "args": *value })),
        Err(errors) => {
            let text = error_text(tool, &errors, &args);
            let paths: Vec<String> = errors.iter().map(|e| e.dotted()).collect();
            let named = paths.iter().all(|path| text.contains(path.as_str()));
            if !named || !text.contains(tool) || !text.contains(&to_string(&args)) {
                return Err(format!("the message does not name everything: {text}"));
            }
            same(expected, &json!({ "ok": false, "errorPaths": paths }))
        }
    }
}
