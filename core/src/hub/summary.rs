//! The request for a summary: an exchange of its own, so that encoder and memory of the conversation stay as they are.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Hub;
use super::ops::Owner;
use super::request::{Next, Progress, Wire};
use crate::compaction::SummaryRequest;
use crate::entropy::Entropy;
use crate::harness::Cx;
use crate::ids::OpId;
use crate::input::Reply;
use crate::message::Message;
use crate::now::{Mono, Now};
use crate::op::Lane;

/// One request for a summary.
#[derive(Debug)]
pub(super) struct Summary {
    wire: Wire,
    messages: Vec<Arc<Message>>,
}

impl Summary {
    /// See [`Wire::deadline`].
    pub(super) fn deadline(&self) -> Option<Mono> {
        self.wire.deadline()
    }

    /// See [`Wire::overdue`].
    pub(super) fn overdue(&mut self, now: Now, rng: &mut Entropy) -> Option<OpId> {
        self.wire.overdue(now, rng)
    }
}

impl Hub {
    pub(super) fn summarize(&mut self, request: &SummaryRequest) {
        let id = self.summary_ids.next(self.now.wall, &mut self.rng);
        let options = request.options(&self.options, id);
        let messages = request.messages(self.now.wall.0);
        let mut wire = Wire::default();
        let next = wire.begin_with(self.desk.agent().model(), options, &messages, self.now);
        self.summary = Some(Summary { wire, messages });
        self.start_summary_op(next);
    }

    pub(super) fn abort_summary(&mut self) {
        if let Some(op) = self.summary.as_mut().and_then(|summary| summary.wire.abort(self.now)) {
            self.ops.cancel(op);
        }
    }

    pub(super) fn summary_reply(&mut self, op: OpId, reply: Reply) {
        let Some(summary) = &mut self.summary else { return };
        let next = summary.wire.on_reply(op, reply, &summary.messages, self.now, &mut self.rng);
        self.start_summary_op(next);
    }

    /// Sends a request again whose wait is over.
    pub(super) fn summary_resume(&mut self) {
        let Some(summary) = &mut self.summary else { return };
        let next = summary.wire.resume(&summary.messages, self.now);
        self.start_summary_op(next);
    }

    fn start_summary_op(&mut self, next: Next) {
        if let (Next::Start(op), Some(summary)) = (next, &mut self.summary) {
            let id = self.ops.start(Owner::Summary, Lane::Free, op);
            summary.wire.sent(id);
        }
    }

    /// Nobody watches a summary grow; the complete reply goes to the Desk.
    pub(super) fn summary_stream(&mut self) -> bool {
        let Some(summary) = &mut self.summary else { return false };
        match summary.wire.progress(self.now) {
            Progress::Nothing => false,
            Progress::Event(_) => true,
            Progress::Reply(message) => {
                self.desk.note_asked_wait(summary.wire.asked_ms());
                self.summary = None;
                let mut cx = Cx { now: self.now, rng: &mut self.rng, out: &mut self.wants };
                self.desk.on_summary(*message, &mut cx);
                self.carry_out();
                true
            }
        }
    }
}
