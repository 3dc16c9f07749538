//! Asks the client whether a call may run (`--permission`; spec 60 §3.7, spec 20 §L.1).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tau_core::agent::{HookCall, HookReply};
use tau_core::json::to_string;
use tau_core::permissions::PermissionMode;
use tau_core::tools::ToolEnv;
use tau_io_std::sys::CancelToken;

use super::records::Records;
use crate::permission::{Answer, Rules, verdict};
use crate::surroundings::Surroundings;

/// A question is answered within this time, or not at all (PR-235).
const LIMIT: Duration = Duration::from_secs(120);

/// Longest arguments in a question, characters (PR-236).
const PREVIEW: usize = 2000;

const OPTIONS: [(&str, Answer); 3] =
    [("Allow", Answer::Once), ("Allow for this session", Answer::Always), ("Reject", Answer::Reject)];

/// The rules of the session of the moment. Clones are the same.
#[derive(Clone)]
pub(super) struct Gate {
    mode: PermissionMode,
    current: Arc<Mutex<Current>>,
}

struct Current {
    rules: Arc<Rules>,
    /// The folder of the session's outputs: another session has another one.
    outputs: String,
}

impl Gate {
    pub(super) fn new(mode: PermissionMode, place: &Surroundings, env: &ToolEnv) -> Self {
        Self { mode, current: Arc::new(Mutex::new(Current::new(mode, place, env))) }
    }

    /// Another session, or the same one anew, takes its place at `place`. What was allowed for one session is not for
    /// another one.
    pub(super) fn moved(&self, place: &Surroundings, env: &ToolEnv) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.outputs != env.output_dir || current.rules.place().cwd != place.cwd {
            *current = Current::new(self.mode, place, env);
        }
    }

    /// Answers the hook before a call.
    pub(super) fn answer(&self, records: &Records, hook: HookCall, cancel: &CancelToken) -> HookReply {
        let HookCall::BeforeToolCall { index, call, args } = hook else { return hook.neutral() };
        let rules = Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner).rules);
        let ask = || {
            let arguments: String = to_string(&args).chars().take(PREVIEW).collect();
            let title = format!("Run {} {arguments}?", call.name);
            let chosen = records.select(&title, &OPTIONS.map(|(text, _)| text), LIMIT, cancel)?;
            OPTIONS.into_iter().find(|(text, _)| *text == chosen).map(|(_, answer)| answer)
        };
        HookReply::BeforeToolCall { index, verdict: verdict(rules.settle(&call.name, &args, ask)) }
    }
}

impl Current {
    fn new(mode: PermissionMode, place: &Surroundings, env: &ToolEnv) -> Self {
        let outputs = env.output_dir.clone();
        Self { rules: Arc::new(Rules::new(mode, place.clone(), outputs.clone())), outputs }
    }
}
