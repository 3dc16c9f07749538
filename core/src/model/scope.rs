//! The models that patterns name (`--models`, `enabledModels`; spec 40 §3.7): those to choose from at the start and to
//! cycle through.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::catalog::Entry;
use super::pattern;
use super::resolve::{Found, Search, Suffix, full_name, split_level};
use super::select::{Scoped, once_per_provider};

/// What patterns name.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// In the order of the patterns, then of the pool; each once, with the level of the first pattern that names it.
    pub models: Vec<Scoped>,
    /// What people should know.
    pub remarks: Vec<Remark>,
}

/// Something about a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The pattern as written.
    pub pattern: String,
    /// What it is.
    pub what: What,
}

/// What there is to say about a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It names no model that can be used.
    NoMatch,
    /// What follows its last colon is no level; it does not count.
    BadLevel,
    /// Several providers have the model; all of them count.
    Ambiguous(Vec<String>),
}

impl What {
    /// Stable name for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoMatch => "no-match",
            Self::BadLevel => "invalid-thinking-level",
            Self::Ambiguous(_) => "ambiguous",
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pattern, what } = self;
        match what {
            What::NoMatch => write!(f, "the model pattern \"{pattern}\" names no model that can be used"),
            What::BadLevel => {
                write!(
                    f,
                    "the model pattern \"{pattern}\" ends in no thinking level; that part does not count"
                )
            }
            What::Ambiguous(names) => {
                write!(f, "the model pattern \"{pattern}\" names {}; all of them count", names.join(", "))
            }
        }
    }
}

/// Resolves patterns among the models that can be used. The demo is not one of them (decision D4).
#[must_use]
pub fn scope<'p>(
    pool: &[Entry<'_>],
    usable: &dyn Fn(&str) -> bool,
    patterns: impl IntoIterator<Item = &'p str>,
) -> Scope {
    let mut usable = once_per_provider(usable);
    let entries = pool.iter().enumerate();
    let entries =
        entries.filter(|(_, entry)| entry.provider != crate::provider::demo::API && usable(entry.provider));
    let allowed: Vec<usize> = entries.map(|(index, _)| index).collect();
    let mut scope = Scope::default();
    for pattern in patterns {
        scope.add(pool, &allowed, pattern);
    }
    scope
}

impl Scope {
    fn add(&mut self, pool: &[Entry<'_>], allowed: &[usize], pattern: &str) {
        let text = pattern.trim();
        let is_glob = text.contains(['*', '?', '[']);
        let search = Search { pool, allowed, usable: &|_| true, inline_key: false, fuzzy: !is_glob };
        let suffix = if is_glob { Suffix::Level } else { Suffix::Anything };
        let found = match search.find(text, suffix) {
            Ok(None) if is_glob => search.matching(text),
            Ok(None) => Vec::new(),
            Ok(Some(found)) => Vec::from([found]),
            Err(several) => {
                let names = several.candidates.iter().filter_map(|index| pool.get(*index)).map(full_name);
                self.remark(pattern, What::Ambiguous(names.collect()));
                several.each().collect()
            }
        };
        if found.iter().any(|found| found.bad_level) {
            self.remark(pattern, What::BadLevel);
        }
        if found.is_empty() {
            self.remark(pattern, What::NoMatch);
        }
        for Found { index, level, .. } in found {
            if !self.models.iter().any(|scoped| scoped.index == index) {
                self.models.push(Scoped { index, level });
            }
        }
    }

    fn remark(&mut self, pattern: &str, what: What) {
        self.remarks.push(Remark { pattern: pattern.to_string(), what });
    }
}

impl Search<'_> {
    /// All whose id, with or without provider, a pattern fits.
    fn matching(&self, text: &str) -> Vec<Found> {
        let (glob, level) = split_level(text).map_or((text, None), |(glob, level)| (glob, Some(level)));
        let fits =
            |entry: &Entry<'_>| pattern::fits(glob, &full_name(entry)) || pattern::fits(glob, entry.id);
        let hits = self.entries().filter(|(_, entry)| fits(entry));
        hits.map(|(index, _)| Found { index, level, bad_level: false }).collect()
    }
}
