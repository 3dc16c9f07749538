//! Print mode: only the last answer reaches stdout (spec 60 §2.3).

use std::sync::Arc;

use tau_core::event::Event;
use tau_core::harness::Reason;
use tau_core::message::{AssistantMessage, Block, Message, StopReason};

use super::Surface;
use super::totals::Totals;
use crate::out::{Out, note};
use crate::visible::harmless;

/// Keeps the last message and prints it at the end.
#[derive(Debug, Default)]
pub struct Print {
    out: Out,
    to_terminal: bool,
    last: Option<Arc<Message>>,
    failed: bool,
    totals: Option<Totals>,
}

impl Print {
    /// `to_terminal`: stdout is a terminal, so control sequences must not reach it (D71).
    #[must_use]
    pub fn new(to_terminal: bool, totals: Option<Totals>) -> Self {
        Self { to_terminal, totals, ..Self::default() }
    }

    fn answer(&mut self, reply: &AssistantMessage) -> bool {
        if reply.stop_reason.is_failure() {
            note(&failure_text(reply));
            return false;
        }
        for text in reply.content.iter().filter_map(Block::as_text) {
            let text = if self.to_terminal { harmless(text) } else { text.into() };
            self.out.buffer().push_str(&text);
            self.out.buffer().push('\n');
            self.out.settle();
        }
        self.out.flush();
        if self.out.complain() {
            return false;
        }
        if reply.stop_reason == StopReason::Length {
            note("the answer was cut: it reached the model's output limit");
            return false;
        }
        true
    }
}

/// What went wrong with a reply, on one line for people.
fn failure_text(reply: &AssistantMessage) -> String {
    match (&reply.error_message, reply.stop_reason) {
        (Some(text), _) => harmless(text.trim_end()).into_owned(),
        (None, StopReason::Aborted) => "the run was aborted".into(),
        (None, _) => "the model's reply failed without a reason".into(),
    }
}

impl Surface for Print {
    fn on_event(&mut self, event: &Event) {
        if let Some(totals) = &mut self.totals {
            totals.count(event);
        }
        match event {
            Event::MessageEnd(message) if !matches!(**message, Message::System(_)) => {
                self.last = Some(Arc::clone(message));
            }
            Event::CompactionEnd { reason, result, aborted, error, .. } => {
                let asked = *reason == Reason::Manual;
                match (result, error) {
                    (Some(done), _) if asked => note(&format!(
                        "compacted: {} tokens before, about {} now",
                        done.tokens_before, done.tokens_after
                    )),
                    (None, Some(why)) => note(&harmless(why)),
                    (None, None) if *aborted => note("the compaction was cancelled"),
                    _ => {}
                }
                self.failed |= asked && result.is_none();
            }
            Event::Error(fault) => {
                self.failed = true;
                note(&harmless(&fault.message));
            }
            _ => {}
        }
    }

    fn flush(&mut self) {}

    fn is_closed(&self) -> bool {
        self.out.is_closed()
    }

    fn finish(&mut self) -> bool {
        let last = self.last.take();
        let answered = last.as_deref().and_then(Message::as_assistant).is_none_or(|reply| self.answer(reply));
        if let Some(totals) = &self.totals {
            note(&totals.text());
        }
        answered && !self.failed
    }
}
