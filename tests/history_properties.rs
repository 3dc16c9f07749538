//! A history that grows, shrinks and changes gives the same requests as one that is read at once.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use tau_core::convert::{self, History, Memo, Public, Target};
use tau_core::message::Message;
use tau_core::model::Model;
use tau_core::op::Credential;
use tau_core::provider::{Encoder, ModelRequest, RequestOptions, encoder};
use tau_core::tokens::request;
use tau_tests::messages::{read, values};

/// Few ids, so that calls and results meet, repeat and miss each other.
fn id() -> impl Strategy<Value = &'static str> {
    select(&["1", "2", "3", "4|a", "4|b", "call é", "call_é"][..])
}

fn blocks() -> impl Strategy<Value = Vec<Value>> {
    let text = select(&["words", "", " ", "more"][..]).prop_map(|t| json!({"type": "text", "text": t}));
    let image = Just(json!({"type": "image", "data": "AA==", "mimeType": "image/png"}));
    proptest::collection::vec(prop_oneof![3 => text, 1 => image], 0..3)
}

fn reply() -> impl Strategy<Value = Value> {
    let text =
        select(&["said", " "][..]).prop_map(|t| json!({"type": "text", "text": t, "textSignature": "s"}));
    let call = id().prop_map(|id| {
        json!({"type": "toolCall", "id": id, "name": "read", "arguments": {"path": "a"}, "thoughtSignature": "t"})
    });
    let thinking = Just(json!({"type": "thinking", "thinking": "hm", "thinkingSignature": "reasoning"}));
    let content = proptest::collection::vec(prop_oneof![1 => text, 3 => call, 1 => thinking], 0..4);
    let stop = select(&["stop", "toolUse", "toolUse", "error", "aborted"][..]);
    (content, stop, select(&["m0", "m1"][..]), 0..3_u64, 0..4).prop_map(|(content, stop, model, used, at)| {
        json!({"role": "assistant", "content": content, "api": "a", "provider": "p", "model": model,
            "usage": {"input": used * 100, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": used * 100},
            "stopReason": stop, "timestamp": at})
    })
}

fn message() -> impl Strategy<Value = Value> {
    prop_oneof![
        2 => (blocks(), 0..4)
            .prop_map(|(content, at)| json!({"role": "user", "content": content, "timestamp": at})),
        1 => select(&["go", " "][..]).prop_map(|t| json!({"role": "user", "content": t, "timestamp": 1})),
        4 => reply(),
        5 => (id(), blocks(), any::<bool>()).prop_map(|(id, content, failed)| {
            json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "content": content,
                "isError": failed, "timestamp": 2})
        }),
        1 => select(&["", "be brief"][..]).prop_map(|text| {
            json!({"role": "system", "content": text, "timestamp": 3,
                "toolsAdded": [{"name": "read", "description": text, "parameters": {"type": "object"}}]})
        }),
        1 => (any::<bool>(), select(&["out", ""][..])).prop_map(|(hidden, output)| {
            json!({"role": "bashExecution", "command": "ls", "output": output, "exitCode": 1,
                "cancelled": false, "truncated": false, "excludeFromContext": hidden, "timestamp": 1})
        }),
        1 => blocks().prop_map(|content| {
            json!({"role": "custom", "customType": "x", "content": content, "display": true, "timestamp": 1})
        }),
    ]
}

/// What happens to a list before the next request.
#[derive(Clone, Debug)]
enum Change {
    Append(Vec<Value>),
    Remove(Index),
    Replace(Index, Value),
    Anew(Vec<Value>),
    /// The request is for another model, or one that differs in what it takes.
    Model(usize),
    BlockImages(bool),
    /// The same once more.
    Nothing,
}

fn change() -> impl Strategy<Value = Change> {
    let list = proptest::collection::vec(message(), 0..4);
    prop_oneof![
        12 => proptest::collection::vec(message(), 1..5).prop_map(Change::Append),
        1 => any::<Index>().prop_map(Change::Remove),
        1 => (any::<Index>(), message()).prop_map(|(at, message)| Change::Replace(at, message)),
        1 => list.prop_map(Change::Anew),
        2 => (0..MODELS).prop_map(Change::Model),
        1 => any::<bool>().prop_map(Change::BlockImages),
        1 => Just(Change::Nothing),
    ]
}

const APIS: [&str; 5] = [
    "openai-completions",
    "openai-responses",
    "anthropic-messages",
    "google-generative-ai",
    "bedrock-converse-stream",
];
const MODELS: usize = 4;

fn model(api: &str, nth: usize) -> Model {
    let flags = match nth {
        0 => json!({}),
        1 => json!({"requiresAssistantAfterToolResult": true}),
        2 => json!({"cacheControlFormat": "anthropic", "requiresAssistantAfterToolResult": true}),
        _ => json!({"cacheControlFormat": "anthropic", "requiresThinkingAsText": true}),
    };
    Model {
        id: format!("m{}", nth % 2),
        api: api.into(),
        provider: if nth == 3 { "github-copilot".into() } else { "p".into() },
        base_url: "http://127.0.0.1:1".into(),
        image_input: nth != 1,
        context_window: 40_000,
        max_tokens: 32_000,
        compat: flags.as_object().cloned(),
        ..Model::default()
    }
}

/// One request as bytes and headers.
fn encode(encoder: &mut dyn Encoder, model: &Model, messages: &[Arc<Message>]) -> (String, Value) {
    let options = RequestOptions { session_id: Some("s".into()), ..RequestOptions::default() };
    let credential = Credential { api_key: Some("k".into()), ..Credential::default() };
    let request = ModelRequest { model, messages, options: &options, credential: &credential, now_ms: 9 };
    let made = encoder.encode(&request).unwrap();
    (String::from_utf8(made.body.to_vec()).unwrap(), json!(made.headers))
}

fn apply(change: Change, list: &mut Vec<Arc<Message>>, state: &mut (usize, bool)) {
    let one = |message: Value| read(&json!([message])).remove(0);
    match change {
        Change::Append(more) => list.extend(read(&Value::from(more))),
        Change::Remove(at) if !list.is_empty() => drop(list.remove(at.index(list.len()))),
        Change::Replace(at, message) if !list.is_empty() => {
            let at = at.index(list.len());
            list[at] = one(message);
        }
        Change::Remove(_) | Change::Replace(..) | Change::Nothing => {}
        Change::Anew(all) => *list = read(&Value::from(all)),
        Change::Model(nth) => state.0 = nth,
        Change::BlockImages(on) => state.1 = on,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_shrink_iters: 4000, ..ProptestConfig::default() })]

    #[test]
    fn requests_are_those_of_the_whole_list(changes in proptest::collection::vec(change(), 1..14)) {
        let mut encoders = APIS.map(|api| encoder(api).unwrap());
        let mut public = Public::default();
        let mut history = History::default();
        let (mut list, mut state) = (Vec::new(), (0, false));
        for change in changes {
            apply(change, &mut list, &mut state);
            let given = public.update(&list, state.1);
            let mut anew = Public::default();
            let whole = anew.update(&list, state.1);
            prop_assert_eq!(values(given), values(whole));
            if !state.1 {
                prop_assert_eq!(values(given), values(&convert::to_llm(&list, &mut Memo::default())));
            }
            for (encoder, api) in encoders.iter_mut().zip(APIS) {
                let model = model(api, state.0);
                let mut fresh = tau_core::provider::encoder(api).unwrap();
                let (body, headers) = encode(&mut **encoder, &model, given);
                let (wanted, wanted_headers) = encode(&mut *fresh, &model, whole);
                prop_assert_eq!(body, wanted);
                prop_assert_eq!(headers, wanted_headers);
            }
            let name = format!("m{}", state.0 % 2);
            let rule = |id: &str, _: &_| convert::sanitize_id(id, 6).into_owned();
            let target =
                Target { provider: "p", api: "a", model: &name, images: state.0 != 1, ids: Some(&rule), max_id: 12 };
            history.update(given, &target, 9);
            let mut fresh = History::default();
            fresh.update(whole, &target, 9);
            prop_assert_eq!(values(history.messages()), values(fresh.messages()));
            prop_assert_eq!(history.fold(), convert::fold(&list));
            prop_assert_eq!(history.tokens(), request::context_usage(whole).tokens);
            prop_assert_eq!(history.has_images(), fresh.has_images());
            prop_assert_eq!(history.has_calls(), fresh.has_calls());
        }
    }
}
