//! Models: what a request is made for (spec 30 §1.7).

pub mod base;
pub mod builtin;
pub mod catalog;
mod collate;
pub mod compose;
pub mod config;
pub mod lists;
pub mod local;
pub mod lookup;
pub mod origin;
mod overrides;
pub mod pattern;
pub mod record;
pub mod remote;
pub mod resolve;
mod schema;
pub mod scope;
pub mod select;
mod write;

pub use collate::compare as compare_names;

use alloc::string::String;
use alloc::vec::Vec;

use crate::json::{Map, Value};

/// How much a model should think.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThinkingLevel {
    /// Not at all.
    #[default]
    Off,
    /// A little.
    Minimal,
    /// Low.
    Low,
    /// Medium.
    Medium,
    /// High.
    High,
    /// Extra high; only for models that name it.
    XHigh,
    /// Maximum; only for models that name it.
    Max,
}

impl ThinkingLevel {
    /// All levels, rising.
    pub const ALL: [Self; 7] =
        [Self::Off, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::XHigh, Self::Max];

    /// The name in settings, sessions and flags.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// Reads a name; case matters.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// USD per million tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// Fresh input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Cache reads.
    pub cache_read: f64,
    /// Cache writes.
    pub cache_write: f64,
    /// Other rates above a number of input tokens.
    pub tiers: Vec<RateTier>,
}

/// Rates that replace the base ones for a whole request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateTier {
    /// Applies when the input (with cache) is larger than this.
    pub input_tokens_above: f64,
    /// Fresh input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Cache reads.
    pub cache_read: f64,
    /// Cache writes.
    pub cache_write: f64,
}

/// Provider, protocol and id of the placeholder.
const UNKNOWN: &str = "unknown";

/// A model and how to reach it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// Id as the service knows it.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Wire protocol, e.g. `openai-completions`.
    pub api: String,
    /// Provider id.
    pub provider: String,
    /// Address without the API path.
    pub base_url: String,
    /// Whether it can think.
    pub reasoning: bool,
    /// Takes text input.
    pub text_input: bool,
    /// Takes images.
    pub image_input: bool,
    /// Context window in tokens; 0 = unknown.
    pub context_window: u64,
    /// Output ceiling in tokens.
    pub max_tokens: u64,
    /// Prices.
    pub rates: Rates,
    /// Level → the provider's value (`null` = not supported).
    pub thinking_levels: Option<Map<String, Value>>,
    /// Static headers; `null` deletes a default.
    pub headers: Vec<(String, Option<String>)>,
    /// Extra body fields for OpenAI-like protocols.
    pub sampling_params: Option<Map<String, Value>>,
    /// Extra body fields per thinking level.
    pub sampling_params_by_level: Option<Map<String, Value>>,
    /// Protocol flags, as configured.
    pub compat: Option<Map<String, Value>>,
    /// Limits for images, as configured.
    pub input_limits: Option<Value>,
}

impl Model {
    /// Stands for "no model can be used" where some model must be shown.
    #[must_use]
    pub fn placeholder() -> Self {
        let unknown = || String::from(UNKNOWN);
        Self { id: unknown(), name: unknown(), api: unknown(), provider: unknown(), ..Self::default() }
    }

    /// Whether this is [`Self::placeholder`].
    #[must_use]
    pub fn is_placeholder(&self) -> bool {
        self.api == UNKNOWN && self.provider == UNKNOWN
    }

    /// What the level map says: `None` = no entry, `Some(None)` = not supported.
    #[must_use]
    pub fn mapped_level(&self, level: ThinkingLevel) -> Option<Option<&str>> {
        match self.thinking_levels.as_ref()?.get(level.name())? {
            Value::Null => Some(None),
            value => value.as_str().map(Some),
        }
    }

    /// Whether the model supports a level (spec 30 §1.7).
    #[must_use]
    pub fn supports(&self, level: ThinkingLevel) -> bool {
        if !self.reasoning {
            return level == ThinkingLevel::Off;
        }
        match self.mapped_level(level) {
            Some(mapped) => mapped.is_some(),
            None => !matches!(level, ThinkingLevel::XHigh | ThinkingLevel::Max),
        }
    }

    /// The supported levels, rising.
    pub fn levels(&self) -> impl Iterator<Item = ThinkingLevel> + '_ {
        ThinkingLevel::ALL.into_iter().filter(|level| self.supports(*level))
    }

    /// The nearest supported level: itself, else the next higher, else the next lower (seed 003 §5c).
    #[must_use]
    pub fn clamp(&self, level: ThinkingLevel) -> ThinkingLevel {
        let higher = self.levels().find(|l| *l >= level);
        higher.or_else(|| self.levels().filter(|l| *l < level).last()).unwrap_or_default()
    }
}
