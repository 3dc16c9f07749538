//! Path arguments: which absolute paths a tool tries, and in which order.

use alloc::string::String;
use alloc::vec::Vec;

use super::ToolEnv;
use crate::fault::{FaultKind, IoFault};
use crate::path::{self, PathError, Style};

/// Absolute paths that an argument may mean, tried until one exists.
pub(super) struct Candidates {
    paths: Vec<String>,
    at: usize,
    /// The one to name when none exists.
    main: usize,
}

impl Candidates {
    /// All spellings of an argument, the exact one first (decision D34).
    pub(super) fn new(env: &ToolEnv, given: &str) -> Result<Self, String> {
        let style = Style::of(&env.cwd);
        let paths = path::candidates(given, &env.cwd, home(env), style).map_err(|e| reason(given, e))?;
        let named = resolve(env, given)?;
        let main = paths.iter().position(|path| *path == named).unwrap_or(0);
        Ok(Self { paths, at: 0, main })
    }

    /// The path to try now.
    pub(super) fn current(&self) -> &str {
        self.paths.get(self.at).map_or("", String::as_str)
    }

    /// Whether the fault means that another spelling should be tried; then [`Self::current`] is that one.
    /// After the last one it is the plain reading of the argument again.
    pub(super) fn advance(&mut self, fault: &IoFault) -> bool {
        if !missing(fault) {
            return false;
        }
        self.at += 1;
        let more = self.at < self.paths.len();
        if !more {
            self.at = self.main;
        }
        more
    }
}

/// Whether nothing is at the path.
pub(super) const fn missing(fault: &IoFault) -> bool {
    matches!(fault.kind, FaultKind::NotFound | FaultKind::NotDir)
}

/// The absolute path an argument names, spelled as given.
pub(super) fn resolve(env: &ToolEnv, given: &str) -> Result<String, String> {
    let style = Style::of(&env.cwd);
    path::exact_argument(given, &env.cwd, home(env), style).map_err(|e| reason(given, e))
}

fn home(env: &ToolEnv) -> &str {
    env.home.as_deref().unwrap_or("/")
}

fn reason(given: &str, error: PathError) -> String {
    alloc::format!("{given}: {error}")
}

/// The folder that holds a path.
pub(super) fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((folder, _)) => folder,
    }
}
