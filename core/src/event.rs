//! What surfaces see. The order of events is the order in which a surface must show them.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::fault::Fault;
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
    /// An entry that no message event announces was appended.
    EntryAppended(Arc<Value>),
    /// The display name of the session changed.
    SessionName(Option<String>),
    /// The effective thinking level changed.
    ThinkingLevel(ThinkingLevel),
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
