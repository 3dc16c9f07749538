//! Vectors of `runtime/`.

mod branches;
mod coercion;
mod compaction;
mod convert;
pub mod retry;
mod summaries;
mod tokens;
mod traces;

pub use convert::bash_message;

use tau_tests::vectors::{VectorFile, file};

/// Files of this area.
#[rustfmt::skip]
pub const FILES: &[VectorFile] = &[
    file("convert-to-llm", convert::to_llm),
    file("orphan-tool-calls", convert::orphans),
    file("system-replay", convert::replay),
    file("tool-state-changes", convert::tool_changes),
    file("token-estimate", tokens::session),
    file("ai-token-estimate", tokens::request),
    file("usage-total", tokens::usage_total),
    file("context-usage", tokens::context),
    file("ai-context-usage", tokens::request_context),
    file("session-projection", super::sessions::context),
    file("session-stats", super::sessions::stats),
    file("lone-surrogates", tokens::lone_surrogates),
    file("traces-agent-core", traces::core),
    file("traces-session", traces::session),
    file("argument-coercion", coercion::validated),
    file("agent-retry-delay", retry::delay),
    file("retryable", retry::retryable),
    file("overflow", retry::overflow),
    file("recoverable-length", retry::recoverable_length),
    file("provider-retry", retry::request),
    file("context-usage-projected", compaction::projected_usage),
    file("should-compact", compaction::threshold),
    file("find-cut-point", compaction::cut_point),
    file("prepare-compaction", compaction::prepare),
    file("file-lists", compaction::file_lists),
    file("serialize-conversation", compaction::serialize),
    file("compaction-requests", summaries::compaction),
    file("branch-collect", branches::collected),
    file("branch-prepare", branches::prepared),
    file("branch-summary-requests", branches::summary),
    file("tree-navigation", branches::navigation),
];
