//! What the built-in catalogue knows of a model that a host names by vendor, id and style of its service
//! (spec 40 §3.5, seed 003 §6). Ids are free: one that nobody knows is no error.

use super::builtin::{self, Section};
use super::catalog::Entry;

/// Vendors that make the models they serve, so what their lists say holds for the model and not for a service.
const ORIGINAL: [&str; 16] = [
    "amazon-bedrock",
    "ant-ling",
    "anthropic",
    "deepseek",
    "google",
    "kimi-coding",
    "meta",
    "minimax",
    "mistral",
    "moonshotai",
    "nvidia",
    "openai",
    "openai-codex",
    "xai",
    "xiaomi",
    "zai",
];

/// Where an id may go on after that of a known model: `gpt-4o:beta` is a `gpt-4o`, `gpt-4omni` is not.
const BOUNDARIES: [char; 6] = ['-', '_', '.', ':', '@', '/'];

/// The protocol that a host means by the style of a service; a style that nobody knows is chat completions.
#[must_use]
pub fn protocol(style: &str) -> &'static str {
    match style {
        "anthropic_messages" => "anthropic-messages",
        "responses" => "openai-responses",
        "openai_codex_responses" => "openai-codex-responses",
        "google_generative_ai" => "google-generative-ai",
        "pi_messages" => "pi-messages",
        _ => "openai-completions",
    }
}

/// The known model that a request to this vendor is made for: the vendor's own of this id, if it speaks `api`; else of
/// all that do the one of this id, case aside; else the one with the longest id that this id begins with. `None` =
/// nobody knows it, and nothing may be taken for granted: text, no thinking.
#[must_use]
pub fn model(vendor: &str, id: &str, api: &str) -> Option<Entry<'static>> {
    let id = id.trim();
    let speaks = |entry: &Entry<'_>| entry.model().api == api;
    exact(vendor, id).filter(speaks).or_else(|| best(id, builtin::sections(), speaks))
}

/// What to suggest when a model is set up, whatever protocol it will be reached by: only what its maker says counts.
#[must_use]
pub fn draft(vendor: &str, id: &str) -> Option<Entry<'static>> {
    let id = id.trim();
    let original = |section: &Section| ORIGINAL.contains(&section.id);
    exact(vendor, id)
        .filter(|entry| ORIGINAL.contains(&entry.provider))
        .or_else(|| best(id, builtin::sections().filter(original), |_| true))
}

fn exact(vendor: &str, id: &str) -> Option<Entry<'static>> {
    let section = builtin::section(vendor)?;
    Some(Entry::of_table(section.id, section.line(id)?))
}

/// By the same id, else by the longest one that `id` begins with. Of several the one that most is known of; of these
/// the first of the catalogue.
fn best(
    id: &str,
    sections: impl Iterator<Item = Section>,
    fits: impl Fn(&Entry<'_>) -> bool,
) -> Option<Entry<'static>> {
    let mut found: Option<(usize, u8, Entry<'static>)> = None;
    for section in sections {
        for line in section.lines() {
            if !begins_with(id, line.id) {
                continue;
            }
            let entry = Entry::of_table(section.id, line);
            let rank = (line.id.len(), richness(&entry));
            let better = found.as_ref().is_none_or(|(length, known, _)| rank > (*length, *known));
            if better && fits(&entry) {
                found = Some((rank.0, rank.1, entry));
            }
        }
    }
    found.map(|(_, _, entry)| entry)
}

/// Whether `id` is `known`, case aside, or goes on after it at a boundary.
fn begins_with(id: &str, known: &str) -> bool {
    let Some((start, rest)) = id.split_at_checked(known.len()) else { return false };
    !known.is_empty()
        && start.eq_ignore_ascii_case(known)
        && (rest.is_empty() || rest.starts_with(BOUNDARIES))
}

/// How many facts are known.
fn richness(entry: &Entry<'_>) -> u8 {
    let facts = entry.facts();
    [
        facts.context_window > 0,
        facts.max_tokens > 0,
        facts.reasoning,
        facts.image_input,
        facts.input > 0.0 || facts.output > 0.0,
    ]
    .into_iter()
    .map(u8::from)
    .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_go_on_at_boundaries() {
        for (id, known, fits) in [
            ("gpt-4o", "gpt-4o", true),
            ("GPT-4o", "gpt-4o", true),
            ("gpt-4o@eu", "gpt-4o", true),
            ("gpt-4omni", "gpt-4o", false),
            ("gpt-4", "gpt-4o", false),
            ("é", "a", false),
            ("x", "", false),
        ] {
            assert_eq!(begins_with(id, known), fits, "{id} {known}");
        }
    }

    #[test]
    fn vendors_of_the_list_are_built_in() {
        ORIGINAL.iter().for_each(|id| assert!(builtin::section(id).is_some(), "{id}"));
    }
}
