//! What follows a run by itself: another try after a transient failure, recovery from a context that did not fit, and
//! the decision to compact (spec 10 §5.3, §6, §7.1).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;

use super::desk::{Activity, Closing, Cx, Desk, RunEnd, Want};
use super::summarizing::{Reason, Then};
use crate::compaction::measure::{self, is_stale};
use crate::compaction::should_compact;
use crate::event::Event;
use crate::fault::Fault;
use crate::json::{Value, Writer};
use crate::message::{AssistantMessage, Message, StopReason};
use crate::overflow::{is_overflow, is_recoverable_length};
use crate::retry::{self, Decision};
use crate::session::entry::EntryLine;
use crate::session::tree::Slot;
use crate::session::{EntryBody, EntryKind};
use crate::settings::CompactionSettings;

/// Counters and flags of recovery.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    /// Retries since the last good reply.
    retries: u64,
    /// What the last failure leads to; decided when its run ends.
    verdict: Option<Decision>,
    /// A recovery from overflow was tried since the last user message or good reply.
    attempted: bool,
    /// The wait the service asked for with the last failure, ms.
    asked_ms: Option<f64>,
}

/// When the size of the context is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    /// Before a prompt becomes a message.
    BeforePrompt,
    /// After a run.
    AfterRun,
}

/// What a look at the last reply says.
enum Need {
    Nothing,
    /// Compact, and go on as if nothing had been.
    Compact(Reason),
    /// Drop this reply, compact, try once more.
    Recover(Slot),
    /// It happened again: a recovery does not help.
    GiveUp(&'static str),
}

const OVERFLOW_AGAIN: &str = "The context does not fit the model even after it was compacted. Start a new session, \
     shorten the last message, or choose a model with a larger context window.";
const CUT_AGAIN: &str = "The answer was cut short again after the context was compacted. Shorten the last message, or \
     choose a model with a larger context window or output limit.";
const RETRY_CANCELLED: &str = "The retry was cancelled.";

impl Desk {
    /// Notes the wait that a service asked for when it refused the last request, ms.
    pub const fn note_asked_wait(&mut self, asked_ms: Option<f64>) {
        self.recovery.asked_ms = asked_ms;
    }

    /// The wait noted last; it counts once.
    pub(super) const fn take_asked_wait(&mut self) -> Option<f64> {
        self.recovery.asked_ms.take()
    }

    // ----- bookkeeping while a run goes on -----

    /// A person spoke: a new chance for recovery.
    pub(super) const fn user_spoke(&mut self) {
        self.recovery.attempted = false;
    }

    /// A reply is complete and stored.
    pub(super) fn reply_ended(&mut self, reply: &AssistantMessage, cx: &mut Cx<'_>) {
        if !matches!(reply.stop_reason, StopReason::Error | StopReason::Length) {
            self.recovery.attempted = false;
        }
        if reply.stop_reason == StopReason::Error || self.recovery.retries == 0 {
            return;
        }
        let attempt = core::mem::take(&mut self.recovery.retries);
        // A reply that the user aborted is no success (D16).
        let success = reply.stop_reason != StopReason::Aborted;
        let final_error = (!success).then(|| RETRY_CANCELLED.to_string());
        cx.out.push(Want::Event(Event::AutoRetryEnd { success, attempt, final_error }));
    }

    /// Whether the run that ends with this reply will be tried again; the decision is kept for its end.
    pub(super) fn will_retry(&mut self, reply: Option<&AssistantMessage>) -> bool {
        let asked = self.recovery.asked_ms.take();
        self.recovery.verdict = None;
        let Some(reply) = reply.filter(|reply| reply.stop_reason == StopReason::Error) else { return false };
        if self.agent.is_aborted() || self.abort_requested || self.closing != Closing::No {
            return false;
        }
        let window = self.window_for(reply);
        let verdict = retry::decide(&self.retry_settings(), self.recovery.retries, reply, window, asked);
        self.recovery.verdict = Some(verdict);
        matches!(verdict, Decision::Again { .. })
    }

    // ----- after a run -----

    /// Starts what follows a run by itself. `false` when nothing does.
    pub(super) fn review(&mut self, cx: &mut Cx<'_>) -> bool {
        let Some((slot, message)) = self.last_reply() else { return false };
        let Some(reply) = message.as_assistant() else { return false };
        match self.recovery.verdict.take() {
            Some(Decision::Again { attempt, delay_ms }) => {
                self.start_retry(slot, reply, attempt, delay_ms, cx);
                return true;
            }
            Some(Decision::TooLong(limit)) => {
                let said = limit.message(reply.error_message.as_deref().unwrap_or_default());
                self.end_retries(said.clone(), cx);
                cx.out.push(Want::Event(Event::Error(Fault::new("retry_too_long", said))));
            }
            _ if reply.stop_reason == StopReason::Error => {
                self.end_retries(reply.error_message.clone().unwrap_or_default(), cx);
            }
            _ => {}
        }
        self.keep_inside(Point::AfterRun, Then::Settle, cx)
    }

    fn start_retry(
        &mut self,
        slot: Slot,
        reply: &AssistantMessage,
        attempt: u64,
        delay_ms: u64,
        cx: &mut Cx<'_>,
    ) {
        self.recovery.retries = attempt;
        cx.out.push(Want::Event(Event::AutoRetryStart {
            attempt,
            max_attempts: self.retry_settings().max_retries,
            delay_ms,
            error: reply.error_message.clone().unwrap_or_default(),
        }));
        self.omit(slot, cx);
        self.activity = Activity::Backoff { until: cx.now.mono.plus(delay_ms) };
    }

    /// The retries since the last good reply end in failure.
    fn end_retries(&mut self, final_error: String, cx: &mut Cx<'_>) {
        let attempt = core::mem::take(&mut self.recovery.retries);
        if attempt > 0 {
            let final_error = Some(final_error);
            cx.out.push(Want::Event(Event::AutoRetryEnd { success: false, attempt, final_error }));
        }
    }

    /// Nothing may follow a run, also no retry that was announced with its end.
    pub(super) fn drop_retries(&mut self, cx: &mut Cx<'_>) {
        self.recovery.verdict = None;
        self.end_retries(RETRY_CANCELLED.to_string(), cx);
    }

    /// The wait before a retry is over.
    pub(super) fn retry_now(&mut self, cx: &mut Cx<'_>) {
        if self.agent.continue_run(cx.now).is_ok() {
            self.activity = Activity::Running;
        } else {
            self.cancel_retry(cx);
        }
    }

    /// Ends the wait before a retry; nothing follows. Nothing happens when there is none.
    pub(super) fn cancel_retry(&mut self, cx: &mut Cx<'_>) {
        if matches!(self.activity, Activity::Backoff { .. }) {
            self.end_retries(RETRY_CANCELLED.to_string(), cx);
            self.activity = Activity::Ended(RunEnd { reviewed: true, stays: true, ..RunEnd::default() });
        }
    }

    // ----- the size of the context -----

    /// Looks at the last reply, and begins a compaction if the context needs one. `false` when nothing was begun; then
    /// nothing of `then` was done either.
    pub(super) fn keep_inside(&mut self, point: Point, then: Then, cx: &mut Cx<'_>) -> bool {
        let settings = match self.compaction_settings() {
            Ok(settings) if settings.enabled => settings,
            Ok(_) => return false,
            Err(fault) => {
                cx.out.push(Want::Event(Event::Error(fault)));
                return false;
            }
        };
        match self.need(point, &settings) {
            Need::Nothing => false,
            Need::Compact(reason) => self.compact(reason, settings, then, cx).is_ok(),
            Need::GiveUp(why) => {
                cx.out.push(Want::Event(Event::CompactionEnd {
                    reason: Reason::Overflow,
                    result: None,
                    aborted: false,
                    will_retry: false,
                    error: Some(why.to_string()),
                }));
                false
            }
            Need::Recover(slot) => {
                self.recovery.attempted = true;
                self.omit(slot, cx);
                let then = if point == Point::AfterRun { Then::Continue } else { then };
                match self.compact(Reason::Overflow, settings, then, cx) {
                    Ok(()) => true,
                    Err(_) if point == Point::BeforePrompt => false,
                    // Without the reply the context ends in a question that must not be asked again by itself.
                    Err(_) => {
                        let why = "The context does not fit the model, and there is nothing to compact.";
                        cx.out.push(Want::Event(Event::Error(Fault::new("context_overflow", why))));
                        self.activity =
                            Activity::Ended(RunEnd { reviewed: true, stays: true, ..RunEnd::default() });
                        true
                    }
                }
            }
        }
    }

    /// The decision about the last reply, in the order of spec 10 §7.1.2.
    fn need(&mut self, point: Point, settings: &CompactionSettings) -> Need {
        let Some((slot, message)) = self.last_reply() else { return Need::Nothing };
        let Some(reply) = message.as_assistant() else { return Need::Nothing };
        if point == Point::AfterRun && reply.stop_reason == StopReason::Aborted {
            return Need::Nothing;
        }
        let tree = self.session.tree();
        if is_stale(tree, slot) {
            return Need::Nothing;
        }
        let model = self.agent.model();
        // A failure after a compaction is no progress: compacting again would change nothing (bug 63).
        let may_compact = measure::may_compact_again(tree, slot, model.max_tokens);
        if let Some(window) = self.window_for(reply) {
            // What usage says of a context that was edited since is no news.
            let is_current = reply.stop_reason == StopReason::Error || !measure::is_edited_since(tree, slot);
            let overflow = is_current && is_overflow(reply, Some(window));
            let is_cut = is_recoverable_length(reply, model.max_tokens);
            if overflow && reply.stop_reason == StopReason::Stop {
                return Need::Compact(Reason::Overflow);
            }
            if overflow || is_cut {
                if self.recovery.attempted || !may_compact {
                    return Need::GiveUp(if overflow { OVERFLOW_AGAIN } else { CUT_AGAIN });
                }
                return Need::Recover(slot);
            }
        }
        if !may_compact {
            return Need::Nothing;
        }
        let window = model.context_window;
        let tokens = measure::after_reply(tree, self.session.context(), slot, &mut self.estimator);
        match tokens {
            Some(tokens) if window > 0 && should_compact(tokens, window, settings) => {
                Need::Compact(Reason::Threshold)
            }
            _ => Need::Nothing,
        }
    }

    /// Between two turns: compacts when the context that the next request would carry is too large.
    pub(super) fn between_turns(&mut self, cx: &mut Cx<'_>) -> bool {
        let window = self.agent.model().context_window;
        let settings = match self.compaction_settings() {
            Ok(settings) if settings.enabled && window > 0 => settings,
            // A wrong setting was told when the run began or will be at its end.
            _ => return false,
        };
        let max_tokens = self.agent.model().max_tokens;
        let may_compact = |(slot, _)| measure::may_compact_again(self.session.tree(), slot, max_tokens);
        if self.agent.is_aborted() || !self.last_reply().is_some_and(may_compact) {
            return false;
        }
        let (tree, context) = (self.session.tree(), self.session.context());
        let tokens = measure::projected(tree, context, &mut self.estimator).tokens;
        should_compact(tokens, window, &settings)
            && self.compact(Reason::Threshold, settings, Then::NextTurn, cx).is_ok()
    }

    /// `compaction.*` for the current model, fitted to its window: a reserve as large as the window would call for a
    /// compaction at every turn, and a tail larger than what may be used would never let one succeed (bug 63).
    ///
    /// # Errors
    /// `wrong_setting`, with its name.
    pub(super) fn compaction_settings(&self) -> Result<CompactionSettings, Fault> {
        let model = self.agent.model();
        let settings = self.settings.compaction(&model.provider, &model.id);
        let mut settings = settings.map_err(|why| {
            Fault::new(
                "wrong_setting",
                format!("{why}; nothing is compacted until settings.json is corrected"),
            )
        })?;
        settings.enabled = self.auto_compaction();
        let window = model.context_window;
        if window > 0 {
            if settings.reserve_tokens >= window {
                settings.reserve_tokens = window / 2;
            }
            let room = window.saturating_sub(settings.reserve_tokens);
            if settings.keep_recent_tokens >= room {
                settings.keep_recent_tokens = room / 2;
            }
        }
        Ok(settings)
    }

    /// The window of the model that made a reply, if that is the current one.
    fn window_for(&self, reply: &AssistantMessage) -> Option<u64> {
        let model = self.agent.model();
        (reply.provider == model.provider && reply.model == model.id).then_some(model.context_window)
    }

    // ----- entries -----

    /// The last reply of the context and its entry.
    pub(super) fn last_reply(&self) -> Option<(Slot, Arc<Message>)> {
        let context = self.session.context();
        let mut end = context.messages.len();
        for entry in context.entries.iter().rev() {
            let is_reply =
                self.session.tree().node(entry.slot).is_some_and(|node| node.kind() == EntryKind::Assistant);
            if is_reply && entry.messages > 0 {
                return Some((entry.slot, Arc::clone(context.messages.get(end.checked_sub(1)?)?)));
            }
            end = end.checked_sub(usize::from(entry.messages))?;
        }
        None
    }

    /// Takes a reply, and the results that came after it, out of the context (D11); they stay in the file.
    fn omit(&mut self, slot: Slot, cx: &mut Cx<'_>) {
        let tree = self.session.tree();
        let is_after = |entry: &&crate::session::context::Selected| entry.slot != slot;
        let after = self.session.context().entries.iter().rev().take_while(is_after);
        let is_result =
            |slot: &Slot| tree.node(*slot).is_some_and(|node| node.kind() == EntryKind::ToolResult);
        let mut slots: alloc::vec::Vec<Slot> = after.map(|entry| entry.slot).filter(is_result).collect();
        slots.push(slot);
        let ids = slots.iter().rev().map(|slot| String::from(tree.id(*slot)));
        for id in ids.collect::<alloc::vec::Vec<_>>() {
            self.announce(EntryBody::omit(&id), cx);
        }
        self.reload_context();
    }

    /// Appends an entry that no message event tells of.
    pub(super) fn announce(&mut self, body: EntryBody, cx: &mut Cx<'_>) {
        self.record(body, cx);
        if let Some(entry) = self.leaf_entry() {
            cx.out.push(Want::Event(Event::EntryAppended(Arc::new(entry))));
        }
    }

    fn leaf_entry(&self) -> Option<Value> {
        let tree = self.session.tree();
        let slot = tree.leaf()?;
        let node = tree.node(slot)?;
        let mut w = Writer::new();
        let line = EntryLine {
            id: tree.id(slot),
            parent: tree.parent_id(slot),
            time: node.time().unwrap_or(crate::now::Wall(0)),
            body: node.body()?,
        };
        line.write(&mut w);
        serde_json::from_str(w.as_str()).ok()
    }

    /// The run goes on with what the session says.
    pub(super) fn reload_context(&mut self) {
        self.agent.set_context(self.session.context().messages.clone());
    }
}
