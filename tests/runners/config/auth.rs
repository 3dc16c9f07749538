//! Value forms, `auth.json`, sources of credentials.

use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};
use tau_core::auth::file::AuthFile;
use tau_core::auth::resolve::{self, Call, Commands, Facts, FaultKind, Step, Stored};
use tau_core::auth::value::{self, ConfigValue, Unresolved};
use tau_core::model::Model;
use tau_core::model::catalog::Catalog;
use tau_core::op::Credential;
use tau_tests::compare::same;

fn lookup(env: &Value, name: &str) -> Option<String> {
    env.get(name)?.as_str().map(str::to_owned)
}

/// Runs a command as the vectors expect: a POSIX shell with the given variables.
fn run(command: &str, env: &Value) -> Option<String> {
    let variables = env.as_object().into_iter().flatten();
    let output = Command::new("/bin/sh")
        .args(["-c", command])
        .envs(variables.filter_map(|(name, value)| Some((name, value.as_str()?))))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    value::command_output(&String::from_utf8_lossy(&output.stdout))
}

pub fn config_value(doc: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let own = input.get("env").cloned().unwrap_or_default();
    let find = |name: &str| {
        lookup(&own, name).filter(|value| !value.is_empty()).or_else(|| lookup(&doc["processEnv"], name))
    };
    let parsed = ConfigValue::parse(input["value"].as_str().unwrap_or_default());
    let (mut text, mut missing) = (None, Vec::new());
    match (&parsed, parsed.resolve(&find)) {
        (ConfigValue::Command(command), Err(Unresolved::NeedsCommand)) => {
            text = run(command, &doc["processEnv"]);
        }
        (_, Ok(resolved)) => text = Some(resolved),
        (_, Err(Unresolved::Missing(names))) => missing = names,
        (ConfigValue::Template(_), Err(Unresolved::NeedsCommand)) => return Err("not a command".to_owned()),
    }
    let is_command = matches!(parsed, ConfigValue::Command(_));
    let got = json!({
        "command": is_command,
        "value": text,
        "envNames": parsed.variables(),
        "missing": missing,
        "singleEnv": parsed.single_variable(),
        "configured": is_command || missing.is_empty(),
    });
    same(&case["expected"], &got)
}

pub fn file_validate(doc: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let parsed = input["content"].as_str().map_or_else(|| Ok(AuthFile::default()), AuthFile::parse);
    let got = match parsed.and_then(|file| file.validate().map(|()| file)) {
        Err(fault) => json!({ "outcome": "error", "kind": fault.code() }),
        Ok(file) => {
            let list = file.list();
            let list: Vec<Value> =
                list.iter().map(|(id, kind)| json!({ "providerId": id, "type": kind.name() })).collect();
            let mut entry = file.entry(input["provider"].as_str().unwrap_or_default()).cloned();
            if let Some(entry) = entry.as_mut().and_then(Value::as_object_mut) {
                resolve_key(entry, &doc["processEnv"]);
            }
            json!({ "outcome": "ok", "list": list, "credential": entry })
        }
    };
    let mut expected = case["expected"].clone();
    if let Some(expected) = expected.as_object_mut() {
        // The view has no way to write at all.
        expected.remove("modifyRejected");
    }
    same(&expected, &got)
}

/// References are resolved in this view, commands are shown as they are.
fn resolve_key(entry: &mut Map<String, Value>, env: &Value) {
    let Some(parsed) = entry.get("key").and_then(Value::as_str).map(ConfigValue::parse) else { return };
    match parsed.resolve(&|name| lookup(env, name)) {
        Ok(text) => {
            entry.insert("key".to_owned(), json!(text));
        }
        Err(Unresolved::Missing(_)) => {
            entry.remove("key");
        }
        Err(Unresolved::NeedsCommand) => {}
    }
}

/// One question, with every command it needs run.
struct Question<'a> {
    provider: &'a str,
    model: Option<&'a str>,
    runtime_key: Option<&'a str>,
    stored: Option<&'a Value>,
    env: &'a Value,
    catalog: &'a Catalog,
    /// Paths that are files.
    files: &'a Value,
    call: Call<'a>,
}

impl Question<'_> {
    fn with_facts<T>(&self, commands: &Commands, ask: impl FnOnce(&Facts<'_>) -> T) -> T {
        ask(&Facts {
            provider: self.provider,
            model: self.model,
            base_url: "",
            runtime_key: self.runtime_key,
            stored: self.stored.map_or(Stored::None, Stored::Entry),
            config: self.catalog.configured(self.provider),
            env: &|name| lookup(self.env, name),
            home: "~",
            is_file: &|path| self.files.as_array().is_some_and(|files| files.iter().any(|file| file == path)),
            commands,
            auth_path: "auth.json",
            call: self.call,
        })
    }

    fn ask(&self) -> (Step, bool) {
        let mut commands = Commands::new();
        loop {
            match self.with_facts(&commands, resolve::resolve) {
                Step::NeedCommand(command) => {
                    let output = run(&command, self.env);
                    commands.insert(command, output);
                }
                step => {
                    let usable = self.with_facts(&Commands::new(), resolve::is_configured);
                    return (step, usable);
                }
            }
        }
    }
}

/// `apiKey`, `baseUrl`, `headers`, `env` of the answer; header names in lower case. The headers of the model's own
/// record lie below those of the credentials, as in a request.
fn answer(step: &Step, model: Option<&Model>) -> Value {
    let resolved = match step {
        Step::Ready(resolved) => resolved,
        Step::Failed(fault) if fault.kind == FaultKind::Unresolved => return json!({ "error": "auth" }),
        _ => return Value::Null,
    };
    let mut auth = Map::new();
    if let Some(key) = &resolved.credential.api_key {
        auth.insert("apiKey".to_owned(), json!(key));
    }
    if let Some(url) = &resolved.credential.base_url {
        auth.insert("baseUrl".to_owned(), json!(url));
    }
    let of_model = model.into_iter().flat_map(|model| &model.headers);
    let mut headers = of_model.chain(&resolved.credential.headers).peekable();
    if headers.peek().is_some() {
        let pairs = headers.map(|(name, value)| (name.to_lowercase(), json!(value)));
        auth.insert("headers".to_owned(), Value::Object(pairs.collect()));
    }
    if let Some(url) = &resolved.credential.base_url {
        auth.insert("baseUrl".to_owned(), json!(url));
    }
    if !resolved.env.is_empty() {
        let pairs = resolved.env.iter().map(|(name, value)| (name.clone(), json!(value)));
        auth.insert("env".to_owned(), Value::Object(pairs.collect()));
    }
    Value::Object(auth)
}

/// The expected answer in the same form; sources are informative only.
fn expected_answer(auth: &Value) -> Value {
    let mut auth = auth.clone();
    if let Some(fields) = auth.as_object_mut() {
        fields.remove("source");
        if let Some(Value::Object(headers)) = fields.get_mut("headers") {
            *headers = headers.iter().map(|(name, value)| (name.to_lowercase(), value.clone())).collect();
        }
    }
    auth
}

pub fn precedence(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let provider = input["provider"].as_str().unwrap_or_default();
    let models = input.get("models").map(|providers| json!({ "providers": providers }).to_string());
    let catalog = Catalog::load("models.json", Ok(models.as_deref()));
    let model = catalog.find(provider, input["model"].as_str().unwrap_or_default());
    let model_headers = model.map(|model| model.headers).unwrap_or_default();
    let question = Question {
        provider,
        model: input["model"].as_str(),
        runtime_key: input["runtimeKey"].as_str(),
        stored: input["auth"].get(provider),
        env: &input["env"],
        catalog: &catalog,
        files: &Value::Null,
        call: Call { model_headers: &model_headers, ..Call::default() },
    };
    let (step, usable) = question.ask();
    let model = question.model.and_then(|id| catalog.find(provider, id));
    same(&expected_answer(&case["expected"]["auth"]), &answer(&step, model.as_ref()))?;
    same(&case["expected"]["available"], &json!(usable))
}

/// What the provider of the vectors that only signs in makes of a sign-in.
fn fixture(entry: &Value) -> Credential {
    let text = |key: &str| entry[key].as_str().map(str::to_owned);
    Credential {
        api_key: text("access").map(|access| format!("tok:{access}")),
        headers: vec![("X-Acc".to_owned(), Some(text("account").unwrap_or_else(|| "none".to_owned())))],
        base_url: text("base"),
        ..Credential::default()
    }
}

pub fn resolve_one(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let provider = input["provider"].as_str().unwrap_or_default();
    // The provider of the vectors that has a variable of its own.
    let own = json!({ "providers": { provider: { "apiKey": "$FIXTURE_KEY" } } }).to_string();
    let own = Some(own.as_str()).filter(|_| input["env"]["FIXTURE_KEY"].is_string());
    let catalog = Catalog::load("models.json", Ok(own));
    let list = |key: &str| input[key].as_object().into_iter().flatten();
    let call_env = input["overrides"]["env"].as_object().into_iter().flatten();
    let call_env: Vec<(String, String)> =
        call_env.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
    let model_headers: Vec<(String, Option<String>)> =
        list("modelHeaders").map(|(name, value)| (name.clone(), value.as_str().map(str::to_owned))).collect();
    let question = Question {
        provider,
        model: None,
        runtime_key: input["overrides"]["apiKey"].as_str(),
        stored: input.get("stored"),
        env: &input["env"],
        catalog: &catalog,
        files: &input["files"],
        call: Call {
            env: &call_env,
            model_headers: &model_headers,
            sign_in: if provider == "oauth-only-fixture" { Some(&fixture) } else { None },
        },
    };
    let (step, _) = question.ask();
    let expected = &case["expected"];
    let wanted = if expected["configured"] == true {
        let mut wanted = expected_answer(&expected["auth"]);
        if let Some(env) = expected.get("env") {
            wanted["env"] = env.clone();
        }
        wanted
    } else {
        Value::Null
    };
    same(&wanted, &answer(&step, None))
}
