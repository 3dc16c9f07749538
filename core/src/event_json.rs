//! Events as JSON objects, for JSON mode and RPC (spec 60 §3.5, spec 10 §3.2).

use crate::event::{Event, MessageUpdate};
use crate::harness::{Compacted, SummarySource};
use crate::json::Writer;
use crate::message::{Message, Usage, write_blocks};
use crate::tools::ToolOutput;

impl Event {
    /// Writes the event as one object, without a line end. `false` = the event has no place in that stream and
    /// nothing was written (errors, the end, and the user's shell belong to the surface itself).
    pub fn write(&self, w: &mut Writer) -> bool {
        if matches!(self, Self::Error(_) | Self::Closed | Self::ShellOutput { .. } | Self::ShellEnd { .. }) {
            return false;
        }
        w.begin_object();
        w.field_str("type", self.type_name());
        self.write_fields(w);
        w.end_object();
        true
    }

    /// The value of `type`.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::AgentStart => "agent_start",
            Self::TurnStart => "turn_start",
            Self::MessageStart(_) => "message_start",
            Self::MessageUpdate { .. } => "message_update",
            Self::MessageEnd(_) => "message_end",
            Self::ToolStart { .. } => "tool_execution_start",
            Self::ToolUpdate { .. } => "tool_execution_update",
            Self::ToolEnd { .. } => "tool_execution_end",
            Self::TurnEnd { .. } => "turn_end",
            Self::AgentEnd { .. } => "agent_end",
            Self::AgentSettled { .. } => "agent_settled",
            Self::QueueUpdate { .. } => "queue_update",
            Self::CompactionStart(_) => "compaction_start",
            Self::CompactionEnd { .. } => "compaction_end",
            Self::AutoRetryStart { .. } => "auto_retry_start",
            Self::AutoRetryEnd { .. } => "auto_retry_end",
            Self::SummaryRetryScheduled { .. } => "summarization_retry_scheduled",
            Self::SummaryRetryStart(_) => "summarization_retry_attempt_start",
            Self::SummaryRetryFinished => "summarization_retry_finished",
            Self::EntryAppended(_) => "entry_appended",
            Self::SessionName(_) => "session_info_changed",
            Self::ThinkingLevel(_) => "thinking_level_changed",
            Self::ShellOutput { .. } => "bash_execution_update",
            Self::ShellEnd { .. } => "bash_execution_end",
            Self::Error(_) => "error",
            Self::Closed => "closed",
        }
    }

    fn write_fields(&self, w: &mut Writer) {
        match self {
            Self::AgentStart
            | Self::TurnStart
            | Self::SummaryRetryFinished
            | Self::ShellOutput { .. }
            | Self::ShellEnd { .. }
            | Self::Error(_)
            | Self::Closed => {}
            Self::MessageStart(message) | Self::MessageEnd(message) => {
                w.key("message");
                message.write(w);
            }
            Self::MessageUpdate { usage, update } => write_update(usage, update, w),
            Self::ToolStart { call_id, name, args } => {
                write_call(call_id, name, w);
                w.field_value("args", args);
            }
            Self::ToolUpdate { call_id, name, args, partial } => {
                write_call(call_id, name, w);
                w.field_value("args", args);
                w.key("partialResult");
                write_output(partial, w);
            }
            Self::ToolEnd { call_id, name, result, duration_ms } => {
                write_call(call_id, name, w);
                w.key("result");
                write_output(result, w);
                w.field_bool("isError", result.is_error);
                if let Some(ms) = duration_ms {
                    w.field_u64("durationMs", *ms);
                }
            }
            Self::TurnEnd { message, results } => {
                w.key("message");
                message.write(w);
                write_messages("toolResults", results.iter().map(|m| &**m), w);
            }
            Self::AgentEnd { messages, will_retry } => {
                write_messages("messages", messages.iter().map(|m| &**m), w);
                w.field_bool("willRetry", *will_retry);
            }
            Self::AgentSettled { aborted } => w.field_bool("aborted", *aborted),
            Self::QueueUpdate { steering, follow_up } => {
                for (key, texts) in [("steering", steering), ("followUp", follow_up)] {
                    w.key(key);
                    w.begin_array();
                    texts.iter().for_each(|text| w.str(text));
                    w.end_array();
                }
            }
            Self::CompactionStart(reason) => w.field_str("reason", reason.name()),
            Self::CompactionEnd { reason, result, aborted, will_retry, error } => {
                w.field_str("reason", reason.name());
                if let Some(result) = result {
                    w.key("result");
                    result.write(w);
                }
                w.field_bool("aborted", *aborted);
                w.field_bool("willRetry", *will_retry);
                w.field_opt_str("errorMessage", error.as_deref());
            }
            Self::AutoRetryStart { attempt, max_attempts, delay_ms, error }
            | Self::SummaryRetryScheduled { attempt, max_attempts, delay_ms, error } => {
                w.field_u64("attempt", *attempt);
                w.field_u64("maxAttempts", *max_attempts);
                w.field_u64("delayMs", *delay_ms);
                w.field_str("errorMessage", error);
            }
            Self::AutoRetryEnd { success, attempt, final_error } => {
                w.field_bool("success", *success);
                w.field_u64("attempt", *attempt);
                w.field_opt_str("finalError", final_error.as_deref());
            }
            Self::SummaryRetryStart(SummarySource::Branch) => w.field_str("source", "branchSummary"),
            Self::SummaryRetryStart(SummarySource::Compaction(reason)) => {
                w.field_str("source", "compaction");
                w.field_str("reason", reason.name());
            }
            Self::EntryAppended(entry) => w.field_value("entry", entry),
            Self::SessionName(name) => w.field_opt_str("name", name.as_deref()),
            Self::ThinkingLevel(level) => w.field_str("level", level.name()),
        }
    }
}

impl Compacted {
    /// Writes the result as an object, as in `compaction_end` and in the response to `compact`.
    pub fn write(&self, w: &mut Writer) {
        w.begin_object();
        w.field_str("summary", &self.summary);
        w.field_str("firstKeptEntryId", &self.first_kept);
        w.field_u64("tokensBefore", self.tokens_before);
        w.field_u64("estimatedTokensAfter", self.tokens_after);
        if let Some(usage) = &self.usage {
            w.key("usage");
            usage.write(w);
        }
        if let Some(details) = &self.details {
            w.field_value("details", details);
        }
        w.end_object();
    }
}

fn write_update(usage: &Usage, update: &MessageUpdate, w: &mut Writer) {
    w.key("usage");
    usage.write(w);
    w.key("assistantMessageEvent");
    w.begin_object();
    let mut head = |kind: &str, index: &usize| {
        w.field_str("type", kind);
        w.field_u64("contentIndex", *index as u64);
    };
    match update {
        MessageUpdate::TextStart { index } => head("text_start", index),
        MessageUpdate::TextDelta { index, delta } => {
            head("text_delta", index);
            w.field_str("delta", delta);
        }
        MessageUpdate::TextEnd { index, content } => {
            head("text_end", index);
            w.field_str("content", content);
        }
        MessageUpdate::ThinkingStart { index } => head("thinking_start", index),
        MessageUpdate::ThinkingDelta { index, delta } => {
            head("thinking_delta", index);
            w.field_str("delta", delta);
        }
        MessageUpdate::ThinkingEnd { index, content } => {
            head("thinking_end", index);
            w.field_str("content", content);
        }
        MessageUpdate::ToolCallStart { index, id, name } => {
            head("toolcall_start", index);
            w.field_str("id", id);
            w.field_str("toolName", name);
        }
        MessageUpdate::ToolCallDelta { index, delta } => {
            head("toolcall_delta", index);
            w.field_str("delta", delta);
        }
        MessageUpdate::ToolCallEnd { index, call } => {
            head("toolcall_end", index);
            w.key("toolCall");
            call.write(w);
        }
    }
    w.end_object();
}

fn write_call(call_id: &str, name: &str, w: &mut Writer) {
    w.field_str("toolCallId", call_id);
    w.field_str("toolName", name);
}

/// A tool's result as it stands in events: content, then what else there is.
pub fn write_output(output: &ToolOutput, w: &mut Writer) {
    w.begin_object();
    w.key("content");
    write_blocks(&output.content, w);
    for (key, value) in [("details", &output.details), ("structuredContent", &output.structured)] {
        if let Some(value) = value {
            w.field_value(key, value);
        }
    }
    if let Some(usage) = &output.usage {
        w.key("usage");
        usage.write(w);
    }
    w.end_object();
}

fn write_messages<'a>(key: &'static str, messages: impl Iterator<Item = &'a Message>, w: &mut Writer) {
    w.key(key);
    w.begin_array();
    messages.for_each(|message| message.write(w));
    w.end_array();
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use alloc::sync::Arc;
    use alloc::vec;

    fn text(event: &Event) -> String {
        let mut w = Writer::new();
        event.write(&mut w);
        w.into_string()
    }

    #[test]
    fn tool_end_has_flag_and_duration() {
        let mut output = ToolOutput::text("hi");
        output.is_error = true;
        let end = Event::ToolEnd {
            call_id: "c1".into(),
            name: "bash".into(),
            result: Arc::new(output),
            duration_ms: Some(7),
        };
        assert_eq!(
            text(&end),
            r#"{"type":"tool_execution_end","toolCallId":"c1","toolName":"bash","result":{"content":[{"type":"text","text":"hi"}]},"isError":true,"durationMs":7}"#
        );
    }

    #[test]
    fn small_events() {
        assert_eq!(text(&Event::SessionName(None)), r#"{"type":"session_info_changed"}"#);
        let queue = Event::QueueUpdate { steering: vec!["a\n".into()], follow_up: vec![] };
        assert_eq!(text(&queue), r#"{"type":"queue_update","steering":["a\n"],"followUp":[]}"#);
        assert_eq!(
            text(&Event::AgentSettled { aborted: true }),
            r#"{"type":"agent_settled","aborted":true}"#
        );
        assert_eq!(text(&Event::Closed), "");
    }
}
