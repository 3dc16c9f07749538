//! A provider with what `models.json` says about it (spec 40 §3.3). Own models are made at once, so that what is wrong
//! with them is told; models of the built-in list are made when they are asked for.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use hashbrown::{HashMap, HashSet};

use super::base::{Base, Row, lay};
use super::config::ComposeFault;
use super::overrides::{apply_override, merge_compat};
use super::record::{self, Record, chat_id};
use crate::json::{Map, Value};

/// A provider with everything `models.json` says about it.
#[derive(Clone)]
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
    model_headers: Vec<(String, Vec<(String, String)>)>,
    base: Arc<Base>,
    /// Address that models of the base get.
    forced_url: Option<String>,
    /// Flags that models of the base get.
    compat: Option<Record>,
    /// Own models, complete; ids are unique.
    own: Vec<Record>,
    /// Changes by model id.
    overrides: Record,
    /// Ids that own models share, so that only the last of them counts.
    repeated: Vec<String>,
}

impl core::fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ProviderConfig").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Puts an entry over the provider it names.
///
/// # Errors
/// When the entry says too little.
pub fn compose(id: &str, base: Option<Arc<Base>>, entry: &Record) -> Result<ProviderConfig, ComposeFault> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(ToString::to_string);
    let map = |key: &str| entry.get(key).and_then(Value::as_object).cloned();
    let radius = entry.contains_key("oauth");
    let base_url = text("baseUrl");
    if !says_something(entry) {
        return Err(ComposeFault::Empty);
    }
    if radius && base_url.is_none() {
        return Err(ComposeFault::OauthWithoutBaseUrl);
    }
    let is_new = base.is_none();
    let base = base.unwrap_or_default();
    let mut config = ProviderConfig {
        id: id.to_string(),
        name: text("name").unwrap_or_else(|| if is_new { id.to_string() } else { base.name.clone() }),
        base_url: base_url.clone().or_else(|| base.base_url.clone()),
        api_key: text("apiKey"),
        headers: header_pairs(entry),
        auth_header: entry.get("authHeader").and_then(Value::as_bool).unwrap_or_default(),
        radius,
        model_headers: Vec::new(),
        base,
        forced_url: base_url.filter(|_| !radius),
        compat: map("compat"),
        own: Vec::new(),
        overrides: map("modelOverrides").unwrap_or_default(),
        repeated: Vec::new(),
    };
    for (id, over) in &config.overrides {
        if let Some(over) = over.as_object() {
            config.model_headers.push((id.clone(), header_pairs(over)));
        }
    }
    let mut ids: HashMap<String, usize> = HashMap::new();
    let models = entry.get("models").and_then(Value::as_array);
    for (index, model) in models.into_iter().flatten().filter_map(Value::as_object).enumerate() {
        let record = complete(&config, &ids, entry, model, index)?;
        let id = record::text(&record, "id").to_string();
        let headers = header_pairs(model);
        if !headers.is_empty() {
            config.model_headers.push((id.clone(), headers));
        }
        match ids.get(&id).and_then(|at| config.own.get_mut(*at)) {
            Some(slot) => {
                *slot = record;
                config.repeated.push(id);
            }
            None => {
                ids.insert(id, config.own.len());
                config.own.push(record);
            }
        }
    }
    Ok(config)
}

impl ProviderConfig {
    /// Configured headers of one model, later ones win; values in the forms of spec 40 §1.5.
    pub fn model_headers(&self, id: &str) -> impl Iterator<Item = &(String, String)> {
        self.model_headers.iter().filter(move |(model, _)| model == id).flat_map(|(_, headers)| headers)
    }

    /// Ids that several entries of `models` have; the last of them counts.
    #[must_use]
    pub fn repeated(&self) -> &[String] {
        &self.repeated
    }

    /// Ids in `modelOverrides` that no model has.
    pub fn unmatched(&self) -> impl Iterator<Item = &str> {
        let known: HashSet<&str> = self.rows().into_iter().filter_map(Row::chat_id).collect();
        self.overrides.keys().map(String::as_str).filter(move |id| !known.contains(id))
    }

    /// All its models, complete records.
    #[must_use]
    pub fn models(&self) -> Vec<Record> {
        self.rows().into_iter().map(|row| self.record(row)).collect()
    }

    /// All its models, not made yet.
    pub(super) fn rows(&self) -> Vec<Row<'_>> {
        lay(self.base.rows(), &self.own, Row::Own)
    }

    /// The chat model of an id.
    pub(super) fn row(&self, id: &str) -> Option<Row<'_>> {
        let own = self.own.iter().find(|model| chat_id(model) == Some(id));
        own.map(Row::Own).or_else(|| self.base.row(id))
    }

    /// What `modelOverrides` says about a chat model.
    pub(super) fn change(&self, id: &str) -> Option<&Record> {
        self.overrides.get(id).and_then(Value::as_object)
    }

    /// The complete record of a row of [`Self::rows`].
    pub(super) fn record(&self, row: Row<'_>) -> Record {
        let mut record = row.record(&self.id);
        if !matches!(row, Row::Own(_)) {
            self.adjust(&mut record);
        }
        if let Some(change) = row.chat_id().and_then(|id| self.change(id)) {
            apply_override(&mut record, change);
        }
        record
    }

    /// Address and flags of the provider entry reach the models that were there before.
    fn adjust(&self, model: &mut Record) {
        if let Some(url) = &self.forced_url {
            model.insert("baseUrl".to_string(), Value::from(url.as_str()));
        }
        let Some(compat) = &self.compat else { return };
        match record::kind(model) {
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

    /// The model whose protocol and address a new model takes: same id, else same protocol, else an OpenAI-like one,
    /// else the first.
    fn fallback(
        &self,
        ids: &HashMap<String, usize>,
        id: &str,
        api: Option<&str>,
    ) -> Option<(String, String)> {
        let own = |id: &str| ids.get(id).and_then(|at| self.own.get(*at)).map(Row::Own);
        let place = |row: Row<'_>| match row {
            Row::Line(line) => (line.codes.text("api"), line.codes.text("baseUrl")),
            Row::Newer(record) | Row::Own(record) => {
                (record::text(record, "api").to_string(), record::text(record, "baseUrl").to_string())
            }
        };
        if let Some(row) = own(id).or_else(|| self.base.row(id)) {
            return Some(place(row));
        }
        let rows: Vec<Row<'_>> = self.rows().into_iter().filter(|row| row.chat_id().is_some()).collect();
        let speaks = |wanted: &str| rows.iter().copied().map(place).find(|(api, _)| api == wanted);
        api.and_then(speaks)
            .or_else(|| speaks("openai-completions"))
            .or_else(|| rows.first().copied().map(place))
    }
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

/// A complete record from a `models` entry. Nothing is inherited from a model of the same id but where to find it.
/// `ids` says where the own models are.
fn complete(
    config: &ProviderConfig,
    ids: &HashMap<String, usize>,
    entry: &Record,
    model: &Record,
    index: usize,
) -> Result<Record, ComposeFault> {
    let given = |key: &str| model.get(key).or_else(|| entry.get(key)).and_then(Value::as_str);
    let place = match (given("api"), given("baseUrl").filter(|url| !url.is_empty())) {
        (Some(api), Some(url)) => (api.to_string(), url.to_string()),
        (api, url) => {
            let inherited = config.fallback(ids, record::text(model, "id"), api);
            let (own_api, own_url) = inherited.map_or((None, None), |(api, url)| (Some(api), Some(url)));
            let api = api.map(ToString::to_string).or(own_api).filter(|api| !api.is_empty());
            let url = url.map(ToString::to_string).or(own_url).filter(|url| !url.is_empty());
            (api.ok_or(ComposeFault::MissingApi(index))?, url.ok_or(ComposeFault::MissingBaseUrl(index))?)
        }
    };
    let (api, url) = place;

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

fn header_pairs(source: &Record) -> Vec<(String, String)> {
    let headers = source.get("headers").and_then(Value::as_object);
    let pairs = headers.into_iter().flatten();
    pairs.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_string()))).collect()
}
