//! Finding names (spec 50 §6.2).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use ignore::overrides::Override;
use tau_core::fault::{FaultKind, IoFault};
use tau_core::op::{Outcome, WalkSpec};

use super::CancelToken;
use super::ignore_rules::Rules;
use super::tree::{Flow, Kind, check_root, visit};

/// Executes a name search.
///
/// # Errors
/// `Invalid` for a pattern that makes no sense, `NotFound` and `NotDir` for the root, `Cancelled`.
pub fn walk(spec: &WalkSpec, cancel: &CancelToken) -> Result<Outcome, IoFault> {
    let names = Names::new(spec)?;
    check_root(&spec.root)?;
    let root = Path::new(&spec.root);
    let mut rules = Rules::above(root, ".fdignore", Override::empty());
    let mut paths = Vec::new();
    let mut more = false;
    visit(root, &mut rules, cancel, &mut |entry| {
        if !names.matches(entry.rel, entry.path) {
            return Ok(Flow::Go);
        }
        if paths.len() as u64 >= spec.limit {
            more = true;
            return Ok(Flow::Stop);
        }
        let mut shown = String::from_utf8_lossy(entry.rel).into_owned();
        if entry.kind == Kind::Dir {
            shown.push('/');
        }
        paths.push(shown);
        Ok(Flow::Go)
    })?;
    Ok(Outcome::Paths { paths, more })
}

/// A pattern and what it is compared with.
enum Names {
    Everything,
    Nothing,
    Base(GlobSet),
    Relative(GlobSet),
    Absolute(GlobSet),
}

impl Names {
    fn new(spec: &WalkSpec) -> Result<Self, IoFault> {
        let mut pattern = spec.pattern.as_str();
        while let Some(rest) = pattern.strip_prefix("./") {
            pattern = rest;
        }
        let root = spec.root.strip_suffix('/').unwrap_or(&spec.root);
        let below_root = pattern.strip_prefix(root).and_then(|rest| rest.strip_prefix('/'));
        if spec.pattern.is_empty() {
            return Ok(Self::Everything);
        }
        if let Some(rest) = below_root {
            return Ok(if rest.is_empty() { Self::Nothing } else { Self::Relative(compile(rest)?) });
        }
        let set = compile(pattern)?;
        Ok(if pattern.ends_with('/') || pattern.is_empty() {
            Self::Nothing
        } else if pattern.starts_with('/') {
            Self::Absolute(set)
        } else if pattern.contains('/') {
            Self::Relative(set)
        } else {
            Self::Base(set)
        })
    }

    fn matches(&self, rel: &[u8], path: &Path) -> bool {
        match self {
            Self::Everything => true,
            Self::Nothing => false,
            Self::Base(set) => {
                let base = rel.rsplit(|c| *c == b'/').next().unwrap_or(rel);
                set.is_match(OsStr::from_bytes(base))
            }
            Self::Relative(set) => set.is_match(OsStr::from_bytes(rel)),
            Self::Absolute(set) => set.is_match(path),
        }
    }
}

/// Smart case: a pattern without capitals ignores case.
fn compile(pattern: &str) -> Result<GlobSet, IoFault> {
    let glob = GlobBuilder::new(pattern)
        .literal_separator(true)
        .backslash_escape(true)
        .case_insensitive(pattern == pattern.to_lowercase())
        .build();
    let invalid = |e: globset::Error| {
        IoFault::new(FaultKind::Invalid, format!("invalid glob `{pattern}`: {}", e.kind()))
    };
    GlobSetBuilder::new().add(glob.map_err(invalid)?).build().map_err(invalid)
}
