//! References to models, levels.

use std::cmp::Ordering;

use serde_json::{Value, json};
use tau_core::model::catalog::Entry;
use tau_core::model::resolve::{self, Query, Refusal};
use tau_core::model::scope::scope;
use tau_core::model::{ThinkingLevel, compare_names, pattern, record};
use tau_tests::compare::same;

fn field<'a>(entry: &'a Value, key: &str) -> &'a str {
    entry[key].as_str().unwrap_or_default()
}

fn catalog(doc: &Value) -> &[Value] {
    doc["catalog"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn pool(doc: &Value) -> Vec<Entry<'_>> {
    catalog(doc)
        .iter()
        .map(|e| Entry::named(field(e, "provider"), field(e, "id"), field(e, "name")))
        .collect()
}

pub fn cli(doc: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let pool = if input["catalog"] == "empty" { Vec::new() } else { pool(doc) };
    let configured = input["configured"].as_array().cloned().unwrap_or_default();
    let usable = |provider: &str| configured.iter().any(|own| own == provider);
    let query = Query {
        provider: input["provider"].as_str(),
        model: input["model"].as_str(),
        thinking: input["thinking"].as_str().and_then(ThinkingLevel::parse),
        inline_key: input["inlineApiKey"] == true,
    };
    let mut got = json!({ "model": null, "thinkingLevel": null, "warning": null, "error": null });
    match resolve::resolve(&pool, &usable, &query) {
        Ok(None) => {}
        Ok(Some(choice)) => {
            let mut model = catalog(doc)[choice.index].clone();
            if let Some(id) = &choice.custom_id {
                model["id"] = json!(id);
                model["name"] = json!(id);
                model["reasoning"] = json!(model["reasoning"] == true || choice.force_reasoning);
                got["warning"] = json!("custom-model-id");
            }
            let named = choice.model(&pool).ok_or("a choice without a model")?;
            same(&model["id"], &json!(named.id))?;
            got["model"] = model;
            got["thinkingLevel"] = json!(choice.level.map(ThinkingLevel::name));
        }
        Err(refusal) => match refusal {
            Refusal::NoModels => got["error"] = json!("no-models"),
            Refusal::UnknownProvider { .. } => got["error"] = json!("unknown-provider"),
            Refusal::NotFound { .. } => got["error"] = json!("not-found"),
            Refusal::Ambiguous { candidates, hint, .. } => {
                got["error"] = json!("ambiguous");
                got["candidates"] = json!(candidates);
                got["hint"] = json!(hint.code());
            }
        },
    }
    same(&case["expected"], &got)
}

pub fn exact(doc: &Value, case: &Value) -> Result<(), String> {
    let pool = pool(doc);
    let found = resolve::resolve_exact(&pool, &|_| true, field(&case["input"], "text"));
    let got = found.map(|index| json!({ "provider": pool[index].provider, "id": pool[index].id }));
    same(&case["expected"], &json!(got))
}

pub fn model_scope(doc: &Value, case: &Value) -> Result<(), String> {
    let pool = pool(doc);
    let patterns = case["input"]["patterns"].as_array().ok_or("patterns")?;
    let found = scope(&pool, &|_| true, patterns.iter().filter_map(Value::as_str));
    let models: Vec<Value> = found
        .models
        .iter()
        .map(|scoped| {
            let entry = &pool[scoped.index];
            let level = scoped.level.map(ThinkingLevel::name);
            json!({ "ref": format!("{}/{}", entry.provider, entry.id), "thinkingLevel": level })
        })
        .collect();
    let diagnostics: Vec<Value> = found
        .remarks
        .iter()
        .map(|remark| json!({ "code": remark.what.code(), "pattern": remark.pattern }))
        .collect();
    same(&case["expected"], &json!({ "models": models, "diagnostics": diagnostics }))
}

pub fn glob(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    same(&case["expected"], &json!(pattern::fits(field(input, "pattern"), field(input, "text"))))
}

pub fn locale_order(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    if let Some(strings) = input["strings"].as_array() {
        let mut ascending: Vec<&str> = strings.iter().filter_map(Value::as_str).collect();
        ascending.sort_by(|a, b| compare_names(a, b));
        return same(&case["expected"]["ascending"], &json!(ascending));
    }
    let sign = match compare_names(field(input, "a"), field(input, "b")) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    };
    same(&case["expected"], &json!(sign))
}

pub fn thinking_clamp(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let fields = input["model"].as_object().cloned().unwrap_or_default();
    let model = record::to_model(&fields);
    let supported: Vec<&str> = model.levels().map(ThinkingLevel::name).collect();
    let level = ThinkingLevel::parse(field(input, "level"));
    let effective =
        level.map_or_else(|| model.levels().next().unwrap_or_default(), |level| model.clamp(level));
    same(&case["expected"], &json!({ "supported": supported, "effective": effective.name() }))
}
