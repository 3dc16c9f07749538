//! Path arguments: which absolute paths a tool tries, and in which order (decision D34).

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use super::ToolEnv;
use crate::fault::{FaultKind, IoFault};
use crate::path::{PathError, Style, candidates, exact_argument, parent as path_parent, resolve};

/// Absolute paths that an argument may mean, tried until one exists.
#[derive(Default)]
pub(super) struct Candidates {
    paths: Vec<String>,
    at: usize,
    /// The spelling that messages name when none exists.
    shown: usize,
}

impl Candidates {
    /// For tools that only look: every spelling, the exact one first.
    pub(super) fn to_read(env: &ToolEnv, given: &str) -> Result<Self, String> {
        let surroundings = Surroundings::of(env);
        Self::new(&surroundings, given, candidates(given, &env.cwd, surroundings.home, surroundings.style))
    }

    /// For tools that change a file: the name as given, with its leading `@` only if something has that name.
    pub(super) fn to_change(env: &ToolEnv, given: &str) -> Result<Self, String> {
        let surroundings = Surroundings::of(env);
        let with_mark =
            given.starts_with('@').then(|| resolve(given, &env.cwd, surroundings.home, surroundings.style));
        Self::new(&surroundings, given, Ok(with_mark.and_then(Result::ok).into_iter().collect()))
    }

    fn new(
        surroundings: &Surroundings<'_>,
        given: &str,
        paths: Result<Vec<String>, PathError>,
    ) -> Result<Self, String> {
        let text = |error: PathError| error.to_string();
        let exact =
            exact_argument(given, surroundings.cwd, surroundings.home, surroundings.style).map_err(text)?;
        let mut paths = paths.map_err(text)?;
        let shown = paths.iter().position(|path| *path == exact).unwrap_or(paths.len());
        if shown == paths.len() {
            paths.push(exact);
        }
        Ok(Self { paths, at: 0, shown })
    }

    /// The path to try now.
    pub(super) fn current(&self) -> &str {
        self.paths.get(self.at).map_or("", String::as_str)
    }

    /// Whether the fault means that another spelling should be tried; then [`Self::current`] is that one. After the
    /// last one it is the exact spelling again.
    pub(super) fn advance(&mut self, fault: &IoFault) -> bool {
        if !missing(fault) {
            return false;
        }
        self.at += 1;
        let more = self.at < self.paths.len();
        if !more {
            self.at = self.shown;
        }
        more
    }
}

struct Surroundings<'a> {
    cwd: &'a str,
    home: &'a str,
    style: Style,
}

impl<'a> Surroundings<'a> {
    fn of(env: &'a ToolEnv) -> Self {
        Self { cwd: &env.cwd, home: env.home.as_deref().unwrap_or("~"), style: Style::of(&env.cwd) }
    }
}

/// Whether nothing is at the path.
pub(super) const fn missing(fault: &IoFault) -> bool {
    matches!(fault.kind, FaultKind::NotFound | FaultKind::NotDir)
}

/// The folder that holds a path.
pub(super) fn parent(path: &str) -> String {
    path_parent(path, Style::of(path))
}
