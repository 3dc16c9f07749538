//! Newer lists of built-in providers. They are large, and most runs name one model: each list stays a text until
//! somebody asks for its provider.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::base::Base;
use super::builtin::Section;
use super::origin::Origins;
use super::remote::{SHIPPED_AT, Stored};
use crate::json::{self, Value};

/// Keeps lists, as texts and as what was made of them.
pub trait Lists: fmt::Debug + Send + Sync {
    /// What a provider is with its list; `read` makes it of the text, once. `None` = there is no list.
    fn get(&self, provider: &str, read: &dyn Fn(&str) -> Base) -> Option<&Arc<Base>>;

    /// All that were read so far.
    fn all_read(&self) -> Vec<(&str, &Arc<Base>)>;
}

/// A provider with the list in `text`, an entry of `models-store.json`, if that is newer than the table. Models that would
/// send the key elsewhere than to the services of the table or to `configured` are left out.
#[must_use]
pub fn read(section: Section, configured: Option<&str>, text: &str) -> Base {
    match json::parse(text) {
        Ok(entry) => lay(section, configured, Stored::read(section.id, &entry)),
        Err(error) => Base::of_section(section, Vec::new(), false)
            .with_remark(Some(format!("the stored list is not valid JSON ({error}) and does not count"))),
    }
}

fn lay(section: Section, configured: Option<&str>, stored: Stored) -> Base {
    if !stored.is_newer_than(SHIPPED_AT) {
        return Base::of_section(section, Vec::new(), false);
    }
    let mut models = stored.models;
    let elsewhere = Origins::of(section, configured).keep(&mut models);
    for model in &mut models {
        model.insert("provider".to_string(), Value::from(section.id));
    }
    let remark = (!elsewhere.is_empty()).then(|| {
        let places = elsewhere.join(", ");
        format!("models at {places} do not count, requests of this provider do not go there")
    });
    // What OpenRouter lists for a key is all that the key may use.
    Base::of_section(section, models, section.id == "openrouter").with_remark(remark)
}

/// Lists that are read already.
#[derive(Clone, Debug, Default)]
pub struct Read(Vec<(String, Arc<Base>)>);

impl Read {
    /// Reads all lists of a store; `configured` tells the address that `models.json` gives a provider.
    #[must_use]
    pub fn new(lists: Vec<(String, Stored)>, configured: &dyn Fn(&str) -> Option<String>) -> Self {
        let read = |(id, stored): (String, Stored)| {
            let section = super::builtin::section(&id)?;
            let base = lay(section, configured(&id).as_deref(), stored);
            Some((id, Arc::new(base)))
        };
        Self(lists.into_iter().filter_map(read).collect())
    }
}

impl Lists for Read {
    fn get(&self, provider: &str, _: &dyn Fn(&str) -> Base) -> Option<&Arc<Base>> {
        self.0.iter().find(|(id, _)| id == provider).map(|(_, base)| base)
    }

    fn all_read(&self) -> Vec<(&str, &Arc<Base>)> {
        self.0.iter().map(|(id, base)| (id.as_str(), base)).collect()
    }
}
