//! Arguments against their schema.

use std::sync::Arc;

use serde_json::{Value, json};
use tau_core::json::validate;
use tau_tests::compare::same;

/// `argument-coercion.json`
pub fn validated(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let got = match validate(&input["schema"], &Arc::new(input["arguments"].clone())) {
        Ok(value) => json!({ "ok": true, "value": *value }),
        Err(errors) => {
            let errors: Vec<Value> =
                errors.iter().map(|e| json!({ "path": e.path, "keyword": e.keyword })).collect();
            json!({ "ok": false, "errors": errors })
        }
    };
    same(&case["expected"], &got)
}
