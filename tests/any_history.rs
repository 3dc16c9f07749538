//! Whatever a session holds, and whoever wrote it, the next request is valid: for every protocol, also after a switch
//! of the model, from an encoder with a memory as from a fresh one.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use tau_core::json::parse;
use tau_core::message::Message;
use tau_core::model::{Model, ThinkingLevel};
use tau_core::op::Credential;
use tau_core::provider::{APIS, Encoder, ModelRequest, RequestOptions, encoder};
use tau_tests::messages::values;
use tau_tests::outline::{Demands, Ids, outline, rules};
use tau_tests::wire_rules;

/// Half of a surrogate pair, once the JSON text is made.
const HALF: &str = "<half>";
/// Occurs in every text of a reply that failed.
const FAILED: &str = "failed-reply";
/// Occurs in the data of every image.
const IMAGE: &str = "aW1hZ2U";

/// A model of a protocol; the second one takes no images and cannot think.
fn model(api: &str, nth: usize) -> Model {
    let google = api.starts_with("google");
    // Names calls by ids.
    let ids = if google { ["gemini-3-pro", "gemini-3-flash"] } else { ["m0", "m1"] };
    Model {
        id: ids[nth].into(),
        api: api.into(),
        provider: match api {
            "openai-completions" | "openai-responses" => ["openai", "elsewhere"][nth].into(),
            "azure-openai-responses" => "azure".into(),
            _ => "p".into(),
        },
        base_url: "https://llm.example/v1".into(),
        reasoning: nth == 0,
        text_input: true,
        image_input: nth == 0,
        context_window: 200_000,
        max_tokens: 32_000,
        ..Model::default()
    }
}

fn text() -> impl Strategy<Value = String> {
    const ODD: &[&str] = &[
        "",
        " ",
        "\n",
        "words",
        "\u{0}\u{1b}[1m",
        "\u{feff}\u{2028}",
        "👋 é 日本",
        "\"quoted\\\"",
        "</end>",
    ];
    let whole = select(ODD).prop_map(str::to_owned);
    prop_oneof![8 => whole.clone(), 1 => whole.prop_map(|text| format!("a{HALF}{text}{HALF}"))]
}

/// Ids as they come from the services, and worse ones.
fn id() -> impl Strategy<Value = String> {
    let known = select(
        &[
            "toolu_01A",
            "call_1",
            "call_1|fc_9",
            "call_1|",
            "|fc_9",
            "call_2|rs é/+=",
            "functions.read:0",
            "abcdefghi",
            "abcdefgh!",
            "null",
            "0",
            "x y",
            "é",
            "call_1_1",
            "tooluse_a.b",
            "",
            "|",
        ][..],
    );
    let known = known.prop_map(str::to_owned).boxed();
    let long = select(&[41_usize, 64, 65, 450][..]).prop_map(|length| "i".repeat(length));
    let long_item = select(&[41_usize, 450][..]).prop_map(|length| format!("call_3|{}", "j".repeat(length)));
    prop_oneof![10 => known, 1 => long, 1 => long_item]
}

/// The form in which a service itself gives ids: what a model said goes back to it as it was.
fn own_id(api: &str, id: &str) -> String {
    let plain = |text: &str, max: usize| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).take(max).collect()
    };
    match api {
        "mistral-conversations" => {
            let kept = id.chars().filter(char::is_ascii_alphanumeric);
            kept.chain("000000000".chars()).take(9).collect()
        }
        "openai-completions" if !id.is_empty() => id.chars().take(40).collect(),
        _ if api.ends_with("responses") => {
            let (call, item) = id.split_once('|').unwrap_or((id, ""));
            format!("c{}|fc_{}", plain(call, 60), plain(item, 60))
        }
        _ => plain(&format!("t{id}"), 64),
    }
}

fn image() -> impl Strategy<Value = Value> {
    let mime = select(&["image/png", "image/jpeg", "image/gif", "image/webp"][..]);
    mime.prop_map(|mime| json!({"type": "image", "data": format!("{IMAGE}="), "mimeType": mime}))
}

fn parts() -> impl Strategy<Value = Vec<Value>> {
    let text = text().prop_map(|text| json!({"type": "text", "text": text}));
    proptest::collection::vec(prop_oneof![3 => text, 1 => image()], 0..4)
}

/// Signatures of all protocols, wherever they turn up.
fn signature() -> impl Strategy<Value = Option<String>> {
    const KNOWN: &[&str] = &[
        "c2lnbmF0dXJl",
        "not base64",
        "reasoning_content",
        "reasoning",
        r#"[{"type":"reasoning.text","text":"x","index":0},{"type":"reasoning.encrypted","data":"ZA==","index":1}]"#,
        r#"[{"type":"reasoning.text""#,
        r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"ZA=="}"#,
        r#"{"v":1,"id":"msg_1","phase":"final_answer"}"#,
        r#"{"v":2}"#,
        "msg_legacy",
        "",
    ];
    proptest::option::of(select(KNOWN).prop_map(str::to_owned))
}

fn sign(block: &mut Value, key: &str, signature: Option<String>) {
    if let Some(signature) = signature {
        block[key] = signature.into();
    }
}

fn block() -> impl Strategy<Value = Value> {
    let arguments = select(
        &[
            r"{}",
            r#"{"path":"a"}"#,
            r#"{"":{"":[null,{}]},"é":"\u0000","n":1e300}"#,
            r#"{"z":1,"a":2,"z2":"<half>"}"#,
        ][..],
    );
    let said = (text(), signature()).prop_map(|(text, signature)| {
        let mut block = json!({"type": "text", "text": text});
        sign(&mut block, "textSignature", signature);
        block
    });
    let thought = (text(), signature(), any::<bool>()).prop_map(|(text, signature, redacted)| {
        let mut block = json!({"type": "thinking", "thinking": format!("{text}thought")});
        if redacted && signature.as_ref().is_some_and(|signature| !signature.is_empty()) {
            block["redacted"] = true.into();
        }
        sign(&mut block, "thinkingSignature", signature);
        block
    });
    let blank = signature().prop_map(|signature| {
        let mut block = json!({"type": "thinking", "thinking": ""});
        sign(&mut block, "thinkingSignature", signature);
        block
    });
    let call =
        (id(), arguments, signature(), any::<bool>()).prop_map(|(id, arguments, signature, broken)| {
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            let mut block = json!({"type": "toolCall", "id": id, "name": "read", "arguments": arguments});
            sign(&mut block, "thoughtSignature", signature);
            if broken {
                block["argumentsError"] = "cut".into();
            }
            block
        });
    prop_oneof![3 => said, 2 => thought, 1 => blank, 4 => call]
}

/// A reply of any model, also of one that no request is for; what a failed one says is marked.
fn reply() -> impl Strategy<Value = Value> {
    let stop = select(&["stop", "toolUse", "toolUse", "length", "error", "aborted", "deferred"][..]);
    let from = (select(&APIS[..]), 0..3_usize);
    (proptest::collection::vec(block(), 0..5), stop, from).prop_map(|(mut content, stop, (api, nth))| {
        let foreign = Model { id: "another".into(), provider: "q".into(), ..model(api, 0) };
        let model = if nth == 2 { foreign } else { model(api, nth) };
        let failed = matches!(stop, "error" | "aborted");
        for block in &mut content {
            if let (Some(id), true) = (block["id"].as_str(), nth < 2) {
                block["id"] = own_id(api, id).into();
            }
            for key in ["text", "thinking"] {
                if block[key].is_string() && failed {
                    block[key] = FAILED.into();
                }
            }
        }
        json!({"role": "assistant", "content": content, "api": api, "provider": model.provider, "model": model.id,
            "usage": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2},
            "stopReason": stop, "errorMessage": failed.then_some("no"), "timestamp": 1})
    })
}

/// A result for a call before, after, or of another life.
fn result() -> impl Strategy<Value = Value> {
    (id(), proptest::option::of(select(&APIS[..])), parts(), any::<bool>()).prop_map(|(id, api, content, failed)| {
        let id = api.map_or_else(|| id.clone(), |api| own_id(api, &id));
        json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "content": content, "isError": failed,
            "timestamp": 2})
    })
}

fn message() -> impl Strategy<Value = Value> {
    prop_oneof![
        2 => parts().prop_map(|content| json!({"role": "user", "content": content, "timestamp": 1})),
        // A prompt that is only a text goes out as it is, also a blank one (spec 30 §3.2); nobody sends one.
        1 => text().prop_map(|text| json!({"role": "user", "content": format!("go {text}"), "timestamp": 1})),
        5 => reply(),
        4 => result(),
        1 => text().prop_map(|text| {
            json!({"role": "system", "content": text, "timestamp": 3, "toolsAdded": [
                {"name": "read", "description": text, "parameters": {"type": "object", "properties": {}}}]})
        }),
    ]
}

/// What a session holds, read as from its file: half surrogate pairs are escapes there.
fn read(list: &[Value]) -> Vec<Arc<Message>> {
    let text = Value::from(list.to_vec()).to_string().replace(HALF, "\\ud83d");
    let list = parse(&text).unwrap();
    let messages = list.as_array().unwrap().iter();
    messages.map(|message| Arc::new(Message::from_value(message).unwrap())).collect()
}

fn made(encoder: &mut dyn Encoder, model: &Model, messages: &[Arc<Message>]) -> (Vec<u8>, Value) {
    let options = RequestOptions {
        session_id: Some("s".into()),
        reasoning: Some(ThinkingLevel::Medium),
        ..RequestOptions::default()
    };
    let key = "h.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjdC0xMjMifX0.s";
    let credential = Credential { api_key: Some(key.into()), ..Credential::default() };
    let request = ModelRequest { model, messages, options: &options, credential: &credential, now_ms: 9 };
    let made = encoder.encode(&request).unwrap();
    (made.body.to_vec(), json!([made.url, made.headers]))
}

/// What a service would refuse.
fn valid(model: &Model, messages: &[Arc<Message>], body: &[u8]) -> Result<(), String> {
    let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
    let body: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let usual = Demands::of(&model.api);
    let ids = match (model.api.as_str(), model.provider.as_str()) {
        ("openai-completions", "openai") => Ids { max: 40, marks: None },
        // Servers of this protocol take any id; it is kept.
        ("openai-completions", _) => Ids { max: usize::MAX, marks: None },
        _ => usual.ids,
    };
    rules(Demands { ids, ..usual }, &outline(&body))?;
    wire_rules::check(&model.api, &body)?;
    if text.contains(FAILED) {
        return Err("a failed reply is sent again".into());
    }
    if !model.image_input && text.contains(IMAGE) {
        return Err("an image for a model that takes none".into());
    }
    let own = |message: &&Arc<Message>| {
        message.as_assistant().is_some_and(|reply| {
            reply.model == model.id && reply.api == model.api && reply.provider == model.provider
        })
    };
    // Gemini does not look at the protocol: its two addresses are the same models.
    let from_us = messages.iter().any(|message| own(&message)) || model.api.starts_with("google");
    if !from_us && text.contains("thought\"") {
        return Err("thinking of another model is sent".into());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_shrink_iters: 4000, ..ProptestConfig::default() })]

    #[test]
    fn every_history_makes_a_valid_request(
        list in proptest::collection::vec(message(), 0..14),
        cuts in proptest::collection::vec((0..15_usize, 0..2_usize), 1..4),
    ) {
        let messages = read(&list);
        let stored = values(&messages);
        for api in APIS {
            let mut remembering = encoder(api).unwrap();
            let all = [(messages.len(), 0), (messages.len(), 1), (messages.len(), 0)];
            for (cut, nth) in cuts.iter().copied().chain(all) {
                let messages = messages.get(..cut).unwrap_or(&messages);
                let model = model(api, nth);
                let fresh = made(&mut *encoder(api).unwrap(), &model, messages);
                prop_assert_eq!(made(&mut *remembering, &model, messages), fresh.clone(), "{}: the memory counts", api);
                let checked = valid(&model, messages, &fresh.0);
                prop_assert!(
                    checked.is_ok(), "{} {}: {:?} in {}", api, model.id, checked, String::from_utf8_lossy(&fresh.0)
                );
            }
        }
        prop_assert_eq!(values(&messages), stored, "the history was changed");
    }
}

/// Histories that once made requests which a service refuses.
#[test]
fn histories_that_were_refused() {
    let user = |text: &str| json!({"role": "user", "content": text, "timestamp": 1});
    let reply = |api: &str, content: Value| {
        let model = model(api, 0);
        json!({"role": "assistant", "content": content, "api": api, "provider": model.provider, "model": model.id,
            "usage": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2},
            "stopReason": "toolUse", "timestamp": 1})
    };
    let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "read", "arguments": {}});
    let picture = |id: &str| {
        json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "isError": false, "timestamp": 1,
            "content": [{"type": "image", "data": format!("{IMAGE}="), "mimeType": "image/png"}]})
    };
    let thought = json!({"type": "thinking", "thinking": "", "thinkingSignature":
        r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"ZA=="}"#});
    let said = json!({"type": "text", "text": "words"});
    let send = |api: &str, id: Option<&str>, list: &[Value]| {
        let messages = read(list);
        let mut model = model(api, 0);
        model.id = id.map_or(model.id, str::to_owned);
        let body = made(&mut *encoder(api).unwrap(), &model, &messages).0;
        let body: Value = serde_json::from_slice(&body).unwrap();
        wire_rules::check(api, &body).unwrap_or_else(|why| panic!("{why} in {body}"));
        body
    };
    let foreign = "anthropic-messages";

    // Two results with images for a model that takes them beside results only.
    let two = reply(foreign, json!([call("a"), call("b")]));
    let list = [user("go"), two, picture("a"), picture("b"), user("on")];
    let body = send("google-generative-ai", Some("gemini-2.5-pro"), &list);
    let kinds = |content: &Value| -> Vec<String> {
        let parts = content["parts"].as_array().unwrap().iter();
        parts.map(|part| part.as_object().unwrap().keys().next().unwrap().clone()).collect()
    };
    assert_eq!(kinds(&body["contents"][2]), ["functionResponse", "functionResponse"]);
    assert_eq!(kinds(&body["contents"][3]), ["text", "inlineData", "text", "inlineData"]);

    // Calls of another model in the turn that goes on, of which the first is looked at.
    let body = send("google-generative-ai", None, &list[..4]);
    let calls = &body["contents"][1]["parts"];
    assert_eq!(calls[0]["thoughtSignature"], "skip_thought_signature_validator");
    assert_eq!(calls[1].get("thoughtSignature"), None);
    let own = reply("google-generative-ai", json!([call("a")]));
    let body = send("google-generative-ai", None, &[user("go"), own, picture("a")]);
    assert_eq!(body["contents"][1]["parts"][0].get("thoughtSignature"), None);

    // A call behind another reply, and one at the very beginning.
    for list in [
        vec![user("go"), reply(foreign, json!([said])), reply(foreign, json!([call("a")])), picture("a")],
        vec![reply(foreign, json!([call("a")])), picture("a")],
    ] {
        for api in APIS {
            let _ = send(api, None, &list);
        }
    }

    // What the user says between a result and the next reply.
    let list = [user("go"), reply(foreign, json!([call("a")])), picture("a"), user("wait"), user("on")];
    let body = send("bedrock-converse-stream", None, &list);
    let last = body["messages"][2]["content"].as_array().unwrap();
    assert!(last[0].get("toolResult").is_some() && last[2]["text"] == "on" && last.len() == 3, "{body}");

    // A reply that was cut while it thought.
    for api in ["openai-responses", "azure-openai-responses", "openai-codex-responses"] {
        let body = send(api, None, &[user("go"), reply(api, json!([thought])), user("on")]).to_string();
        assert!(!body.contains("rs_1"), "{body}");
        let body = send(api, None, &[user("go"), reply(api, json!([thought, said])), user("on")]).to_string();
        assert!(body.contains("rs_1"), "{body}");
    }
}
