//! Configured paths.

use serde_json::{Value, json};
use tau_core::path::{self, Style};
use tau_tests::compare::same;

/// `path-normalize.json`
pub fn expand(_: &Value, case: &Value) -> Result<(), String> {
    let (given, home) = (case["input"]["path"].as_str(), case["input"]["home"].as_str());
    let value = path::expand(given.ok_or("no path")?, home.ok_or("no home")?, Style::Posix);
    same(&case["expected"], &json!({ "value": value.map_err(|e| e.to_string())? }))
}
