//! `models-store.json`: lists that were asked for once. Each is read when a model of its provider is asked for.

use std::sync::{Arc, OnceLock};

use tau_core::json::members;
use tau_core::model::base::Base;
use tau_core::model::lists::Lists;

/// The lists of a store.
#[derive(Debug)]
pub struct StoredLists(Vec<List>);

#[derive(Debug)]
struct List {
    provider: String,
    text: String,
    read: OnceLock<Arc<Base>>,
}

impl StoredLists {
    /// Divides the text of a store.
    ///
    /// # Errors
    /// Why it is no store.
    pub fn new(text: &str) -> Result<Self, String> {
        let lists = members(text).map_err(|error| error.to_string())?;
        let list = |(provider, text): (String, &str)| List {
            provider,
            text: text.to_owned(),
            read: OnceLock::new(),
        };
        Ok(Self(lists.into_iter().map(list).collect()))
    }
}

impl Lists for StoredLists {
    fn get(&self, provider: &str, read: &dyn Fn(&str) -> Base) -> Option<&Arc<Base>> {
        let list = self.0.iter().rfind(|list| list.provider == provider)?;
        Some(list.read.get_or_init(|| Arc::new(read(&list.text))))
    }

    fn all_read(&self) -> Vec<(&str, &Arc<Base>)> {
        self.0.iter().filter_map(|list| Some((list.provider.as_str(), list.read.get()?))).collect()
    }
}
