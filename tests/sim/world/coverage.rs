//! How often interesting things happened.

use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage(BTreeMap<&'static str, u64>);

impl Coverage {
    pub(crate) fn saw(&mut self, what: &'static str) {
        self.saw_if(what, true);
    }

    pub(crate) fn saw_if(&mut self, what: &'static str, holds: bool) {
        *self.0.entry(what).or_default() += u64::from(holds);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        other.0.iter().for_each(|(what, count)| *self.0.entry(what).or_default() += count);
    }

    pub(crate) fn count(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }
}
