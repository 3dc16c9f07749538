//! Model servers on this machine: where they listen, what their lists of models say, and the entry of `models.json`
//! that makes them usable.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::record::Record;
use crate::json::{Map, Value};

/// A kind of server. All speak `openai-completions` and list their models at `/v1/models`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Provider id in `models.json`.
    pub id: &'static str,
    /// Name for people.
    pub name: &'static str,
    /// The port it listens on when nobody says otherwise.
    pub port: u16,
}

/// The servers that are looked for.
pub const KINDS: [Kind; 4] = [
    Kind { id: "ollama", name: "Ollama", port: 11434 },
    Kind { id: "llama.cpp", name: "llama.cpp", port: 8080 },
    Kind { id: "lm-studio", name: "LM Studio", port: 1234 },
    Kind { id: "vllm", name: "vLLM", port: 8000 },
];

/// A server that answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// What it is.
    pub kind: Kind,
    /// Where it listens.
    pub port: u16,
    /// Its models, as entries of `models.json`; never empty.
    pub models: Vec<Record>,
}

/// Where to look: the usual ports, or those of a list like `ollama=11434,vllm=8001`, which then are the only ones.
/// Names nobody knows and ports that are none are left out.
#[must_use]
pub fn places(list: Option<&str>) -> Vec<(Kind, u16)> {
    let Some(list) = list else { return KINDS.iter().map(|kind| (*kind, kind.port)).collect() };
    let place = |item: &str| {
        let (name, port) = item.split_once('=')?;
        let kind = KINDS.iter().find(|kind| kind.id == name.trim())?;
        Some((*kind, port.trim().parse().ok()?))
    };
    list.split(',').filter_map(place).collect()
}

/// The models of an answer to `GET /v1/models`, as entries of `models.json`; none if it is no such list. Models that
/// only make embeddings are left out.
#[must_use]
pub fn models(body: &[u8]) -> Vec<Record> {
    let answer = core::str::from_utf8(body).ok().and_then(|text| crate::json::parse(text).ok());
    let list = answer.as_ref().and_then(|answer| answer.get("data")?.as_array());
    list.into_iter().flatten().filter_map(model).collect()
}

fn model(entry: &Value) -> Option<Record> {
    let id = entry.get("id")?.as_str().filter(|id| !id.trim().is_empty())?;
    if id.to_lowercase().contains("embed") {
        return None;
    }
    let mut record: Record = [("id".to_string(), Value::from(id))].into_iter().collect();
    let meta = entry.get("meta");
    // vLLM, llama.cpp as it runs, llama.cpp at most, LM Studio.
    let windows = [
        entry.get("max_model_len"),
        meta.and_then(|meta| meta.get("n_ctx")),
        meta.and_then(|meta| meta.get("n_ctx_train")),
        entry.get("max_context_length"),
    ];
    let window = windows.into_iter().flatten().filter_map(Value::as_u64).find(|window| *window > 0);
    if let Some(window) = window {
        record.insert("contextWindow".to_string(), Value::from(window));
        // An answer may take what the window leaves, not more than usual.
        record.insert("maxTokens".to_string(), Value::from((window / 2).clamp(1, 16_384)));
    }
    Some(record)
}

impl Server {
    /// Its address for requests.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// The provider entry of `models.json`.
    #[must_use]
    pub fn entry(&self) -> Value {
        let off = |key: &str| (key.to_string(), Value::Bool(false));
        let compat: Map<String, Value> =
            [off("supportsStore"), off("supportsDeveloperRole"), off("supportsReasoningEffort")]
                .into_iter()
                .collect();
        let text = |key: &str, value: &str| (key.to_string(), Value::from(value));
        let entry: Map<String, Value> = [
            text("name", self.kind.name),
            text("baseUrl", &self.base_url()),
            text("api", "openai-completions"),
            // They take any key; without one a provider cannot be used.
            text("apiKey", "local"),
            ("compat".to_string(), Value::Object(compat)),
            ("models".to_string(), self.models.iter().cloned().map(Value::Object).collect()),
        ]
        .into_iter()
        .collect();
        Value::Object(entry)
    }

    /// Its models whose ids an entry of `models.json` does not have.
    #[must_use]
    pub fn missing_in(&self, entry: &Value) -> Vec<&Record> {
        let known = entry.get("models").and_then(Value::as_array);
        let has =
            |id: Option<&Value>| known.is_some_and(|list| list.iter().any(|model| model.get("id") == id));
        self.models.iter().filter(|model| !has(model.get("id"))).collect()
    }

    /// Ids of its models.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.models.iter().filter_map(|model| model.get("id")?.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_of_the_four_servers() {
        let rows = [
            (
                r#"{"object":"list","data":[{"id":"qwen3:8b","object":"model","owned_by":"library"}]}"#,
                json!([{"id": "qwen3:8b"}]),
            ),
            (
                r#"{"data":[{"id":"m.gguf","meta":{"n_ctx":4096,"n_ctx_train":32768}},{"id":"n","meta":{"n_ctx_train":131072}}]}"#,
                json!([{"id": "m.gguf", "contextWindow": 4096, "maxTokens": 2048},
                       {"id": "n", "contextWindow": 131_072, "maxTokens": 16384}]),
            ),
            (
                r#"{"data":[{"id":"text-embedding-nomic"},{"id":"google/gemma","max_context_length":8192},{"id":" "},{"id":5},7]}"#,
                json!([{"id": "google/gemma", "contextWindow": 8192, "maxTokens": 4096}]),
            ),
            (
                r#"{"data":[{"id":"m","max_model_len":1}]}"#,
                json!([{"id": "m", "contextWindow": 1, "maxTokens": 1}]),
            ),
            (r#"{"models":[]}"#, json!([])),
            ("<html>", json!([])),
        ];
        for (body, wanted) in rows {
            let got: Value = models(body.as_bytes()).into_iter().map(Value::Object).collect();
            assert_eq!(got, wanted, "{body}");
        }
    }

    #[test]
    fn places_can_be_named() {
        let ports = |list| places(list).iter().map(|(kind, port)| (kind.id, *port)).collect::<Vec<_>>();
        assert_eq!(ports(None).len(), 4);
        assert_eq!(ports(Some("vllm=8001, ollama=1,nobody=2,vllm=x,vllm")), [("vllm", 8001), ("ollama", 1)]);
        assert_eq!(ports(Some("")), []);
    }

    #[test]
    fn an_entry_is_a_usable_provider() {
        let models = models(br#"{"data":[{"id":"a"},{"id":"b"}]}"#);
        let server = Server { kind: KINDS[0], port: 7, models };
        let text = json!({"providers": {"ollama": server.entry()}}).to_string();
        let catalog = super::super::catalog::Catalog::load("models.json", Ok(Some(&text)));
        assert!(catalog.faults().is_empty(), "{:?}", catalog.faults());
        let model = catalog.find("ollama", "b").unwrap();
        assert_eq!(
            (model.base_url.as_str(), model.api.as_str()),
            ("http://127.0.0.1:7/v1", "openai-completions")
        );
        assert_eq!(server.missing_in(&json!({"models": [{"id": "b"}]})).len(), 1);
    }
}
