//! Before a call runs: what the mode says, what a person said before, and else what a person says now.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tau_core::agent::ToolVerdict;
use tau_core::json::Value;
use tau_core::path::{self, Style};
use tau_core::permissions::{Contract, Decision, PermissionMode, Request, ToolClass};
use tau_core::tools::BUILTIN_NAMES;

use crate::surroundings::Surroundings;

/// What the model is told of a refusal.
const REJECTED: &str =
    "The user rejected this call. Do not try it again in another way; ask what they want instead.";

/// What the model is told of calls of a tool that was refused for good.
const NEVER: &str = "The user rejected all calls of this tool. Do not try it again in another way; ask what they want instead.";

/// What the model is told when nobody answered.
const UNANSWERED: &str = "Nobody answered whether this call may run, so it did not.";

/// What a person answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It may run.
    Once,
    /// Calls of this tool may run in this session.
    Always,
    /// It may not.
    Reject,
    /// Calls of this tool may not run in this session, until the mode is chosen anew.
    Never,
}

/// The rules of one session.
pub struct Rules {
    place: Surroundings,
    /// Where long outputs of commands are kept: reading there is reading what the model was shown.
    outputs: String,
    state: Mutex<State>,
}

struct State {
    mode: PermissionMode,
    /// Tools that were allowed for the whole session.
    granted: BTreeSet<String>,
    /// Tools that were refused until the mode is chosen anew.
    refused: BTreeSet<String>,
}

impl Rules {
    /// Rules for a session that runs in `place`.
    #[must_use]
    pub const fn new(mode: PermissionMode, place: Surroundings, outputs: String) -> Self {
        let state = Mutex::new(State { mode, granted: BTreeSet::new(), refused: BTreeSet::new() });
        Self { place, outputs, state }
    }

    /// The mode of the moment.
    #[must_use]
    pub fn mode(&self) -> PermissionMode {
        self.lock().mode
    }

    /// Another mode, for calls that come later. What was refused for good is asked about again.
    pub fn set_mode(&self, mode: PermissionMode) {
        let mut state = self.lock();
        state.mode = mode;
        state.refused.clear();
    }

    /// Where the session runs.
    #[must_use]
    pub const fn place(&self) -> &Surroundings {
        &self.place
    }

    /// Whether a call may run; `ask` asks a person, `None` = nobody answered.
    ///
    /// # Errors
    /// What the model is told instead of a result.
    pub fn settle(
        &self,
        tool: &str,
        args: &Value,
        ask: impl FnOnce() -> Option<Answer>,
    ) -> Result<(), &'static str> {
        match self.decide(tool, args) {
            Decision::Allow | Decision::Granted => Ok(()),
            Decision::Deny => Err("This tool is not available in this mode."),
            Decision::Ask if self.lock().refused.contains(tool) => Err(NEVER),
            Decision::Ask => match ask() {
                Some(Answer::Once) => Ok(()),
                Some(Answer::Always) => {
                    self.lock().granted.insert(tool.to_owned());
                    Ok(())
                }
                Some(Answer::Reject) => Err(REJECTED),
                Some(Answer::Never) => {
                    self.lock().refused.insert(tool.to_owned());
                    Err(NEVER)
                }
                None => Err(UNANSWERED),
            },
        }
    }

    fn decide(&self, tool: &str, args: &Value) -> Decision {
        let outside = path_of(tool, args, &self.place).is_some_and(|path| self.is_outside(&path));
        let state = self.lock();
        let request = Request {
            mode: state.mode,
            contract: Contract::None,
            class: ToolClass::of(tool, None),
            outside,
            granted: state.granted.contains(tool),
        };
        request.decide()
    }

    /// Whether a path leaves the working directory, by its text or by the links on its way (PR-239).
    fn is_outside(&self, path: &str) -> bool {
        let path = real(Path::new(path));
        let roots = [&self.place.cwd, &self.outputs];
        !roots.into_iter().any(|root| path.starts_with(real(Path::new(root))))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The verdict for the machine.
#[must_use]
pub fn verdict(outcome: Result<(), &str>) -> ToolVerdict {
    match outcome {
        Ok(()) => ToolVerdict::Run(None),
        Err(reason) => ToolVerdict::Block { reason: Some(reason.to_owned()), terminate: false },
    }
}

/// The absolute path that a call of a built-in tool names, if it names one.
#[must_use]
pub fn path_of(tool: &str, args: &Value, place: &Surroundings) -> Option<String> {
    let given = args.get("path")?.as_str().filter(|_| BUILTIN_NAMES.contains(&tool))?;
    path::resolve(given, &place.cwd, place.home_or_root(), Style::Posix).ok()
}

/// A path with the links of the part that exists followed.
#[must_use]
pub fn real(path: &Path) -> PathBuf {
    let mut rest = PathBuf::new();
    for ancestor in path.ancestors() {
        if let Ok(mut real) = ancestor.canonicalize() {
            // Name by name: joining nothing would end it with a slash.
            real.extend(rest.iter());
            return real;
        }
        if let Some(name) = ancestor.file_name() {
            rest = Path::new(name).join(rest);
        }
    }
    path.to_owned()
}
