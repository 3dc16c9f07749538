//! Vectors of `providers/`.

mod anthropic;
mod bedrock;
pub mod common;
mod completions;
pub mod exchange;
mod framing;
mod google;
mod history;
mod json;
mod mistral;
pub mod pure;
pub mod responses;

use tau_tests::vectors::{VectorFile, file};

use super::runtime::retry;

/// Files of this area.
#[rustfmt::skip]
pub const FILES: &[VectorFile] = &[
    file("sse-parser", framing::sse),
    file("anthropic-request", anthropic::request),
    file("anthropic-stream", anthropic::stream),
    file("anthropic-sequences", anthropic::sequence),
    file("attribution-headers", pure::attribution),
    file("bedrock-request", bedrock::request),
    file("bedrock-stream", bedrock::stream),
    file("copilot-headers", pure::copilot),
    file("cost", pure::price),
    file("header-merge", pure::header_merge),
    file("google-model-rules", google::model_rules),
    file("google-request", google::request),
    file("google-stream", google::stream),
    file("google-vertex-request", google::request),
    file("mistral-request", mistral::request),
    file("mistral-stream", mistral::stream),
    file("openai-completions-request", completions::request),
    file("openai-completions-stream", completions::stream),
    file("openai-responses-request", responses::request),
    file("openai-responses-stream", responses::stream),
    file("azure-openai-responses-request", responses::request),
    file("openai-codex-request", responses::request),
    file("openai-codex-stream", responses::stream),
    file("option-mapping", pure::option_mapping),
    file("prompt-cache-key", pure::cache_key),
    file("strict-schema", pure::strict_schema),
    file("transform-messages", history::transform),
    file("transcript-fold", history::fold),
    file("short-hash", history::hash),
    file("partial-json", json::partial),
    file("partial-json-replace", json::replace),
    file("repair-json", json::repaired),
    file("tool-arguments-final", json::last),
    file("sanitize-surrogates", json::surrogates),
    file("agent-retry-delay", retry::delay),
    file("error-classification", retry::classification),
    file("recoverable-length", retry::recoverable_length),
    file("provider-retry", retry::request_then_success),
];
