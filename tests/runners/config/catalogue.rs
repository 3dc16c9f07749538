//! Where lists of models come from.

use serde_json::{Map, Value, json};
use tau_core::model::catalog::Entry;
use tau_core::model::lookup;
use tau_core::model::record::{self, Record};
use tau_core::model::remote::{self, Stored};
use tau_core::model::{Model, ThinkingLevel};
use tau_core::now::Wall;
use tau_core::op::{Headers, HttpRequest};
use tau_tests::compare::same;

fn records(list: &Value) -> Vec<Record> {
    list.as_array().into_iter().flatten().filter_map(|model| model.as_object().cloned()).collect()
}

fn headers(object: &Value) -> Headers {
    let pairs = object.as_object().into_iter().flatten();
    pairs.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}

fn body(response: &Value) -> Vec<u8> {
    match &response["body"] {
        Value::String(text) => text.clone().into_bytes(),
        Value::Null => Vec::new(),
        value => value.to_string().into_bytes(),
    }
}

fn sent(request: &HttpRequest) -> Value {
    let headers = request.headers.iter().map(|(name, value)| (name.clone(), json!(value)));
    json!({ "url": request.url, "headers": headers.collect::<Map<_, _>>() })
}

/// `catalog-refresh`: what `tau models refresh` does for one provider; the loop of attempts is the program's.
pub fn refresh(doc: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let now = Wall(doc["now"].as_i64().unwrap_or_default());
    let shipped = match input.get("builtinGeneratedAt") {
        None => doc["defaultBuiltinGeneratedAt"].as_i64(),
        Some(given) => given.as_i64(),
    };
    let shipped = shipped.unwrap_or_default();
    let stored = input.get("stored").map(|entry| Stored::read("p", entry));
    let mut counts = stored.as_ref().map(|stored| stored.newer_than(shipped).to_vec()).unwrap_or_default();
    let (mut requests, mut persisted, mut error) = (Vec::new(), json!("untouched"), false);
    let is_fresh = input["force"] != true && stored.as_ref().is_some_and(|stored| stored.is_fresh(now));
    if input["allowNetwork"] != false && !is_fresh {
        let request = remote::request(remote::ADDRESS, "p", stored.as_ref());
        let responses = input["responses"].as_array().cloned().unwrap_or_default();
        let mut outcome = None;
        for attempt in 0..remote::ATTEMPTS as usize {
            requests.push(sent(&request));
            let response = responses.get(attempt).or_else(|| responses.last()).cloned().unwrap_or_default();
            if response["networkError"] == true {
                continue;
            }
            let status = u16::try_from(response["status"].as_u64().unwrap_or(200)).unwrap_or(0);
            let told = headers(&response["headers"]);
            outcome = Some(remote::conclude("p", stored.clone(), status, &told, &body(&response), now));
            if !remote::is_busy(status) {
                break;
            }
        }
        error = outcome.as_ref().is_none_or(|outcome| outcome.problem.is_some());
        if let Some(new) = outcome.and_then(|outcome| outcome.store) {
            persisted = new.to_value();
            if new.last_modified.is_some_and(|at| at > 0) {
                counts = new.newer_than(shipped).to_vec();
            }
        }
    }
    let models = remote::lay_over(records(&doc["builtin"]), &counts);
    let name = |model: &Record| {
        let text = |key: &str| model.get(key).and_then(Value::as_str).unwrap_or("undefined");
        format!("{}:{}:{}", text("type"), text("id"), text("name"))
    };
    let names: Vec<String> = models.iter().map(name).collect();
    same(
        &case["expected"],
        &json!({ "requests": requests, "persisted": persisted, "models": names, "error": error }),
    )
}

/// `openrouter-personalize`
pub fn personalize(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let models = records(&input["catalog"]);
    let Some(key) = input["credential"]["key"].as_str() else {
        return same(&case["expected"], &json!({ "models": models, "requests": [] }));
    };
    let base_url = input["credential"]["baseUrl"].as_str().unwrap_or("https://openrouter.ai/api/v1");
    let request = remote::openrouter_request(base_url, key);
    let header =
        |wanted: &str| request.headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
    let requests = json!([{ "url": request.url, "authorization": header("authorization") }]);
    let response = &input["response"];
    let status = u16::try_from(response["status"].as_u64().unwrap_or(200)).unwrap_or(0);
    let got = match remote::restrict_openrouter(models, status, &body(response)) {
        Ok(models) => json!({ "models": models, "requests": requests }),
        Err(_) => json!({ "error": true, "requests": requests }),
    };
    same(&case["expected"], &got)
}

/// `desktop-model-lookup`
pub fn lookup(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let text = |key: &str| input[key].as_str().unwrap_or_default();
    let (vendor, id) = (text("vendorKey"), text("modelId"));
    let found = lookup::model(vendor, id, lookup::protocol(text("apiStyle")));
    let model = found.as_ref().map_or_else(Model::default, Entry::model);
    let levels: Vec<&str> = model.levels().map(ThinkingLevel::name).collect();
    let kinds = [("text", model.text_input), ("image", model.image_input)];
    let kinds: Vec<&str> = kinds.into_iter().filter(|(_, taken)| *taken).map(|(kind, _)| kind).collect();
    let runtime = found.as_ref().map(|entry| {
        json!({
            "name": entry.name,
            "reasoning": model.reasoning,
            "contextWindow": model.context_window,
            "maxTokens": model.max_tokens,
            "input": kinds,
            "candidates": [format!("{}/{}", entry.provider, entry.id)],
        })
    });
    let draft = lookup::draft(vendor, id).map(|entry| {
        let facts = entry.facts();
        json!({ "name": entry.name, "contextWindow": facts.context_window, "maxTokens": facts.max_tokens })
    });
    let got = json!({
        "runtime": runtime,
        "vision": model.image_input,
        "thinking": { "supportsReasoning": model.reasoning, "supportedThinkingLevels": levels },
        "draft": draft,
    });
    same(&case["expected"], &got)
}

/// `thinking-catalog`: every kind of level map of the catalogue, every level.
pub fn levels(_: &Value, case: &Value) -> Result<(), String> {
    let model = record::to_model(case["input"]["model"].as_object().ok_or("no model")?);
    let supported: Vec<&str> = model.levels().map(ThinkingLevel::name).collect();
    let clamped = ThinkingLevel::ALL.map(|level| (level.name().to_owned(), json!(model.clamp(level).name())));
    same(
        &case["expected"],
        &json!({ "supported": supported, "clamped": clamped.into_iter().collect::<Map<_, _>>() }),
    )
}
