//! Variables that tell commands about the session (spec 50 §5.1).

use alloc::string::String;
use alloc::vec::Vec;

/// What commands may know about the session; absent facts set no variable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFacts {
    /// Session id.
    pub id: Option<String>,
    /// Absolute path of the session file.
    pub file: Option<String>,
    /// Provider of the model.
    pub provider: Option<String>,
    /// Model id.
    pub model: Option<String>,
    /// Thinking level.
    pub thinking: Option<String>,
}

/// Changes of the environment: inherited values are removed, known facts set. No facts (`None`, or the user
/// switched it off) only removes, so that a nested session does not pass for its parent.
#[must_use]
pub fn session_variables(facts: Option<&SessionFacts>) -> Vec<(String, Option<String>)> {
    let none = SessionFacts::default();
    let facts = facts.unwrap_or(&none);
    let pairs = [
        ("PI_SESSION_ID", &facts.id),
        ("PI_SESSION_FILE", &facts.file),
        ("PI_PROVIDER", &facts.provider),
        ("PI_MODEL", &facts.model),
        ("PI_REASONING_LEVEL", &facts.thinking),
    ];
    pairs.into_iter().map(|(name, value)| (name.into(), value.clone())).collect()
}
