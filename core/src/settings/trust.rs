//! Whether the files of a project count (spec 40 §4.4): what needs a decision, the store of decisions, the order in
//! which they are asked.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{ProjectTrust, jsonc};
use crate::json::{Map, Value, to_pretty};

/// What in `.pi` needs a decision.
pub const PROTECTED: [&str; 8] = [
    "settings.json",
    "mcp.json",
    "extensions",
    "skills",
    "prompts",
    "themes",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
];

/// What a project brings that needs a decision, as paths. `cwd` and `home` are absolute; `exists` follows links.
#[must_use]
pub fn protected(cwd: &str, home: Option<&str>, exists: &mut dyn FnMut(&str) -> bool) -> Vec<String> {
    let of_project = PROTECTED.iter().map(|name| [cwd.trim_end_matches('/'), "/.pi/", name].concat());
    let shared = above(cwd).filter(|folder| Some(*folder) != home);
    let shared = shared.map(|folder| [folder.trim_end_matches('/'), "/.agents/skills"].concat());
    of_project.chain(shared).filter(|path| exists(path)).collect()
}

/// An absolute folder and all above it.
fn above(folder: &str) -> impl Iterator<Item = &str> {
    core::iter::successors(Some(folder), |folder| parent(folder))
}

fn parent(folder: &str) -> Option<&str> {
    let (above, name) = folder.trim_end_matches('/').rsplit_once('/')?;
    match (above.is_empty(), name.is_empty()) {
        (_, true) => None,
        (true, false) => Some("/"),
        (false, false) => Some(above),
    }
}

/// Decisions that were stored: real paths of folders, and whether their files count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustStore {
    decisions: Map<String, Value>,
}

impl TrustStore {
    /// Reads `trust.json`.
    ///
    /// # Errors
    /// What is wrong with it. It must not be written then.
    pub fn parse(text: &str) -> Result<Self, String> {
        if jsonc::without_bom(text).trim().is_empty() {
            return Ok(Self::default());
        }
        // Programs write this file: no comments, which would be lost.
        let read = serde_json::from_str(jsonc::without_bom(text));
        let Ok(Value::Object(decisions)) = read else {
            return Err("must be an object of folders and true, false or null".to_string());
        };
        match decisions.values().all(|value| value.is_boolean() || value.is_null()) {
            true => Ok(Self { decisions }),
            false => Err("the values must be true, false or null".to_string()),
        }
    }

    /// The decision about a folder, or the nearest one above, and the folder it is about.
    #[must_use]
    pub fn find<'a>(&self, folder: &'a str) -> Option<(&'a str, bool)> {
        above(folder).find_map(|dir| Some((dir, self.decisions.get(dir)?.as_bool()?)))
    }

    /// The text of `trust.json` with changes, where `None` forgets a folder; `None` when that changes nothing.
    #[must_use]
    pub fn with(mut self, changes: &[(&str, Option<bool>)]) -> Option<String> {
        let mut changed = false;
        for (folder, decision) in changes {
            let new = decision.map(Value::Bool);
            changed |= self.decisions.get(*folder) != new.as_ref();
            match new {
                Some(new) => self.decisions.insert(folder.to_string(), new),
                None => self.decisions.shift_remove(*folder),
            };
        }
        if !changed {
            return None;
        }
        let mut sorted: Vec<(String, Value)> = self.decisions.into_iter().collect();
        // As JavaScript sorts.
        crate::order::sort(&mut sorted, |(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
        Some(to_pretty(&Value::Object(sorted.into_iter().collect())) + "\n")
    }
}

/// What someone may answer when asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The files count from now on.
    Trust,
    /// Those of all projects in the folder above count from now on.
    TrustParent,
    /// They count this time.
    TrustOnce,
    /// They do not count from now on.
    Distrust,
    /// They do not count this time. Also when nobody answers.
    DistrustOnce,
}

impl Answer {
    /// Whether the files count now.
    #[must_use]
    pub const fn trusts(self) -> bool {
        matches!(self, Self::Trust | Self::TrustParent | Self::TrustOnce)
    }

    /// What is to be stored about the folder.
    #[must_use]
    pub fn changes(self, folder: &str) -> Vec<(&str, Option<bool>)> {
        match self {
            Self::Trust => [(folder, Some(true))].into(),
            Self::Distrust => [(folder, Some(false))].into(),
            // The root has no folder above it.
            Self::TrustParent => match parent(folder) {
                Some(above) => [(above, Some(true)), (folder, None)].into(),
                None => [(folder, Some(true))].into(),
            },
            Self::TrustOnce | Self::DistrustOnce => Vec::new(),
        }
    }
}

/// What is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The files count.
    Trusted,
    /// They do not.
    Untrusted,
    /// Someone may be asked; where nobody can answer, they do not count.
    Ask,
}

/// The verdict: the flag, then the saved decision, then the setting. What needs no decision is trusted, unless one was
/// saved.
#[must_use]
pub const fn decide(flag: Option<bool>, needed: bool, saved: Option<bool>, default: ProjectTrust) -> Verdict {
    match (flag, saved, needed, default) {
        (Some(true), ..) | (None, Some(true), ..) => Verdict::Trusted,
        (Some(false), ..) | (None, Some(false), ..) => Verdict::Untrusted,
        (None, None, false, _) | (None, None, true, ProjectTrust::Always) => Verdict::Trusted,
        (None, None, true, ProjectTrust::Never) => Verdict::Untrusted,
        (None, None, true, ProjectTrust::Ask) => Verdict::Ask,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_above() {
        let all = |folder| above(folder).collect::<Vec<_>>();
        assert_eq!(all("/a/b"), ["/a/b", "/a", "/"]);
        assert_eq!(all("/"), ["/"]);
        assert_eq!(all("/a/"), ["/a/", "/"]);
    }

    #[test]
    fn order_of_decisions() {
        use ProjectTrust::{Always, Ask, Never};
        use Verdict::{Trusted, Untrusted};
        for (flag, needed, saved, default, verdict) in [
            (Some(true), true, Some(false), Never, Trusted),
            (Some(false), false, Some(true), Always, Untrusted),
            (None, true, Some(false), Always, Untrusted),
            (None, false, Some(false), Always, Untrusted),
            (None, true, Some(true), Never, Trusted),
            (None, false, None, Never, Trusted),
            (None, true, None, Always, Trusted),
            (None, true, None, Never, Untrusted),
            (None, true, None, Ask, Verdict::Ask),
        ] {
            assert_eq!(
                decide(flag, needed, saved, default),
                verdict,
                "{flag:?} {needed} {saved:?} {default:?}"
            );
        }
    }

    #[test]
    fn what_is_stored() {
        let store = TrustStore::parse("{\"/b\": true, \"/a/p\": false, \"/x\": null}").unwrap();
        assert_eq!(store.clone().with(&[("/b", Some(true)), ("/c", None)]), None);
        let text = store.with(&Answer::TrustParent.changes("/a/p"));
        assert_eq!(text.unwrap(), "{\n  \"/a\": true,\n  \"/b\": true,\n  \"/x\": null\n}\n");
        assert_eq!(Answer::TrustParent.changes("/"), [("/", Some(true))]);
        assert!(Answer::TrustOnce.changes("/a").is_empty() && !Answer::DistrustOnce.trusts());
        for wrong in ["[]", "{\"/a\": 1}", "{} // c", "{"] {
            assert!(TrustStore::parse(wrong).is_err(), "{wrong}");
        }
    }
}
