//! Model and level at start.

use serde_json::{Value, json};
use tau_core::auth::resolve::{self as auth, Commands, Facts, Stored};
use tau_core::model::ThinkingLevel;
use tau_core::model::catalog::Catalog;
use tau_core::model::resolve::{self, Query};
use tau_core::model::scope::scope;
use tau_core::model::select::{Recorded, Wishes, select};
use tau_core::settings::ProjectTrust;
use tau_tests::compare::same;

/// The options of the vectors, as the command line would hand them on.
#[derive(Default)]
struct Args<'a> {
    model: Option<&'a str>,
    provider: Option<&'a str>,
    key: Option<&'a str>,
    thinking: Option<&'a str>,
    models: Option<&'a str>,
    approved: bool,
}

fn args(input: &Value) -> Result<Args<'_>, String> {
    let mut got = Args::default();
    let mut list = input["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    while let Some(arg) = list.next() {
        match arg {
            "--model" => got.model = list.next(),
            "--provider" => got.provider = list.next(),
            "--api-key" => got.key = list.next(),
            "--thinking" => got.thinking = list.next(),
            "--models" => got.models = list.next(),
            "--approve" => got.approved = true,
            other => return Err(format!("no option {other}")),
        }
    }
    Ok(got)
}

/// What a session file records on its only branch; `None` without messages.
fn recorded(session: &Value) -> Option<Recorded<'_>> {
    let mut facts = Recorded { model: None, level: None };
    let mut messages = false;
    for entry in session.as_array()? {
        let text = |value: &'static str| entry.get(value).and_then(Value::as_str);
        match text("type") {
            Some("model_change") => facts.model = text("provider").zip(text("modelId")),
            Some("thinking_level_change") => {
                facts.level = text("thinkingLevel").and_then(ThinkingLevel::parse);
            }
            Some("message") => {
                messages = true;
                let message = &entry["message"];
                if let (Some(provider), Some(id)) = (message["provider"].as_str(), message["model"].as_str())
                {
                    facts.model = Some((provider, id));
                }
            }
            _ => {}
        }
    }
    messages.then_some(facts)
}

pub fn selection(doc: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let args = args(input)?;
    let models = input.get("models").unwrap_or_else(|| &doc["fixtureModels"]);
    let text = (!models.is_null()).then(|| json!({ "providers": models }).to_string());
    let catalog = Catalog::load("models.json", Ok(text.as_deref()));
    let global = input.get("settings").unwrap_or(&Value::Null);
    let (alone, _) = super::settings::load(global, None);
    let trusted = args.approved || alone.default_project_trust() == ProjectTrust::Always;
    let (settings, _) = super::settings::load(global, input.get("projectSettings").filter(|_| trusted));

    let commands = Commands::new();
    let configured = |provider: &str| {
        auth::is_configured(&Facts {
            provider,
            model: None,
            base_url: "",
            runtime_key: None,
            stored: Stored::None,
            config: catalog.configured(provider),
            env: &|name| input["env"][name].as_str().map(str::to_owned),
            home: "~",
            is_file: &|_| false,
            commands: &commands,
            auth_path: "auth.json",
            call: auth::Call::default(),
        })
    };
    let pool = catalog.entries();
    let thinking = args.thinking.and_then(ThinkingLevel::parse);
    let mut warned = args.thinking.is_some() && thinking.is_none();
    let query =
        Query { provider: args.provider, model: args.model, thinking, inline_key: args.key.is_some() };
    let incomplete = (args.provider.is_some() || args.key.is_some()) && args.model.is_none();
    let chosen = match resolve::resolve(&pool, &configured, &query) {
        Ok(chosen) if !incomplete => chosen,
        _ => return same(&case["expected"], &json!({ "exit": 1, "started": false, "warned": false })),
    };
    warned |= chosen.as_ref().is_some_and(|choice| choice.custom_id.is_some());
    let recorded = recorded(&input["session"]);
    let patterns = match args.models {
        Some(list) => list.split(',').collect(),
        None => settings.enabled_models(),
    };
    let scope = scope(&pool, &configured, patterns);
    warned |= !scope.remarks.is_empty();
    let wishes =
        Wishes { chosen: chosen.as_ref(), thinking, recorded, scope: &scope.models, settings: &settings };
    let start = select(&pool, &configured, &wishes);
    warned |= start.warning.is_some() || start.choice.is_none();
    let model = start.choice.and_then(|choice| choice.model(&pool));
    let level = model.as_ref().map_or(ThinkingLevel::Off, |model| model.clamp(start.level));
    let name =
        model.as_ref().map_or_else(|| "unknown/unknown".to_owned(), |m| format!("{}/{}", m.provider, m.id));
    let mut got = json!({ "exit": 0, "model": name, "thinkingLevel": level.name(), "warned": warned });
    if case["expected"].get("reasoning").is_some() {
        got["reasoning"] = json!(model.is_some_and(|model| model.reasoning));
    }
    same(&case["expected"], &got)
}
