//! One batch of tool calls: where each call stands.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::json::Value;
use crate::message::{AssistantMessage, Message, ToolCall, ToolResultMessage};
use crate::now::Mono;
use crate::tools::{ExecutionMode, Tool, ToolOutput};

/// The calls of one reply, in source order.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) calls: Vec<Call>,
    pub(super) sequential: bool,
}

/// One call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) call: ToolCall,
    pub(super) state: CallState,
}

/// Where a call stands.
#[derive(Clone, Debug)]
pub(super) enum CallState {
    /// Not looked at yet, or waiting for the hook before it.
    Waiting,
    /// May run with these arguments.
    Ready { tool: Arc<Tool>, args: Arc<Value> },
    /// Runs.
    Running { since: Mono },
    /// Ran; the hook after it is asked.
    Finalizing { duration_ms: u64, output: ToolOutput },
    /// Settled.
    Done { output: Arc<ToolOutput>, duration_ms: Option<u64> },
}

impl Batch {
    /// The batch of a reply. Sequential if the agent says so or any called tool demands it; calls of unknown tools
    /// and tools that are not called do not matter (spec 10 §2.7).
    pub(super) fn new(message: &AssistantMessage, tools: &[Arc<Tool>], mode: ExecutionMode) -> Self {
        let calls: Vec<Call> =
            message.tool_calls().map(|call| Call { call: call.clone(), state: CallState::Waiting }).collect();
        let demands =
            |c: &Call| tools.iter().any(|t| t.name == c.call.name && t.mode == ExecutionMode::Sequential);
        let sequential = mode == ExecutionMode::Sequential || calls.iter().any(demands);
        Self { calls, sequential }
    }

    /// Whether every call is settled.
    pub(super) fn is_done(&self) -> bool {
        self.calls.iter().all(|c| matches!(c.state, CallState::Done { .. }))
    }

    /// Whether any call runs.
    pub(super) fn is_running(&self) -> bool {
        self.calls.iter().any(|c| matches!(c.state, CallState::Running { .. }))
    }

    /// Ids of the calls that are not settled.
    pub(super) fn pending_ids(&self) -> impl Iterator<Item = &str> {
        self.calls.iter().filter(|c| !matches!(c.state, CallState::Done { .. })).map(|c| c.call.id.as_str())
    }

    /// The run ends without an automatic next request only if every result asks for it.
    pub(super) fn terminates(&self) -> bool {
        let asks =
            |c: &Call| matches!(&c.state, CallState::Done { output, .. } if output.terminate == Some(true));
        !self.calls.is_empty() && self.calls.iter().all(asks)
    }
}

impl Call {
    /// The result message of a settled call.
    pub(super) fn result(&self, now_ms: i64) -> Option<Arc<Message>> {
        let CallState::Done { output, duration_ms } = &self.state else { return None };
        Some(Arc::new(Message::ToolResult(ToolResultMessage {
            tool_call_id: self.call.id.clone(),
            tool_name: self.call.name.clone(),
            content: output.content.clone(),
            details: output.details.clone(),
            structured_content: output.structured.clone(),
            usage: output.usage,
            is_error: output.is_error,
            nested_calls: None,
            duration_ms: *duration_ms,
            timestamp: now_ms,
        })))
    }
}

/// Texts of results that no tool produced.
pub(super) mod texts {
    use super::String;
    use alloc::format;

    pub(in crate::agent) const ABORTED: &str = "The call was not run: the user aborted.";
    pub(in crate::agent) const CUT: &str = "The call was not run: the reply reached its output limit, so the arguments may be incomplete. \
        Send the call again, in smaller pieces if it is large.";
    pub(in crate::agent) const BLOCKED: &str = "The call was blocked by the host.";

    pub(in crate::agent) fn unknown(name: &str) -> String {
        format!("There is no tool named \"{name}\". Use one of the tools you were given.")
    }
}
