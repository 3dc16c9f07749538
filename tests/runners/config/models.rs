//! `models.json`: shapes, composition.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tau_core::model::base::Base;
use tau_core::model::compose::compose;
use tau_core::model::config;
use tau_tests::compare::same;

fn base(doc: &Value) -> Base {
    let base = &doc["baseProvider"];
    let models = base["models"].as_array().cloned().unwrap_or_default();
    Base::of_records(
        base["name"].as_str().unwrap_or_default().to_owned(),
        base["baseUrl"].as_str().map(str::to_owned),
        models.iter().filter_map(|model| model.as_object().cloned()).collect(),
    )
}

pub fn models_json(doc: &Value, case: &Value) -> Result<(), String> {
    let text = case["input"]["content"].as_str();
    let file = text.map(|text| config::read("models.json", text)).unwrap_or_default();
    // The reference calls a root of the wrong type "root"; a text that is no JSON has no place inside.
    let place = |fault: &tau_core::settings::ConfigFault| match fault.at.as_str() {
        "" if fault.reason.contains("JSON object") => "root".to_owned(),
        at => at.to_owned(),
    };
    let paths: BTreeSet<String> = file.faults.iter().map(place).collect();
    let kind = match paths.first().map(String::as_str) {
        None => Value::Null,
        Some("") => json!("parse"),
        Some(_) => json!("schema"),
    };
    let mut providers = Map::new();
    for (id, entry) in &file.providers {
        let over = (id == "base").then(|| Arc::new(base(doc)));
        let composed = match compose(id, over, entry) {
            Ok(provider) => json!({
                "name": provider.name,
                "baseUrl": provider.base_url,
                "authMethods": if provider.radius { json!(["apiKey", "oauth"]) } else { json!(["apiKey"]) },
                "models": provider.models(),
            }),
            Err(fault) => json!({ "error": fault.code() }),
        };
        providers.insert(id.clone(), composed);
    }
    let mut got = json!({ "fileError": kind, "providers": providers });
    let mut expected = case["expected"].clone();
    if expected["fileError"] == "schema" {
        got["paths"] = json!(paths);
        let list = expected["paths"].as_array().cloned().unwrap_or_default();
        expected["paths"] = json!(list.iter().filter_map(Value::as_str).collect::<BTreeSet<_>>());
    }
    same(&expected, &got)
}
