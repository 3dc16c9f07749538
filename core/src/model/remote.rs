//! The remote catalogue: asked for only on request, kept in `models-store.json`, laid over the built-in models of a
//! provider when it is newer than they are (spec 40 §3.5).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::record::{self, Record};
use crate::json::{Map, Value};
use crate::now::Wall;
use crate::op::{Headers, HttpRequest};
use crate::provider::cost::openrouter_rates;

/// When the built-in catalogue was made, ms since 1970.
pub const SHIPPED_AT: i64 = 1_795_171_729_496;

/// File of the agent directory that keeps lists.
pub const STORE: &str = "models-store.json";

/// Where catalogues are asked for, without a slash at the end.
pub const ADDRESS: &str = "https://pi.dev/api/models/providers";

/// An answer is asked for this often when the service is busy or unreachable.
pub const ATTEMPTS: u32 = 3;

/// A check is good for this long, ms.
const FRESH_MS: i64 = 4 * 3_600_000;

/// One attempt may take this long, ms.
const LIMIT_MS: u64 = 4000;

/// The list of models of a key at OpenRouter may take this long, ms.
const USER_LIST_LIMIT_MS: u64 = 15_000;

/// What is stored for a provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stored {
    /// Its models, as received.
    pub models: Vec<Record>,
    /// When it was asked for, ms since 1970.
    pub checked_at: Option<i64>,
    /// How new the models are, ms since 1970; 0 = not known, and never newer than the built-in ones.
    pub last_modified: Option<i64>,
    /// Names this state of the list to the service.
    pub etag: Option<String>,
}

/// What a refresh came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// To be stored; `None` = what is stored stays.
    pub store: Option<Stored>,
    /// Why there is no new list; holds no secret.
    pub problem: Option<String>,
}

impl Stored {
    /// Reads an entry of the store. Models of another provider do not count.
    #[must_use]
    pub fn read(provider: &str, entry: &Value) -> Self {
        let models = entry.get("models").and_then(Value::as_array).into_iter().flatten();
        let own = |model: &&Value| model.get("provider").is_none_or(|own| own == provider);
        let time = |key: &str| entry.get(key).and_then(Value::as_i64);
        Self {
            models: models.filter(own).filter_map(|model| model.as_object().cloned()).collect(),
            checked_at: time("checkedAt"),
            last_modified: time("lastModified"),
            etag: entry.get("etag").and_then(Value::as_str).map(ToString::to_string),
        }
    }

    /// The entry of the store.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut entry = Map::new();
        entry.insert("models".to_string(), self.models.iter().cloned().map(Value::Object).collect());
        for (key, time) in [("lastModified", self.last_modified), ("checkedAt", self.checked_at)] {
            if let Some(time) = time {
                entry.insert(key.to_string(), Value::from(time));
            }
        }
        if let Some(etag) = &self.etag {
            entry.insert("etag".to_string(), Value::from(etag.as_str()));
        }
        Value::Object(entry)
    }

    /// Whether its models count, if the built-in ones are from `shipped`.
    #[must_use]
    pub fn is_newer_than(&self, shipped: i64) -> bool {
        self.last_modified.unwrap_or_default() > shipped
    }

    /// The models that count, if the built-in ones are from `shipped`.
    #[must_use]
    pub fn newer_than(&self, shipped: i64) -> &[Record] {
        if self.is_newer_than(shipped) { &self.models } else { &[] }
    }

    /// Whether nothing needs to be asked yet.
    #[must_use]
    pub fn is_fresh(&self, now: Wall) -> bool {
        let age = self.checked_at.map(|checked| now.0.saturating_sub(checked));
        self.last_modified.is_some() && age.is_some_and(|age| age < FRESH_MS)
    }
}

/// Reads `models-store.json`: provider and entry.
///
/// # Errors
/// Why it cannot be understood.
pub fn read_store(text: &str) -> Result<Vec<(String, Stored)>, String> {
    match crate::json::parse(text) {
        Ok(Value::Object(providers)) => {
            Ok(providers.iter().map(|(id, entry)| (id.clone(), Stored::read(id, entry))).collect())
        }
        Ok(_) => Err("must hold one JSON object".to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// The question for a provider's list. `address` is [`ADDRESS`].
#[must_use]
pub fn request(address: &str, provider: &str, stored: Option<&Stored>) -> HttpRequest {
    let mut headers: Headers = [("accept".to_string(), "application/json".to_string())].into();
    let known = stored.filter(|stored| !stored.models.is_empty());
    if let Some(etag) = known.and_then(|stored| stored.etag.clone()) {
        headers.push(("if-none-match".to_string(), etag));
    }
    get(format!("{address}/{provider}?types=chat%2Cimage%2Cclassifier"), headers, LIMIT_MS)
}

fn get(url: String, headers: Headers, limit_ms: u64) -> HttpRequest {
    HttpRequest {
        method: "GET",
        url,
        headers,
        body: alloc::sync::Arc::default(),
        head_timeout_ms: Some(limit_ms),
        idle_timeout_ms: Some(limit_ms),
        proxy: None,
    }
}

/// Whether the same question may get a better answer.
#[must_use]
pub const fn is_busy(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504)
}

/// What the answer of the service means for what is stored.
#[must_use]
pub fn conclude(
    provider: &str,
    stored: Option<Stored>,
    status: u16,
    headers: &Headers,
    body: &[u8],
    now: Wall,
) -> Outcome {
    let header = |wanted: &str| {
        headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.as_str())
    };
    let kept = Stored { checked_at: Some(now.0), ..stored.unwrap_or_default() };
    match status {
        200..300 => match models(provider, body) {
            Some(models) => {
                let last_modified = header("last-modified").and_then(Wall::from_http_date);
                let store = Stored {
                    models,
                    checked_at: Some(now.0),
                    last_modified: Some(last_modified.map_or(0, |at| at.0)),
                    etag: header("etag").map(ToString::to_string),
                };
                Outcome { store: Some(store), problem: None }
            }
            None => Outcome { store: None, problem: Some("the answer is no list of models".to_string()) },
        },
        304 => Outcome { store: Some(kept), problem: None },
        // The service does not know the provider.
        404 | 501 => {
            let store = Stored { last_modified: Some(0), etag: None, ..kept };
            Outcome { store: Some(store), problem: None }
        }
        _ => Outcome { store: Some(kept), problem: Some(format!("the service answered {status}")) },
    }
}

/// The models of an answer: a list, a list in `models`, or models under their ids.
fn models(provider: &str, body: &[u8]) -> Option<Vec<Record>> {
    let text = core::str::from_utf8(body).ok()?;
    let list: Vec<Value> = match crate::json::parse(text).ok()? {
        Value::Array(list) => list,
        Value::Object(mut map) => match map.shift_remove("models") {
            Some(Value::Array(list)) => list,
            Some(_) => return None,
            None => map.into_iter().map(|(_, model)| model).collect(),
        },
        _ => return None,
    };
    let known = |model: &Record| {
        let kind = model.get("type").map_or(Some("chat"), Value::as_str);
        model.get("id").is_some_and(Value::is_string) && matches!(kind, Some("chat" | "image" | "classifier"))
    };
    let mut found = Vec::new();
    for model in list {
        if let Value::Object(mut model) = model
            && known(&model)
        {
            model.insert("provider".to_string(), Value::from(provider));
            found.push(model);
        }
    }
    Some(found)
}

/// Lays models over others: in the place of the one of the same kind and id, or at the end.
#[must_use]
pub fn lay_over(mut below: Vec<Record>, above: &[Record]) -> Vec<Record> {
    let name = |model: &Record| (record::kind(model).to_string(), record::text(model, "id").to_string());
    let mut places: hashbrown::HashMap<(String, String), usize> = hashbrown::HashMap::new();
    for (at, model) in below.iter().enumerate() {
        places.entry(name(model)).or_insert(at);
    }
    for model in above {
        let place = *places.entry(name(model)).or_insert(below.len());
        match below.get_mut(place) {
            Some(slot) => slot.clone_from(model),
            None => below.push(model.clone()),
        }
    }
    below
}

/// The question which models a key may use at OpenRouter.
#[must_use]
pub fn openrouter_request(base_url: &str, key: &str) -> HttpRequest {
    let headers = [
        ("accept".to_string(), "application/json".to_string()),
        ("authorization".to_string(), format!("Bearer {key}")),
    ];
    get(format!("{}/models/user", base_url.trim_end_matches('/')), headers.into(), USER_LIST_LIMIT_MS)
}

/// The models that the answer to [`openrouter_request`] leaves, with the limits and prices it tells. A key that may
/// not ask is not restricted.
///
/// # Errors
/// Why the answer cannot be used.
pub fn restrict_openrouter(models: Vec<Record>, status: u16, body: &[u8]) -> Result<Vec<Record>, String> {
    match status {
        401 | 403 | 404 => return Ok(models),
        200..300 => {}
        _ => return Err(format!("the service answered {status}")),
    }
    let parsed = core::str::from_utf8(body).ok().and_then(|text| crate::json::parse(text).ok());
    let list = parsed.as_ref().and_then(|answer| answer.get("data")?.as_array());
    let list = list.ok_or_else(|| "the answer is no list of models".to_string())?;
    let told: hashbrown::HashMap<&str, &Value> =
        list.iter().filter_map(|entry| Some((entry.get("id")?.as_str()?, entry))).collect();
    let restrict = |mut model: Record| {
        if model.get("type").is_some_and(|kind| kind != "chat") {
            return Some(model);
        }
        let entry = told.get(model.get("id")?.as_str()?)?;
        let top = entry.get("top_provider");
        let limit =
            |value: Option<&Value>| value.filter(|limit| limit.as_f64().is_some_and(|n| n > 0.0)).cloned();
        let context = limit(top.and_then(|top| top.get("context_length")));
        if let Some(context) = context.or_else(|| limit(entry.get("context_length"))) {
            model.insert("contextWindow".to_string(), context);
        }
        if let Some(most) = limit(top.and_then(|top| top.get("max_completion_tokens"))) {
            model.insert("maxTokens".to_string(), most);
        }
        if let Some(pricing) = entry.get("pricing").filter(|pricing| pricing.is_object()) {
            model.insert("cost".to_string(), openrouter_rates(pricing).to_value());
        }
        Some(model)
    };
    Ok(models.into_iter().filter_map(restrict).collect())
}
