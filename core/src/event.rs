//! What surfaces see. The order of events is the order in which a surface must show them.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::fault::Fault;
use crate::harness::{Compacted, Reason, SummarySource};
use crate::json::Value;
use crate::message::{Message, Text, ToolCall, Usage};
use crate::model::ThinkingLevel;
use crate::tools::ToolOutput;

/// One event (spec 10 §3, spec 60 §3.5).
#[derive(Clone, Debug)]
pub enum Event {
    /// A run begins.
    AgentStart,
    /// A turn (one request and its tools) begins.
    TurnStart,
    /// A message enters the transcript; a reply enters empty, with stop reason `pending`.
    MessageStart(Arc<Message>),
    /// A reply grows.
    MessageUpdate {
        /// Usage so far.
        usage: Usage,
        /// What changed.
        update: MessageUpdate,
    },
    /// A message is complete.
    MessageEnd(Arc<Message>),
    /// A tool call begins.
    ToolStart {
        /// Id of the call.
        call_id: String,
        /// Tool name.
        name: String,
        /// Arguments as the model gave them.
        args: Arc<Value>,
    },
    /// A tool call shows an intermediate result (replaces the one before).
    ToolUpdate {
        /// Id of the call.
        call_id: String,
        /// Tool name.
        name: String,
        /// Arguments as the model gave them.
        args: Arc<Value>,
        /// The result so far.
        partial: Arc<ToolOutput>,
    },
    /// A tool call ended.
    ToolEnd {
        /// Id of the call.
        call_id: String,
        /// Tool name.
        name: String,
        /// The result.
        result: Arc<ToolOutput>,
        /// Duration of the execution, ms; absent when nothing was executed.
        duration_ms: Option<u64>,
    },
    /// A turn ended.
    TurnEnd {
        /// The reply.
        message: Arc<Message>,
        /// Results in call order.
        results: Vec<Arc<Message>>,
    },
    /// A run ended.
    AgentEnd {
        /// The messages of the run.
        messages: Vec<Arc<Message>>,
        /// An automatic retry follows.
        will_retry: bool,
    },
    /// Nothing more happens by itself.
    AgentSettled {
        /// The user aborted.
        aborted: bool,
    },
    /// The queues changed.
    QueueUpdate {
        /// Texts waiting for the next request.
        steering: Vec<String>,
        /// Texts waiting for the end of the run.
        follow_up: Vec<String>,
    },
    /// A compaction begins.
    CompactionStart(Reason),
    /// A compaction ended, or a recovery was given up.
    CompactionEnd {
        /// Why it was made.
        reason: Reason,
        /// What it did; `None` = nothing changed.
        result: Option<Arc<Compacted>>,
        /// It was cancelled.
        aborted: bool,
        /// The run that failed is tried once more.
        will_retry: bool,
        /// Why nothing changed.
        error: Option<String>,
    },
    /// A run failed and is tried again after a wait.
    AutoRetryStart {
        /// Number of this retry, from 1.
        attempt: u64,
        /// How many there may be.
        max_attempts: u64,
        /// The wait, ms.
        delay_ms: u64,
        /// Why the run failed.
        error: String,
    },
    /// Retries are over.
    AutoRetryEnd {
        /// A good reply came.
        success: bool,
        /// Number of the last retry.
        attempt: u64,
        /// The failure that stays.
        final_error: Option<String>,
    },
    /// A request for a summary failed and is made again after a wait.
    SummaryRetryScheduled {
        /// Number of this retry, from 1.
        attempt: u64,
        /// How many there may be.
        max_attempts: u64,
        /// The wait, ms.
        delay_ms: u64,
        /// Why the request failed.
        error: String,
    },
    /// The request for a summary is made again.
    SummaryRetryStart(SummarySource),
    /// Retries of summary requests are over.
    SummaryRetryFinished,
    /// An entry that no message event announces was appended.
    EntryAppended(Arc<Value>),
    /// The display name of the session changed.
    SessionName(Option<String>),
    /// The effective thinking level changed.
    ThinkingLevel(ThinkingLevel),
    /// A command of the user's shell printed this.
    ShellOutput {
        /// The command, as [`Command::Shell`](crate::input::Command::Shell) named it.
        id: u64,
        /// Clean text.
        delta: String,
    },
    /// A command of the user's shell ended. Its record is stored, during a run once that has ended.
    ShellEnd {
        /// The command.
        id: u64,
        /// The record (a `bashExecution`), or why it could not run.
        outcome: Result<Arc<Message>, Fault>,
    },
    /// A command was refused, or something went wrong beside the transcript (a line could not be stored …).
    Error(Fault),
    /// Everything is flushed; nothing follows.
    Closed,
}

/// How a reply grew.
#[derive(Clone, Debug)]
pub enum MessageUpdate {
    /// A text block begins.
    TextStart {
        /// Index in the content.
        index: usize,
    },
    /// A text block grew.
    TextDelta {
        /// Index in the content.
        index: usize,
        /// What was added.
        delta: String,
    },
    /// A text block is complete.
    TextEnd {
        /// Index in the content.
        index: usize,
        /// The whole text.
        content: Text,
    },
    /// A thinking block begins.
    ThinkingStart {
        /// Index in the content.
        index: usize,
    },
    /// A thinking block grew.
    ThinkingDelta {
        /// Index in the content.
        index: usize,
        /// What was added.
        delta: String,
    },
    /// A thinking block is complete.
    ThinkingEnd {
        /// Index in the content.
        index: usize,
        /// The whole text.
        content: Text,
    },
    /// A tool call begins.
    ToolCallStart {
        /// Index in the content.
        index: usize,
        /// Id, may still be empty.
        id: String,
        /// Tool name, may still be empty.
        name: String,
    },
    /// Arguments of a tool call grew.
    ToolCallDelta {
        /// Index in the content.
        index: usize,
        /// Raw JSON text that was added.
        delta: String,
    },
    /// A tool call is complete.
    ToolCallEnd {
        /// Index in the content.
        index: usize,
        /// The call.
        call: ToolCall,
    },
}
