//! Before a call runs: what the mode says, what the person said before, and else what the person says now.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tau_core::agent::{HookCall, HookReply, ToolVerdict};
use tau_core::json::{Value, Writer};
use tau_core::permissions::{Contract, Decision, PermissionMode, Request, ToolClass};
use tau_io_std::sys::CancelToken;

use super::calls::{self, CallView};
use super::client::Client;
use crate::surroundings::Surroundings;

/// What a person can answer: id, what it says, its kind in the protocol.
const OPTIONS: [(&str, &str, &str); 3] = [
    ("allow", "Allow", "allow_once"),
    ("always", "Allow for this session", "allow_always"),
    ("reject", "Reject", "reject_once"),
];

/// What the model is told of a refusal.
const REJECTED: &str =
    "The user rejected this call. Do not try it again in another way; ask what they want instead.";

/// What the model is told when the question went away.
const UNANSWERED: &str = "Nobody answered whether this call may run, so it did not.";

/// The rules of one session, and what the calls of the moment began with.
pub(super) struct Gate {
    session: String,
    client: Arc<Client>,
    place: Surroundings,
    /// Where long outputs of commands are kept: reading there is reading what the model was shown.
    outputs: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    mode: PermissionMode,
    /// Tools that were allowed for the whole session.
    granted: BTreeSet<String>,
    /// Files as they were before the calls that change them.
    before: HashMap<String, Option<String>>,
}

impl Gate {
    pub(super) fn new(session: String, client: Arc<Client>, place: Surroundings, outputs: String) -> Self {
        Self { session, client, place, outputs, state: Mutex::default() }
    }

    pub(super) fn mode(&self) -> PermissionMode {
        self.lock().mode
    }

    pub(super) fn set_mode(&self, mode: PermissionMode) {
        self.lock().mode = mode;
    }

    /// The file that a call was to change, as it was then.
    pub(super) fn take_before(&self, call_id: &str) -> Option<String> {
        self.lock().before.remove(call_id).flatten()
    }

    /// Where the session runs.
    pub(super) const fn place(&self) -> &Surroundings {
        &self.place
    }

    /// Answers the hook before a call.
    pub(super) fn answer(&self, hook: HookCall, cancel: &CancelToken) -> HookReply {
        let HookCall::BeforeToolCall { index, call, args } = hook else { return hook.neutral() };
        let view = CallView { name: &call.name, args: &args, place: &self.place };
        let verdict = match self.decide(view) {
            Decision::Allow | Decision::Granted => Ok(()),
            Decision::Deny => Err("This tool is not available in this mode."),
            Decision::Ask => self.ask(&call.id, view, cancel),
        };
        let verdict = match verdict {
            Ok(()) => {
                if view.changes_file() {
                    let before = view.path().and_then(|path| calls::whole(&path));
                    self.lock().before.insert(call.id.clone(), before);
                }
                self.client.update(&self.session, "tool_call_update", |w| {
                    w.field_str("toolCallId", &call.id);
                    w.field_str("status", "in_progress");
                });
                self.client.flush();
                ToolVerdict::Run(None)
            }
            Err(reason) => ToolVerdict::Block { reason: Some(reason.to_owned()), terminate: false },
        };
        HookReply::BeforeToolCall { index, verdict }
    }

    fn decide(&self, view: CallView<'_>) -> Decision {
        let outside = view.path().is_some_and(|path| self.is_outside(&path));
        let state = self.lock();
        let request = Request {
            mode: state.mode,
            contract: Contract::None,
            class: ToolClass::of(view.name, None),
            outside,
            granted: state.granted.contains(view.name),
        };
        request.decide()
    }

    /// Whether a path leaves the working directory, by its text or by the links on its way (PR-239).
    fn is_outside(&self, path: &str) -> bool {
        let path = real(Path::new(path));
        let roots = [&self.place.cwd, &self.outputs];
        !roots.into_iter().any(|root| path.starts_with(real(Path::new(root))))
    }

    fn ask(&self, id: &str, view: CallView<'_>, cancel: &CancelToken) -> Result<(), &'static str> {
        let params = |w: &mut Writer| {
            w.field_str("sessionId", &self.session);
            w.key("toolCall");
            w.begin_object();
            w.field_str("toolCallId", id);
            w.field_str("status", "pending");
            view.announce(w);
            w.key("content");
            w.begin_array();
            calls::differences(&view.planned(), w);
            w.end_array();
            w.end_object();
            w.key("options");
            w.begin_array();
            for (id, name, kind) in OPTIONS {
                w.begin_object();
                w.field_str("optionId", id);
                w.field_str("name", name);
                w.field_str("kind", kind);
                w.end_object();
            }
            w.end_array();
        };
        let answer = self.client.ask("session/request_permission", params, cancel).ok_or(UNANSWERED)?;
        match answer.get("outcome").and_then(|outcome| outcome.get("optionId")).and_then(Value::as_str) {
            Some("allow") => Ok(()),
            Some("always") => {
                self.lock().granted.insert(view.name.to_owned());
                Ok(())
            }
            Some(_) => Err(REJECTED),
            None => Err(UNANSWERED),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A path with the links of the part that exists followed.
fn real(path: &Path) -> PathBuf {
    let mut rest = PathBuf::new();
    for ancestor in path.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            return real.join(rest);
        }
        if let Some(name) = ancestor.file_name() {
            rest = Path::new(name).join(rest);
        }
    }
    path.to_owned()
}
