//! Messages: what people, models and tools said, in the shape Pi 1.6 stores (spec 10 §4).
//!
//! Histories are lists of `Arc<Message>`; long texts and arguments are shared inside, so copies are cheap and
//! equality of two `Arc`s means "this message did not change", which encoders rely on.

mod blocks;
mod parse;
mod text;
mod usage;
mod write;

pub use blocks::{Block, ImageBlock, TextBlock, ThinkingBlock, ToolCall};
pub use parse::parse_message;
pub use text::Text;
pub use usage::{Cost, Usage};
pub use write::write_blocks;

use alloc::string::String;
use alloc::vec::Vec;

use crate::json::Value;
use crate::model::ThinkingLevel;

/// Any message of a transcript.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Prompt and tool declarations as a replayable log.
    System(SystemMessage),
    /// What the user said.
    User(UserMessage),
    /// What the model said.
    Assistant(AssistantMessage),
    /// What a tool returned.
    ToolResult(ToolResultMessage),
    /// A shell command of the user.
    Bash(BashExecution),
    /// A message of a host or extension.
    Custom(CustomMessage),
    /// Summary of a branch the conversation came back from.
    BranchSummary(BranchSummary),
    /// Summary of the earlier history.
    CompactionSummary(CompactionSummary),
    /// A role this version does not know: kept, never sent.
    Other(Value),
}

/// Content that is either one text or a list of blocks.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// One text.
    Text(Text),
    /// Blocks.
    Blocks(Vec<Block>),
}

impl Content {
    /// The blocks' or the whole text, in order, other blocks skipped.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (whole, blocks) = match self {
            Self::Text(text) => (Some(text.as_str()), [].as_slice()),
            Self::Blocks(blocks) => (None, blocks.as_slice()),
        };
        whole.into_iter().chain(blocks.iter().filter_map(Block::as_text))
    }
}

/// `role: "user"`.
#[derive(Clone, Debug, PartialEq)]
pub struct UserMessage {
    /// Text or blocks (text, image).
    pub content: Content,
    /// Unix ms.
    pub timestamp: i64,
}

/// Why a reply ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopReason {
    /// Still streaming; never stored.
    #[default]
    Pending,
    /// Complete.
    Stop,
    /// Cut at the output limit.
    Length,
    /// Wants tool results.
    ToolUse,
    /// Failed.
    Error,
    /// Cancelled.
    Aborted,
    /// To be fetched later.
    Deferred,
}

impl StopReason {
    /// The stored name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolUse => "toolUse",
            Self::Error => "error",
            Self::Aborted => "aborted",
            Self::Deferred => "deferred",
        }
    }

    /// Reads a stored name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "pending" => Self::Pending,
            "stop" => Self::Stop,
            "length" => Self::Length,
            "toolUse" => Self::ToolUse,
            "error" => Self::Error,
            "aborted" => Self::Aborted,
            "deferred" => Self::Deferred,
            _ => return None,
        })
    }

    /// Error or aborted: such a reply is never sent back and its calls are never run.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Error | Self::Aborted)
    }
}

/// `role: "assistant"`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AssistantMessage {
    /// Text, thinking and tool calls in order.
    pub content: Vec<Block>,
    /// Wire protocol of the requested model.
    pub api: String,
    /// Provider of the requested model.
    pub provider: String,
    /// Id of the requested model.
    pub model: String,
    /// Model id the service reported, when it differs.
    pub response_model: Option<String>,
    /// Id of the response.
    pub response_id: Option<String>,
    /// Tokens and cost.
    pub usage: Usage,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// The provider's own word.
    pub raw_stop_reason: Option<String>,
    /// Text of the failure.
    pub error_message: Option<String>,
    /// Non-fatal notes.
    pub diagnostics: Option<Vec<Value>>,
    /// Exact effort sent.
    pub provider_thinking_level: Option<String>,
    /// Level asked for.
    pub thinking_level: Option<ThinkingLevel>,
    /// Handle of a deferred reply.
    pub deferred: Option<Value>,
    /// Informational flag of one provider.
    pub end_turn: Option<bool>,
    /// Unix ms of the request.
    pub timestamp: i64,
    /// Monotonic duration.
    pub duration_ms: Option<u64>,
}

impl AssistantMessage {
    /// Everything but the content, which may be large.
    #[must_use]
    pub fn without_content(&self) -> Self {
        Self {
            content: Vec::new(),
            api: self.api.clone(),
            provider: self.provider.clone(),
            model: self.model.clone(),
            response_model: self.response_model.clone(),
            response_id: self.response_id.clone(),
            usage: self.usage,
            stop_reason: self.stop_reason,
            raw_stop_reason: self.raw_stop_reason.clone(),
            error_message: self.error_message.clone(),
            diagnostics: self.diagnostics.clone(),
            provider_thinking_level: self.provider_thinking_level.clone(),
            thinking_level: self.thinking_level,
            deferred: self.deferred.clone(),
            end_turn: self.end_turn,
            timestamp: self.timestamp,
            duration_ms: self.duration_ms,
        }
    }

    /// The tool calls in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(call),
            _ => None,
        })
    }
}

/// `role: "toolResult"`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolResultMessage {
    /// Id of the call.
    pub tool_call_id: String,
    /// Name of the tool.
    pub tool_name: String,
    /// Text and images for the model.
    pub content: Vec<Block>,
    /// Facts for surfaces; not sent.
    pub details: Option<Value>,
    /// Facts for programs; not sent.
    pub structured_content: Option<Value>,
    /// Usage of models the tool called.
    pub usage: Option<Usage>,
    /// Whether the call failed.
    pub is_error: bool,
    /// Calls made by the tool itself.
    pub nested_calls: Option<Value>,
    /// Monotonic duration of the execution.
    pub duration_ms: Option<u64>,
    /// Unix ms.
    pub timestamp: i64,
}

/// `role: "system"`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SystemMessage {
    /// Text (joined by LF when it came as blocks).
    pub content: Text,
    /// Named sections: text sets, `None` deletes.
    pub sections: Vec<(String, Option<Text>)>,
    /// Tools declared from here on (`name`, `description`, `parameters` …).
    pub tools_added: Option<Vec<Value>>,
    /// Tools withdrawn from here on (`{name}`).
    pub tools_removed: Option<Vec<Value>>,
    /// Unix ms.
    pub timestamp: i64,
}

/// `role: "bashExecution"`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BashExecution {
    /// The command.
    pub command: String,
    /// Its cleaned, truncated output.
    pub output: Text,
    /// Exit code; absent when cancelled.
    pub exit_code: Option<i64>,
    /// Cancelled by the user.
    pub cancelled: bool,
    /// Output was cut.
    pub truncated: bool,
    /// File with the complete output.
    pub full_output_path: Option<String>,
    /// Not for the model.
    pub exclude_from_context: bool,
    /// Unix ms.
    pub timestamp: i64,
}

/// `role: "custom"`.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomMessage {
    /// Kind, named by the host.
    pub custom_type: String,
    /// Text or blocks.
    pub content: Content,
    /// Whether surfaces show it.
    pub display: bool,
    /// Facts for surfaces.
    pub details: Option<Value>,
    /// Unix ms.
    pub timestamp: i64,
}

/// `role: "branchSummary"`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BranchSummary {
    /// The summary.
    pub summary: Text,
    /// Leaf of the summarised branch, or `root`.
    pub from_id: String,
    /// Unix ms.
    pub timestamp: i64,
}

/// `role: "compactionSummary"`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompactionSummary {
    /// The summary.
    pub summary: Text,
    /// Size of the context before.
    pub tokens_before: u64,
    /// Unix ms.
    pub timestamp: i64,
}

impl Message {
    /// The stored name of the role.
    #[must_use]
    pub fn role(&self) -> &str {
        match self {
            Self::System(_) => "system",
            Self::User(_) => "user",
            Self::Assistant(_) => "assistant",
            Self::ToolResult(_) => "toolResult",
            Self::Bash(_) => "bashExecution",
            Self::Custom(_) => "custom",
            Self::BranchSummary(_) => "branchSummary",
            Self::CompactionSummary(_) => "compactionSummary",
            Self::Other(value) => value.get("role").and_then(Value::as_str).unwrap_or_default(),
        }
    }

    /// Unix ms; 0 for unknown roles without one.
    #[must_use]
    pub fn timestamp(&self) -> i64 {
        match self {
            Self::System(m) => m.timestamp,
            Self::User(m) => m.timestamp,
            Self::Assistant(m) => m.timestamp,
            Self::ToolResult(m) => m.timestamp,
            Self::Bash(m) => m.timestamp,
            Self::Custom(m) => m.timestamp,
            Self::BranchSummary(m) => m.timestamp,
            Self::CompactionSummary(m) => m.timestamp,
            Self::Other(value) => value.get("timestamp").and_then(Value::as_i64).unwrap_or_default(),
        }
    }

    /// Whether a user or a tool gave an image with it.
    #[must_use]
    pub fn has_image(&self) -> bool {
        let blocks = match self {
            Self::User(user) => match &user.content {
                Content::Blocks(blocks) => blocks.as_slice(),
                Content::Text(_) => &[],
            },
            Self::ToolResult(result) => &result.content,
            _ => &[],
        };
        blocks.iter().any(|block| matches!(block, Block::Image(_)))
    }

    /// The reply, if it is one.
    #[must_use]
    pub const fn as_assistant(&self) -> Option<&AssistantMessage> {
        match self {
            Self::Assistant(message) => Some(message),
            _ => None,
        }
    }

    /// A user message of one text block and images.
    #[must_use]
    pub fn user(text: impl Into<Text>, images: Vec<Block>, timestamp: i64) -> Self {
        let mut blocks = alloc::vec![Block::text(text)];
        blocks.extend(images);
        Self::User(UserMessage { content: Content::Blocks(blocks), timestamp })
    }
}
