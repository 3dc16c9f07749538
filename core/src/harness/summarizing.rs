//! The making of a summary: its requests one after the other, retries, cancel, and the entry that is stored. The same
//! for compactions and for branches that are left (spec 10 §7.5–§7.9).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::desk::{Activity, Cx, Desk, RunEnd, Want};
use super::navigating::Leaving;
use crate::agent::{HookReply, TurnChange};
use crate::compaction::{self, NoPlan, Plan, Summarizer, SummaryRequest, check_reply, finish};
use crate::event::Event;
use crate::fault::Fault;
use crate::json::Value;
use crate::message::{AssistantMessage, Text, Usage};
use crate::now::Mono;
use crate::retry::{self, Decision};
use crate::session::EntryBody;
use crate::settings::CompactionSettings;

/// Why a context is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A person or program asked for it.
    Manual,
    /// The context is larger than window minus reserve.
    Threshold,
    /// The context did not fit, or an answer was cut.
    Overflow,
}

impl Reason {
    /// The name in events.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Threshold => "threshold",
            Self::Overflow => "overflow",
        }
    }
}

/// What a compaction did.
#[derive(Clone, Debug, PartialEq)]
pub struct Compacted {
    /// The summary, with its file lists.
    pub summary: Text,
    /// First entry that stays beside it.
    pub first_kept: String,
    /// Size of the context before, tokens.
    pub tokens_before: u64,
    /// Estimated size after, tokens.
    pub tokens_after: u64,
    /// What the requests cost.
    pub usage: Option<Usage>,
    /// File lists.
    pub details: Option<Value>,
}

/// What a summary is for, as events tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummarySource {
    /// A compaction.
    Compaction(Reason),
    /// A branch that is left.
    Branch,
}

/// What follows a compaction.
#[derive(Debug)]
pub(super) enum Then {
    /// The prompt that waited for it.
    Prompt,
    /// The next turn of the same run.
    NextTurn,
    /// Another try of the run that failed; nothing if the compaction fails.
    Continue,
    /// The end of the activity, or what is queued.
    Settle,
    /// Nothing: it was asked for.
    Nothing,
}

/// A summary that is being made.
#[derive(Debug)]
pub(super) struct Job {
    purpose: Purpose,
    requests: VecDeque<SummaryRequest>,
    replies: Vec<AssistantMessage>,
    stage: Stage,
    /// Retries of the current request.
    retries: u64,
    /// A retry was announced.
    was_retried: bool,
    is_cancelled: bool,
}

#[derive(Debug)]
pub(super) enum Purpose {
    Compaction { plan: Box<Plan>, reason: Reason, then: Then },
    Branch(Box<Leaving>),
}

#[derive(Debug)]
enum Stage {
    /// A request is under way.
    Asking,
    /// Before another try.
    Waiting { until: Mono },
    /// The entry is written; on a failure the leaf goes back.
    Saving { before: Option<String>, entry: String, failed: bool },
}

/// How a job ended without a summary.
#[derive(Debug)]
pub(super) enum Stopped {
    Cancelled,
    Failed(Fault),
}

const CANCELLED: &str = "The compaction was cancelled; the conversation stays as it was.";

impl Desk {
    /// Plans a compaction and asks for its first summary.
    ///
    /// # Errors
    /// When there is nothing to compact; nothing was said or done then.
    pub(super) fn compact(
        &mut self,
        reason: Reason,
        settings: CompactionSettings,
        then: Then,
        cx: &mut Cx<'_>,
    ) -> Result<(), NoPlan> {
        let (tree, context) = (self.session.tree(), self.session.context());
        if compaction::plan::has_open_calls(&context.messages) {
            return Err(NoPlan::NothingToSummarize);
        }
        let plan = compaction::plan(tree, context, settings, &mut self.estimator)?;
        // A manual one told of its beginning before it had a plan.
        if reason != Reason::Manual {
            cx.out.push(Want::Event(Event::CompactionStart(reason)));
        }
        let by = Summarizer {
            model: self.agent.model(),
            thinking: self.agent.thinking(),
            focus: self.focus.as_deref().filter(|_| reason == Reason::Manual),
        };
        let requests = compaction::requests(&plan, &by).into();
        if matches!(then, Then::Prompt | Then::Continue | Then::Settle) {
            self.activity = Activity::Summarizing;
        }
        self.begin_job(Purpose::Compaction { plan: Box::new(plan), reason, then }, requests, cx);
        Ok(())
    }

    /// A compaction that was asked for: told from its beginning, whatever becomes of it.
    pub(super) fn compact_now(&mut self, focus: Option<String>, cx: &mut Cx<'_>) {
        cx.out.push(Want::Event(Event::CompactionStart(Reason::Manual)));
        self.compacted = None;
        self.focus = focus;
        let begun = self.compaction_settings().and_then(|settings| {
            self.compact(Reason::Manual, settings, Then::Nothing, cx).map_err(|why| match why {
                NoPlan::AlreadyCompacted => Fault::new(
                    "already_compacted",
                    "Nothing was said since the last compaction; there is nothing to compact.",
                ),
                NoPlan::NothingToSummarize => Fault::new(
                    "nothing_to_compact",
                    "The conversation is too short to compact: all of it would be kept.",
                ),
            })
        });
        if let Err(fault) = begun {
            self.compaction_ended(Reason::Manual, false, Err(&Stopped::Failed(fault)), cx);
        }
    }

    /// Asks for the first summary; without requests the entry is written at once.
    pub(super) fn begin_job(
        &mut self,
        purpose: Purpose,
        requests: VecDeque<SummaryRequest>,
        cx: &mut Cx<'_>,
    ) {
        self.job = Some(Job {
            purpose,
            requests,
            replies: Vec::new(),
            stage: Stage::Asking,
            retries: 0,
            was_retried: false,
            is_cancelled: false,
        });
        self.ask(cx);
    }

    /// Sends the request at the front, or stores what all of them brought.
    fn ask(&mut self, cx: &mut Cx<'_>) {
        let Some(job) = &mut self.job else { return };
        job.stage = Stage::Asking;
        match job.requests.front() {
            Some(request) => cx.out.push(Want::Summarize(Box::new(request.clone()))),
            None => self.save(cx),
        }
    }

    /// Takes the reply to a summary request.
    pub fn on_summary(&mut self, reply: AssistantMessage, cx: &mut Cx<'_>) {
        let retries = self.retry_settings();
        let window = self.agent.model().context_window;
        let asked = self.take_asked_wait();
        let Some(job) = self.job.as_mut().filter(|job| matches!(job.stage, Stage::Asking)) else { return };
        if job.is_cancelled {
            return self.job_stopped(&Stopped::Cancelled, cx);
        }
        let Err(fault) = check_reply(&reply) else {
            job.replies.push(reply);
            job.requests.pop_front();
            job.retries = 0;
            return self.ask(cx);
        };
        if fault.code == "summary_cancelled" {
            return self.job_stopped(&Stopped::Cancelled, cx);
        }
        match retry::decide(&retries, job.retries, &reply, Some(window), asked) {
            Decision::Again { attempt, delay_ms } => {
                job.retries = attempt;
                job.was_retried = true;
                job.stage = Stage::Waiting { until: cx.now.mono.plus(delay_ms) };
                cx.out.push(Want::Event(Event::SummaryRetryScheduled {
                    attempt,
                    max_attempts: retries.max_retries,
                    delay_ms,
                    error: reply.error_message.unwrap_or_default(),
                }));
            }
            _ => self.job_stopped(&Stopped::Failed(fault), cx),
        }
    }

    /// Moves a job on that waits for time or for the file. `false` when there is nothing to do.
    pub(super) fn advance_job(&mut self, cx: &mut Cx<'_>) -> bool {
        match self.job.as_ref().map(|job| &job.stage) {
            Some(Stage::Waiting { until }) if *until <= cx.now.mono => {
                if let Some(source) = self.job.as_ref().map(Job::source) {
                    cx.out.push(Want::Event(Event::SummaryRetryStart(source)));
                }
                self.ask(cx);
                true
            }
            Some(Stage::Saving { .. }) => {
                self.saved(cx);
                true
            }
            _ => false,
        }
    }

    /// When a job wants to move on.
    pub(super) fn job_deadline(&self) -> Option<Mono> {
        match self.job.as_ref()?.stage {
            Stage::Waiting { until } => Some(until),
            _ => None,
        }
    }

    /// Whether a job waits until everything is written.
    #[must_use]
    pub(super) fn is_saving(&self) -> bool {
        self.job.as_ref().is_some_and(|job| matches!(job.stage, Stage::Saving { .. }))
    }

    /// Gives the summary up. What is being written already is written.
    pub(super) fn cancel_job(&mut self, cx: &mut Cx<'_>) {
        let Some(job) = &mut self.job else { return };
        match job.stage {
            // The request answers once more.
            Stage::Asking => {
                job.is_cancelled = true;
                cx.out.push(Want::AbortSummary);
            }
            Stage::Waiting { .. } => self.job_stopped(&Stopped::Cancelled, cx),
            Stage::Saving { .. } => {}
        }
    }

    // ----- storing -----

    fn save(&mut self, cx: &mut Cx<'_>) {
        let before = self.session.leaf_id().map(String::from);
        let Some(job) = &mut self.job else { return };
        let stored = match &job.purpose {
            Purpose::Compaction { plan, .. } => finish(plan, &job.replies, cx.now.wall)
                .and_then(|body| Ok(alloc::vec![self.session.append(body, cx.now.wall, cx.rng)?])),
            Purpose::Branch(leaving) => {
                leaving.go(&mut self.session, job.replies.first(), cx.now.wall, cx.rng)
            }
        };
        match stored {
            Ok(plans) => {
                let entry = self.session.leaf_id().map(String::from).unwrap_or_default();
                job.stage = Stage::Saving { before, entry, failed: false };
                cx.out.extend(plans.into_iter().filter_map(|plan| plan.op).map(Want::Append));
            }
            Err(fault) => self.job_stopped(&Stopped::Failed(fault), cx),
        }
    }

    /// The entry of a job could not be written.
    pub(super) fn job_not_written(&mut self) {
        if let Some(Job { stage: Stage::Saving { failed, .. }, .. }) = &mut self.job {
            *failed = true;
        }
    }

    /// Everything is written, or was not: only now the entry counts.
    fn saved(&mut self, cx: &mut Cx<'_>) {
        let Some(Job { stage: Stage::Saving { before, entry, failed }, .. }) = &self.job else { return };
        if *failed && self.session.leaf_id() == Some(entry) {
            let before = before.clone();
            // Its line may still get into the file later, as a branch that nobody is on.
            let _ = self.session.branch(before.as_deref());
            let why = "The summary could not be stored; the conversation stays as it was.";
            return self.job_stopped(&Stopped::Failed(Fault::new("summary_not_stored", why)), cx);
        }
        let entry = entry.clone();
        let Some(job) = self.job.take() else { return };
        self.tell_retries_are_over(&job, cx);
        self.reload_context();
        match job.purpose {
            Purpose::Compaction { reason, then, .. } => {
                let will_retry = matches!(then, Then::Continue);
                let result = self.compacted_facts(&entry);
                self.compaction_ended(reason, will_retry, result.as_ref().ok_or(&Stopped::Cancelled), cx);
                self.then(then, true, cx);
            }
            Purpose::Branch(leaving) => self.branch_left(&leaving, entry, cx),
        }
    }

    /// The facts of a compaction that was made; other entries may stand below it by now.
    fn compacted_facts(&mut self, id: &str) -> Option<Arc<Compacted>> {
        let Some(EntryBody::Compaction(entry)) = self.session.body(id) else { return None };
        Some(Arc::new(Compacted {
            summary: entry.summary.clone(),
            first_kept: entry.first_kept.clone().unwrap_or_else(|| id.into()),
            tokens_before: entry.tokens_before,
            tokens_after: compaction::tokens_after(self.session.context(), &mut self.estimator),
            usage: entry.usage,
            details: entry.details.clone(),
        }))
    }

    // ----- the end of a job -----

    fn job_stopped(&mut self, why: &Stopped, cx: &mut Cx<'_>) {
        let Some(job) = self.job.take() else { return };
        self.tell_retries_are_over(&job, cx);
        match job.purpose {
            Purpose::Compaction { reason, then, .. } => {
                self.compaction_ended(reason, false, Err(why), cx);
                self.then(then, false, cx);
            }
            Purpose::Branch(_) => self.branch_kept(why),
        }
    }

    fn tell_retries_are_over(&self, job: &Job, cx: &mut Cx<'_>) {
        if job.was_retried {
            cx.out.push(Want::Event(Event::SummaryRetryFinished));
        }
    }

    fn compaction_ended(
        &mut self,
        reason: Reason,
        will_retry: bool,
        outcome: Result<&Arc<Compacted>, &Stopped>,
        cx: &mut Cx<'_>,
    ) {
        let (aborted, fault) = match outcome {
            Ok(_) => (false, None),
            Err(Stopped::Cancelled) => (true, Some(Fault::new("cancelled", CANCELLED))),
            Err(Stopped::Failed(fault)) => (false, Some(fault.clone())),
        };
        let error = fault.as_ref().filter(|_| !aborted).map(|fault| fault.message.clone());
        let result = outcome.ok().cloned();
        if reason == Reason::Manual {
            self.focus = None;
            self.compacted = Some(match (&result, fault) {
                (Some(result), _) => Ok(Arc::clone(result)),
                (None, fault) => Err(fault.unwrap_or_else(|| Fault::new("cancelled", CANCELLED))),
            });
        }
        cx.out.push(Want::Event(Event::CompactionEnd { reason, result, aborted, will_retry, error }));
    }

    fn then(&mut self, then: Then, compacted: bool, cx: &mut Cx<'_>) {
        let end = RunEnd { reviewed: true, aborted: self.abort_requested, ..RunEnd::default() };
        match then {
            Then::Nothing => {}
            Then::Prompt => self.start_prompt(cx),
            Then::NextTurn => {
                let context = compacted.then(|| self.session.context().messages.clone());
                let change = TurnChange { context, ..TurnChange::default() };
                self.agent.on_hook(HookReply::PrepareNextTurn(change), cx.now);
            }
            Then::Continue if compacted && !self.abort_requested => {
                let continued = self.agent.continue_run(cx.now).is_ok();
                self.activity = if continued { Activity::Running } else { Activity::Ended(end) };
            }
            // The question that did not fit must not be asked again by itself.
            Then::Continue => self.activity = Activity::Ended(RunEnd { stays: true, ..end }),
            Then::Settle => self.activity = Activity::Ended(end),
        }
    }
}

impl Job {
    const fn source(&self) -> SummarySource {
        match &self.purpose {
            Purpose::Compaction { reason, .. } => SummarySource::Compaction(*reason),
            Purpose::Branch(_) => SummarySource::Branch,
        }
    }

    /// Whether this was asked for beside any run: prompts are refused meanwhile.
    pub(super) const fn is_manual(&self) -> bool {
        match &self.purpose {
            Purpose::Compaction { reason, .. } => matches!(reason, Reason::Manual),
            Purpose::Branch(_) => true,
        }
    }

    /// Whether this compacts.
    pub(super) const fn is_compaction(&self) -> bool {
        matches!(self.purpose, Purpose::Compaction { .. })
    }
}
