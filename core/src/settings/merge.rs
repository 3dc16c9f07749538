//! Global and project settings become one (spec 40 §4.1, §4.3).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::schema::Settings;
use super::{ConfigFault, jsonc};
use crate::json::{Map, Value};

/// Whose settings a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `<agent-dir>/settings.json`.
    Global,
    /// `<cwd>/.pi/settings.json`.
    Project,
}

/// A settings file as found.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Whose.
    pub scope: Scope,
    /// Path, for messages.
    pub path: &'a str,
    /// Its text (`None` = no such file), or why it could not be read.
    pub text: Result<Option<&'a str>, &'a str>,
}

/// Reads, migrates and merges files; later sources win. Leave an untrusted project's file out.
#[must_use]
pub fn load(sources: &[Source<'_>]) -> (Settings, Vec<ConfigFault>) {
    let mut faults = Vec::new();
    let (mut global, mut project, mut effective) = (Map::new(), Map::new(), Map::new());
    for source in sources {
        match read(source) {
            Ok(map) => {
                let own = if source.scope == Scope::Global { &mut global } else { &mut project };
                own.clone_from(&map);
                merge(&mut effective, map);
            }
            Err(reason) => {
                faults.push(ConfigFault { file: source.path.to_string(), at: String::new(), reason });
            }
        }
    }
    (Settings::new(global, project, effective), faults)
}

fn read(source: &Source<'_>) -> Result<Map<String, Value>, String> {
    let text = source.text.map_err(|why| format!("cannot be read: {why}"))?;
    // An empty file is no settings, not broken settings.
    let Some(text) = text.filter(|text| !jsonc::without_bom(text).is_empty()) else {
        return Ok(Map::new());
    };
    match jsonc::parse(text)? {
        Value::Object(mut map) => {
            migrate(&mut map);
            Ok(map)
        }
        _ => Err("must hold one JSON object".to_string()),
    }
}

/// Objects merge, everything else replaces; a project's list of tool modifiers is appended.
fn merge(base: &mut Map<String, Value>, over: Map<String, Value>) {
    for (key, value) in over {
        let Some(slot) = base.get_mut(&key) else {
            base.insert(key, value);
            continue;
        };
        match (slot, value) {
            (Value::Object(old), Value::Object(new)) => merge(old, new),
            (Value::Array(tools), Value::Array(more))
                if key == "defaultTools" && more.iter().all(is_modifier) =>
            {
                tools.extend(more);
            }
            (slot, value) => *slot = value,
        }
    }
}

fn is_modifier(entry: &Value) -> bool {
    entry.as_str().is_some_and(|name| name.starts_with(['+', '-']))
}

/// Renames what older versions wrote (spec 40 §4.3). Idempotent.
pub fn migrate(settings: &mut Map<String, Value>) {
    if !settings.contains_key("steeringMode")
        && let Some(mode) = settings.shift_remove("queueMode")
    {
        settings.insert("steeringMode".to_string(), mode);
    }
    if let Some(Value::Bool(on)) = settings.get("websockets").cloned()
        && !settings.contains_key("transport")
    {
        settings.shift_remove("websockets");
        settings.insert("transport".to_string(), Value::from(if on { "websocket" } else { "sse" }));
    }
    migrate_skills(settings);
    if let Some(Value::Object(retry)) = settings.get_mut("retry") {
        migrate_retry(retry);
    }
}

/// `skills` was an object with two fields.
fn migrate_skills(settings: &mut Map<String, Value>) {
    let Some(Value::Object(old)) = settings.get_mut("skills") else { return };
    let commands = old.shift_remove("enableSkillCommands");
    let folders = old.shift_remove("customDirectories").and_then(|folders| match folders {
        Value::Array(list) if !list.is_empty() => Some(Value::Array(list)),
        _ => None,
    });
    match folders {
        Some(folders) => {
            settings.insert("skills".to_string(), folders);
        }
        None => {
            settings.shift_remove("skills");
        }
    }
    if let Some(commands) = commands
        && !settings.contains_key("enableSkillCommands")
    {
        settings.insert("enableSkillCommands".to_string(), commands);
    }
}

/// `retry.maxDelayMs` was about requests.
fn migrate_retry(retry: &mut Map<String, Value>) {
    let Some(delay) = retry.shift_remove("maxDelayMs").filter(Value::is_number) else { return };
    let slot = retry.entry("provider").or_insert(Value::Null);
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    if let Value::Object(provider) = slot {
        let current = provider.entry("maxRetryDelayMs").or_insert(Value::Null);
        if current.is_null() {
            *current = delay;
        }
    }
}
