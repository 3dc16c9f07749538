//! What passes is tried again when it is time, what does not is not: the same over four protocols.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use serde_json::{Value, json};
use tau_tests::program::Sandbox;
use tau_tests::server::{Part, Reply, Server};

const TAU: &str = env!("CARGO_BIN_EXE_tau");

const APIS: [&str; 4] =
    ["openai-completions", "openai-responses", "anthropic-messages", "google-generative-ai"];

/// Bytes of an answer of two words, event by event; the last one ends it.
fn answer(api: &str) -> Vec<Part> {
    let named = |event: Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    let plain = |event: Value| format!("data: {event}\n\n");
    let events = match api {
        "openai-completions" => {
            let chunk = |content: &str, end: Value| json!({"id": "r", "choices": [{"index": 0, "delta": {"content": content}, "finish_reason": end}]});
            let last = plain(chunk("", json!("stop"))) + "data: [DONE]\n\n";
            vec![plain(chunk("two ", Value::Null)), plain(chunk("words", Value::Null)), last]
        }
        "openai-responses" => {
            let item = json!({"type": "message", "id": "m", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "two words", "annotations": []}]});
            let delta = |text: &str| json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "m", "delta": text});
            vec![
                named(json!({"type": "response.created", "response": {"id": "r"}}))
                    + &named(json!({"type": "response.output_item.added", "output_index": 0,
                        "item": {"type": "message", "id": "m", "role": "assistant", "content": []}}))
                    + &named(
                        json!({"type": "response.content_part.added", "output_index": 0, "content_index": 0,
                        "item_id": "m", "part": {"type": "output_text", "text": ""}}),
                    )
                    + &named(delta("two ")),
                named(delta("words"))
                    + &named(json!({"type": "response.output_item.done", "output_index": 0, "item": item})),
                named(
                    json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [item],
                    "usage": {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}}}),
                ),
            ]
        }
        "anthropic-messages" => {
            let delta = |text: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
            vec![
                named(
                    json!({"type": "message_start", "message": {"id": "r", "type": "message", "role": "assistant", "content": [],
                    "usage": {"input_tokens": 5, "output_tokens": 0}}}),
                ) + &named(
                    json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                ) + &named(delta("two ")),
                named(delta("words")) + &named(json!({"type": "content_block_stop", "index": 0})),
                named(
                    json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
                ) + &named(json!({"type": "message_stop"})),
            ]
        }
        _ => {
            let chunk = |text: &str| json!({"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "index": 0}]});
            let mut last = chunk("");
            last["candidates"][0]["finishReason"] = "STOP".into();
            vec![plain(chunk("two ")), plain(chunk("words")), plain(last)]
        }
    };
    events.into_iter().map(|event| Part::Bytes(event.into_bytes())).collect()
}

fn good(api: &str) -> Reply {
    Reply::stream(answer(api))
}

/// The beginning of an answer, and then something else.
fn broken(api: &str, then: Option<Part>) -> Reply {
    let mut parts = answer(api);
    parts.pop();
    parts.extend(then);
    Reply::stream(parts)
}

/// Runs a prompt with the default number of retries, and waits of milliseconds: exit code, and when requests came.
fn run(api: &str, script: Vec<Reply>) -> (i32, Vec<Duration>, String) {
    let (place, server) = (Sandbox::new(TAU), Server::start(script));
    let path = match api {
        "anthropic-messages" => "",
        "google-generative-ai" => "/v1beta",
        _ => "/v1",
    };
    let models = json!({"providers": {"mock": {
        "baseUrl": format!("{}{path}", server.url()), "api": api, "apiKey": "key-for-tests",
        "models": [{"id": "m1", "contextWindow": 100_000, "maxTokens": 4096}],
    }}});
    place.put("agent/models.json", models.to_string());
    place.settings(&json!({"retry": {"baseDelayMs": 20}}));
    let run = place.run(&["-p", "x"]);
    let at: Vec<_> = server.requests().iter().map(|request| request.at).collect();
    let gaps = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(
        at.len() == 1 || run.code != Some(0) || run.out == "two words\n",
        "{api}: {}{}",
        run.out,
        run.err
    );
    assert!(
        server.requests().iter().all(|request| request.body == server.requests()[0].body),
        "{api}: another body"
    );
    (run.code.unwrap(), gaps, run.err)
}

#[test]
fn faults_of_services() {
    let wait = |reply: Reply, name: &str, value: &str| {
        let mut reply = reply;
        reply.headers.push((name.into(), value.into()));
        reply
    };
    let malformed = Part::Bytes(b"event: content_block_delta\ndata: {\"half\": \n\n".to_vec());
    for api in APIS {
        let script = |faults: Vec<Reply>| faults.into_iter().chain([good(api)]).collect::<Vec<_>>();
        // What goes wrong, the exit code, and the least wait before each further request, ms.
        for (name, faults, code, waits) in [
            ("nothing", vec![], 0, &[][..]),
            ("asked to wait", vec![wait(Reply::error(429, "slow"), "retry-after-ms", "300")], 0, &[300]),
            (
                "asked to wait for seconds",
                vec![wait(Reply::error(503, "slow"), "retry-after", "1")],
                0,
                &[1000],
            ),
            ("truncated", vec![broken(api, None)], 0, &[20]),
            ("malformed", vec![broken(api, Some(malformed.clone()))], 1, &[]),
            ("lost", vec![broken(api, Some(Part::Close))], 0, &[20]),
            ("not acceptable", vec![Reply::error(400, "no")], 1, &[]),
            ("busy twice", vec![Reply::error(503, "busy"), Reply::error(503, "busy")], 0, &[20, 40]),
            ("money", vec![Reply::error(429, "insufficient_quota")], 1, &[]),
        ] {
            let (got, gaps, err) = run(api, script(faults));
            assert_eq!((got, gaps.len()), (code, waits.len()), "{api}, {name}: {err}");
            for (gap, least) in gaps.iter().zip(waits) {
                assert!(*gap >= Duration::from_millis(*least), "{api}, {name}: {gaps:?}");
            }
        }
    }
}
