//! Variables that tell commands about the session (spec 50 §5.1).

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use super::ToolEnv;
use crate::model::{Model, ThinkingLevel};
use crate::session::Session;

/// Variables about the session.
const SESSION: [&str; 5] =
    ["PI_SESSION_ID", "PI_SESSION_FILE", "PI_PROVIDER", "PI_MODEL", "PI_REASONING_LEVEL"];

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

impl SessionFacts {
    /// Those of a session that runs with a model at a level.
    #[must_use]
    pub fn of(session: &Session, model: &Model, level: ThinkingLevel) -> Self {
        Self {
            id: Some(session.id().to_owned()),
            file: session.path().map(str::to_owned),
            provider: Some(model.provider.clone()),
            model: Some(model.id.clone()),
            thinking: Some(level.name().to_owned()),
        }
    }
}

/// What [`ToolEnv::blind_model`] is with a model.
#[must_use]
pub fn blind(model: &Model) -> Option<String> {
    (!model.image_input).then(|| model.id.clone())
}

/// The same surroundings for another model or level.
#[must_use]
pub fn retuned(env: &ToolEnv, session: &Session, model: &Model, level: ThinkingLevel) -> ToolEnv {
    let mut env = ToolEnv { blind_model: blind(model), ..env.clone() };
    for (name, value) in session_variables(Some(&SessionFacts::of(session, model, level))) {
        match env.command_env.iter_mut().find(|(own, _)| *own == name) {
            Some(slot) => slot.1 = value,
            None => env.command_env.push((name, value)),
        }
    }
    env
}

/// Changes of the environment: inherited values are removed, known facts set. No facts (`None`, or the user
/// switched it off) only removes, so that a nested session does not pass for its parent.
#[must_use]
pub fn session_variables(facts: Option<&SessionFacts>) -> Vec<(String, Option<String>)> {
    let none = SessionFacts::default();
    let facts = facts.unwrap_or(&none);
    let values = [&facts.id, &facts.file, &facts.provider, &facts.model, &facts.thinking];
    SESSION.into_iter().zip(values).map(|(name, value)| (name.into(), value.clone())).collect()
}

/// The variables of commands with those about the session removed: for commands that the user runs.
#[must_use]
pub fn without_session(variables: &[(String, Option<String>)]) -> Vec<(String, Option<String>)> {
    let mut out = session_variables(None);
    let others = variables.iter().filter(|(name, _)| !SESSION.contains(&name.as_str()));
    out.extend(others.cloned());
    out
}

/// Defaults for programs that would otherwise wait for a person at a terminal: git takes the message it has instead of
/// opening an editor, and fails instead of asking for a password. What the user has set wins.
const UNATTENDED: [(&str, &str); 2] = [("GIT_EDITOR", "true"), ("GIT_TERMINAL_PROMPT", "0")];

/// Variables to add for commands that nobody attends; `is_set` tells which are inherited.
#[must_use]
pub fn unattended_defaults(is_set: impl Fn(&str) -> bool) -> Vec<(String, Option<String>)> {
    let missing = UNATTENDED.iter().filter(|(name, _)| !is_set(name));
    missing.map(|(name, value)| ((*name).into(), Some((*value).into()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_commands_know_no_session() {
        let own = ("GIT_EDITOR".into(), Some("true".into()));
        let facts = SessionFacts { model: Some("m".into()), ..SessionFacts::default() };
        let mut variables = session_variables(Some(&facts));
        variables.push(own.clone());
        let kept = without_session(&variables);
        assert_eq!(kept.last(), Some(&own));
        assert!(kept.iter().filter(|(_, value)| value.is_none()).count() == SESSION.len());
        assert_eq!(kept.len(), variables.len());
    }

    #[test]
    fn what_the_user_set_wins() {
        let names = |set: &str| -> Vec<String> {
            unattended_defaults(|name| name == set).into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(""), ["GIT_EDITOR", "GIT_TERMINAL_PROMPT"]);
        assert_eq!(names("GIT_EDITOR"), ["GIT_TERMINAL_PROMPT"]);
    }
}
