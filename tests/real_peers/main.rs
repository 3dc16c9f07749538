//! Conversations of the real program with servers and proxies that other people wrote. Ignored: they must be running,
//! or be installed with scripts that start them (docs/testing.md).
//!
//! `cargo test -p tau-tests --test real_peers -- --ignored`
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

mod client;
mod peers;

use std::thread;
use std::time::{Duration, Instant};

use client::{Way, ask, converse, excerpt, place, settings};
use peers::{Peer, Proxies, alone};
use serde_json::{Value, json};
use tau_tests::program::records;

const CHAT: &str = "openai-completions";
const RESPONSES: &str = "openai-responses";
const ANTHROPIC: &str = "anthropic-messages";
const GEMINI: &str = "google-generative-ai";
const BEDROCK: &str = "bedrock-converse-stream";

fn aimock() -> Peer {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/real_peers/aimock.json");
    Peer::find("TAU_PEER_AIMOCK", "aimock.sh", &[("AIMOCK_FIXTURES", fixtures)])
}

/// How aimock's address becomes that of each protocol.
const OF_AIMOCK: [Way; 5] = [
    Way { api: CHAT, path: "/v1" },
    Way { api: RESPONSES, path: "/v1" },
    Way { api: ANTHROPIC, path: "" },
    Way { api: GEMINI, path: "/v1beta" },
    Way { api: BEDROCK, path: "" },
];

#[test]
#[ignore = "needs aimock, see docs/testing.md"]
fn aimock_over_five_protocols() {
    let _alone = alone();
    let peer = aimock();
    let seen = || ask("GET", &format!("{}/v1/_requests", peer.url), &Value::Null).as_array().unwrap().len();
    let place = place(&peer.url, &OF_AIMOCK, &["m1"]);
    for way in &OF_AIMOCK {
        let before = seen();
        converse(&place, &format!("{}/m1", way.api));
        assert_eq!(seen() - before, 3, "{}: requests", way.api);
    }
}

#[test]
#[ignore = "needs LiteLLM and aimock, see docs/testing.md"]
fn litellm_between_two_protocols() {
    let _alone = alone();
    let upstream = aimock();
    let peer = Peer::find("TAU_PEER_LITELLM", "litellm.sh", &[("AIMOCK_URL", &upstream.url)]);
    let ways = [
        Way { api: CHAT, path: "/v1" },
        Way { api: RESPONSES, path: "/v1" },
        Way { api: ANTHROPIC, path: "" },
    ];
    let place = place(&peer.url, &ways, &["up-openai", "up-anthropic", "mock", "err-429"]);
    warm_up(&peer.url);
    for way in &ways {
        for model in ["up-openai", "up-anthropic"] {
            converse(&place, &format!("{}/{model}", way.api));
        }
        // A canned answer; over one of the ways it is no stream although one was asked for.
        let run = place.run(&["-p", "x", "--model", &format!("{}/mock", way.api)]);
        assert!(
            run.out == "canned answer\n" || run.err.contains(&peer.url),
            "{}: {}",
            way.api,
            excerpt(&run)
        );
        let run = place.run(&["-p", "x", "--model", &format!("{}/err-429", way.api)]);
        // One of its routes turns a refusal into a broken start of a stream.
        let told = ["429 litellm", "500 Error processing stream start"];
        let is_told = told.iter().any(|part| run.err.contains(part));
        assert!(run.code == Some(1) && is_told, "{}: {}", way.api, excerpt(&run));
    }
}

/// The first request of each route makes LiteLLM load much.
fn warm_up(url: &str) {
    for (path, body) in [
        ("chat/completions", json!({"model": "mock", "messages": [{"role": "user", "content": "x"}]})),
        ("responses", json!({"model": "up-openai", "input": [{"role": "user", "content": "tau-text"}]})),
        (
            "messages",
            json!({"model": "mock", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}),
        ),
    ] {
        ask("POST", &format!("{url}/v1/{path}"), &body);
    }
}

/// How llama.cpp's address becomes that of each protocol.
const OF_LLAMA: [Way; 3] =
    [Way { api: CHAT, path: "/v1" }, Way { api: RESPONSES, path: "/v1" }, Way { api: ANTHROPIC, path: "" }];

#[test]
#[ignore = "needs llama.cpp's server with a tiny model, see docs/testing.md"]
fn llama_answers_and_overflows() {
    let _alone = alone();
    let peer = Peer::find("TAU_PEER_LLAMA", "xllamacpp.sh", &[("TINY", "text")]);
    let place = place(&peer.url, &OF_LLAMA, &["tiny"]);
    let long = "word ".repeat(9000);
    for way in &OF_LLAMA {
        let model = format!("{}/tiny", way.api);
        let run = place.run(&["--mode", "json", "--model", &model, "hello"]);
        let events = run.events();
        let reply = events.iter().rfind(|event| event["message"]["role"] == "assistant").unwrap();
        let reply = &reply["message"];
        assert!(
            matches!(reply["stopReason"].as_str(), Some("stop" | "length")),
            "{model}: {}",
            excerpt(&run)
        );
        assert!(reply["usage"]["output"].as_u64() > Some(0), "{model}: {reply}");
        let begin = Instant::now();
        let run = place.run(&["-p", "--model", &model, &long]);
        assert_eq!(run.code, Some(1), "{model}: {}", excerpt(&run));
        assert!(run.err.contains("exceed"), "{model}: {}", excerpt(&run));
        assert!(begin.elapsed() < Duration::from_secs(20), "{model}: {:?}", begin.elapsed());
    }
}

/// The model calls tools for ever. Calls and results stay in order, and the signal ends it.
#[test]
#[ignore = "needs llama.cpp's server with a model that always calls tools, see docs/testing.md"]
fn llama_calls_tools_without_end() {
    let _alone = alone();
    let peer = Peer::find("TAU_PEER_LLAMA_TOOL", "xllamacpp.sh", &[("TINY", "tool")]);
    for way in &OF_LLAMA {
        let place = place(&peer.url, &OF_LLAMA, &["tiny"]);
        let model = format!("{}/tiny", way.api);
        let running = place.start(place.command(&["--mode", "json", "--model", &model, "go"]));
        let results = || {
            let of =
                |records: &[Value]| records.iter().filter(|r| r["message"]["role"] == "toolResult").count();
            place.sessions().first().map_or(0, |path| of(&complete(path)))
        };
        let end = Instant::now() + Duration::from_secs(25);
        while results() < 3 && Instant::now() < end {
            thread::sleep(Duration::from_millis(20));
        }
        running.signal(15);
        let run = running.finish();
        assert_eq!(run.code, Some(143), "{model}: {}", excerpt(&run));
        assert!(results() >= 3, "{model}: {}", excerpt(&run));
        let session = records(&place.sessions()[0]);
        let mut open: Vec<Value> = Vec::new();
        for message in session.iter().map(|record| &record["message"]) {
            let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
            open.extend(
                blocks.iter().filter(|block| block["type"] == "toolCall").map(|block| block["id"].clone()),
            );
            if message["role"] == "toolResult" {
                let at = open.iter().position(|id| *id == message["toolCallId"]);
                open.remove(at.unwrap_or_else(|| panic!("{model}: a result without its call: {message}")));
            }
        }
    }
}

/// The records of a file whose last line may not be written yet.
fn complete(path: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// How LLMock's address becomes that of each protocol.
const OF_LLMOCK: [Way; 4] = [
    Way { api: CHAT, path: "/v1" },
    Way { api: RESPONSES, path: "/v1" },
    Way { api: ANTHROPIC, path: "/anthropic" },
    Way { api: GEMINI, path: "/gemini/v1beta" },
];

/// A fault, what the program must make of it, and how many requests that takes.
struct Fault {
    name: &'static str,
    behavior: Value,
    code: i32,
    requests: u64,
}

fn faults() -> Vec<Fault> {
    let fault = |name, behavior, code, requests| Fault { name, behavior, code, requests };
    let stream = |kind: &str| json!({"type": "stream_fault", "kind": kind, "after_chunks": 1});
    vec![
        fault("none", Value::Null, 0, 1),
        fault("429 with Retry-After", json!({"type": "fail", "status": 429, "retry_after": 4}), 0, 2),
        fault("truncated stream", stream("truncate"), 0, 2),
        fault("malformed chunk", stream("malformed"), 1, 1),
        fault("connection lost", stream("disconnect"), 0, 2),
        fault("400", json!({"type": "fail", "status": 400}), 1, 1),
        fault("503 twice", json!({"type": "fail", "status": 503, "times": 2}), 0, 3),
    ]
}

/// LLMock breaks what it sends, and then grades what came of it.
#[test]
#[ignore = "needs LLMock, see docs/testing.md"]
fn llmock_finds_nothing() {
    let _alone = alone();
    let peer = Peer::find("TAU_PEER_LLMOCK", "llmock.sh", &[]);
    let place = place(&peer.url, &OF_LLMOCK, &["m1"]);
    settings(&place, &json!({"retry": {"enabled": true}}));
    let admin = |method, path: &str, body: &Value| ask(method, &format!("{}/_llmock/{path}", peer.url), body);
    let mut bad = Vec::new();
    for way in &OF_LLMOCK {
        for fault in faults() {
            admin("POST", "reset", &Value::Null);
            if !fault.behavior.is_null() {
                admin("POST", "scenario", &json!({"behaviors": [fault.behavior]}));
            }
            let model = format!("{}/m1", way.api);
            let run = place.run(&["-p", "--no-tools", "--model", &model, "say something"]);
            let verdict = admin("GET", "verdict", &Value::Null);
            // That a wrong chunk ends the answer without another try is meant so (plain format errors are final).
            let is_meant =
                |finding: &Value| finding["code"] == "malformed_chunk_ignored" && run.code == Some(1);
            let findings = verdict["findings"].as_array().unwrap();
            let findings: Vec<&Value> = findings.iter().filter(|finding| !is_meant(finding)).collect();
            let told = (run.code, verdict["attempts"].as_u64(), findings.len());
            if told != (Some(fault.code), Some(fault.requests), 0) {
                bad.push(format!("{}, {}: {verdict}\n{}", way.api, fault.name, excerpt(&run)));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n\n"));
}

/// With tools: the program is asked to call one and gives back its result.
#[test]
#[ignore = "needs LLMock, see docs/testing.md"]
fn llmock_calls_a_tool() {
    let _alone = alone();
    let peer = Peer::find("TAU_PEER_LLMOCK", "llmock.sh", &[]);
    let place = place(&peer.url, &OF_LLMOCK, &["m1"]);
    for way in &OF_LLMOCK {
        let admin =
            |method, path: &str, body: &Value| ask(method, &format!("{}/_llmock/{path}", peer.url), body);
        admin("POST", "reset", &Value::Null);
        let call = json!({"name": "bash", "arguments": {"command": "echo tau-$((40+2))"}});
        admin("POST", "scenario", &json!({"behaviors": [{"type": "reply", "tool_calls": [call]}]}));
        let run = place.run(&["--mode", "json", "--model", &format!("{}/m1", way.api), "go"]);
        assert_eq!(run.code, Some(0), "{}: {}", way.api, excerpt(&run));
        let events = run.events();
        let results: Vec<_> = events.iter().filter(|event| event["type"] == "tool_execution_end").collect();
        assert!(results.len() == 1 && results[0].to_string().contains("tau-42"), "{}: {results:?}", way.api);
        let verdict = admin("GET", "verdict", &Value::Null);
        assert_eq!(verdict["findings"], json!([]), "{}", way.api);
    }
}

#[test]
#[ignore = "needs tinyproxy, mitmproxy and aimock, see docs/testing.md"]
fn proxies_and_a_private_authority() {
    let _alone = alone();
    let upstream = aimock();
    let proxies = Proxies::find(&upstream.url);
    let ways = [Way { api: CHAT, path: "/v1" }, Way { api: ANTHROPIC, path: "" }];
    let place = place(&proxies.front, &ways, &["m1"]);
    let talk = |model: &str, env: &[(&str, &str)]| {
        let mut command = place.command(&["-p", "--model", model, "tau-text"]);
        command.envs(env.iter().copied());
        place.start(command).finish()
    };
    let (proxy, ca) = (proxies.proxy.as_str(), proxies.authority.as_str());
    let mut good: Vec<Vec<(&str, &str)>> = Vec::new();
    for variable in ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"] {
        good.push(vec![("HTTPS_PROXY", proxy), (variable, ca)]);
        good.push(vec![("https_proxy", proxy), (variable, ca)]);
        good.push(vec![("ALL_PROXY", proxy), (variable, ca)]);
        good.push(vec![(variable, ca)]);
        // A proxy that is not there is not asked.
        good.push(vec![
            ("HTTPS_PROXY", "http://127.0.0.1:1"),
            ("NO_PROXY", "example.com,localhost"),
            (variable, ca),
        ]);
    }
    for env in &good {
        for way in &ways {
            let run = talk(&format!("{}/m1", way.api), env);
            assert!(run.out == "words of the mock: é 日本 🙂\n", "{env:?}: {}", excerpt(&run));
        }
    }
    let model = format!("{CHAT}/m1");
    let failure = |env: &[(&str, &str)], part: &str| {
        let run = talk(&model, env);
        assert!(run.code == Some(1) && run.err.contains(part), "{env:?}: no {part:?}: {}", excerpt(&run));
    };
    failure(&[("HTTPS_PROXY", proxy)], "authority");
    failure(&[], "NODE_EXTRA_CA_CERTS");
    failure(&[("HTTPS_PROXY", "http://127.0.0.1:1"), ("SSL_CERT_FILE", ca)], "proxy http://127.0.0.1:1");
    // The proxy refuses other ports.
    let denied = client::place("https://localhost:4", &ways, &["m1"]);
    let mut command = denied.command(&["-p", "--model", &model, "tau-text"]);
    command.env("HTTPS_PROXY", proxy);
    let run = denied.start(command).finish();
    assert!(run.code == Some(1) && run.err.contains("403"), "{}", excerpt(&run));
    // Plain HTTP goes through it as a request for the whole address.
    let plain = client::place(&upstream.url, &OF_AIMOCK, &["m1"]);
    for way in &OF_AIMOCK {
        let mut command = plain.command(&["-p", "--model", &format!("{}/m1", way.api), "tau-text"]);
        command.env("HTTP_PROXY", proxy);
        let run = plain.start(command).finish();
        assert!(run.out == "words of the mock: é 日本 🙂\n", "{}: {}", way.api, excerpt(&run));
    }
}
