//! Stop reasons of the protocols (spec 30 §1.6).

use crate::message::StopReason;

/// What a provider's word means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A good end.
    Good(StopReason),
    /// A failure that the provider named.
    Failed,
    /// A word that the table does not know.
    Unknown,
}

type Table = &'static [(&'static str, Stop)];

const STOP: Stop = Stop::Good(StopReason::Stop);
const LENGTH: Stop = Stop::Good(StopReason::Length);
const TOOL_USE: Stop = Stop::Good(StopReason::ToolUse);

/// `finish_reason` of chat completions.
pub const OPENAI_COMPLETIONS: Table = &[
    ("stop", STOP),
    ("end", STOP),
    ("length", LENGTH),
    ("tool_calls", TOOL_USE),
    ("function_call", TOOL_USE),
    ("content_filter", Stop::Failed),
    ("network_error", Stop::Failed),
    ("model_context_window_exceeded", Stop::Failed),
];

/// `stop_reason` of Anthropic messages.
pub const ANTHROPIC: Table = &[
    ("end_turn", STOP),
    ("pause_turn", STOP),
    ("stop_sequence", STOP),
    ("max_tokens", LENGTH),
    ("tool_use", TOOL_USE),
    ("refusal", Stop::Failed),
    ("sensitive", Stop::Failed),
];

/// `stopReason` of Bedrock.
pub const BEDROCK: Table = &[
    ("end_turn", STOP),
    ("stop_sequence", STOP),
    ("max_tokens", LENGTH),
    ("model_context_window_exceeded", LENGTH),
    ("tool_use", TOOL_USE),
    ("content_filtered", Stop::Failed),
    ("guardrail_intervened", Stop::Failed),
    ("malformed_model_output", Stop::Failed),
    ("malformed_tool_use", Stop::Failed),
];

/// `status` of Responses, with the reason of an incomplete one.
pub const OPENAI_RESPONSES: Table = &[
    ("completed", STOP),
    ("in_progress", STOP),
    ("queued", STOP),
    ("incomplete.max_output_tokens", LENGTH),
    ("incomplete", Stop::Failed),
    ("incomplete.content_filter", Stop::Failed),
    ("failed", Stop::Failed),
    ("cancelled", Stop::Failed),
];

/// `finishReason` of Gemini.
pub const GOOGLE: Table = &[
    ("STOP", STOP),
    ("MAX_TOKENS", LENGTH),
    ("CONTINUATION", LENGTH),
    ("FINISH_REASON_UNSPECIFIED", Stop::Failed),
    ("SAFETY", Stop::Failed),
    ("RECITATION", Stop::Failed),
    ("LANGUAGE", Stop::Failed),
    ("OTHER", Stop::Failed),
    ("BLOCKLIST", Stop::Failed),
    ("PROHIBITED_CONTENT", Stop::Failed),
    ("SPII", Stop::Failed),
    ("MALFORMED_FUNCTION_CALL", Stop::Failed),
    ("UNEXPECTED_TOOL_CALL", Stop::Failed),
    ("TOO_MANY_TOOL_CALLS", Stop::Failed),
    ("MISSING_THOUGHT_SIGNATURE", Stop::Failed),
    ("IMAGE_SAFETY", Stop::Failed),
    ("IMAGE_PROHIBITED_CONTENT", Stop::Failed),
    ("IMAGE_RECITATION", Stop::Failed),
    ("IMAGE_OTHER", Stop::Failed),
    ("NO_IMAGE", Stop::Failed),
];

/// `finish_reason` of Mistral.
pub const MISTRAL: Table = &[
    ("stop", STOP),
    ("length", LENGTH),
    ("model_length", LENGTH),
    ("tool_calls", TOOL_USE),
    ("error", Stop::Failed),
];

/// Looks a word up.
#[must_use]
pub fn map(table: Table, word: &str) -> Stop {
    table.iter().find(|(known, _)| *known == word).map_or(Stop::Unknown, |(_, stop)| *stop)
}
