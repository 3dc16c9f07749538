//! `openai-completions`: the chat completions protocol and its many relatives (spec 30 §3.2).

pub(super) mod calls;
pub(super) mod chunk;
mod compat;
mod decode;
mod details;
mod encode;
mod messages;
mod reasoning;
mod tools;

pub use encode::{CompletionsEncoder, Limits};

/// Texts of our own that stand in requests.
pub mod texts {
    pub use super::messages::{TOOL_IMAGES_FOLLOW, TOOL_RESULTS_BRIDGE};
}

/// Name of the protocol in models.
pub const API: &str = "openai-completions";
