//! Asks the client whether a call may run (`--permission`; spec 60 §3.7, spec 20 §L.1).

use std::time::Duration;

use tau_core::agent::{HookCall, HookReply};
use tau_core::json::to_string;
use tau_io_std::sys::CancelToken;

use super::records::Records;
use crate::permission::{Answer, Rules, verdict};

/// A question is answered within this time, or not at all (PR-235).
const LIMIT: Duration = Duration::from_secs(120);

/// Longest arguments in a question, characters (PR-236).
const PREVIEW: usize = 2000;

const OPTIONS: [(&str, Answer); 3] =
    [("Allow", Answer::Once), ("Allow for this session", Answer::Always), ("Reject", Answer::Reject)];

/// Answers the hook before a call.
pub(super) fn answer(rules: &Rules, records: &Records, hook: HookCall, cancel: &CancelToken) -> HookReply {
    let HookCall::BeforeToolCall { index, call, args } = hook else { return hook.neutral() };
    let ask = || {
        let arguments: String = to_string(&args).chars().take(PREVIEW).collect();
        let title = format!("Run {} {arguments}?", call.name);
        let chosen = records.select(&title, &OPTIONS.map(|(text, _)| text), LIMIT, cancel)?;
        OPTIONS.into_iter().find(|(text, _)| *text == chosen).map(|(_, answer)| answer)
    };
    HookReply::BeforeToolCall { index, verdict: verdict(rules.settle(&call.name, &args, ask)) }
}
