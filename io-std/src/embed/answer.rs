//! What a prompt came to.

use tau_core::fault::Fault;
use tau_core::message::{Block, Message, StopReason};

/// The text of the last reply of a run; none is an empty answer.
///
/// # Errors
/// `aborted`, `answer_cut` when the model's output limit ended it, or `reply_failed` with what the service said.
pub fn answer_of(last: Option<&Message>) -> Result<String, Fault> {
    let Some(reply) = last.and_then(Message::as_assistant) else { return Ok(String::new()) };
    let said = || reply.error_message.clone();
    match reply.stop_reason {
        StopReason::Aborted => {
            Err(Fault::new("aborted", said().unwrap_or_else(|| "The run was aborted.".into())))
        }
        StopReason::Length => {
            Err(Fault::new("answer_cut", "The answer was cut: it reached the model's output limit."))
        }
        reason if reason.is_failure() => {
            let text = said().unwrap_or_else(|| "The model's reply failed without a reason.".into());
            Err(Fault::new("reply_failed", text))
        }
        _ => Ok(reply.content.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n")),
    }
}
