//! Whether the files of a project count (spec 40 §4.4). Nobody is asked here: without an answer they do not.

use std::path::Path;

use serde_json::{Map, Value};
use tau_core::settings::{ProjectTrust, jsonc};

use crate::files::read_text;
use crate::surroundings::{Listing, Surroundings};

/// What in `.pi` needs a decision.
const PROTECTED: [&str; 8] = [
    "settings.json",
    "mcp.json",
    "extensions",
    "skills",
    "prompts",
    "themes",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
];

/// Whether the project brings anything that needs a decision. `project` lists `<cwd>/.pi`.
#[must_use]
pub fn is_protected(place: &Surroundings, project: &Listing) -> bool {
    let exists = |name: &str| Path::new(&format!("{}/.pi/{name}", place.cwd)).exists();
    PROTECTED.iter().any(|name| project.has(name) && exists(name))
}

/// The decision: the flag, a saved decision about the folder or the nearest one above, the setting, else no.
///
/// # Errors
/// When the store of decisions cannot be understood.
pub fn decide(
    place: &Surroundings,
    flag: Option<bool>,
    default: ProjectTrust,
    needed: bool,
    agent: &Listing,
) -> Result<bool, String> {
    if let Some(flag) = flag {
        return Ok(flag);
    }
    let saved = if agent.has("trust.json") { saved(place)? } else { None };
    Ok(saved.unwrap_or(match (needed, default) {
        (false, _) | (true, ProjectTrust::Always) => true,
        (true, ProjectTrust::Never | ProjectTrust::Ask) => false,
    }))
}

fn saved(place: &Surroundings) -> Result<Option<bool>, String> {
    let path = place.agent_file("trust.json");
    let explain = |why: &str| format!("{path}: {why}; correct the file, or move it away");
    let Some(text) = read_text(&path).map_err(|why| explain(&why))? else { return Ok(None) };
    let store: Map<String, Value> = serde_json::from_str(jsonc::without_bom(&text))
        .map_err(|_| explain("must be an object of folders and true, false or null"))?;
    if store.values().any(|value| !value.is_boolean() && !value.is_null()) {
        return Err(explain("the values must be true, false or null"));
    }
    let real =
        std::fs::canonicalize(&place.cwd).ok().and_then(|path| path.into_os_string().into_string().ok());
    let real = real.unwrap_or_else(|| place.cwd.clone());
    Ok(ancestors(&real).find_map(|dir| store.get(dir).and_then(Value::as_bool)))
}

/// A folder and all above it, up to `/`.
fn ancestors(dir: &str) -> impl Iterator<Item = &str> {
    Path::new(dir).ancestors().filter_map(Path::to_str)
}
