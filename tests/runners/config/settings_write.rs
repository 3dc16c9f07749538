//! Saving settings, on real files.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tau::settings_store;
use tau::surroundings::Surroundings;
use tau_core::settings::{Change, Scope, keys};
use tau_tests::compare::same;
use tempfile::TempDir;

/// What a call changes; `None` = the value is refused.
fn change(call: &str, args: &Value) -> Result<Option<(Scope, Change)>, String> {
    let arg = &args[0];
    let text = |at: usize| args[at].as_str().unwrap_or_default();
    let model = format!("{}/{}", text(0), text(1));
    let (scope, path, value) = match call {
        "setTheme" => (Scope::Global, vec!["theme"], arg),
        "setCompactionEnabled" => (Scope::Global, vec!["compaction", "enabled"], arg),
        "setRetryEnabled" => (Scope::Global, vec!["retry", "enabled"], arg),
        "setEnabledModels" => (Scope::Global, vec!["enabledModels"], arg),
        "setEditorPaddingX" => (Scope::Global, vec!["editorPaddingX"], arg),
        "setAutocompleteMaxVisible" => (Scope::Global, vec!["autocompleteMaxVisible"], arg),
        "setImageWidthCells" => (Scope::Global, vec!["terminal", "imageWidthCells"], arg),
        "setFullscreenWheelScrollLines" => (Scope::Global, vec!["fullscreenWheelScrollLines"], arg),
        "setHttpIdleTimeoutMs" => (Scope::Global, vec!["httpIdleTimeoutMs"], arg),
        "setShellCommandPrefix" => (Scope::Global, vec!["shellCommandPrefix"], arg),
        "setProjectSkillPaths" => (Scope::Project, vec!["skills"], arg),
        "setProjectPackages" => (Scope::Project, vec!["packages"], arg),
        "setModelThinkingLevel" => (Scope::Global, vec!["modelThinkingLevels", &model], &args[2]),
        "removeModelThinkingLevel" => {
            let change = settings_store::change(&["modelThinkingLevels", &model], None);
            return Ok(Some((Scope::Global, change)));
        }
        "setExtensionChangelogVersion" => {
            let change =
                settings_store::change(&["extensionChangelogVersions", text(0)], Some(args[1].clone()));
            return Ok(Some((Scope::Global, change)));
        }
        other => return Err(format!("no call {other}")),
    };
    let path: Vec<String> = path.into_iter().map(str::to_owned).collect();
    let kind = keys::find(&path).ok_or("a setting that the table does not know")?.kind;
    let value = if value.is_null() { Some(Value::Null) } else { kind.read(value) };
    Ok(value.map(|value| (scope, Change { path, value: Some(value) })))
}

pub fn write(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let folder = TempDir::new().map_err(|e| e.to_string())?;
    let at = |name: &str| folder.path().join(name).display().to_string();
    let place = Surroundings { cwd: at("work"), home: None, agent_dir: at("agent") };
    let files = [Scope::Global, Scope::Project].map(|scope| settings_store::path(&place, scope));
    for (file, text) in files.iter().zip([&input["global"], &input["project"]]) {
        if let Some(text) = text.as_str() {
            let _ = fs::create_dir_all(Path::new(file).parent().unwrap());
            fs::write(file, text).map_err(|e| e.to_string())?;
        }
    }
    // What cannot be read is told when it is read.
    let told = super::settings::load(&input["global"], input.get("project")).1;
    let (mut threw, mut errors) = (false, Vec::new());
    for op in input["ops"].as_array().into_iter().flatten() {
        if let Some(text) = op["external"].as_str() {
            fs::write(&files[0], text).map_err(|e| e.to_string())?;
            continue;
        }
        let Some((scope, change)) = change(op["call"].as_str().unwrap_or_default(), &op["args"])? else {
            threw = true;
            continue;
        };
        if scope == Scope::Project && input["projectTrusted"] == false {
            threw = true;
            continue;
        }
        let name = if scope == Scope::Global { "global" } else { "project" };
        let saved = settings_store::save(&place, scope, &[change], Duration::from_millis(200));
        if saved.is_err() && !told.contains(&name) {
            errors.push(name);
        }
    }
    let [global, project] = files.each_ref().map(|file| fs::read_to_string(file).ok());
    let lock_left = files.iter().any(|file| Path::new(&format!("{file}.lock")).exists());
    let got = json!({
        "global": global, "project": project, "threw": threw, "errorScopes": errors, "lockLeft": lock_left,
    });
    same(&case["expected"], &got)
}
