//! JSON with comments, settings files.

use serde_json::{Value, json};
use tau_core::settings::{self, Kind, ProjectTrust, Scope, Settings, Source};
use tau_tests::compare::same;

pub fn jsonc(_: &Value, case: &Value) -> Result<(), String> {
    let text = case["input"].as_str().unwrap_or_default();
    let mut got = json!({ "text": settings::jsonc::strip(text) });
    match settings::jsonc::parse(text) {
        Ok(value) => {
            got["parses"] = json!(true);
            got["value"] = value;
        }
        Err(_) => got["parses"] = json!(false),
    }
    same(&case["expected"], &got)
}

/// The text of a file as the vectors give it.
fn content(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        object => Some(object.to_string()),
    }
}

pub fn load(global: &Value, project: Option<&Value>) -> (Settings, Vec<&'static str>) {
    let (global, project) = (content(global), project.and_then(content));
    let sources = [
        Source { scope: Scope::Global, path: "global", text: Ok(global.as_deref()) },
        Source { scope: Scope::Project, path: "project", text: Ok(project.as_deref()) },
    ];
    let (settings, faults) = settings::load(&sources);
    let files = faults.iter().map(|fault| if fault.file == "global" { "global" } else { "project" });
    (settings, files.collect())
}

pub fn merge(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let project = Some(&input["project"]).filter(|_| input["projectTrusted"] == true);
    let (settings, errors) = load(&input["global"], project);
    same(&case["expected"], &json!({ "effective": settings.effective(), "errors": errors }))
}

pub fn migrate(_: &Value, case: &Value) -> Result<(), String> {
    let mut map = case["input"].as_object().cloned().unwrap_or_default();
    settings::migrate(&mut map);
    let once = map.clone();
    settings::migrate(&mut map);
    if once != map {
        return Err("a second migration changes something".to_owned());
    }
    same(&case["expected"], &json!({ "settings": map }))
}

pub fn accessors(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let (settings, _) = load(&input["global"], input.get("project"));
    let value = match input["accessor"].as_str().unwrap_or_default() {
        "sessionDir" => json!(settings.session_dir()),
        "steeringMode" => json!(settings.steering_mode().name()),
        "followUpMode" => json!(settings.follow_up_mode().name()),
        "compactionEnabled" => json!(settings.compaction_enabled()),
        "retry" => {
            let retry = settings.retry();
            json!({
                "enabled": retry.enabled,
                "maxRetries": retry.max_retries,
                "baseDelayMs": retry.base_delay_ms,
                "maxAgentDelayMs": retry.max_agent_delay_ms,
            })
        }
        "providerRetry" => {
            let retry = settings.provider_retry();
            let mut value = json!({ "maxRetryDelayMs": retry.max_retry_delay_ms });
            if let Some(ms) = retry.timeout_ms {
                value["timeoutMs"] = json!(ms);
            }
            if let Some(count) = retry.max_retries {
                value["maxRetries"] = json!(count);
            }
            value
        }
        "defaultProjectTrust" => json!(match settings.default_project_trust() {
            ProjectTrust::Ask => "ask",
            ProjectTrust::Always => "always",
            ProjectTrust::Never => "never",
        }),
        "shellPath" => json!(settings.shell_path(Some("/home/u"))),
        "defaultTools" => json!(settings.default_tools()),
        "blockImages" => json!(settings.images().block),
        "imageAutoResize" => json!(settings.images().auto_resize),
        "httpIdleTimeoutMs" => match settings.http_idle_timeout_ms() {
            Ok(ms) => json!(ms),
            Err(_) => return same(&case["expected"], &json!({ "error": true })),
        },
        "branchSummary" => {
            let found = settings.branch_summary();
            json!({ "reserveTokens": found.reserve_tokens, "skipPrompt": found.skip_prompt })
        }
        "theme" => json!(settings.theme()),
        "externalEditor" => json!(settings.external_editor(None, None)),
        "showHardwareCursor" => json!(settings.show_hardware_cursor(None)),
        "terminalOverrides" => json!(settings.terminal_overrides()),
        "warnings" => json!(settings.warnings()),
        other => return same(&case["expected"], &by_table(&settings, other)?),
    };
    same(&case["expected"], &json!({ "value": value }))
}

/// Settings that this version only keeps: what the table says that they mean.
fn by_table(settings: &Settings, accessor: &str) -> Result<Value, String> {
    let name = match accessor {
        "share" => "sessionShareDestination",
        "imageWidthCells" => "terminal.imageWidthCells",
        "clearOnShrink" => "terminal.clearOnShrink",
        "codeBlockIndent" => "markdown.codeBlockIndent",
        "mermaid" => "markdown.mermaid",
        "themeSetting" => "theme",
        name => name,
    };
    let path = settings::keys::path_of(name);
    let key = settings::keys::find(&path).ok_or_else(|| format!("no accessor {accessor}"))?;
    let found = settings.finding(&path);
    // Where a wrong value is an error and not the default.
    if key.kind == Kind::Milliseconds && found.problem.is_some() {
        return Ok(json!({ "error": true }));
    }
    Ok(json!({ "value": found.value }))
}

pub fn compaction(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let global = input.get("compaction").map_or_else(|| json!({}), |own| json!({ "compaction": own }));
    let (settings, _) = load(&global, None);
    let model = |key: &str| input["model"][key].as_str().unwrap_or_default();
    let got = match settings.compaction(model("provider"), model("id")) {
        Ok(found) => json!({"value": {
            "enabled": found.enabled,
            "reserveTokens": found.reserve_tokens,
            "keepRecentTokens": found.keep_recent_tokens,
        }}),
        Err(_) => json!({ "error": true }),
    };
    same(&case["expected"], &got)
}
