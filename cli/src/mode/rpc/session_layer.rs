//! Commands about retries, compaction and the tree. What takes time is answered when the agent is idle again; its
//! events come before its response.

use crate::backend::Machine;
use tau_core::harness::SummaryWish;
use tau_core::input::Command;
use tau_core::json::Writer;

use super::call::Call;
use super::commands::Answer;
use super::records::Subject;
use super::{Rpc, text_of};

/// What a response waits for.
pub(super) enum Awaited {
    /// The compaction that was asked for.
    Compaction,
    /// The way to another entry.
    Navigation,
}

impl Rpc {
    /// Aborts a run and compacts.
    pub(super) fn compact(&mut self, call: &Call) -> Result<Answer, String> {
        let focus = call.optional_text("customInstructions")?.map(str::to_owned);
        self.later(call, Awaited::Compaction, Command::Compact { focus })
    }

    /// Ends the wait before a retry; nothing happens when there is none. The response comes right behind the event that
    /// tells of it.
    pub(super) fn abort_retry(&mut self, call: &Call) -> Result<Answer, String> {
        self.records.expect_retry_end(&call.subject);
        let told = self.tell(Command::AbortRetry);
        let waits = self.records.take_retry_end();
        told.map(|()| if waits { Answer::Done } else { Answer::Sent })
    }

    pub(super) fn set_auto_compaction(&mut self, call: &Call) -> Result<Answer, String> {
        let on = call.flag("enabled")?;
        self.tell(Command::SetAutoCompaction(on))?;
        self.keep(&["compaction", "enabled"], on.into());
        Ok(Answer::Done)
    }

    pub(super) fn set_auto_retry(&mut self, call: &Call) -> Result<Answer, String> {
        let on = call.flag("enabled")?;
        self.tell(Command::SetAutoRetry(on))?;
        self.keep(&["retry", "enabled"], on.into());
        Ok(Answer::Done)
    }

    /// Labels an entry; without a label, or with a blank one, the label goes.
    pub(super) fn set_label(&mut self, call: &Call) -> Result<Answer, String> {
        let entry = call.text("entryId")?.to_owned();
        let label = call.optional_text("label")?.map(str::to_owned);
        self.tell(Command::SetLabel { entry, label })?;
        Ok(Answer::Done)
    }

    /// Goes to another entry of the tree, with a summary of the branch that is left if one is wanted.
    pub(super) fn navigate_tree(&mut self, call: &Call) -> Result<Answer, String> {
        let target = call.text("entryId")?.to_owned();
        let wish = SummaryWish {
            instructions: call.optional_text("customInstructions")?.map(str::to_owned),
            replace: call.optional_flag("replaceInstructions")?,
        };
        let summary = call.optional_flag("summarize")?.then_some(wish);
        let label = call.optional_text("label")?.map(str::to_owned);
        if !self.engine.with(Machine::is_idle) {
            return Err("navigate_tree: a run is active; wait for its end or abort it".into());
        }
        // A long session is opened without its other branches; here they are needed.
        self.read_everything()?;
        self.later(call, Awaited::Navigation, Command::Navigate { target, summary, label })
    }

    fn later(&mut self, call: &Call, awaited: Awaited, command: Command) -> Result<Answer, String> {
        if self.outcome.is_some() {
            return Err(format!(
                "{}: a summary is being made already; wait for its end or abort it",
                call.name
            ));
        }
        self.tell(command)?;
        self.outcome = Some((call.subject.clone(), awaited));
        Ok(Answer::Sent)
    }

    /// Nothing goes on any more: the response that waited for that.
    pub(super) fn answer_outcome(&mut self) {
        let Some((subject, awaited)) = self.outcome.take() else { return };
        let outcome = self.engine.with(|hub| {
            let desk = hub.desk();
            match awaited {
                Awaited::Compaction => desk.compacted().cloned().map(|outcome| {
                    outcome.map_err(text_of).map(|result| {
                        let mut w = Writer::new();
                        result.write(&mut w);
                        w.into_string()
                    })
                }),
                Awaited::Navigation => desk.moved().cloned().map(|outcome| {
                    outcome.map_err(text_of).map(|moved| {
                        let mut w = Writer::new();
                        w.begin_object();
                        w.field_opt_str("leafId", moved.leaf.as_deref());
                        w.field_opt_str("editorText", moved.editor_text.as_deref());
                        w.field_opt_str("summaryEntryId", moved.summary.as_deref());
                        w.field_bool("cancelled", false);
                        w.end_object();
                        w.into_string()
                    })
                }),
            }
        });
        self.tell_outcome(&subject, outcome.unwrap_or_else(|| Err("it was cancelled".into())));
    }

    fn tell_outcome(&self, subject: &Subject, outcome: Result<String, String>) {
        match outcome {
            Ok(data) => self.records.success(subject, Some(&data)),
            Err(why) => self.records.failure(subject, &why),
        }
    }
}
