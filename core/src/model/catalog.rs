//! The models that can be named: built-in ones with `models.json` over them.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Model;
use super::base::{Base, Row};
use super::builtin::{self, Facts, Line, Section};
use super::compose::{ProviderConfig, compose};
use super::config;
use super::lists::{self, Lists};
use super::record;
use super::remote::STORE;
use crate::settings::ConfigFault;

/// A remark names so many ids.
const MOST_NAMED: usize = 5;

/// All providers and models.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    configured: Vec<ProviderConfig>,
    /// Newer lists of built-in providers.
    lists: Option<Arc<dyn Lists>>,
    faults: Vec<ConfigFault>,
    remarks: Vec<ConfigFault>,
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
    /// With what `models.json` says about the provider.
    Row(Row<'a>, Option<&'a ProviderConfig>),
    Name,
}

impl Catalog {
    /// Reads `models.json`: its text (`None` = no such file), or why it could not be read. What is wrong with it is
    /// in [`Self::faults`]; everything that is right counts.
    #[must_use]
    pub fn load(path: &str, text: Result<Option<&str>, &str>) -> Self {
        Self::load_over(None, path, text)
    }

    /// As [`Self::load`], over lists that are stored. Models in them that would send requests to places the provider is
    /// not known for do not count; [`Self::list_remarks`] tells which places.
    #[must_use]
    pub fn load_over(lists: Option<Arc<dyn Lists>>, path: &str, text: Result<Option<&str>, &str>) -> Self {
        let mut catalog = Self { lists, ..Self::default() };
        let entries = match text {
            Ok(text) => text.map(|text| config::read(path, text)).unwrap_or_default(),
            Err(why) => {
                let reason = alloc::format!("cannot be read: {why}");
                let fault = ConfigFault { file: path.to_string(), at: String::new(), reason };
                config::ModelsFile { faults: [fault].into(), ..config::ModelsFile::default() }
            }
        };
        catalog.faults = entries.faults;
        for (id, entry) in &entries.providers {
            let base = builtin::section(id).map(|section| {
                let table = || Arc::new(Base::of_section(section, Vec::new(), false));
                let url = Some(record::text(entry, "baseUrl"));
                catalog.renewed(section, url).map_or_else(table, Arc::clone)
            });
            match compose(id, base, entry) {
                Ok(provider) => {
                    catalog.remark_repeated(path, &provider);
                    catalog.configured.push(provider);
                }
                Err(fault) => catalog.faults.push(config::compose_fault(path, id, &fault)),
            }
        }
        catalog
    }

    fn remark_repeated(&mut self, path: &str, provider: &ProviderConfig) {
        let repeated = provider.repeated();
        if !repeated.is_empty() {
            let more = if repeated.len() > MOST_NAMED { " …" } else { "" };
            let ids =
                repeated.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ") + more;
            self.remarks.push(ConfigFault {
                file: path.to_string(),
                at: alloc::format!("providers.{}.models", provider.id),
                reason: alloc::format!("several have the id {ids}; the last one counts"),
            });
        }
    }

    /// What is odd about the stored lists that were read so far.
    #[must_use]
    pub fn list_remarks(&self) -> Vec<ConfigFault> {
        let read = self.lists.as_ref().map(|lists| lists.all_read()).unwrap_or_default();
        let remark = |(id, base): (&str, &Arc<Base>)| {
            let reason = base.remark.clone()?;
            Some(ConfigFault { file: STORE.to_string(), at: id.to_string(), reason })
        };
        read.into_iter().filter_map(remark).collect()
    }

    /// What is odd about `models.json`, but usable: ids that come twice.
    #[must_use]
    pub fn remarks(&self) -> &[ConfigFault] {
        &self.remarks
    }

    /// `modelOverrides` of models that do not exist. Lists change, so they are no fault.
    #[must_use]
    pub fn unmatched(&self) -> Vec<String> {
        let of_one = |provider: &ProviderConfig| {
            let ids: Vec<String> =
                provider.unmatched().map(|id| alloc::format!("{}/{id}", provider.id)).collect();
            ids
        };
        self.configured.iter().flat_map(of_one).collect()
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

    /// A built-in provider with its newer list; `configured` is its address in `models.json`.
    fn renewed(&self, section: Section, configured: Option<&str>) -> Option<&Arc<Base>> {
        self.lists.as_ref()?.get(section.id, &|text| lists::read(section, configured, text))
    }

    /// Every chat model: built-in providers in their order, then new ones in the order of the file.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry<'_>> {
        let mut entries = Vec::new();
        for section in builtin::sections() {
            if let Some(provider) = self.configured(section.id) {
                entries.extend(configured_entries(provider));
            } else if let Some(base) = self.renewed(section, None) {
                entries.extend(base.rows().into_iter().filter_map(|row| entry(section.id, row, None)));
            } else {
                entries.extend(section.lines().map(|line| Entry::of_table(section.id, line)));
            }
        }
        entries.extend(self.new_ones().flat_map(configured_entries));
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
            return entry(&configured.id, configured.row(id)?, Some(configured));
        }
        let section = builtin::section(provider)?;
        match self.renewed(section, None) {
            Some(base) => entry(section.id, base.row(id)?, None),
            None => section.line(id).map(|line| Entry::of_table(section.id, line)),
        }
    }

    /// A model by exact provider and id.
    #[must_use]
    pub fn find(&self, provider: &str, id: &str) -> Option<Model> {
        self.entry(provider, id).map(|entry| entry.model())
    }
}

/// The chat models of a provider of `models.json`.
fn configured_entries(provider: &ProviderConfig) -> impl Iterator<Item = Entry<'_>> {
    provider.rows().into_iter().filter_map(|row| entry(&provider.id, row, Some(provider)))
}

/// The entry of a chat model.
fn entry<'a>(provider: &'a str, row: Row<'a>, config: Option<&'a ProviderConfig>) -> Option<Entry<'a>> {
    let id = row.chat_id()?;
    let renamed = config.and_then(|config| config.change(id)?.get("name")?.as_str());
    let name = renamed.unwrap_or_else(|| row.name());
    Some(Entry { provider, id, name, source: Source::Row(row, config) })
}

impl<'a> Entry<'a> {
    /// A model of the built-in table.
    pub(super) const fn of_table(provider: &'static str, line: Line) -> Self {
        Entry { provider, id: line.id, name: line.name, source: Source::Row(Row::Line(line), None) }
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
            Source::Row(row, Some(config)) => record::to_model(&config.record(row)),
            Source::Row(row, None) => record::to_model(&row.record(self.provider)),
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
    /// What lists show of the model; without making all of it, if nothing changes these facts.
    #[must_use]
    pub fn facts(&self) -> Facts {
        let known = match self.source {
            Source::Row(row, config) => {
                row.facts().filter(|_| config.is_none_or(|config| config.change(self.id).is_none()))
            }
            Source::Name => None,
        };
        known.unwrap_or_else(|| {
            let model = self.model();
            Facts {
                context_window: model.context_window,
                max_tokens: model.max_tokens,
                reasoning: model.reasoning,
                image_input: model.image_input,
                input: model.rates.input,
                output: model.rates.output,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::remote::{SHIPPED_AT, Stored};

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

    #[test]
    fn what_is_odd_is_told() {
        let text = r#"{"providers":{"p":{"baseUrl":"http://h","api":"openai-completions","models":[
            {"id":"m","name":"First"},{"id":"n"},{"id":"m","name":"Last"}],
            "modelOverrides":{"n":{"name":"N"},"typo":{"name":"T"}}}}}"#;
        let catalog = Catalog::load("models.json", Ok(Some(text)));
        assert!(catalog.faults().is_empty());
        let remarks: Vec<String> = catalog.remarks().iter().map(ToString::to_string).collect();
        assert_eq!(remarks, ["models.json: providers.p.models: several have the id m; the last one counts"]);
        assert_eq!(catalog.unmatched(), ["p/typo"]);
        let names: Vec<&str> =
            catalog.entries().iter().filter(|e| e.provider == "p").map(|e| e.name).collect();
        assert_eq!(names, ["Last", "N"]);
    }

    const NEWER: i64 = SHIPPED_AT + 1;

    fn load_over(lists: Vec<(String, Stored)>, text: Option<&str>) -> Catalog {
        let file = config::read("models.json", text.unwrap_or("{}"));
        let url = |id: &str| {
            let (_, entry) = file.providers.iter().find(|(own, _)| own == id)?;
            Some(record::text(entry, "baseUrl").to_string())
        };
        let lists: Arc<dyn Lists> = Arc::new(lists::Read::new(lists, &url));
        Catalog::load_over(Some(lists), "models.json", Ok(text))
    }

    fn stored(models: &str) -> Stored {
        let list = crate::json::parse(models).unwrap();
        let models = list.as_array().unwrap().iter().filter_map(|model| model.as_object().cloned()).collect();
        Stored { models, last_modified: Some(NEWER), ..Stored::default() }
    }

    #[test]
    fn a_newer_list_sends_no_key_elsewhere() {
        let models = r#"[
            {"id":"claude-opus-5-5","name":"Stolen","api":"anthropic-messages","baseUrl":"https://evil.example"},
            {"id":"claude-6","name":"Claude 6","api":"anthropic-messages","baseUrl":"https://api.anthropic.com"},
            {"id":"claude-7","name":"Claude 7","api":"anthropic-messages","baseUrl":"http://proxy"}]"#;
        let lists = || [("anthropic".to_string(), stored(models))].to_vec();
        let catalog = load_over(lists(), None);
        let url = |catalog: &Catalog, id: &str| catalog.find("anthropic", id).map(|model| model.base_url);
        assert_eq!(url(&catalog, "claude-opus-5-5").as_deref(), Some("https://api.anthropic.com"));
        assert_eq!(url(&catalog, "claude-6").as_deref(), Some("https://api.anthropic.com"));
        assert_eq!(url(&catalog, "claude-7"), None);
        let remarks = catalog.list_remarks();
        let [remark] = &*remarks else { panic!("{remarks:?}") };
        assert_eq!((remark.file.as_str(), remark.at.as_str()), ("models-store.json", "anthropic"));
        assert!(remark.reason.contains("https://evil.example, http://proxy"), "{remark}");
        assert!(catalog.entries().iter().all(|entry| !entry.model().base_url.contains("evil")));

        // An entry that says too little leaves the provider as it is, with its newer list.
        let text = r#"{"providers":{"anthropic":{}}}"#;
        let catalog = load_over(lists(), Some(text));
        assert_eq!(catalog.faults().len(), 1);
        assert!(url(&catalog, "claude-6").is_some());

        // An address in models.json is the user's own word, and all models go there.
        let text = r#"{"providers":{"anthropic":{"baseUrl":"http://proxy"}}}"#;
        let catalog = load_over(lists(), Some(text));
        assert_eq!(url(&catalog, "claude-7").as_deref(), Some("http://proxy"));
        assert_eq!(url(&catalog, "claude-6").as_deref(), Some("http://proxy"));
    }

    /// Every way to look at a provider agrees, whatever layers it has.
    #[test]
    fn layers_agree() {
        let text = r#"{"providers":{"openrouter":{
            "compat":{"supportsStore":true},
            "models":[{"id":"new/one"},{"id":"z-ai/glm-5.3","api":"anthropic-messages","baseUrl":"http://h"}],
            "modelOverrides":{"new/one":{"name":"Named"},"openai/gpt-4o":{"name":"Mine","contextWindow":5}}}}}"#;
        let newer = r#"[{"id":"later/model","name":"Later","api":"openai-completions",
            "baseUrl":"https://openrouter.ai/api/v1","contextWindow":7}]"#;
        for (lists, id) in [
            (Vec::new(), "openai/gpt-4o"),
            ([("openrouter".to_string(), stored(newer))].to_vec(), "later/model"),
        ] {
            let catalog = load_over(lists, Some(text));
            assert!(catalog.faults().is_empty(), "{:?}", catalog.faults());
            let entries = catalog.entries();
            let of_provider = || entries.iter().filter(|entry| entry.provider == "openrouter");
            for entry in of_provider() {
                let found = catalog.entry("openrouter", entry.id).unwrap();
                let model = found.model();
                assert_eq!(model, entry.model());
                assert_eq!((model.id.as_str(), model.name.as_str()), (entry.id, entry.name));
                assert_eq!(found.facts().context_window, model.context_window);
            }
            let configured = catalog.configured("openrouter").unwrap();
            assert_eq!(configured.models().len(), of_provider().count());
            let flags = |id: &str| catalog.find("openrouter", id).unwrap().compat.unwrap();
            assert_eq!(flags(id)["supportsStore"], true);
            let own = catalog.find("openrouter", "new/one").unwrap();
            assert_eq!((own.name.as_str(), own.api.as_str()), ("Named", "openai-completions"));
            assert_eq!(own.base_url, "https://openrouter.ai/api/v1");
        }
        let catalog = Catalog::load("models.json", Ok(Some(text)));
        let entry = catalog.entry("openrouter", "openai/gpt-4o").unwrap();
        assert_eq!((entry.name, entry.facts().context_window), ("Mine", 5));
    }
}
