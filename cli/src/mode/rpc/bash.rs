//! Commands of the client's own shell (spec 60 §3.3: `bash`, `abort_bash`).

use tau_core::fault::Fault;
use tau_core::input::Command;
use tau_core::json::Writer;
use tau_core::message::Message;

use super::call::Call;
use super::commands::Answer;
use super::{Rpc, text_of};

impl Rpc {
    /// Answered when the command has ended; other commands go on meanwhile, those of the shell too.
    pub(super) fn bash(&mut self, call: &Call) -> Result<Answer, String> {
        let command = call.text("command")?.to_owned();
        let excluded = call.optional_flag("excludeFromContext")?;
        let id = self.records.expect_shell(&call.subject);
        let begun = self.tell(Command::Shell { id, command, excluded });
        if begun.is_err() {
            let _ = self.records.take_shell(id);
        }
        begun.map(|()| Answer::Sent)
    }

    /// Kills all of them. Their responses come after this one.
    pub(super) fn abort_bash(&mut self, call: &Call) -> Result<Answer, String> {
        let now = self.engine.now();
        let records = self.records.clone();
        self.engine.with_mut(|hub| {
            hub.command(now, Command::AbortShells).map_err(text_of)?;
            records.success(&call.subject, None);
            Ok(Answer::Sent)
        })
    }
}

/// The data of a response, or why there are none.
pub(super) fn outcome_data(outcome: &Result<std::sync::Arc<Message>, Fault>) -> Result<String, &str> {
    let record = outcome.as_deref().map_err(|fault| fault.message.as_str())?;
    let Message::Bash(record) = record else { return Err("the shell left no record") };
    let mut w = Writer::new();
    w.begin_object();
    w.field_str("output", &record.output);
    if let Some(code) = record.exit_code {
        w.field_i64("exitCode", code);
    }
    w.field_bool("cancelled", record.cancelled);
    w.field_bool("truncated", record.truncated);
    w.field_opt_str("fullOutputPath", record.full_output_path.as_deref());
    w.end_object();
    Ok(w.into_string())
}
