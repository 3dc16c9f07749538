//! Requests.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use super::decode::GoogleDecoder;
use super::family::{Amount, Thinking, needs_call_ids, needs_signed_calls, nests_images};
use super::messages::{Shape, write_text};
use super::{VERTEX, address, tools};
use crate::convert::{Fold, History, Target, sanitize_id};
use crate::fault::Fault;
use crate::json::Writer;
use crate::message::AssistantMessage;
use crate::model::Model;
use crate::op::HttpRequest;
use crate::provider::body::{BodyCache, reply_rows};
use crate::provider::headers::{self, HeaderSet};
use crate::provider::request::{authorised, post};
use crate::provider::{Decoder, Encoder, ModelRequest, options};

/// Longest id of a tool call.
const MAX_ID: usize = 64;
const KEY_HEADER: &str = "x-goog-api-key";

/// The encoder of both protocols; keeps the last body.
#[derive(Debug, Default)]
pub struct GoogleEncoder {
    history: History,
    body: BodyCache,
    /// What the encoding of messages depends on besides the messages.
    shape: Option<Shape>,
    /// Provider and id of the last model: which calls are of another one depends on it.
    model: (String, String),
    /// Requests so far.
    requests: u32,
}

/// Limits of a request after the options of the caller were mapped (spec 30 §1.9).
#[derive(Clone, Copy, Debug)]
pub struct Generation {
    /// Output limit; `None` = not sent.
    pub max_tokens: Option<u64>,
    /// How the model is told to think.
    pub thinking: Thinking,
}

impl Generation {
    /// Maps the options: the output limit is clamped to the context beside `input` estimated tokens, the level to what
    /// the model supports.
    #[must_use]
    pub fn of(request: &ModelRequest<'_>, input: u64) -> Self {
        let (model, wishes) = (request.model, request.options);
        Self {
            max_tokens: Some(options::output_limit(model, input, wishes.max_tokens)),
            thinking: Thinking::choose(model, wishes.reasoning, &wishes.budgets),
        }
    }
}

impl Encoder for GoogleEncoder {
    fn encode(&mut self, request: &ModelRequest<'_>) -> Result<HttpRequest, Fault> {
        self.read(request);
        let input = options::input_tokens(request.model, &mut self.history);
        self.write(request, Generation::of(request, input))
    }

    fn decoder(&self, model: &Arc<Model>, now_ms: i64) -> Box<dyn Decoder> {
        Box::new(GoogleDecoder::new(model, self.requests, now_ms))
    }
}

impl GoogleEncoder {
    /// Encodes with limits that are given as they are.
    ///
    /// # Errors
    /// When there is no credential, the address is unusable, or a tool demands more than the model can do.
    pub fn encode_with(
        &mut self,
        request: &ModelRequest<'_>,
        generation: Generation,
    ) -> Result<HttpRequest, Fault> {
        self.read(request);
        self.write(request, generation)
    }

    fn read(&mut self, request: &ModelRequest<'_>) {
        let model = request.model;
        let rule = |id: &str, _: &AssistantMessage| sanitize_id(id, MAX_ID).into_owned();
        let target = Target {
            provider: &model.provider,
            api: &model.api,
            model: &model.id,
            images: model.image_input,
            ids: if needs_call_ids(&model.id) { Some(&rule) } else { None },
            max_id: MAX_ID,
        };
        self.history.update(request.messages, &target, request.now_ms);
    }

    fn write(&mut self, request: &ModelRequest<'_>, generation: Generation) -> Result<HttpRequest, Fault> {
        let id = &request.model.id;
        let headers = request_headers(request)?;
        let url = address::url(request, headers.get(KEY_HEADER).is_some())?;
        let head = head(request, &self.history.fold())?;
        let shape = Shape {
            ids: needs_call_ids(id),
            nested_images: nests_images(id),
            signed_calls: needs_signed_calls(id),
        };
        let is_same = self.model.0 == request.model.provider && self.model.1 == *id;
        if self.shape != Some(shape) || !is_same {
            self.body.clear();
            self.shape = Some(shape);
            self.model = (request.model.provider.clone(), id.clone());
        }
        self.requests = self.requests.wrapping_add(1);
        let tail = tail(request, generation);
        let history = self.history.messages();
        let from = self.body.resume(history);
        let units = reply_rows(history, from.messages);
        let body = self.body.build(&head, &tail, from, &units, |unit, w| shape.write(unit, request.model, w));
        Ok(post(request, url, headers, body))
    }
}

/// The body up to the contents: what stays the same from request to request.
fn head(request: &ModelRequest<'_>, state: &Fold<'_>) -> Result<String, Fault> {
    let mut w = Writer::new();
    w.begin_object();
    let prompt = state.prompt();
    // A blank part is refused.
    if !prompt.trim().is_empty() {
        w.key("systemInstruction");
        w.begin_object();
        w.field_str("role", "user");
        w.key("parts");
        w.begin_array();
        write_text(&prompt, &mut w);
        w.end_array();
        w.end_object();
    }
    tools::write(&state.tools, request, &mut w)?;
    w.key("contents");
    w.begin_array();
    Ok(w.into_string())
}

/// The body behind the contents: limits and wishes, which may change with every request.
fn tail(request: &ModelRequest<'_>, generation: Generation) -> String {
    // Closes the array that the head opened.
    let mut w = Writer::append_to("],".into());
    w.key("generationConfig");
    w.begin_object();
    if let Some(temperature) = request.options.temperature {
        w.field_f64("temperature", temperature);
    }
    if let Some(limit) = generation.max_tokens {
        w.field_u64("maxOutputTokens", limit);
    }
    if let Thinking::Least(amount) | Thinking::Shown(amount) = generation.thinking {
        w.key("thinkingConfig");
        w.begin_object();
        if matches!(generation.thinking, Thinking::Shown(_)) {
            w.field_bool("includeThoughts", true);
        }
        match amount {
            Amount::Level(word) => w.field_str("thinkingLevel", word),
            Amount::Budget(tokens) => w.field_i64("thinkingBudget", tokens),
        }
        w.end_object();
    }
    w.end_object();
    w.end_object();
    w.into_string()
}

/// Layers in their order, later ones win (spec 30 §7).
fn request_headers(request: &ModelRequest<'_>) -> Result<HeaderSet, Fault> {
    let (model, options, credential) = (request.model, request.options, request.credential);
    let mut set = HeaderSet::new();
    set.merge(&headers::identity(model, options.identity.as_ref()));
    set.set("content-type", "application/json");
    match Key::of(request) {
        Key::None => {}
        Key::Api(key) => set.set(KEY_HEADER, key),
        Key::Token(token) => set.set("authorization", format!("Bearer {token}")),
    }
    set.merge(&headers::opencode_session(model, options.session_id.as_deref(), &options.headers));
    set.merge(&model.headers);
    set.merge(&credential.headers);
    set.merge(&options.headers);
    authorised(&set, &[KEY_HEADER, "authorization", "cf-aig-authorization"], &model.provider)?;
    Ok(set)
}

/// Whether a key of Vertex AI only says that other credentials are used.
#[must_use]
pub fn is_stand_in(key: &str) -> bool {
    let key = key.trim();
    key == "gcp-vertex-credentials" || (key.starts_with('<') && key.ends_with('>'))
}

/// What the key of a credential is.
enum Key<'a> {
    None,
    Api(&'a str),
    /// An access token of Google Cloud, such as `gcloud auth print-access-token` prints.
    Token(&'a str),
}

impl<'a> Key<'a> {
    /// For Vertex the key may also be a stand-in that says "other credentials".
    fn of(request: &ModelRequest<'a>) -> Self {
        let key = request.credential.api_key.as_deref().unwrap_or_default().trim();
        let is_vertex = request.model.api == VERTEX;
        let stand_in = is_stand_in(key);
        match key {
            "" => Self::None,
            _ if is_vertex && stand_in => Self::None,
            token if is_vertex && token.starts_with("ya29.") => Self::Token(token),
            key => Self::Api(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::API;
    use super::*;
    use crate::json::Value;
    use crate::message::Message;
    use crate::op::Credential;
    use crate::provider::RequestOptions;
    use alloc::vec;
    use alloc::vec::Vec;

    fn encode(api: &str, credential: &Credential, options: &RequestOptions) -> Result<HttpRequest, Fault> {
        let model = Model { api: api.into(), id: "gemini-2.5-pro".into(), max_tokens: 9, ..Model::default() };
        let tool = serde_json::json!({"name": "ls", "parameters": {"type": "object"}});
        let system = Message::System(crate::message::SystemMessage {
            content: " ".into(),
            tools_added: Some(vec![tool]),
            ..Default::default()
        });
        let messages = [system, Message::user("", vec![], 1), Message::user("go", vec![], 1)].map(Arc::new);
        let request = ModelRequest { model: &model, messages: &messages, options, credential, now_ms: 1 };
        GoogleEncoder::default().encode(&request)
    }

    #[test]
    fn keys_and_tokens() {
        let options = RequestOptions::default();
        let key = |key: &str| Credential { api_key: Some(key.into()), ..Credential::default() };
        let headers = vec![("Authorization".into(), Some("Bearer t".into()))];
        let place = |name: &str, value: &str| (String::from(name), String::from(value));
        let env = vec![place("GCLOUD_PROJECT", "p-1"), place("GOOGLE_CLOUD_LOCATION", "us-east1")];
        let express = "https://aiplatform.googleapis.com/v1/publishers/";
        let project =
            "https://us-east1-aiplatform.googleapis.com/v1/projects/p-1/locations/us-east1/publishers/";
        let given = |credential: Credential| Credential { env: env.clone(), ..credential };
        for (api, credential, wanted) in [
            (API, key("k"), Ok("https://generativelanguage.")),
            (API, key(" "), Err("no_key")),
            (API, key("<key>"), Ok("https://generativelanguage.")),
            (VERTEX, key("k"), Ok(express)),
            (VERTEX, given(key("k")), Ok(express)),
            (VERTEX, given(key("<authenticated>")), Err("no_key")),
            (VERTEX, given(key("gcp-vertex-credentials")), Err("no_key")),
            (VERTEX, given(key("ya29.t")), Ok(project)),
            (VERTEX, key("ya29.t"), Err("no_project")),
            (VERTEX, given(Credential { headers, ..Credential::default() }), Ok(project)),
        ] {
            let made = encode(api, &credential, &options);
            match (&made, wanted) {
                (Ok(made), Ok(start)) => assert!(made.url.starts_with(start), "{}", made.url),
                (Err(fault), Err(code)) => assert_eq!(fault.code, code),
                _ => panic!("{api} {wanted:?}: {made:?}"),
            }
        }
    }

    #[test]
    fn choice_of_tools_and_texts_that_say_nothing() {
        let credential = Credential { api_key: Some("k".into()), ..Credential::default() };
        let own = serde_json::json!({"mode": "ANY", "allowedFunctionNames": ["ls"]});
        for (choice, wanted) in [
            (None, Value::Null),
            (Some("auto".into()), serde_json::json!({"mode": "AUTO"})),
            (Some("none".into()), serde_json::json!({"mode": "NONE"})),
            (Some("required".into()), serde_json::json!({"mode": "ANY"})),
            (Some(own.clone()), own),
        ] {
            let options = RequestOptions { tool_choice: choice, ..RequestOptions::default() };
            let body = encode(API, &credential, &options).map(|made| made.body).unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["toolConfig"]["functionCallingConfig"], wanted);
            assert_eq!(body["contents"].as_array().map(Vec::len), Some(1));
            assert!(body.get("systemInstruction").is_none());
        }
    }
}
