//! Replies that failed because the context did not fit, and replies cut for no good reason (spec 10 §6).

use crate::message::{AssistantMessage, StopReason};
use crate::provider::advice::words;
use crate::retry::classify::TRANSIENT_STATUS;
use crate::text::phrase::contains_any;

/// Whether the context of a finished reply was too large for the model.
///
/// `window` is the context window of the model that answered, in tokens; `None` or 0 = unknown, then only words count.
#[must_use]
pub fn is_overflow(reply: &AssistantMessage, window: Option<u64>) -> bool {
    let read = u128::from(reply.usage.input) + u128::from(reply.usage.cache_read);
    let window = u128::from(window.unwrap_or_default());
    match reply.stop_reason {
        StopReason::Error => words(reply).is_some_and(|text| says_overflow(text, &reply.provider)),
        // The service took more than fits, without a word.
        StopReason::Stop => window > 0 && read > window,
        // The service cut the input to the window and had no room for an answer: 99 % of it is full.
        StopReason::Length => window > 0 && reply.usage.output == 0 && read * 100 >= window * 99,
        _ => false,
    }
}

/// Whether a reply ended at a limit below that of the model: something else cut it, so less context helps.
///
/// `max_tokens` is the limit in the description of the model, not that of the request; 0 = unknown.
#[must_use]
pub fn is_recoverable_length(reply: &AssistantMessage, max_tokens: u64) -> bool {
    reply.stop_reason == StopReason::Length && max_tokens > 0 && reply.usage.output < max_tokens
}

/// Whether the words of a failure tell of a context that does not fit.
fn says_overflow(text: &str, provider: &str) -> bool {
    if contains_any(text, VETO) || contains_any(text, TRANSIENT_STATUS) {
        return false;
    }
    contains_any(text, OVERFLOW) || (provider == "cerebras" && contains_any(text, CEREBRAS))
}

/// Throttling that talks of tokens, too: never an overflow.
pub const VETO: &[&str] =
    &["{start}Throttling error:", "{start}Service unavailable:", "rate limit", "too many requests"];

/// Words of overflow, by the service they were seen at.
pub const OVERFLOW: &[&str] = &[
    // Anthropic, z.ai, Bedrock; Ollama says more behind it.
    "prompt [is ]too long",
    "prompt exceeds max length",
    "request_too_large",
    "input is too long for requested model",
    // OpenAI.
    "exceeds the context window",
    // Compatible services and LiteLLM.
    "exceeds [the ][model's ][models ]maximum context length of {number} token",
    "exceeds [the ][model's ][models ]maximum context length{blanks}({number})",
    "context window exceeded",
    // Google.
    "input token count{line}exceeds the maximum",
    // xAI.
    "maximum prompt length is {digits}",
    // Groq.
    "reduce the length of the messages",
    // OpenRouter.
    "maximum context length is {digits} tokens",
    "exceeds [the ]maximum allowed input length of {number} token",
    // Together.
    "input ({digits} tokens) is longer than the model[']s context length ({digits} tokens)",
    // Copilot.
    "exceeds the limit of {digits}",
    // llama.cpp, in both wordings.
    "exceeds the available context size",
    "context size has been exceeded",
    // LM Studio.
    "greater than the context length",
    // MiniMax.
    "context window exceeds limit",
    // Kimi.
    "exceeded model token limit",
    // Mistral.
    "too large for model with {digits} maximum context length",
    // DS4.
    "prompt has {number} token[s], but the configured context size is {number} token",
    // A finish reason of z.ai.
    "model_context_window_exceeded",
    // DashScope.
    "range of input length should be",
    // Anyone.
    "context{sep}length{sep}exceeded",
    "too many tokens",
    "token limit exceeded",
    // HTTP 413.
    "{start}{name} API error (413):",
    "{start}413{blank}",
    "{start}413:",
    "{start}413{end}",
];

/// This service answers an overflow without a body.
pub const CEREBRAS: &[&str] =
    &["{start}400{blanks}[status code]{blanks}(no body)", "{start}413{blanks}[status code]{blanks}(no body)"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Usage;
    use crate::text::phrase::tests::check_rows;

    #[test]
    #[rustfmt::skip]
    fn every_row() {
        check_rows(VETO, &[
            ("{start}Throttling error:", "Throttling error: too many tokens", "x Throttling error: too many tokens"),
            ("{start}Service unavailable:", "Service unavailable: too many tokens", "the Service unavailable: x"),
            ("rate limit", "too many tokens per minute, this is a rate limit", "rate-limit rate_limit"),
            ("too many requests", "429 too many requests (token limit exceeded)", "too many tokens"),
        ]);
        check_rows(OVERFLOW, &[
            ("prompt [is ]too long", "PROMPT IS TOO LONG; prompt too long", "prompt  too long"),
            ("prompt exceeds max length", "Prompt exceeds max length", "prompt exceeds length"),
            ("request_too_large", "{\"type\":\"request_too_large\"}", "request too large"),
            ("input is too long for requested model", "Input is too long for requested model.", "input is too long"),
            ("exceeds the context window", "Your input exceeds the context window of it", "in the context window"),
            ("exceeds [the ][model's ][models ]maximum context length of {number} token", "exceeds the model's maximum context length of 131,072 tokens", "exceeds the model's maximum context length"),
            ("exceeds [the ][model's ][models ]maximum context length{blanks}({number})", "exceeds models maximum context length (262144)", "exceeds maximum context length (x)"),
            ("context window exceeded", "Context Window exceeded for given call", "context window"),
            ("input token count{line}exceeds the maximum", "The input token count (5) exceeds the maximum", "input token count (5)\nexceeds the maximum"),
            ("maximum prompt length is {digits}", "maximum prompt length is 131072", "maximum prompt length is unknown"),
            ("reduce the length of the messages", "Please reduce the length of the messages.", "reduce the length"),
            ("maximum context length is {digits} tokens", "maximum context length is 4096 tokens", "maximum context length is 4,096 tokens"),
            ("exceeds [the ]maximum allowed input length of {number} token", "exceeds the maximum allowed input length of 8,192 tokens", "exceeds the maximum allowed input length"),
            ("input ({digits} tokens) is longer than the model[']s context length ({digits} tokens)", "The input (9 tokens) is longer than the model's context length (8 tokens).", "The input is longer than the model's context length"),
            ("exceeds the limit of {digits}", "count of 130000 exceeds the limit of 128000", "exceeds the limit of your plan"),
            ("exceeds the available context size", "the request exceeds the available context size", "exceeds the size"),
            ("context size has been exceeded", "Context size has been exceeded.", "size has been exceeded"),
            ("greater than the context length", "is greater than the context length", "greater than the length"),
            ("context window exceeds limit", "context window exceeds limit", "window exceeds limit"),
            ("exceeded model token limit", "Your request exceeded model token limit: 5", "exceeded a limit"),
            ("too large for model with {digits} maximum context length", "too large for model with 131072 maximum context length", "too large for model"),
            ("prompt has {number} token[s], but the configured context size is {number} token", "Prompt has 65,537 tokens, but the configured context size is 1 token", "prompt has 5 tokens"),
            ("model_context_window_exceeded", "Provider stop: model_context_window_exceeded", "context_window"),
            ("range of input length should be", "Range of input length should be [1, 98304]", "range of input"),
            ("context{sep}length{sep}exceeded", "context_length_exceeded", "context-length-exceeded"),
            ("too many tokens", "too many tokens in request", "too many things"),
            ("token limit exceeded", "Token limit exceeded", "token limit"),
            ("{start}{name} API error (413):", "github-copilot API error (413): x", "foo/bar API error (413): x"),
            ("{start}413{blank}", "413 status code (no body)", "413abc"),
            ("{start}413:", "413: whatever", "got 413: x"),
            ("{start}413{end}", "413", "status 413"),
        ]);
        check_rows(CEREBRAS, &[
            ("{start}400{blanks}[status code]{blanks}(no body)", "400 status code (no body)", "401 status code (no body)"),
            ("{start}413{blanks}[status code]{blanks}(no body)", "413 (no body)", "x 413 (no body)"),
        ]);
    }

    fn reply(stop_reason: StopReason, text: Option<&str>, usage: Usage) -> AssistantMessage {
        AssistantMessage {
            stop_reason,
            error_message: text.map(Into::into),
            usage,
            ..AssistantMessage::default()
        }
    }

    #[test]
    fn words_and_numbers() {
        let failed = |text| is_overflow(&reply(StopReason::Error, Some(text), Usage::default()), None);
        assert!(failed("prompt is too long") && !failed("529 prompt is too long") && !failed(""));
        assert!(!is_overflow(
            &reply(StopReason::Stop, Some("prompt is too long"), Usage::default()),
            Some(9)
        ));
        let huge = Usage { input: u64::MAX, cache_read: u64::MAX, ..Usage::default() };
        assert!(is_overflow(&reply(StopReason::Stop, None, huge), Some(u64::MAX)));
        assert!(!is_overflow(&reply(StopReason::Stop, None, huge), Some(0)));
        assert!(is_overflow(&reply(StopReason::Length, None, huge), Some(u64::MAX)));
        assert!(!is_recoverable_length(&reply(StopReason::Length, None, huge), 0));
        assert!(is_recoverable_length(&reply(StopReason::Length, None, huge), 1));
    }
}
