//! The models that can be named: built-in ones with `models.json` over them.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::Model;
use super::builtin::{self, Codes, Facts, Line};
use super::config::{self, BaseProvider, ProviderConfig};
use super::record::{self, Record};
use super::remote::{self, SHIPPED_AT, Stored};
use crate::json::Value;
use crate::settings::ConfigFault;

/// All providers and models.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    configured: Vec<ProviderConfig>,
    /// Built-in providers with a newer list of models.
    renewed: Vec<(String, Vec<Record>)>,
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
    Table(Codes),
    Record(&'a Record),
    Name,
}

impl Catalog {
    /// Reads `models.json`: its text (`None` = no such file), or why it could not be read. What is wrong with it is
    /// in [`Self::faults`]; everything that is right counts.
    #[must_use]
    pub fn load(path: &str, text: Result<Option<&str>, &str>) -> Self {
        Self::load_over(&[], path, text)
    }

    /// As [`Self::load`], over the lists of the remote catalogue that are stored.
    #[must_use]
    pub fn load_over(stored: &[(String, Stored)], path: &str, text: Result<Option<&str>, &str>) -> Self {
        let mut catalog = Self::default();
        for (id, stored) in stored {
            let newer = stored.newer_than(SHIPPED_AT);
            let Some(section) = builtin::section(id).filter(|_| !newer.is_empty()) else { continue };
            // What OpenRouter lists for a key is all that the key may use.
            let whole = section.id == "openrouter";
            let models = if whole { newer.to_vec() } else { remote::lay_over(section.records(), newer) };
            catalog.renewed.push((id.clone(), models));
        }
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
                models: self.renewed(section.id).map_or_else(|| section.records(), <[Record]>::to_vec),
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

    fn renewed(&self, id: &str) -> Option<&[Record]> {
        self.renewed.iter().find(|(provider, _)| provider == id).map(|(_, models)| models.as_slice())
    }

    /// Every chat model: built-in providers in their order, then new ones in the order of the file.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry<'_>> {
        let mut entries = Vec::new();
        for section in builtin::sections() {
            match self.configured(section.id) {
                Some(provider) => entries.extend(records(provider)),
                None => match self.renewed(section.id) {
                    Some(models) => entries.extend(of_records(section.id, models)),
                    None => entries.extend(section.lines().map(|line| Entry::of_table(section.id, line))),
                },
            }
        }
        entries.extend(self.new_ones().flat_map(records));
        entries
    }

    /// Ids of all providers that have models: built-in ones, then those of `models.json`.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        let built_in = builtin::sections().map(|section| section.id);
        built_in.chain(self.new_ones().map(|provider| provider.id.as_str()))
    }

    fn new_ones(&self) -> impl Iterator<Item = &ProviderConfig> {
        self.configured.iter().filter(|provider| builtin::section(&provider.id).is_none())
    }

    /// An entry by exact provider and id. Looks at nothing else.
    #[must_use]
    pub fn entry(&self, provider: &str, id: &str) -> Option<Entry<'_>> {
        if let Some(configured) = self.configured(provider) {
            return records(configured).find(|entry| entry.id == id);
        }
        let section = builtin::section(provider)?;
        if let Some(models) = self.renewed(provider) {
            return of_records(section.id, models).find(|entry| entry.id == id);
        }
        section.line(id).map(|line| Entry::of_table(section.id, line))
    }

    /// A model by exact provider and id.
    #[must_use]
    pub fn find(&self, provider: &str, id: &str) -> Option<Model> {
        self.entry(provider, id).map(|entry| entry.model())
    }
}

/// The chat models of a provider of `models.json`.
fn records(provider: &ProviderConfig) -> impl Iterator<Item = Entry<'_>> {
    of_records(&provider.id, &provider.models)
}

fn of_records<'a>(provider: &'a str, models: &'a [Record]) -> impl Iterator<Item = Entry<'a>> {
    models.iter().filter(|model| is_chat(model)).map(move |model| {
        let text = |key: &str| model.get(key).and_then(Value::as_str).unwrap_or_default();
        Entry { provider, id: text("id"), name: text("name"), source: Source::Record(model) }
    })
}

fn is_chat(model: &Record) -> bool {
    model.get("type").is_none_or(|kind| kind == "chat")
}

impl<'a> Entry<'a> {
    /// A model of the built-in table.
    pub(super) const fn of_table(provider: &'static str, line: Line) -> Self {
        Entry { provider, id: line.id, name: line.name, source: Source::Table(line.codes) }
    }

    /// A model of which only names are known.
    #[must_use]
    pub const fn named(provider: &'a str, id: &'a str, name: &'a str) -> Self {
        Self { provider, id, name, source: Source::Name }
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> Model {
        match self.source {
            Source::Table(codes) => record::to_model(&codes.record(self.provider, self.id, self.name)),
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

impl Entry<'_> {
    /// What lists show of the model; without making all of it.
    #[must_use]
    pub fn facts(&self) -> Facts {
        match self.source {
            Source::Table(codes) => codes.facts(),
            Source::Record(_) | Source::Name => {
                let model = self.model();
                Facts {
                    context_window: model.context_window,
                    max_tokens: model.max_tokens,
                    reasoning: model.reasoning,
                    image_input: model.image_input,
                    input: model.rates.input,
                    output: model.rates.output,
                }
            }
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
