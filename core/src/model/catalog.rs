//! The models that can be named: built-in ones with `models.json` over them.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::Model;
use super::builtin::{self, Line, Section};
use super::config::{self, BaseProvider, ProviderConfig};
use super::record::{self, Record};
use crate::json::Value;
use crate::settings::ConfigFault;

/// All providers and models.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    configured: Vec<ProviderConfig>,
    faults: Vec<ConfigFault>,
}

/// One model, by name only; [`Entry::model`] makes the rest.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Provider id.
    pub provider: &'a str,
    /// Model id.
    pub id: &'a str,
    /// Name for people.
    pub name: &'a str,
    source: Source<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Table(Section, Line),
    Record(&'a Record),
    Name,
}

impl Catalog {
    /// Reads `models.json`: its text (`None` = no such file), or why it could not be read. What is wrong with it is
    /// in [`Self::faults`]; everything that is right counts.
    #[must_use]
    pub fn load(path: &str, text: Result<Option<&str>, &str>) -> Self {
        let mut catalog = Self::default();
        match text {
            Ok(None) => {}
            Ok(Some(text)) => catalog.configure(path, text),
            Err(why) => catalog.faults.push(ConfigFault {
                file: path.to_string(),
                at: String::new(),
                reason: alloc::format!("cannot be read: {why}"),
            }),
        }
        catalog
    }

    fn configure(&mut self, path: &str, text: &str) {
        let file = config::read(path, text);
        self.faults.extend(file.faults);
        for (id, entry) in file.providers {
            let base = builtin::section(&id).map(|section| BaseProvider {
                name: section.name.to_string(),
                base_url: Some(section.base_url).filter(|url| !url.is_empty()).map(ToString::to_string),
                models: section.records(),
            });
            match config::compose(&id, base.as_ref(), &entry) {
                Ok(provider) => self.configured.push(provider),
                Err(fault) => self.faults.push(config::compose_fault(path, &id, &fault)),
            }
        }
    }

    /// What is wrong with `models.json`.
    #[must_use]
    pub fn faults(&self) -> &[ConfigFault] {
        &self.faults
    }

    /// What `models.json` says about a provider.
    #[must_use]
    pub fn configured(&self, id: &str) -> Option<&ProviderConfig> {
        self.configured.iter().find(|provider| provider.id == id)
    }

    /// Every chat model: built-in providers in their order, then new ones in the order of the file.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry<'_>> {
        let mut entries = Vec::new();
        for section in builtin::sections() {
            match self.configured(section.id) {
                Some(provider) => push_records(&mut entries, provider),
                None => entries.extend(section.lines().map(|line| Entry {
                    provider: section.id,
                    id: line.id,
                    name: line.name,
                    source: Source::Table(section, line),
                })),
            }
        }
        let new = self.configured.iter().filter(|provider| builtin::section(&provider.id).is_none());
        new.for_each(|provider| push_records(&mut entries, provider));
        entries
    }

    /// A model by exact provider and id.
    #[must_use]
    pub fn find(&self, provider: &str, id: &str) -> Option<Model> {
        if let Some(configured) = self.configured(provider) {
            let chat = configured.models.iter().filter(|model| is_chat(model));
            let found = chat.rev().find(|model| model.get("id").is_some_and(|own| own == id));
            return found.map(record::to_model);
        }
        let section = builtin::section(provider)?;
        let line = section.lines().find(|line| line.id == id)?;
        Some(record::to_model(&section.record(line)))
    }
}

fn push_records<'a>(entries: &mut Vec<Entry<'a>>, provider: &'a ProviderConfig) {
    for model in provider.models.iter().filter(|model| is_chat(model)) {
        let text = |key: &str| model.get(key).and_then(Value::as_str).unwrap_or_default();
        entries.push(Entry {
            provider: &provider.id,
            id: text("id"),
            name: text("name"),
            source: Source::Record(model),
        });
    }
}

fn is_chat(model: &Record) -> bool {
    model.get("type").is_none_or(|kind| kind == "chat")
}

impl<'a> Entry<'a> {
    /// A model of which only names are known.
    #[must_use]
    pub const fn named(provider: &'a str, id: &'a str, name: &'a str) -> Self {
        Self { provider, id, name, source: Source::Name }
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> Model {
        match self.source {
            Source::Table(section, line) => record::to_model(&section.record(line)),
            Source::Record(record) => record::to_model(record),
            Source::Name => Model {
                id: self.id.to_string(),
                name: self.name.to_string(),
                provider: self.provider.to_string(),
                ..Model::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_models_are_found() {
        let catalog = Catalog::default();
        let model = catalog.find("anthropic", "claude-opus-5-5").unwrap();
        assert_eq!((model.api.as_str(), model.reasoning), ("anthropic-messages", true));
        assert_eq!(catalog.find("demo", "tour").unwrap().api, "demo");
        assert!(catalog.find("anthropic", "nope").is_none());
        assert!(catalog.entries().len() > 100);
    }

    #[test]
    fn a_faulty_provider_leaves_the_others() {
        let text = r#"{"providers":{"bad":{"baseUrl":7},"empty":{},
            "good":{"baseUrl":"http://h","api":"openai-completions","models":[{"id":"m"}]},
            "anthropic":{"baseUrl":"http://proxy"}}}"#;
        let catalog = Catalog::load("models.json", Ok(Some(text)));
        let places: Vec<&str> = catalog.faults().iter().map(|fault| fault.at.as_str()).collect();
        assert_eq!(places, ["providers.bad.baseUrl", "providers.empty"]);
        assert_eq!(catalog.find("good", "m").unwrap().base_url, "http://h");
        assert_eq!(catalog.find("anthropic", "claude-sonnet-5").unwrap().base_url, "http://proxy");
    }
}
