//! From what a person writes to a model (spec 40 §3.7): exact ids first, then parts of names, then a thinking level
//! as suffix, so that ids which contain colons and slashes mean themselves.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::catalog::{Catalog, Entry};
use super::collate::compare;
use super::{Model, ThinkingLevel};

/// Longest reference, bytes. What is longer names no model: looking for it would cost its length for each model there
/// is, and once more for each level at its end.
const MOST_BYTES: usize = 1024;

/// What was asked for on the command line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Query<'a> {
    /// `--provider`.
    pub provider: Option<&'a str>,
    /// `--model`.
    pub model: Option<&'a str>,
    /// `--thinking`, if it names a level.
    pub thinking: Option<ThinkingLevel>,
    /// `--api-key` is there: stored credentials must not choose the provider the key goes to.
    pub inline_key: bool,
}

/// A chosen model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Index in the pool.
    pub index: usize,
    /// The id does not exist in the pool: use this one with everything else of the model at `index`.
    pub custom_id: Option<String>,
    /// Treat the model as one that thinks, because the caller asks for it.
    pub force_reasoning: bool,
    /// Level given as suffix.
    pub level: Option<ThinkingLevel>,
}

/// Why nothing was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There are no models at all.
    NoModels,
    /// `--provider` names none.
    UnknownProvider {
        /// What was asked for.
        asked: String,
        /// Providers there are.
        known: Vec<String>,
    },
    /// No model fits.
    NotFound {
        /// What was asked for.
        asked: String,
        /// Models with similar names, best first.
        similar: Vec<String>,
    },
    /// Several providers have it.
    Ambiguous {
        /// What was asked for.
        asked: String,
        /// `provider/id` of all that fit, in order.
        candidates: Vec<String>,
        /// Why credentials did not decide.
        hint: Hint,
    },
}

/// Why credentials did not decide between several providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// None of them has credentials.
    NoneAuthenticated,
    /// Several have.
    SeveralAuthenticated,
    /// A key on the command line does not choose a provider.
    ApiKeyDoesNotChoose,
}

impl Hint {
    /// Stable name for programs.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NoneAuthenticated => "none-authenticated",
            Self::SeveralAuthenticated => "several-authenticated",
            Self::ApiKeyDoesNotChoose => "api-key-does-not-choose",
        }
    }
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoModels => f.write_str("there are no models; configure a provider in models.json"),
            Self::UnknownProvider { asked, known } => {
                write!(f, "unknown provider \"{asked}\"; known are {}", known.join(", "))
            }
            Self::NotFound { asked, similar } if similar.is_empty() => {
                write!(f, "no model matches \"{asked}\"; --list-models shows what there is")
            }
            Self::NotFound { asked, similar } => {
                write!(f, "no model matches \"{asked}\"; did you mean {}?", similar.join(", "))
            }
            Self::Ambiguous { asked, candidates, hint } => {
                let why = match hint {
                    Hint::NoneAuthenticated => "none of them has credentials",
                    Hint::SeveralAuthenticated => "more than one of them has credentials",
                    Hint::ApiKeyDoesNotChoose => "a key given on the command line does not say whose it is",
                };
                write!(
                    f,
                    "\"{asked}\" is ambiguous: it fits {}, and {why}; name the provider, e.g. --model {}",
                    candidates.join(", "),
                    candidates.first().map_or("provider/id", String::as_str)
                )
            }
        }
    }
}

impl Choice {
    const fn plain(index: usize, level: Option<ThinkingLevel>) -> Self {
        Self { index, custom_id: None, force_reasoning: false, level }
    }

    /// The model at an index, as it is.
    #[must_use]
    pub const fn exactly(index: usize) -> Self {
        Self::plain(index, None)
    }

    /// The model; `None` only for a pool it was not chosen from.
    #[must_use]
    pub fn model(&self, pool: &[Entry<'_>]) -> Option<Model> {
        let mut model = pool.get(self.index)?.model();
        if let Some(id) = &self.custom_id {
            model.id.clone_from(id);
            model.name.clone_from(id);
            model.reasoning |= self.force_reasoning;
        }
        Some(model)
    }
}

/// Resolves `--model` and `--provider`. `usable` tells whether a provider has credentials. `None` = nothing asked.
///
/// # Errors
/// When nothing, or too much, fits.
pub fn resolve(
    pool: &[Entry<'_>],
    usable: &dyn Fn(&str) -> bool,
    query: &Query<'_>,
) -> Result<Option<Choice>, Refusal> {
    let Some(asked) = query.model.map(str::trim).filter(|model| !model.is_empty()) else { return Ok(None) };
    if pool.is_empty() {
        return Err(Refusal::NoModels);
    }
    if asked.len() > MOST_BYTES {
        return Err(Refusal::NotFound { asked: asked.to_string(), similar: Vec::new() });
    }
    let allowed: Vec<usize> = match query.provider {
        None => (0..pool.len()).collect(),
        Some(name) => of_provider(pool, name)?,
    };
    let usable = |provider: &str| !query.inline_key && usable(provider);
    let search =
        Search { pool, allowed: &allowed, usable: &usable, inline_key: query.inline_key, fuzzy: true };
    match search.find(asked, Suffix::Level).map_err(|several| search.ambiguous(&several))? {
        Some(found) => Ok(Some(Choice::plain(found.index, found.level))),
        None => search.custom(asked, query).map(Some).ok_or_else(|| search.not_found(asked)),
    }
}

/// The model that a query names in full, `provider/id`, letter by letter: what [`resolve`] would find, without
/// looking at all models. `None` says nothing.
#[must_use]
pub fn named_in_full<'a>(
    catalog: &'a Catalog,
    usable: &dyn Fn(&str) -> bool,
    query: &Query<'_>,
) -> Option<Entry<'a>> {
    let text = query.model?.trim();
    let prefixed =
        catalog.providers().filter_map(|provider| Some((provider, after_provider(text, provider)?)));
    let (provider, id) = match (query.provider.map(str::trim), prefixed.max_by_key(|(id, _)| id.len())) {
        (None, Some(found)) => found,
        (Some(provider), None) => (provider, text),
        _ => return None,
    };
    // Another provider may have a model of that whole name, and credentials.
    let is_clear = query.provider.is_some() || query.inline_key || usable(provider);
    catalog.entry(provider, id).filter(|_| is_clear)
}

/// Resolves a reference that must be exact: an id, or `provider/id` (as in `/model`). No suffix, no parts of names.
#[must_use]
pub fn resolve_exact(pool: &[Entry<'_>], usable: &dyn Fn(&str) -> bool, text: &str) -> Option<usize> {
    let allowed: Vec<usize> = (0..pool.len()).collect();
    let search = Search { pool, allowed: &allowed, usable, inline_key: false, fuzzy: false };
    search.find(text.trim(), Suffix::Never).ok().flatten().map(|found| found.index)
}

fn of_provider(pool: &[Entry<'_>], name: &str) -> Result<Vec<usize>, Refusal> {
    let wanted = name.trim();
    let matches = |entry: &Entry<'_>| same_letters(entry.provider.trim(), wanted);
    let found: Vec<usize> =
        pool.iter().enumerate().filter(|(_, entry)| matches(entry)).map(|(index, _)| index).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let mut known: Vec<String> = pool.iter().map(|entry| entry.provider.to_string()).collect();
    known.dedup();
    Err(Refusal::UnknownProvider { asked: wanted.to_string(), known })
}

/// What may follow the last colon of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suffix {
    /// Nothing: a colon belongs to the id.
    Never,
    /// A level.
    Level,
    /// A level, or something that does not count.
    Anything,
}

/// A model that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Index in the pool.
    pub(super) index: usize,
    /// Level given as suffix.
    pub(super) level: Option<ThinkingLevel>,
    /// A suffix was no level.
    pub(super) bad_level: bool,
}

impl Found {
    const fn plain(index: usize) -> Self {
        Self { index, level: None, bad_level: false }
    }

    /// With a suffix that `level` is, if it is one.
    fn with_suffix(self, level: Option<ThinkingLevel>) -> Self {
        let bad_level = self.bad_level || level.is_none();
        Self { level: level.filter(|_| !bad_level), bad_level, ..self }
    }
}

/// Models of several providers fit.
#[derive(Debug)]
pub(super) struct Several {
    text: String,
    /// Indexes in the pool.
    pub(super) candidates: Vec<usize>,
    suffix: Found,
}

impl Several {
    fn with_suffix(self, level: Option<ThinkingLevel>) -> Self {
        Self { suffix: self.suffix.with_suffix(level), ..self }
    }

    /// All of them.
    pub(super) fn each(self) -> impl Iterator<Item = Found> {
        let Self { candidates, suffix, .. } = self;
        candidates.into_iter().map(move |index| Found { index, ..suffix })
    }
}

pub(super) struct Search<'a> {
    pub(super) pool: &'a [Entry<'a>],
    /// What may be chosen.
    pub(super) allowed: &'a [usize],
    pub(super) usable: &'a dyn Fn(&str) -> bool,
    pub(super) inline_key: bool,
    pub(super) fuzzy: bool,
}

impl<'a> Search<'a> {
    pub(super) fn entries(&self) -> impl Iterator<Item = (usize, &'a Entry<'a>)> {
        self.allowed.iter().filter_map(|index| Some((*index, self.pool.get(*index)?)))
    }

    fn provider(&self, index: usize) -> &'a str {
        self.pool.get(index).map(|entry| entry.provider).unwrap_or_default()
    }

    /// The steps in order: a reference, a part of a name, the same without a level at the end.
    pub(super) fn find(&self, text: &str, suffix: Suffix) -> Result<Option<Found>, Several> {
        if text.is_empty() || text.len() > MOST_BYTES {
            return Ok(None);
        }
        if let Some(index) = self.reference(text)? {
            return Ok(Some(Found::plain(index)));
        }
        if self.fuzzy {
            let matches = self.containing(text, None);
            if let Some(index) = self.best_usable(text, matches)? {
                return Ok(Some(Found::plain(index)));
            }
        }
        let Some((rest, level)) = text.rsplit_once(':') else { return Ok(None) };
        let level = ThinkingLevel::parse(level);
        if suffix == Suffix::Never || (suffix == Suffix::Level && level.is_none()) {
            return Ok(None);
        }
        let found = self.find(rest, suffix).map_err(|several| several.with_suffix(level))?;
        Ok(found.map(|found| found.with_suffix(level)))
    }

    /// Exact ids, also behind a provider prefix.
    fn reference(&self, text: &str) -> Result<Option<usize>, Several> {
        let raw = self.with_id(text, None);
        let named = self.prefix(text).and_then(|(provider, rest)| {
            let exact = self.with_id(rest, Some(provider)).first().copied();
            let whole = || raw.iter().copied().find(|index| self.provider(*index) == provider);
            let part =
                || self.fuzzy.then(|| best(self.pool, &self.containing(rest, Some(provider)))).flatten();
            exact.or_else(whole).or_else(part)
        });
        let mut candidates: Vec<usize> = named.into_iter().collect();
        candidates.extend(raw.into_iter().filter(|index| Some(*index) != named));
        let Some(first) = candidates.first().copied() else { return Ok(None) };

        let same_provider = |index: &usize| self.provider(*index) == self.provider(first);
        if candidates.iter().all(same_provider) {
            return Ok(Some(first));
        }
        let usable: Vec<usize> =
            candidates.iter().copied().filter(|index| (self.usable)(self.provider(*index))).collect();
        match (named, usable.as_slice()) {
            (Some(named), usable) if usable.contains(&named) || usable.is_empty() => Ok(Some(named)),
            (_, [only]) => Ok(Some(*only)),
            _ => Err(several(text, candidates)),
        }
    }

    /// The best of the models whose names contain a text, on providers with credentials if there are any.
    fn best_usable(&self, text: &str, mut matches: Vec<usize>) -> Result<Option<usize>, Several> {
        let usable: Vec<usize> =
            matches.iter().copied().filter(|index| (self.usable)(self.provider(*index))).collect();
        if !usable.is_empty() {
            matches = usable;
        }
        let Some(best) = best(self.pool, &matches) else { return Ok(None) };
        let id = self.pool.get(best).map(|entry| entry.id);
        let same: Vec<usize> =
            matches.into_iter().filter(|index| self.pool.get(*index).map(|entry| entry.id) == id).collect();
        if same.iter().all(|index| self.provider(*index) == self.provider(best)) {
            Ok(Some(best))
        } else {
            Err(several(text, same))
        }
    }

    fn with_id(&self, id: &str, provider: Option<&str>) -> Vec<usize> {
        let fits = |entry: &Entry<'_>| {
            provider.is_none_or(|provider| entry.provider == provider) && same_letters(entry.id, id)
        };
        self.entries().filter(|(_, entry)| fits(entry)).map(|(index, _)| index).collect()
    }

    fn containing(&self, part: &str, provider: Option<&str>) -> Vec<usize> {
        let part = part.to_lowercase();
        let fits = |entry: &Entry<'_>| {
            provider.is_none_or(|provider| entry.provider == provider)
                && (entry.id.to_lowercase().contains(&part) || entry.name.to_lowercase().contains(&part))
        };
        self.entries().filter(|(_, entry)| fits(entry)).map(|(index, _)| index).collect()
    }

    /// The longest provider id that stands before a slash, and what follows.
    fn prefix<'t>(&self, text: &'t str) -> Option<(&'a str, &'t str)> {
        let mut found: Option<(&'a str, &'t str)> = None;
        let mut seen = "";
        for (_, entry) in self.entries() {
            if entry.provider == seen {
                continue;
            }
            seen = entry.provider;
            if let Some(rest) = after_provider(text, entry.provider)
                && found.is_none_or(|(longest, _)| longest.len() < entry.provider.len())
            {
                found = Some((entry.provider, rest));
            }
        }
        found
    }

    /// An id nobody knows, on a provider that is known.
    fn custom(&self, text: &str, query: &Query<'_>) -> Option<Choice> {
        let (provider, id) = match (query.provider, self.prefix(text)) {
            (_, Some(found)) => found,
            (Some(_), None) => (self.provider(*self.allowed.first()?), text),
            (None, None) => return None,
        };
        let mine: Vec<usize> =
            self.entries().filter(|(_, entry)| entry.provider == provider).map(|(index, _)| index).collect();
        let default = super::select::default_model(provider);
        let preferred = mine.iter().copied().find(|index| self.pool.get(*index).map(|e| e.id) == default);
        let index = preferred.or_else(|| mine.first().copied())?;
        let (id, level) = match split_level(id) {
            Some((rest, level)) if query.thinking.is_none() => (rest, Some(level)),
            _ => (id, None),
        };
        let wanted = query.thinking.or(level).unwrap_or_default();
        Some(Choice {
            index,
            custom_id: Some(id.to_string()),
            force_reasoning: wanted != ThinkingLevel::Off,
            level,
        })
    }

    fn ambiguous(&self, several: &Several) -> Refusal {
        let Several { text, candidates, .. } = several;
        let with_credentials =
            candidates.iter().filter(|index| (self.usable)(self.provider(**index))).count();
        let mut names: Vec<String> =
            candidates.iter().filter_map(|i| self.pool.get(*i)).map(full_name).collect();
        names.sort_by(|a, b| compare(a, b));
        names.dedup();
        let hint = match with_credentials {
            _ if self.inline_key => Hint::ApiKeyDoesNotChoose,
            0 => Hint::NoneAuthenticated,
            _ => Hint::SeveralAuthenticated,
        };
        Refusal::Ambiguous { asked: text.clone(), candidates: names, hint }
    }

    /// Names that share the most words with what was asked for.
    fn not_found(&self, text: &str) -> Refusal {
        let words = words(text);
        let mut scored: Vec<(usize, String)> = self
            .entries()
            .map(|(_, entry)| (shared(&words, &full_name(entry)), full_name(entry)))
            .filter(|(score, _)| *score > 0)
            .collect();
        scored.sort_by(|(a, name_a), (b, name_b)| b.cmp(a).then_with(|| compare(name_a, name_b)));
        let similar = scored.into_iter().take(3).map(|(_, name)| name).collect();
        Refusal::NotFound { asked: text.to_string(), similar }
    }
}

fn several(text: &str, candidates: Vec<usize>) -> Several {
    Several { text: text.to_string(), candidates, suffix: Found::plain(usize::MAX) }
}

pub(super) fn full_name(entry: &Entry<'_>) -> String {
    format!("{}/{}", entry.provider, entry.id)
}

/// Words of at least two letters or digits, lower case.
fn words(text: &str) -> Vec<String> {
    let pieces = text.split(|c: char| !c.is_alphanumeric()).filter(|piece| piece.chars().count() > 1);
    pieces.map(str::to_lowercase).collect()
}

fn shared(wanted: &[String], name: &str) -> usize {
    let have = words(name);
    wanted.iter().filter(|word| have.contains(word)).count()
}

/// `text:level` apart, if the part after the last colon names a level exactly.
pub(super) fn split_level(text: &str) -> Option<(&str, ThinkingLevel)> {
    let (rest, level) = text.rsplit_once(':')?;
    Some((rest, ThinkingLevel::parse(level)?))
}

/// Equal, case aside.
fn same_letters(a: &str, b: &str) -> bool {
    if a.is_ascii() && b.is_ascii() {
        return a.eq_ignore_ascii_case(b);
    }
    a.to_lowercase() == b.to_lowercase()
}

fn after_provider<'t>(text: &'t str, provider: &str) -> Option<&'t str> {
    let provider = provider.trim();
    let mut letters = text.char_indices();
    // Compared letter by letter: lower-casing may change lengths.
    for wanted in provider.chars() {
        let (_, got) = letters.next()?;
        if !got.to_lowercase().eq(wanted.to_lowercase()) {
            return None;
        }
    }
    let rest = letters.as_str().trim_start().strip_prefix('/')?.trim();
    (!rest.is_empty() && !provider.is_empty()).then_some(rest)
}

/// The best of several fitting models: aliases before dated versions, then the greatest id.
fn best(pool: &[Entry<'_>], matches: &[usize]) -> Option<usize> {
    let id = |index: &usize| pool.get(*index).map(|entry| entry.id).unwrap_or_default();
    let aliases: Vec<usize> = matches.iter().copied().filter(|index| is_alias(id(index))).collect();
    let list = if aliases.is_empty() { matches } else { &aliases };
    // Of equal ids the first in the pool.
    list.iter().copied().rev().max_by(|a, b| compare(id(a), id(b)))
}

fn is_alias(id: &str) -> bool {
    let dated =
        id.rsplit_once('-').is_some_and(|(_, end)| end.len() == 8 && end.bytes().all(|b| b.is_ascii_digit()));
    !dated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_was_meant() {
        let pool = [
            Entry::named("anthropic", "claude-opus-5", "Claude Opus 5"),
            Entry::named("openai", "gpt-5", "GPT-5"),
        ];
        let query = Query { model: Some("claude-opsu-5"), ..Query::default() };
        let refusal = resolve(&pool, &|_| false, &query).unwrap_err();
        assert_eq!(
            refusal,
            Refusal::NotFound {
                asked: "claude-opsu-5".into(),
                similar: alloc::vec!["anthropic/claude-opus-5".into()]
            }
        );
        let query = Query { provider: Some("nope"), model: Some("x"), ..Query::default() };
        assert!(resolve(&pool, &|_| false, &query).unwrap_err().to_string().contains("anthropic, openai"));
    }

    #[test]
    fn what_is_too_long_names_no_model() {
        let pool = [Entry::named("openai", "gpt-5", "GPT-5")];
        for (part, times) in [(":off", 1_000_000), (":", 1_000_000), ("ä", 1_000_000), ("a ", 1_000_000)] {
            let text = "openai/gpt".to_string() + &part.repeat(times);
            let query = Query { model: Some(&text), ..Query::default() };
            let refusal = resolve(&pool, &|_| false, &query).unwrap_err();
            assert!(matches!(refusal, Refusal::NotFound { similar, .. } if similar.is_empty()), "{part}");
            assert_eq!(resolve_exact(&pool, &|_| false, &text), None);
            let patterns = [text.as_str()];
            let scoped = super::super::scope::scope(&pool, &|_| false, patterns);
            assert!(scoped.models.is_empty(), "{part}");
        }
    }
}
