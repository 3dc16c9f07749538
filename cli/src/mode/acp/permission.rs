//! Asks the person at the editor whether a call may run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tau_core::agent::{HookCall, HookReply};
use tau_core::json::Writer;
use tau_io_std::sys::CancelToken;

use super::calls::{self, CallView};
use super::client::Client;
use crate::permission::{Answer, Rules, verdict};
use crate::surroundings::Surroundings;

/// What a person can answer: id, what it says, its kind in the protocol.
const OPTIONS: [(&str, &str, &str, Answer); 4] = [
    ("allow", "Allow", "allow_once", Answer::Once),
    ("always", "Allow for this session", "allow_always", Answer::Always),
    ("reject", "Reject", "reject_once", Answer::Reject),
    ("never", "Reject for this session", "reject_always", Answer::Never),
];

/// The rules of one session, and what the calls of the moment began with.
pub(super) struct Gate {
    session: String,
    client: Arc<Client>,
    rules: Rules,
    /// Files as they were before the calls that change them.
    before: Mutex<HashMap<String, Option<String>>>,
}

impl Gate {
    pub(super) fn new(session: String, client: Arc<Client>, rules: Rules) -> Self {
        Self { session, client, rules, before: Mutex::default() }
    }

    /// The rules.
    pub(super) const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The file that a call was to change, as it was then.
    pub(super) fn take_before(&self, call_id: &str) -> Option<String> {
        self.lock().remove(call_id).flatten()
    }

    /// Where the session runs.
    pub(super) const fn place(&self) -> &Surroundings {
        self.rules.place()
    }

    /// Answers the hook before a call.
    pub(super) fn answer(&self, hook: HookCall, cancel: &CancelToken) -> HookReply {
        let HookCall::BeforeToolCall { index, call, args } = hook else { return hook.neutral() };
        let view = CallView { name: &call.name, args: &args, place: self.place() };
        let outcome = self.rules.settle(&call.name, &args, || self.ask(&call.id, view, cancel));
        if outcome.is_ok() {
            if view.changes_file() {
                let before = view.path().and_then(|path| calls::whole(&path));
                self.lock().insert(call.id.clone(), before);
            }
            self.client.update(&self.session, "tool_call_update", |w| {
                w.field_str("toolCallId", &call.id);
                w.field_str("status", "in_progress");
            });
            self.client.flush();
        }
        HookReply::BeforeToolCall { index, verdict: verdict(outcome) }
    }

    fn ask(&self, id: &str, view: CallView<'_>, cancel: &CancelToken) -> Option<Answer> {
        let planned = view.planned();
        let params = |w: &mut Writer| {
            w.field_str("sessionId", &self.session);
            w.key("toolCall");
            w.begin_object();
            w.field_str("toolCallId", id);
            w.field_str("status", "pending");
            view.announce(w);
            w.key("content");
            w.begin_array();
            calls::differences(&planned, w);
            w.end_array();
            w.end_object();
            w.key("options");
            w.begin_array();
            for (id, name, kind, _) in OPTIONS {
                w.begin_object();
                w.field_str("optionId", id);
                w.field_str("name", name);
                w.field_str("kind", kind);
                w.end_object();
            }
            w.end_array();
        };
        let answer = self.client.ask("session/request_permission", params, cancel)?;
        let said = |name| answer.get("outcome")?.get(name)?.as_str();
        // Everything else is a question that nobody answered.
        let chosen = said("optionId").filter(|_| said("outcome") == Some("selected"))?;
        OPTIONS.iter().find(|(id, ..)| *id == chosen).map(|(.., answer)| *answer)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Option<String>>> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
