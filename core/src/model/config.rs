//! `models.json`: own providers, own models, overrides of built-in ones (spec 40 §3.3–3.4).
//!
//! A faulty provider entry is dropped with a message that names file, place and reason; the built-in provider of
//! that name and all other entries stay (decision D50).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::overrides::{apply_override, merge_compat};
use super::record::Record;
use super::schema;
use crate::json::{Map, Value};
use crate::settings::{ConfigFault, jsonc};

/// What a provider is before `models.json` has its say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BaseProvider {
    /// Name for people.
    pub name: String,
    /// Address of the provider.
    pub base_url: Option<String>,
    /// Its models, complete records.
    pub models: Vec<Record>,
}

/// A provider with everything `models.json` says about it.
#[derive(Clone, PartialEq)]
pub struct ProviderConfig {
    /// Provider id.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Address of the provider.
    pub base_url: Option<String>,
    /// Key in one of the value forms of spec 40 §1.5.
    pub api_key: Option<String>,
    /// Headers of every request, values in the same forms.
    pub headers: Vec<(String, String)>,
    /// Send the key as a bearer token.
    pub auth_header: bool,
    /// Signs in at a Radius gateway.
    pub radius: bool,
    /// Its models, complete records.
    pub models: Vec<Record>,
    model_headers: Vec<(String, Vec<(String, String)>)>,
}

impl ProviderConfig {
    /// Configured headers of one model, later ones win; values in the forms of spec 40 §1.5.
    pub fn model_headers(&self, id: &str) -> impl Iterator<Item = &(String, String)> {
        self.model_headers.iter().filter(move |(model, _)| model == id).flat_map(|(_, headers)| headers)
    }
}

impl core::fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ProviderConfig").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Why an entry cannot be used although its shape is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComposeFault {
    /// It sets nothing.
    Empty,
    /// `oauth` needs `baseUrl`.
    OauthWithoutBaseUrl,
    /// No `api` anywhere for the model with this index.
    MissingApi(usize),
    /// No `baseUrl` anywhere for the model with this index.
    MissingBaseUrl(usize),
}

impl ComposeFault {
    /// Stable name for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Empty => "empty-provider",
            Self::OauthWithoutBaseUrl => "oauth-without-base-url",
            Self::MissingApi(_) => "missing-api",
            Self::MissingBaseUrl(_) => "missing-base-url",
        }
    }

    fn at_and_reason(&self, provider: &str) -> (String, &'static str) {
        let at = format!("providers.{provider}");
        match self {
            Self::Empty => (
                at,
                "sets nothing; give it models, baseUrl, apiKey, headers, compat, modelOverrides, authHeader or oauth",
            ),
            Self::OauthWithoutBaseUrl => (at + ".oauth", "needs baseUrl beside it"),
            Self::MissingApi(index) => {
                (format!("{at}.models.{index}"), "has no api, and neither has the provider")
            }
            Self::MissingBaseUrl(index) => {
                (format!("{at}.models.{index}"), "has no baseUrl, and neither has the provider")
            }
        }
    }
}

/// A `models.json` as read.
#[derive(Clone, Debug, Default)]
pub struct ModelsFile {
    /// Entries of the right shape, in order.
    pub providers: Vec<(String, Record)>,
    /// Everything that is wrong with the file and with the entries left out.
    pub faults: Vec<ConfigFault>,
}

/// Reads the text of `models.json` and checks shapes. `path` is for messages.
#[must_use]
pub fn read(path: &str, text: &str) -> ModelsFile {
    let mut file = ModelsFile::default();
    let whole = |at: &str, reason: String| ConfigFault { file: path.to_string(), at: at.to_string(), reason };
    let entries = match jsonc::parse(text) {
        Ok(Value::Object(mut top)) => match top.shift_remove("providers") {
            Some(Value::Object(entries)) => entries,
            Some(_) => {
                file.faults.push(whole("providers", "must be an object".to_string()));
                return file;
            }
            None => {
                file.faults.push(whole("providers", "is missing".to_string()));
                return file;
            }
        },
        Ok(_) => {
            file.faults.push(whole("", "must hold one JSON object".to_string()));
            return file;
        }
        Err(reason) => {
            file.faults.push(whole("", reason));
            return file;
        }
    };
    for (id, entry) in entries {
        let offences = schema::check_provider(&format!("providers.{id}"), &entry);
        file.faults.extend(offences.iter().map(|(at, reason)| whole(at, reason.clone())));
        if let (true, Value::Object(entry)) = (offences.is_empty(), entry) {
            file.providers.push((id, entry));
        }
    }
    file
}

/// The message for an entry that cannot be composed.
#[must_use]
pub fn compose_fault(path: &str, provider: &str, fault: &ComposeFault) -> ConfigFault {
    let (at, reason) = fault.at_and_reason(provider);
    ConfigFault { file: path.to_string(), at, reason: reason.to_string() }
}

/// Puts an entry over the provider it names (`None` = a new one).
///
/// # Errors
/// When the entry says too little.
pub fn compose(
    id: &str,
    base: Option<&BaseProvider>,
    entry: &Record,
) -> Result<ProviderConfig, ComposeFault> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(ToString::to_string);
    let radius = entry.contains_key("oauth");
    let base_url = text("baseUrl");
    if !says_something(entry) {
        return Err(ComposeFault::Empty);
    }
    if radius && base_url.is_none() {
        return Err(ComposeFault::OauthWithoutBaseUrl);
    }
    let overrides = entry.get("modelOverrides").and_then(Value::as_object);
    let mut config = ProviderConfig {
        id: id.to_string(),
        name: text("name").or_else(|| base.map(|b| b.name.clone())).unwrap_or_else(|| id.to_string()),
        base_url: base_url.clone().or_else(|| base.and_then(|b| b.base_url.clone())),
        api_key: text("apiKey"),
        headers: header_pairs(entry),
        auth_header: entry.get("authHeader").and_then(Value::as_bool).unwrap_or_default(),
        radius,
        models: base.map(|b| b.models.clone()).unwrap_or_default(),
        model_headers: Vec::new(),
    };
    let forced_url = base_url.as_deref().filter(|_| !radius);
    config.models.iter_mut().for_each(|model| adjust_existing(model, entry, forced_url));
    for (id, over) in overrides.into_iter().flatten() {
        remember_headers(&mut config, id, over);
    }
    let models = entry.get("models").and_then(Value::as_array);
    for (index, model) in models.into_iter().flatten().filter_map(Value::as_object).enumerate() {
        let record = complete(&config, entry, model, index)?;
        place(&mut config.models, record);
        let id = model.get("id").and_then(Value::as_str).unwrap_or_default();
        config.model_headers.push((id.to_string(), header_pairs(model)));
    }
    for (id, over) in overrides.into_iter().flatten() {
        let over = over.as_object();
        let chat =
            config.models.iter_mut().filter(|m| is_chat(m) && m.get("id").is_some_and(|own| own == id));
        for (model, over) in chat.zip(over) {
            apply_override(model, over);
        }
    }
    Ok(config)
}

fn says_something(entry: &Record) -> bool {
    const SINGLE: [&str; 6] = ["baseUrl", "headers", "compat", "apiKey", "oauth", "authHeader"];
    let filled = |key: &str| match entry.get(key) {
        Some(Value::Array(list)) => !list.is_empty(),
        Some(Value::Object(map)) => !map.is_empty(),
        _ => false,
    };
    SINGLE.iter().any(|key| entry.contains_key(*key)) || filled("models") || filled("modelOverrides")
}

fn is_chat(model: &Record) -> bool {
    kind(model) == "chat"
}

fn kind(model: &Record) -> &str {
    model.get("type").and_then(Value::as_str).unwrap_or("chat")
}

/// Address and flags of the provider entry reach the models that were there before.
fn adjust_existing(model: &mut Record, entry: &Record, base_url: Option<&str>) {
    if let Some(url) = base_url {
        model.insert("baseUrl".to_string(), Value::from(url));
    }
    let Some(compat) = entry.get("compat").and_then(Value::as_object) else { return };
    match kind(model) {
        "chat" => merge_compat(model, compat),
        "classifier" => {
            let own = model.entry("compat").or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(own) = own {
                own.extend(compat.clone());
            }
        }
        _ => {}
    }
}

/// A complete record from a `models` entry. Nothing is inherited from a model of the same id but where to find it.
fn complete(
    config: &ProviderConfig,
    entry: &Record,
    model: &Record,
    index: usize,
) -> Result<Record, ComposeFault> {
    let given = |key: &str| model.get(key).or_else(|| entry.get(key)).and_then(Value::as_str);
    let api = given("api");
    let fallback = fallback_model(&config.models, model.get("id"), api);
    let inherited = |key: &str| fallback.and_then(|m| m.get(key)).and_then(Value::as_str);
    let api = api.or_else(|| inherited("api")).ok_or(ComposeFault::MissingApi(index))?;
    let url = given("baseUrl").or_else(|| inherited("baseUrl")).filter(|url| !url.is_empty());
    let url = url.ok_or(ComposeFault::MissingBaseUrl(index))?;

    let id = model.get("id").cloned().unwrap_or_default();
    let own = |key: &str, default: Value| (key.to_string(), model.get(key).cloned().unwrap_or(default));
    let no_cost =
        || Value::Object(["input", "output", "cacheRead", "cacheWrite"].map(zero).into_iter().collect());
    let mut record: Record = [
        ("id".to_string(), id.clone()),
        own("name", id),
        ("api".to_string(), Value::from(api)),
        ("provider".to_string(), Value::from(config.id.as_str())),
        ("baseUrl".to_string(), Value::from(url)),
        own("reasoning", Value::Bool(false)),
        own("input", Value::from(alloc::vec!["text"])),
        own("cost", no_cost()),
        own("contextWindow", Value::from(128_000)),
        own("maxTokens", Value::from(16_384)),
    ]
    .into_iter()
    .collect();
    for key in
        ["thinkingLevelMap", "inputLimits", "promptCache", "samplingParams", "samplingParamsByThinkingLevel"]
    {
        if let Some(value) = model.get(key) {
            record.insert(key.to_string(), value.clone());
        }
    }
    for compat in [entry, model].into_iter().filter_map(|level| level.get("compat")?.as_object()) {
        merge_compat(&mut record, compat);
    }
    Ok(record)
}

fn zero(key: &str) -> (String, Value) {
    (key.to_string(), Value::from(0))
}

/// The model whose protocol and address a new model takes: same id, else same protocol, else an OpenAI-like one,
/// else the first.
fn fallback_model<'a>(models: &'a [Record], id: Option<&Value>, api: Option<&str>) -> Option<&'a Record> {
    let chat = || models.iter().filter(|model| is_chat(model));
    let speaks = |wanted: &str| chat().find(|model| model.get("api").is_some_and(|api| api == wanted));
    chat()
        .find(|model| model.get("id") == id)
        .or_else(|| api.and_then(speaks))
        .or_else(|| speaks("openai-completions"))
        .or_else(|| chat().next())
}

/// In the place of the chat model of the same id, or at the end.
fn place(models: &mut Vec<Record>, record: Record) {
    match models.iter_mut().find(|model| is_chat(model) && model.get("id") == record.get("id")) {
        Some(slot) => *slot = record,
        None => models.push(record),
    }
}

fn remember_headers(config: &mut ProviderConfig, id: &str, source: &Value) {
    if let Some(source) = source.as_object() {
        config.model_headers.push((id.to_string(), header_pairs(source)));
    }
}

fn header_pairs(source: &Record) -> Vec<(String, String)> {
    let headers = source.get("headers").and_then(Value::as_object);
    let pairs = headers.into_iter().flatten();
    pairs.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_string()))).collect()
}
