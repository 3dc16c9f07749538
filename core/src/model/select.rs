//! Which model and thinking level a session starts with (spec 40 §3.8).

use alloc::format;
use alloc::string::String;

use super::ThinkingLevel;
use super::catalog::Entry;
use super::resolve::Choice;
use crate::provider;
use crate::settings::Settings;

/// Default model per provider; the order is that of the search for the first usable one.
const DEFAULTS: &[(&str, &str)] = &[
    ("amazon-bedrock", "us.anthropic.claude-opus-5-5"),
    ("ant-ling", "Ring-2.6-1T"),
    ("anthropic", "claude-opus-5-5"),
    ("openai", "gpt-6.2-sol"),
    ("azure", "gpt-6.2-sol"),
    ("openai-codex", "gpt-6.2-sol"),
    ("radius", "balanced"),
    ("nvidia", "nvidia/nemotron-3.5-super-vl-120b-a12b"),
    ("deepseek", "deepseek-v4-pro"),
    ("google", "gemini-4-argon"),
    ("google-vertex", "gemini-4-argon"),
    ("github-copilot", "gpt-6.1-sol"),
    ("openrouter", "moonshotai/kimi-k2.7-code"),
    ("vercel-ai-gateway", "zai/glm-5.3"),
    ("xai", "grok-4.7"),
    ("groq", "openai/gpt-oss-120b"),
    ("cerebras", "gpt-oss-120b"),
    ("zai", "glm-5.3"),
    ("zai-coding-cn", "glm-5.3"),
    ("mistral", "devstral-medium-latest"),
    ("minimax", "MiniMax-M3"),
    ("minimax-cn", "MiniMax-M3"),
    ("moonshotai", "kimi-k2.7-code"),
    ("moonshotai-cn", "kimi-k2.7-code"),
    ("huggingface", "moonshotai/Kimi-K2.7-Code"),
    ("fireworks", "accounts/fireworks/models/kimi-k3"),
    ("together", "moonshotai/Kimi-K3"),
    ("baseten", "zai-org/GLM-5.3"),
    ("opencode", "kimi-k2.7-code"),
    ("opencode-go", "kimi-k3.1-pro"),
    ("kimi-coding", "kimi-for-coding"),
    ("meta", "muse-spark-1.3"),
    ("cloudflare-workers-ai", "@cf/moonshotai/kimi-k2.7-code"),
    ("cloudflare-ai-gateway", "workers-ai/@cf/moonshotai/kimi-k2.7-code"),
    ("qwen-token-plan", "qwen3.8-max"),
    ("qwen-token-plan-cn", "qwen3.8-max"),
    ("qwen-token-plan-individual", "qwen3.8-max"),
    ("qwen-token-plan-individual-cn", "qwen3.8-max"),
    ("xiaomi", "mimo-v2.6-pro"),
    ("xiaomi-token-plan-cn", "mimo-v2.6-pro"),
    ("xiaomi-token-plan-ams", "mimo-v2.6-pro"),
    ("xiaomi-token-plan-sgp", "mimo-v2.6-pro"),
];

/// The default model of a provider.
#[must_use]
pub fn default_model(provider: &str) -> Option<&'static str> {
    DEFAULTS.iter().find(|(id, _)| *id == provider).map(|(_, model)| *model)
}

/// Provider and default model, in the order of the search for the first usable one.
pub fn defaults() -> impl Iterator<Item = (&'static str, &'static str)> {
    DEFAULTS.iter().copied()
}

/// What a resumed session recorded. Only sessions with messages have a record.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// Provider and id of the model.
    pub model: Option<(&'a str, &'a str)>,
    /// Thinking level.
    pub level: Option<ThinkingLevel>,
}

/// A model of a scope, with the level its pattern names.
#[derive(Clone, Copy, Debug)]
pub struct Scoped {
    /// Index in the pool.
    pub index: usize,
    /// Level of the pattern.
    pub level: Option<ThinkingLevel>,
}

/// Everything that has a say.
#[derive(Clone, Copy)]
pub struct Wishes<'a> {
    /// What `--model` resolved to.
    pub chosen: Option<&'a Choice>,
    /// `--thinking`.
    pub thinking: Option<ThinkingLevel>,
    /// The session, if it has messages.
    pub recorded: Option<Recorded<'a>>,
    /// Models of `--models` or `enabledModels`; empty = no scope.
    pub scope: &'a [Scoped],
    /// The settings.
    pub settings: &'a Settings,
}

/// How a session starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The model; `None` = there is none that can be used.
    pub choice: Option<Choice>,
    /// The level that was wished for; clamp it with [`super::Model::clamp`].
    pub level: ThinkingLevel,
    /// Something the user must know.
    pub warning: Option<String>,
}

/// Chooses model and level. `usable` tells whether a provider has credentials. The demo model is never chosen here:
/// it must be named (decision D4).
#[must_use]
pub fn select(pool: &[Entry<'_>], usable: &dyn Fn(&str) -> bool, wishes: &Wishes<'_>) -> Start {
    let (picked, warning) = match wishes.chosen {
        Some(choice) => (Some((choice.clone(), choice.level)), None),
        None => automatic(pool, usable, wishes),
    };
    let Some((choice, level_of_choice)) = picked else {
        return Start { choice: None, level: ThinkingLevel::Off, warning };
    };
    let level = wishes
        .thinking
        .or(level_of_choice)
        .or_else(|| stored_level(pool, &choice, wishes))
        .or_else(|| wishes.settings.default_thinking_level())
        .unwrap_or(ThinkingLevel::Medium);
    Start { choice: Some(choice), level, warning }
}

/// The level of the session, or that of the model; a session without a level does not fall back to the model's.
fn stored_level(pool: &[Entry<'_>], choice: &Choice, wishes: &Wishes<'_>) -> Option<ThinkingLevel> {
    match wishes.recorded {
        Some(recorded) => recorded.level,
        None => {
            let entry = pool.get(choice.index)?;
            let id = choice.custom_id.as_deref().unwrap_or(entry.id);
            wishes.settings.model_thinking_level(entry.provider, id)
        }
    }
}

/// Asks once for all models of a provider: they stand together in lists.
pub fn once_per_provider<'a>(usable: &'a dyn Fn(&str) -> bool) -> impl FnMut(&'a str) -> bool {
    let mut last: Option<(&'a str, bool)> = None;
    move |provider| match last {
        Some((known, answer)) if known == provider => answer,
        _ => last.insert((provider, usable(provider))).1,
    }
}

type Picked = Option<(Choice, Option<ThinkingLevel>)>;

fn automatic(
    pool: &[Entry<'_>],
    usable: &dyn Fn(&str) -> bool,
    wishes: &Wishes<'_>,
) -> (Picked, Option<String>) {
    let settings = wishes.settings;
    let find =
        |provider: &str, id: &str| pool.iter().position(|entry| entry.provider == provider && entry.id == id);
    let saved = settings.default_provider().zip(settings.default_model()).and_then(|(p, id)| find(p, id));
    let mut warning = None;
    if let Some(recorded) = wishes.recorded {
        if let Some((provider, id)) = recorded.model {
            match find(provider, id) {
                Some(index) if usable(provider) => return (plain(index, None), None),
                Some(_) => {
                    warning = Some(format!("the session used {provider}/{id}, which has no credentials now"))
                }
                None => {
                    warning = Some(format!("the session used {provider}/{id}, which is not known any more"))
                }
            }
        }
    } else if let Some(first) = wishes.scope.first() {
        let inside = wishes.scope.iter().find(|scoped| Some(scoped.index) == saved);
        let scoped = inside.unwrap_or(first);
        return (plain(scoped.index, scoped.level), None);
    }
    let has_credentials = |index: &usize| pool.get(*index).is_some_and(|entry| usable(entry.provider));
    // What this build cannot talk to is chosen only when there is nothing else, and then says so.
    let first = |spoken: bool| {
        let fits = |index: &usize| !spoken || pool.get(*index).is_some_and(is_spoken);
        let mut defaults = defaults().filter(|(provider, _)| usable(provider));
        let default = defaults.find_map(|(p, id)| find(p, id).filter(fits));
        default.or_else(|| {
            let mut usable = once_per_provider(usable);
            let mut others = pool.iter().enumerate();
            let other = others
                .find(|(index, entry)| entry.provider != "demo" && usable(entry.provider) && fits(index));
            other.map(|(index, _)| index)
        })
    };
    let index = saved.filter(has_credentials).or_else(|| first(true)).or_else(|| first(false));
    match index {
        Some(index) => (plain(index, None), warning),
        None => (None, warning),
    }
}

/// Whether this build speaks the protocol of a model; one that is only a name is taken to be spoken.
fn is_spoken(entry: &Entry<'_>) -> bool {
    let api = entry.model().api;
    api.is_empty() || provider::speaks(&api)
}

fn plain(index: usize, level: Option<ThinkingLevel>) -> Picked {
    Some((Choice { index, custom_id: None, force_reasoning: false, level }, level))
}
