//! The Responses protocol of OpenAI and its relatives at Azure and ChatGPT (spec 30 §3.3, §3.5, §3.6).
//!
//! Items of the conversation instead of messages: a reply is a row of reasoning, message and call items, each with an
//! id that must come back with it. What differs between the services is a [`Dialect`] or a flag of the model.

pub(crate) mod codex;
mod compat;
mod decode;
mod encode;
mod fields;
mod head;
mod items;
mod usage;

pub use encode::{Limits, ResponsesEncoder};

/// Which service a model of this protocol is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI and everything compatible.
    OpenAi,
    /// Deployments at Azure.
    Azure,
    /// ChatGPT plans.
    Codex,
}

const APIS: &[(&str, Dialect)] = &[
    ("openai-responses", Dialect::OpenAi),
    ("azure-openai-responses", Dialect::Azure),
    ("openai-codex-responses", Dialect::Codex),
];

impl Dialect {
    /// The dialect of a protocol name in models; `None` for another protocol.
    #[must_use]
    pub fn of(api: &str) -> Option<Self> {
        APIS.iter().find(|(name, _)| *name == api).map(|(_, dialect)| *dialect)
    }
}
