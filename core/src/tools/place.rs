//! Path arguments: which absolute paths a tool tries, and in which order.

use alloc::string::String;
use alloc::vec::Vec;

use super::ToolEnv;
use crate::fault::{FaultKind, IoFault};

/// Absolute paths that an argument may mean, tried until one exists.
pub(super) struct Candidates {
    paths: Vec<String>,
    at: usize,
}

impl Candidates {
    /// All spellings of an argument, the exact one first (decision D34).
    pub(super) fn new(env: &ToolEnv, given: &str) -> Result<Self, String> {
        Ok(Self { paths: alloc::vec![resolve(env, given)?], at: 0 })
    }

    /// The path to try now.
    pub(super) fn current(&self) -> &str {
        self.paths.get(self.at).map_or("", String::as_str)
    }

    /// Whether the fault means that another spelling should be tried; then [`Self::current`] is that one.
    /// After the last one it is the exact spelling again.
    pub(super) fn advance(&mut self, fault: &IoFault) -> bool {
        if !missing(fault) {
            return false;
        }
        self.at += 1;
        let more = self.at < self.paths.len();
        if !more {
            self.at = 0;
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
    let given = given.strip_prefix('@').unwrap_or(given);
    let home = env.home.as_deref().unwrap_or("/");
    let joined = match given.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => alloc::format!("{home}{rest}"),
        _ if given.starts_with('/') => given.into(),
        _ => alloc::format!("{}/{given}", env.cwd),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in joined.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    Ok(alloc::format!("/{}", parts.join("/")))
}

/// The folder that holds a path.
pub(super) fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((folder, _)) => folder,
    }
}
