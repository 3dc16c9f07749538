//! The built-in catalogue: its tables are made here, and hold what they are made from.
//!
//! The tables in `core/src/model/builtin/` come from a JSON catalogue, one object per provider with its models (the
//! form is that of [`read`]). To take over a new one:
//!
//! ```text
//! TAU_CATALOGUE=models.json TAU_WRITE_CATALOGUE=1 cargo test -p tau-tests --test catalogue
//! ```
//!
//! The catalogue itself is not kept, it is several times as large; `digests.tsv` holds a digest of each provider's
//! models, in a form that does not depend on how they are stored.

#![allow(missing_docs)]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

mod document;
mod pack;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tau_core::model::builtin;
use tau_core::model::catalog::Catalog;
use tau_core::model::select::{default_model, defaults};

use pack::{Files, pack};

type Record = Map<String, Value>;

/// A provider with the complete records of its chat models.
#[derive(Debug, PartialEq)]
struct Provider {
    id: String,
    name: String,
    base_url: String,
    models: Vec<Record>,
}

/// The demo is Tau's own (decision D4).
const DEMO: &str = r#"{"name":"Demo","api":"demo","baseUrl":"","models":[{"id":"tour",
    "name":"A tour of Tau (no network, no key)","reasoning":false,"input":["text"],"contextWindow":128000,
    "maxTokens":16384,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0}}]}"#;

/// `{"<provider>": {name, providerBaseUrl?, api, baseUrl, models: […]}}`; a model states `api` and `baseUrl` only when
/// they differ. Models of another type than `chat` are left out.
fn read(text: &str) -> Vec<Provider> {
    let catalogue: Record = serde_json::from_str(text).expect("a catalogue");
    let demo = ("demo".to_owned(), serde_json::from_str(DEMO).expect("the demo"));
    catalogue.into_iter().chain([demo]).map(|(id, provider)| read_provider(id, &provider)).collect()
}

fn read_provider(id: String, provider: &Value) -> Provider {
    let text = |key: &str| provider.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let models = provider["models"].as_array().expect("models").iter();
    let chat = models.filter(|model| model.get("type").is_none_or(|kind| kind == "chat"));
    let complete = |model: &Value| {
        let mut record = Record::new();
        record.insert("api".into(), text("api").into());
        record.insert("baseUrl".into(), text("baseUrl").into());
        record.insert("provider".into(), id.as_str().into());
        record.extend(model.as_object().expect("a model").clone());
        introduce(&mut record);
        record
    };
    Provider {
        name: text("name"),
        base_url: text("providerBaseUrl"),
        models: chat.map(complete).collect(),
        id,
    }
}

/// Headers that name a client.
const IDENTITY: [&str; 4] =
    ["User-Agent", "Editor-Version", "Editor-Plugin-Version", "Copilot-Integration-Id"];

/// No other client is imitated (decision D6): where a service wants to know the editor, it hears of Tau.
fn introduce(record: &mut Record) {
    let Some(Value::Object(headers)) = record.get_mut("headers") else { return };
    if headers.keys().any(|name| IDENTITY.contains(&name.as_str())) {
        headers.retain(|name, _| !IDENTITY.contains(&name.as_str()));
        headers.insert("Editor-Version".into(), "tau/1".into());
    }
}

/// What the program knows.
fn built_in() -> Vec<Provider> {
    let provider = |section: builtin::Section| Provider {
        id: section.id.into(),
        name: section.name.into(),
        base_url: section.base_url.into(),
        models: section.records(),
    };
    builtin::sections().map(provider).collect()
}

/// The catalogue that `TAU_CATALOGUE` names.
fn reference() -> Option<Vec<Provider>> {
    let path = PathBuf::from(std::env::var_os("TAU_CATALOGUE")?);
    Some(read(&fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))))
}

/// Keys in order, so that only what is said counts.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut pairs: Vec<_> = map.iter().map(|(key, value)| (key.clone(), canonical(value))).collect();
            pairs.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(pairs.into_iter().collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(canonical).collect()),
        other => other.clone(),
    }
}

fn digests(providers: &[Provider]) -> String {
    let mut out = String::new();
    for Provider { id, name, base_url, models } in providers {
        let mut hash = Sha256::new();
        hash.update(format!("{name}\n{base_url}\n"));
        for model in models {
            hash.update(canonical(&Value::Object(model.clone())).to_string() + "\n");
        }
        let _ = writeln!(out, "{id}\t{}\t{:x}", models.len(), hash.finalize());
    }
    out
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src/model/builtin")
}

fn on_disk() -> Files {
    Files::each(|name| fs::read_to_string(folder().join(name)).unwrap_or_default())
}

#[test]
fn the_tables_are_those_of_the_catalogue() {
    let Some(reference) = reference() else { return };
    let made = pack(&reference);
    if std::env::var_os("TAU_WRITE_CATALOGUE").is_some() {
        made.for_each(|name, text| fs::write(folder().join(name), text).expect("a writable folder"));
        let digests_file = Path::new(env!("CARGO_MANIFEST_DIR")).join("catalogue/digests.tsv");
        fs::write(digests_file, digests(&reference)).expect("a writable folder");
        return;
    }
    assert!(
        made == on_disk(),
        "the tables are not made from this catalogue; TAU_WRITE_CATALOGUE=1 makes them anew"
    );
    for (wanted, found) in reference.iter().zip(built_in()) {
        assert_eq!(wanted.models.len(), found.models.len(), "{}", wanted.id);
        for (wanted, found) in wanted.models.iter().zip(&found.models) {
            assert_eq!(wanted, found);
        }
        assert_eq!((&wanted.name, &wanted.base_url), (&found.name, &found.base_url));
    }
    assert_eq!(reference.len(), built_in().len());
}

#[test]
fn every_field_of_every_model_is_there() {
    let wanted = include_str!("digests.tsv");
    let found = digests(&built_in());
    for (wanted, found) in wanted.lines().zip(found.lines()) {
        assert_eq!(wanted, found);
    }
    assert_eq!(wanted, found);
    let models: usize = built_in().iter().map(|provider| provider.models.len()).sum();
    assert_eq!((built_in().len(), models), (44, 1699), "43 providers, 1,698 models and the demo");
}

#[test]
fn the_tables_made_from_what_they_hold_are_the_same() {
    assert!(pack(&built_in()) == on_disk());
}

#[test]
fn every_provider_with_models_has_a_default_that_exists() {
    let catalog = Catalog::default();
    for provider in built_in().iter().filter(|provider| !provider.models.is_empty() && provider.id != "demo")
    {
        let id = default_model(&provider.id).unwrap_or_else(|| panic!("{} has no default", provider.id));
        assert!(catalog.find(&provider.id, id).is_some(), "{}/{id}", provider.id);
    }
    for (provider, id) in defaults() {
        assert!(catalog.find(provider, id).is_some(), "{provider}/{id}");
    }
}
