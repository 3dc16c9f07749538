//! Points at which a host may look at a run or change it (spec 10 §2.1). Each is asked only when it is switched on.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::json::Value;
use crate::message::{Block, Message, ToolCall, Usage};
use crate::model::{Model, ThinkingLevel};
use crate::tools::ToolOutput;

/// Which hooks the host answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HookSet {
    /// Before a validated call runs.
    pub before_tool_call: bool,
    /// After a call ran.
    pub after_tool_call: bool,
    /// After a turn, before `turn_end`.
    pub finish_turn: bool,
    /// Between two turns.
    pub prepare_next_turn: bool,
    /// Before each request.
    pub prepare_request: bool,
    /// What a request is made of.
    pub transform_context: bool,
}

impl HookSet {
    /// Whether the embedding program is asked anything: all but `prepare_next_turn`, which is answered by the session
    /// layer.
    #[must_use]
    pub const fn asks_host(self) -> bool {
        self.before_tool_call
            || self.after_tool_call
            || self.finish_turn
            || self.prepare_request
            || self.transform_context
    }
}

/// A question to the host; the run waits for the answer.
#[derive(Clone, Debug)]
pub enum HookCall {
    /// May the call at `index` of the batch run?
    BeforeToolCall {
        /// Place in the batch.
        index: usize,
        /// The call as the model made it.
        call: ToolCall,
        /// The validated arguments.
        args: Arc<Value>,
    },
    /// Change the result of the call at `index`?
    AfterToolCall {
        /// Place in the batch.
        index: usize,
        /// The call as the model made it.
        call: ToolCall,
        /// The result.
        output: ToolOutput,
    },
    /// The turn is complete: what next?
    FinishTurn {
        /// The reply.
        message: Arc<Message>,
        /// Results in call order.
        results: Vec<Arc<Message>>,
    },
    /// Another turn is certain: change anything before it?
    PrepareNextTurn,
    /// A request is about to be made: change anything?
    PrepareRequest,
    /// A request is made of these messages: leave out or add any, for this request only?
    TransformContext {
        /// The transcript.
        messages: Vec<Arc<Message>>,
    },
}

impl HookCall {
    /// What it is about.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::BeforeToolCall { .. } => "before_tool_call",
            Self::AfterToolCall { .. } => "after_tool_call",
            Self::FinishTurn { .. } => "finish_turn",
            Self::PrepareNextTurn => "prepare_next_turn",
            Self::PrepareRequest => "prepare_request",
            Self::TransformContext { .. } => "transform_context",
        }
    }

    /// The answer that changes nothing.
    #[must_use]
    pub fn neutral(&self) -> HookReply {
        match self {
            Self::BeforeToolCall { index, .. } => {
                HookReply::BeforeToolCall { index: *index, verdict: ToolVerdict::Run(None) }
            }
            Self::AfterToolCall { index, .. } => {
                HookReply::AfterToolCall { index: *index, change: Ok(ResultChange::default()) }
            }
            Self::FinishTurn { .. } => HookReply::FinishTurn(None),
            Self::PrepareNextTurn => HookReply::PrepareNextTurn(TurnChange::default()),
            Self::PrepareRequest => HookReply::PrepareRequest(TurnChange::default()),
            Self::TransformContext { messages } => HookReply::TransformContext(messages.clone()),
        }
    }
}

/// The host's answer.
#[derive(Clone, Debug)]
pub enum HookReply {
    /// To `BeforeToolCall`.
    BeforeToolCall {
        /// Place in the batch.
        index: usize,
        /// What to do.
        verdict: ToolVerdict,
    },
    /// To `AfterToolCall`.
    AfterToolCall {
        /// Place in the batch.
        index: usize,
        /// Fields to replace, or the text of a failed hook.
        change: Result<ResultChange, String>,
    },
    /// To `FinishTurn`.
    FinishTurn(Option<TurnDecision>),
    /// To `PrepareNextTurn`.
    PrepareNextTurn(TurnChange),
    /// To `PrepareRequest`.
    PrepareRequest(TurnChange),
    /// To `TransformContext`: what the request is made of.
    TransformContext(Vec<Arc<Message>>),
    /// The hook itself failed; the run ends through the failure path (spec 10 §2.9).
    Failed(String),
}

/// Whether a call may run.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolVerdict {
    /// Run it, with these arguments instead if given (they are not validated again).
    Run(Option<Arc<Value>>),
    /// Do not run it.
    Block {
        /// Text for the model.
        reason: Option<String>,
        /// Counts for the terminate rule.
        terminate: bool,
    },
    /// The hook failed: an error result with this text.
    Failed(String),
}

/// Fields of a result to replace; nothing is merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultChange {
    /// New content; drops the structured content unless that is given too.
    pub content: Option<Vec<Block>>,
    /// New details.
    pub details: Option<Value>,
    /// New structured content.
    pub structured: Option<Value>,
    /// New usage.
    pub usage: Option<Usage>,
    /// New terminate flag.
    pub terminate: Option<bool>,
    /// New error flag.
    pub is_error: Option<bool>,
}

impl ResultChange {
    /// Applies the change.
    pub fn apply(self, output: &mut ToolOutput) {
        if let Some(content) = self.content {
            output.content = content;
            output.structured = None;
        }
        if self.structured.is_some() {
            output.structured = self.structured;
        }
        if self.details.is_some() {
            output.details = self.details;
        }
        if self.usage.is_some() {
            output.usage = self.usage;
        }
        if self.terminate.is_some() {
            output.terminate = self.terminate;
        }
        if let Some(flag) = self.is_error {
            output.is_error = flag;
        }
    }
}

/// What follows a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnDecision {
    /// End the run now, queues untouched.
    End,
    /// Make at least one more request.
    Continue,
}

/// Changes for the turns to come.
#[derive(Clone, Debug, Default)]
pub struct TurnChange {
    /// Replaces the context.
    pub context: Option<Vec<Arc<Message>>>,
    /// Replaces the model.
    pub model: Option<Arc<Model>>,
    /// Replaces the thinking level.
    pub thinking: Option<ThinkingLevel>,
    /// Messages to inject before queued ones (only `PrepareNextTurn`).
    pub messages: Vec<Arc<Message>>,
}
