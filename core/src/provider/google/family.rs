//! What the id of a model tells about the model (spec 30 §3.4): the service describes none of this.

use alloc::string::String;

use crate::model::{Model, ThinkingLevel};
use crate::provider::ThinkingBudgets;

/// The id without its path (`models/…`, `publisher/…`), in lower case.
fn short(id: &str) -> String {
    id.rsplit('/').next().unwrap_or_default().to_ascii_lowercase()
}

/// Main version of a Gemini model and what follows it: `gemini-3.1-pro` → 3, `.1-pro`.
fn version(short: &str) -> Option<(u32, &str)> {
    let rest = short.strip_prefix("gemini-")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, rest) = rest.split_at(end);
    Some((digits.parse().ok()?, rest))
}

/// Main version, also of the live models.
fn major(short: &str) -> Option<u32> {
    let live = short.strip_prefix("gemini-live-").map(|rest| ["gemini-", rest].concat());
    version(live.as_deref().unwrap_or(short)).map(|(major, _)| major)
}

/// Whether the model thinks by level; others think by a number of tokens.
#[must_use]
pub fn thinks_by_level(id: &str) -> bool {
    let id = short(id);
    if id.starts_with("gemma-4") || id.starts_with("gemma4") {
        return true;
    }
    match version(&id) {
        Some((3, rest)) => {
            let minor =
                rest.strip_prefix('.').map(|minor| minor.trim_start_matches(|c: char| c.is_ascii_digit()));
            let kind = minor.unwrap_or(rest);
            kind.starts_with("-pro") || kind.starts_with("-flash")
        }
        Some((major, _)) => major > 3,
        None => matches!(&*id, "gemini-flash-latest" | "gemini-flash-lite-latest"),
    }
}

/// Whether calls and results name their call by id.
#[must_use]
pub fn needs_call_ids(id: &str) -> bool {
    let id = short(id);
    id.starts_with("claude-") || id.starts_with("gpt-oss-") || major(&id).is_some_and(|major| major >= 3)
}

/// Whether the service can hold the model to the schema of a tool.
#[must_use]
pub fn strict_tools(id: &str) -> bool {
    major(&short(id)).is_some_and(|major| major >= 3)
}

/// Whether the service refuses calls of the turn that goes on when they have no signature.
pub(super) fn needs_signed_calls(id: &str) -> bool {
    strict_tools(id)
}

/// Whether images may stand inside a tool result.
pub(super) fn nests_images(id: &str) -> bool {
    major(&short(id)).is_none_or(|major| major >= 3)
}

/// Budgets by level of the models that have fixed ones: minimal, low, medium, high.
const BUDGETS: &[(&str, [i64; 4])] = &[
    ("2.5-pro", [128, 2048, 8192, 32768]),
    ("2.5-flash-lite", [512, 2048, 8192, 24576]),
    ("2.5-flash", [128, 2048, 8192, 24576]),
];

/// The model decides itself how long it thinks.
const DYNAMIC: i64 = -1;

/// How a request tells the model to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinking {
    /// Nothing is said about it.
    Unsaid,
    /// Not at all, or as little as the model can; thoughts are not sent.
    Least(Amount),
    /// So much; thoughts are sent.
    Shown(Amount),
}

/// How much a model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A word.
    Level(&'static str),
    /// Tokens; -1 = as the model likes.
    Budget(i64),
}

impl Thinking {
    /// Chooses by level and model. Without a level nothing is said (seed 003 "omit").
    #[must_use]
    pub fn choose(model: &Model, level: Option<ThinkingLevel>, budgets: &ThinkingBudgets) -> Self {
        let Some(wanted) = level.filter(|_| model.reasoning) else { return Self::Unsaid };
        let level = model.clamp(wanted);
        let by_level = thinks_by_level(&model.id);
        let off = wanted == ThinkingLevel::Off || level == ThinkingLevel::Off;
        match (off, by_level) {
            (true, true) if level != ThinkingLevel::Off => Self::Least(Amount::Level(word(model, level))),
            (true, _) => Self::Least(Amount::Budget(0)),
            (false, true) => Self::Shown(Amount::Level(word(model, level))),
            (false, false) => Self::Shown(Amount::Budget(budget(&model.id, level, budgets))),
        }
    }
}

/// The service's word for a level: the mapped one if the service knows it.
fn word(model: &Model, level: ThinkingLevel) -> &'static str {
    const WORDS: [&str; 4] = ["MINIMAL", "LOW", "MEDIUM", "HIGH"];
    let known = |name: &str| WORDS.into_iter().find(|word| word.eq_ignore_ascii_case(name));
    let mapped = model.mapped_level(level).flatten().and_then(known);
    mapped.or_else(|| known(level.name())).unwrap_or("HIGH")
}

fn budget(id: &str, level: ThinkingLevel, custom: &ThinkingBudgets) -> i64 {
    let (column, custom) = match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal => (0, custom.minimal),
        ThinkingLevel::Low => (1, custom.low),
        ThinkingLevel::Medium => (2, custom.medium),
        ThinkingLevel::High | ThinkingLevel::XHigh | ThinkingLevel::Max => (3, custom.high),
    };
    if let Some(tokens) = custom {
        return i64::try_from(tokens).unwrap_or(i64::MAX);
    }
    let row = BUDGETS.iter().find(|(part, _)| id.contains(part));
    row.and_then(|(_, row)| row.get(column)).copied().unwrap_or(DYNAMIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_case_do_not_matter() {
        for id in ["models/Gemini-3-Pro-Preview", "google/gemini-3.1-flash-lite", "gemini-12"] {
            assert!(
                thinks_by_level(id) && needs_call_ids(id) && strict_tools(id) && nests_images(id),
                "{id}"
            );
        }
        for id in ["gemini-3-image", "gemini-3.5", "gemini-", "gemini", "", "gemini-99999999999-pro"] {
            assert!(!thinks_by_level(id), "{id}");
        }
        assert!(!nests_images("gemini-2.5-pro") && nests_images("claude-sonnet-4-5"));
    }
}
