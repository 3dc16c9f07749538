//! Watches what follows runs by itself: retries and compactions stay inside their limits, and what begins ends.

use tau_core::event::Event;
use tau_core::harness::Reason;
use tau_core::message::{AssistantMessage, Message, StopReason};

use super::coverage::Coverage;

pub(crate) struct Recovery {
    failures: Vec<&'static str>,
    max_retries: u64,
    /// Retries since the last good reply.
    retries: u64,
    /// A retry was announced and its end was not.
    is_retrying: bool,
    /// The last run said that it will be tried again.
    promised: bool,
    /// The next event must tell the end of the retries, and whether well.
    owed: Option<bool>,
    /// Recoveries from overflow since a person spoke or a good reply came.
    recoveries: u64,
    compacting: Option<Reason>,
    /// A good reply came since the last compaction.
    has_progress: bool,
    is_summary_retried: bool,
}

impl Recovery {
    pub(crate) fn new(max_retries: u64) -> Self {
        Self {
            failures: Vec::new(),
            max_retries,
            retries: 0,
            is_retrying: false,
            promised: false,
            owed: None,
            recoveries: 0,
            compacting: None,
            has_progress: true,
            is_summary_retried: false,
        }
    }

    pub(crate) fn take_failures(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.failures)
    }

    fn expect(&mut self, holds: bool, text: &'static str) {
        if !holds {
            self.failures.push(text);
        }
    }

    pub(crate) fn event(&mut self, event: &Event, seen: &mut Coverage) {
        if let Some(well) = self.owed.take() {
            let told = matches!(event, Event::AutoRetryEnd { success, .. } if *success == well);
            // A line that could not be written is told in between.
            match event {
                Event::Error(_) => self.owed = Some(well),
                _ => self.expect(told, "the end of the retries was not told with the reply"),
            }
        }
        match event {
            Event::MessageStart(message) if matches!(**message, Message::User(_)) => self.recoveries = 0,
            Event::MessageEnd(message) => {
                if let Some(reply) = message.as_assistant() {
                    self.reply(reply);
                }
            }
            Event::AgentStart => {
                self.expect(self.compacting.is_none(), "a run beside a compaction");
                self.expect(!self.promised, "a run although the one before was to be tried again");
            }
            Event::AgentEnd { will_retry, .. } => self.promised = *will_retry,
            Event::AgentSettled { .. } => {
                self.expect(!self.is_retrying, "settled while retries are not over");
                self.expect(self.compacting.is_none(), "settled while a context is compacted");
                self.promised = false;
            }
            Event::AutoRetryStart { attempt, max_attempts, .. } => {
                self.expect(self.promised, "a retry that agent_end did not tell of");
                self.retries += 1;
                self.expect(*attempt == self.retries, "retries are not counted one by one");
                let allowed = *max_attempts == self.max_retries && *attempt <= self.max_retries;
                self.expect(allowed, "more retries than are allowed");
                (self.is_retrying, self.promised) = (true, false);
                seen.saw("retries");
            }
            Event::AutoRetryEnd { success, attempt, final_error } => {
                self.expect(self.is_retrying, "an end of retries that did not begin");
                self.expect(*attempt == self.retries, "another number at the end of the retries");
                self.expect(final_error.is_none() == *success, "a reason of a success, or none of a failure");
                (self.is_retrying, self.retries) = (false, 0);
                seen.saw_if("good retries", *success);
            }
            _ => self.compaction(event, seen),
        }
    }

    fn reply(&mut self, reply: &AssistantMessage) {
        let failed = reply.stop_reason == StopReason::Error;
        if self.is_retrying && !failed {
            self.owed = Some(reply.stop_reason != StopReason::Aborted);
        }
        // Without text or calls a reply is none; a cut one with calls goes on.
        let is_cut = reply.stop_reason == StopReason::Length && reply.tool_calls().next().is_none();
        if !reply.stop_reason.is_failure() && !is_cut {
            (self.recoveries, self.has_progress) = (0, true);
        }
    }

    fn compaction(&mut self, event: &Event, seen: &mut Coverage) {
        match event {
            Event::CompactionStart(reason) => {
                self.expect(self.compacting.is_none(), "a compaction inside another");
                let is_due = self.has_progress || *reason == Reason::Manual;
                self.expect(is_due, "a compaction right after another");
                self.compacting = Some(*reason);
            }
            Event::CompactionEnd { reason, result, aborted, will_retry, error } => {
                match self.compacting.take() {
                    Some(begun) => self.expect(begun == *reason, "another reason at the end of a compaction"),
                    None => {
                        let is_notice =
                            *reason == Reason::Overflow && result.is_none() && !aborted && !will_retry;
                        self.expect(is_notice, "the end of a compaction that did not begin");
                        seen.saw("given up");
                    }
                }
                self.expect(!will_retry || result.is_some(), "a failed compaction promises another try");
                self.expect(error.is_some() == (result.is_none() && !aborted), "a wrong reason of a failure");
                self.expect(!self.is_summary_retried, "retries of a summary did not end with it");
                if result.is_some() {
                    self.has_progress = false;
                    seen.saw("compactions");
                } else if *aborted {
                    seen.saw("cancelled compactions");
                } else {
                    seen.saw("failed compactions");
                }
                if *will_retry {
                    self.recoveries += 1;
                    self.expect(self.recoveries == 1, "a second recovery without a good reply");
                    seen.saw("recoveries");
                }
            }
            Event::SummaryRetryScheduled { attempt, max_attempts, .. } => {
                let allowed = *max_attempts == self.max_retries && *attempt <= self.max_retries;
                self.expect(allowed, "more retries of a summary than are allowed");
                self.is_summary_retried = true;
                seen.saw("summary retries");
            }
            Event::SummaryRetryStart(_) => {
                self.expect(self.is_summary_retried, "another try of a summary that was not told of");
            }
            Event::SummaryRetryFinished => {
                self.expect(self.is_summary_retried, "an end of retries of a summary that did not begin");
                self.is_summary_retried = false;
            }
            _ => {}
        }
    }

    /// The conversation goes on from another entry: its compactions and replies are others.
    pub(crate) const fn moved(&mut self) {
        self.has_progress = true;
    }

    /// Nothing goes on any more.
    pub(crate) fn end(&mut self) {
        self.expect(!self.is_retrying && self.owed.is_none(), "retries did not end");
        self.expect(self.compacting.is_none(), "a compaction did not end");
        self.expect(!self.is_summary_retried, "retries of a summary did not end");
    }
}
