//! What a service of this protocol can do: defaults by dialect, overruled by `model.compat` (spec 30 §3.3).

use super::Dialect;
use crate::model::Model;
use crate::provider::flags::Flags;

/// The flags of one model.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)]
pub(super) struct Compat {
    /// System texts come from a developer when the model thinks.
    pub(super) developer_role: bool,
    pub(super) strict: bool,
    pub(super) grammar: bool,
    pub(super) max_output_tokens: bool,
    pub(super) long_cache: bool,
    pub(super) cache_key: bool,
    /// The cache is steered by `prompt_cache_options`.
    pub(super) explicit_cache: bool,
}

impl Compat {
    pub(super) fn of(model: &Model, dialect: Dialect) -> Self {
        let set = Flags(model.compat.as_ref());
        Self {
            developer_role: set.flag("supportsDeveloperRole", true),
            strict: set.flag("supportsStrictMode", dialect != Dialect::OpenAi),
            grammar: set.flag("supportsOpenAIGrammarTools", false),
            max_output_tokens: set.flag("supportsMaxOutputTokens", true),
            long_cache: set.flag("supportsLongCacheRetention", true),
            cache_key: set.text("promptCacheKeyMode") != Some("disabled"),
            explicit_cache: set.flag("supportsExplicitPromptCacheMode", false),
        }
    }
}
