//! Messages as JSON, in the field order Pi writes.

use super::{
    AssistantMessage, BashExecution, Block, BranchSummary, CompactionSummary, Content, Cost, CustomMessage,
    Message, SystemMessage, ToolCall, ToolResultMessage, Usage, UserMessage,
};
use crate::json::{Value, Writer};

impl Message {
    /// Writes the message as one object.
    pub fn write(&self, w: &mut Writer) {
        match self {
            Self::System(m) => m.write(w),
            Self::User(m) => m.write(w),
            Self::Assistant(m) => m.write(w),
            Self::ToolResult(m) => m.write(w),
            Self::Bash(m) => m.write(w),
            Self::Custom(m) => m.write(w),
            Self::BranchSummary(m) => m.write(w),
            Self::CompactionSummary(m) => m.write(w),
            Self::Other(value) => w.value(value),
        }
    }
}

impl Content {
    /// Writes a string or an array of blocks.
    pub fn write(&self, w: &mut Writer) {
        match self {
            Self::Text(text) => w.str(text),
            Self::Blocks(blocks) => write_blocks(blocks, w),
        }
    }
}

/// Writes an array of blocks.
pub fn write_blocks(blocks: &[Block], w: &mut Writer) {
    w.begin_array();
    blocks.iter().for_each(|block| block.write(w));
    w.end_array();
}

impl Block {
    /// Writes the block as one object.
    pub fn write(&self, w: &mut Writer) {
        match self {
            Self::Text(block) => {
                w.begin_object();
                w.field_str("type", "text");
                w.field_str("text", &block.text);
                w.field_opt_str("textSignature", block.signature.as_deref());
                w.end_object();
            }
            Self::Image(block) => {
                w.begin_object();
                w.field_str("type", "image");
                w.field_str("data", &block.data);
                w.field_str("mimeType", &block.mime_type);
                w.end_object();
            }
            Self::Thinking(block) => {
                w.begin_object();
                w.field_str("type", "thinking");
                w.field_str("thinking", &block.thinking);
                w.field_opt_str("thinkingSignature", block.signature.as_deref());
                if block.redacted {
                    w.field_bool("redacted", true);
                }
                w.end_object();
            }
            Self::ToolCall(call) => call.write(w),
            Self::Other(value) => w.value(value),
        }
    }
}

impl ToolCall {
    /// Writes the call as one block object.
    pub fn write(&self, w: &mut Writer) {
        w.begin_object();
        w.field_str("type", "toolCall");
        w.field_str("id", &self.id);
        w.field_str("name", &self.name);
        w.field_value("arguments", &self.arguments);
        w.field_opt_str("thoughtSignature", self.thought_signature.as_deref());
        w.field_opt_str("namespace", self.namespace.as_deref());
        w.field_opt_str("argumentsError", self.arguments_error.as_deref());
        w.end_object();
    }
}

impl Usage {
    /// Writes the usage object.
    pub fn write(&self, w: &mut Writer) {
        w.begin_object();
        w.field_u64("input", self.input);
        w.field_u64("output", self.output);
        w.field_u64("cacheRead", self.cache_read);
        w.field_u64("cacheWrite", self.cache_write);
        if let Some(n) = self.cache_write_1h {
            w.field_u64("cacheWrite1h", n);
        }
        if let Some(n) = self.reasoning {
            w.field_u64("reasoning", n);
        }
        w.field_u64("totalTokens", self.total_tokens);
        w.key("cost");
        self.cost.write(w);
        w.end_object();
    }
}

impl Cost {
    /// Writes the cost object.
    pub fn write(&self, w: &mut Writer) {
        w.begin_object();
        w.field_f64("input", self.input);
        w.field_f64("output", self.output);
        w.field_f64("cacheRead", self.cache_read);
        w.field_f64("cacheWrite", self.cache_write);
        w.field_f64("total", self.total);
        if let Some(flag) = self.total_from_provider {
            w.field_bool("totalFromProvider", flag);
        }
        w.end_object();
    }
}

impl UserMessage {
    fn write(&self, w: &mut Writer) {
        w.begin_object();
        w.field_str("role", "user");
        w.key("content");
        self.content.write(w);
        w.field_i64("timestamp", self.timestamp);
        w.end_object();
    }
}

impl AssistantMessage {
    /// Writes the message as one object.
    pub fn write(&self, w: &mut Writer) {
        w.begin_object();
        w.field_str("role", "assistant");
        w.key("content");
        write_blocks(&self.content, w);
        w.field_str("api", &self.api);
        w.field_str("provider", &self.provider);
        w.field_str("model", &self.model);
        w.field_opt_str("responseModel", self.response_model.as_deref());
        w.field_opt_str("responseId", self.response_id.as_deref());
        w.key("usage");
        self.usage.write(w);
        w.field_str("stopReason", self.stop_reason.name());
        w.field_opt_str("rawStopReason", self.raw_stop_reason.as_deref());
        w.field_opt_str("errorMessage", self.error_message.as_deref());
        if let Some(list) = &self.diagnostics {
            w.key("diagnostics");
            w.begin_array();
            list.iter().for_each(|note| w.value(note));
            w.end_array();
        }
        w.field_opt_str("providerThinkingLevel", self.provider_thinking_level.as_deref());
        if let Some(value) = &self.deferred {
            w.field_value("deferred", value);
        }
        if let Some(flag) = self.end_turn {
            w.field_bool("endTurn", flag);
        }
        w.field_i64("timestamp", self.timestamp);
        if let Some(level) = self.thinking_level {
            w.field_str("thinkingLevel", level.name());
        }
        if let Some(ms) = self.duration_ms {
            w.field_u64("durationMs", ms);
        }
        w.end_object();
    }
}

impl ToolResultMessage {
    /// Writes the message as one object.
    pub fn write(&self, w: &mut Writer) {
        w.begin_object();
        w.field_str("role", "toolResult");
        w.field_str("toolCallId", &self.tool_call_id);
        w.field_str("toolName", &self.tool_name);
        w.key("content");
        write_blocks(&self.content, w);
        let optional = |w: &mut Writer, key: &'static str, value: &Option<Value>| {
            if let Some(value) = value {
                w.field_value(key, value);
            }
        };
        optional(w, "details", &self.details);
        optional(w, "structuredContent", &self.structured_content);
        if let Some(usage) = &self.usage {
            w.key("usage");
            usage.write(w);
        }
        optional(w, "nestedCalls", &self.nested_calls);
        w.field_bool("isError", self.is_error);
        if let Some(ms) = self.duration_ms {
            w.field_u64("durationMs", ms);
        }
        w.field_i64("timestamp", self.timestamp);
        w.end_object();
    }
}

impl SystemMessage {
    fn write(&self, w: &mut Writer) {
        w.begin_object();
        w.field_str("role", "system");
        w.field_str("content", &self.content);
        if !self.sections.is_empty() {
            w.key("sections");
            w.begin_object();
            for (name, text) in &self.sections {
                w.name(name);
                match text {
                    Some(text) => w.str(text),
                    None => w.null(),
                }
            }
            w.end_object();
        }
        for (key, list) in [("toolsAdded", &self.tools_added), ("toolsRemoved", &self.tools_removed)] {
            if let Some(list) = list {
                w.key(key);
                w.begin_array();
                list.iter().for_each(|tool| w.value(tool));
                w.end_array();
            }
        }
        w.field_i64("timestamp", self.timestamp);
        w.end_object();
    }
}

impl BashExecution {
    fn write(&self, w: &mut Writer) {
        w.begin_object();
        w.field_str("role", "bashExecution");
        w.field_str("command", &self.command);
        w.field_str("output", &self.output);
        if let Some(code) = self.exit_code {
            w.field_i64("exitCode", code);
        }
        w.field_bool("cancelled", self.cancelled);
        w.field_bool("truncated", self.truncated);
        w.field_opt_str("fullOutputPath", self.full_output_path.as_deref());
        w.field_i64("timestamp", self.timestamp);
        if self.exclude_from_context {
            w.field_bool("excludeFromContext", true);
        }
        w.end_object();
    }
}

impl CustomMessage {
    fn write(&self, w: &mut Writer) {
        w.begin_object();
        w.field_str("role", "custom");
        w.field_str("customType", &self.custom_type);
        w.key("content");
        self.content.write(w);
        w.field_bool("display", self.display);
        if let Some(details) = &self.details {
            w.field_value("details", details);
        }
        w.field_i64("timestamp", self.timestamp);
        w.end_object();
    }
}

impl BranchSummary {
    fn write(&self, w: &mut Writer) {
        w.begin_object();
        w.field_str("role", "branchSummary");
        w.field_str("summary", &self.summary);
        w.field_str("fromId", &self.from_id);
        w.field_i64("timestamp", self.timestamp);
        w.end_object();
    }
}

impl CompactionSummary {
    fn write(&self, w: &mut Writer) {
        w.begin_object();
        w.field_str("role", "compactionSummary");
        w.field_str("summary", &self.summary);
        w.field_u64("tokensBefore", self.tokens_before);
        w.field_i64("timestamp", self.timestamp);
        w.end_object();
    }
}
