//! What counts, where it comes from, and what is wrong with it.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::keys::{self, KEYS, Key, name_of};
use super::{Scope, Settings};
use crate::json::{Map, Value};

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// No file sets it.
    Default,
    /// The global file.
    Global,
    /// The file of the project.
    Project,
    /// Both files: objects merge, and so may lists of tools.
    Both,
}

impl Origin {
    /// For people and programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Global => "global",
            Self::Project => "project",
            Self::Both => "global+project",
        }
    }
}

/// One setting as it counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Where it stands.
    pub path: Vec<String>,
    /// What counts; `None` = nothing is set and there is no default.
    pub value: Option<Value>,
    /// Where that comes from.
    pub origin: Origin,
    /// What is wrong with what a file says.
    pub problem: Option<String>,
}

impl Settings {
    /// What counts for a path. Objects are given as merged, without defaults.
    #[must_use]
    pub fn finding(&self, path: &[String]) -> Finding {
        let key = keys::find(path);
        let global_only = key.is_some_and(|key| key.global_only);
        let written = lookup(if global_only { &self.global } else { &self.effective }, path);
        let of_project = lookup(&self.project, path);
        let mut problem = written.and_then(|value| problem(path, value));
        if global_only && of_project.is_some() {
            problem = problem.or_else(|| Some("counts in the global file only".into()));
        }
        let default = key.and_then(Key::default);
        let counted = match (key, written) {
            (Some(key), Some(value)) => key.kind.read(value),
            (_, value) => value.cloned(),
        };
        let origin = match (&counted, lookup(&self.global, path), of_project.filter(|_| !global_only)) {
            (None, ..) | (_, None, None) => Origin::Default,
            (_, Some(_), None) => Origin::Global,
            (_, None, Some(_)) => Origin::Project,
            (_, Some(_), Some(of_project)) if written == Some(of_project) => Origin::Project,
            _ => Origin::Both,
        };
        Finding { path: path.to_vec(), value: counted.or(default), origin, problem }
    }

    /// All settings that this version uses, and all others that are set.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        for key in KEYS {
            for path in self.paths(key) {
                let set =
                    [&self.effective, &self.project].into_iter().any(|map| lookup(map, &path).is_some());
                if key.used || set {
                    found.push(self.finding(&path));
                }
            }
        }
        let mut unknown = Vec::new();
        unknown_in(&self.effective, &mut Vec::new(), &mut unknown);
        found.extend(unknown.iter().map(|path| self.finding(path)));
        found
    }

    /// The paths of a setting; those of a pattern are the ones that are set.
    fn paths(&self, key: &Key) -> Vec<Vec<String>> {
        let mut paths = [Vec::new()].to_vec();
        for name in key.name.split('.') {
            if name != "*" {
                paths.iter_mut().for_each(|path| path.push(name.into()));
                continue;
            }
            let below = |path: Vec<String>| {
                let names = lookup(&self.effective, &path).and_then(Value::as_object);
                let names: Vec<String> = names.into_iter().flat_map(Map::keys).cloned().collect();
                names.into_iter().map(move |name| [path.as_slice(), &[name]].concat())
            };
            paths = paths.into_iter().flat_map(below).collect();
            // Other members of such an object are no reason to list what is not there.
            if let Some((_, after)) = key.name.split_once("*.") {
                let is_set = |path: &Vec<String>| {
                    lookup(&self.effective, &[path.as_slice(), &[after.into()]].concat()).is_some()
                };
                paths.retain(is_set);
            }
        }
        paths
    }

    /// Whether the file of a scope sets something of its own.
    #[must_use]
    pub fn sets(&self, scope: Scope, path: &[String]) -> bool {
        let own = if scope == Scope::Global { &self.global } else { &self.project };
        lookup(own, path).is_some()
    }

    /// Lets a value count for the rest of the process, over both files.
    pub fn override_with(&mut self, path: &[&str], value: Value) {
        for map in [&mut self.global, &mut self.effective] {
            let Some((last, parents)) = path.split_last() else { return };
            let mut at = map;
            for name in parents {
                let slot = at.entry(*name).or_insert(Value::Null);
                if !slot.is_object() {
                    *slot = Value::Object(Map::new());
                }
                let Value::Object(inner) = slot else { return };
                at = inner;
            }
            at.insert((*last).into(), value.clone());
        }
    }
}

/// What is wrong with a value, or with a member of it; `None` also for settings that nobody knows.
#[must_use]
pub fn problem(path: &[String], value: &Value) -> Option<String> {
    if let Some(key) = keys::find(path) {
        return (!key.kind.allows(value)).then(|| format!("must be {}", one_of(&key.kind.describe())));
    }
    if !KEYS.iter().any(|key| key.is_inside(path)) {
        return None;
    }
    let Value::Object(members) = value else { return Some("must be an object".into()) };
    members.iter().find_map(|(name, value)| {
        let path = [path, core::slice::from_ref(name)].concat();
        let problem = problem(&path, value)?;
        // The place is told once, in full.
        Some(if problem.contains(": ") { problem } else { format!("{}: {problem}", name_of(&path)) })
    })
}

fn one_of(kind: &str) -> Cow<'_, str> {
    if kind.contains(", ") && !kind.starts_with("a ") && !kind.starts_with("milli") {
        return format!("one of {kind}").into();
    }
    kind.into()
}

/// Paths of what no row of the table is about.
fn unknown_in(map: &Map<String, Value>, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    for (name, value) in map {
        path.push(name.clone());
        if keys::find(path).is_none() {
            match value {
                Value::Object(members) if KEYS.iter().any(|key| key.is_inside(path)) => {
                    unknown_in(members, path, found);
                }
                _ => found.push(path.clone()),
            }
        }
        path.pop();
    }
}

fn lookup<'a>(map: &'a Map<String, Value>, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(map.get(first)?, |value, name| value.get(name))
}

#[cfg(test)]
mod tests {
    use super::super::{Source, load};
    use super::*;
    use alloc::string::ToString;
    use serde_json::json;

    fn settings(global: &str, project: &str) -> Settings {
        let source = |scope, text| Source { scope, path: "", text: Ok(Some(text)) };
        load(&[source(Scope::Global, global), source(Scope::Project, project)]).0
    }

    #[test]
    fn where_values_come_from() {
        let settings = settings(
            r#"{"retry": {"maxRetries": 5, "enabled": "no"}, "defaultTools": ["read"], "httpProxy": "a", "mine": 1, "theme": 7}"#,
            r#"{"retry": {"maxRetries": 6}, "defaultTools": ["+ls"], "httpProxy": "b", "steeringMode": "all"}"#,
        );
        for (name, value, origin, problem) in [
            ("retry.maxRetries", json!(6), Origin::Project, None),
            ("retry.enabled", json!(true), Origin::Default, Some("must be true or false")),
            ("retry.baseDelayMs", json!(2000), Origin::Default, None),
            (
                "retry",
                json!({"maxRetries": 6, "enabled": "no"}),
                Origin::Both,
                Some("retry.enabled: must be true or false"),
            ),
            ("defaultTools", json!(["read", "+ls"]), Origin::Both, None),
            ("httpProxy", json!("a"), Origin::Global, Some("counts in the global file only")),
            ("mine", json!(1), Origin::Global, None),
            ("steeringMode", json!("all"), Origin::Project, None),
            ("followUpMode", json!("one-at-a-time"), Origin::Default, None),
            ("theme", json!(null), Origin::Default, Some("must be text")),
            ("shellPath", json!(null), Origin::Default, None),
        ] {
            let got = settings.finding(&keys::path_of(name));
            let wanted = (value, origin, problem.map(ToString::to_string));
            assert_eq!((got.value.unwrap_or_default(), got.origin, got.problem), wanted, "{name}");
        }
    }

    #[test]
    fn lists_what_is_used_or_set() {
        let settings = settings(
            r#"{"theme": "x", "mine": {"a": 1}, "modelThinkingLevels": {"a/b.1": "low"}, "retry": {"own": 1},
                "compaction": {"modelOverrides": {"a/b": {"reserveTokens": 1}}}, "terminal": 5}"#,
            "{}",
        );
        let names: Vec<String> = settings.findings().iter().map(|found| name_of(&found.path)).collect();
        for name in [
            "theme",
            "mine",
            "modelThinkingLevels.a/b.1",
            "retry.own",
            "retry.enabled",
            "terminal",
            "compaction.modelOverrides.a/b.reserveTokens",
        ] {
            assert_eq!(names.iter().filter(|own| *own == name).count(), 1, "{name}: {names:?}");
        }
        for name in ["tuiMode", "mine.a", "retry", "compaction.modelOverrides.a/b.keepRecentTokens"] {
            assert!(!names.iter().any(|own| own == name), "{name}");
        }
    }

    #[test]
    fn overrides_count() {
        let mut settings = settings("{\"retry\": 5}", "{\"steeringMode\": \"all\"}");
        settings.override_with(&["retry", "enabled"], json!(false));
        settings.override_with(&["steeringMode"], json!("one-at-a-time"));
        assert!(!settings.retry().enabled);
        assert_eq!(settings.steering_mode(), crate::input::QueueMode::OneAtATime);
    }

    /// The table says the same as the typed accessors.
    #[test]
    fn defaults_agree() {
        let empty = Settings::default();
        let default = |name: &str| empty.finding(&keys::path_of(name)).value.unwrap_or_default();
        let retry = empty.retry();
        let compaction = empty.compaction("a", "b").unwrap();
        for (name, value) in [
            ("retry.enabled", json!(retry.enabled)),
            ("retry.maxRetries", json!(retry.max_retries)),
            ("retry.baseDelayMs", json!(retry.base_delay_ms)),
            ("retry.maxAgentDelayMs", json!(retry.max_agent_delay_ms)),
            ("retry.provider.timeoutMs", json!(empty.provider_retry().timeout_ms)),
            ("retry.provider.maxRetries", json!(empty.provider_retry().max_retries.unwrap_or_default())),
            ("retry.provider.maxRetryDelayMs", json!(empty.provider_retry().max_retry_delay_ms)),
            ("compaction.enabled", json!(compaction.enabled)),
            ("compaction.reserveTokens", json!(compaction.reserve_tokens)),
            ("compaction.keepRecentTokens", json!(compaction.keep_recent_tokens)),
            ("branchSummary.reserveTokens", json!(empty.branch_summary().reserve_tokens)),
            ("branchSummary.skipPrompt", json!(empty.branch_summary().skip_prompt)),
            ("images.autoResize", json!(empty.images().auto_resize)),
            ("images.blockImages", json!(empty.images().block)),
            ("httpIdleTimeoutMs", json!(empty.http_idle_timeout_ms().unwrap())),
            ("steeringMode", json!(empty.steering_mode().name())),
            ("followUpMode", json!(empty.follow_up_mode().name())),
            ("defaultTools", json!(super::super::DEFAULT_TOOLS)),
        ] {
            assert_eq!(default(name), value, "{name}");
        }
    }
}
