//! The program as it is, and what is asked of peers beside it.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use tau_core::input::Reply;
use tau_core::op::HttpRequest;
use tau_io_std::http::Client;
use tau_io_std::sys::CancelToken;
use tau_tests::program::{Run, Sandbox};

/// The binary: `TAU_BIN`, else the one of this build, made anew.
fn binary() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        if let Ok(path) = std::env::var("TAU_BIN") {
            return path;
        }
        let own = std::env::current_exe().unwrap();
        let folder = own.ancestors().nth(2).unwrap();
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--locked", "-p", "tau"]);
        if folder.ends_with("release") {
            build.arg("--release");
        }
        let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let status = build.arg("--manifest-path").arg(manifest).status().unwrap();
        assert!(status.success(), "the binary cannot be built");
        folder.join("tau").display().to_string()
    })
}

/// The protocols that every peer of many protocols speaks, and where: `path` follows the peer's address.
pub(crate) struct Way {
    pub(crate) api: &'static str,
    pub(crate) path: &'static str,
}

/// A sandbox with a provider for each way, named after its protocol, with the model `id`.
pub(crate) fn place(url: &str, ways: &[Way], ids: &[&str]) -> Sandbox {
    let place = Sandbox::new(binary());
    let models: Vec<Value> =
        ids.iter().map(|id| json!({"id": id, "contextWindow": 32_000, "maxTokens": 1024})).collect();
    let provider = |way: &Way| {
        let provider = json!({
            "baseUrl": format!("{url}{}", way.path), "api": way.api, "apiKey": "key-for-peers", "models": models,
        });
        (way.api.to_owned(), provider)
    };
    let providers: serde_json::Map<String, Value> = ways.iter().map(provider).collect();
    place.put("agent/models.json", json!({"providers": providers}).to_string());
    settings(&place, &json!({}));
    place
}

/// Settings without retries, and `more`.
pub(crate) fn settings(place: &Sandbox, more: &Value) {
    let mut all = json!({"retry": {"enabled": false}});
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    place.put("agent/settings.json", all.to_string());
}

/// A conversation with two calls of tools, and a second prompt, as `aimock.json` scripts it.
pub(crate) fn converse(place: &Sandbox, model: &str) {
    let begun = place.sessions().len();
    let run = place.run(&["--mode", "json", "--model", model, "tau-tool"]);
    assert_eq!(run.code, Some(0), "{model}: {}", excerpt(&run));
    let events = run.events();
    let ends = |kind: &str| events.iter().filter(|event| event["type"] == kind).cloned().collect::<Vec<_>>();
    let results = ends("tool_execution_end");
    assert_eq!(results.len(), 2, "{model}: {}", excerpt(&run));
    assert!(results.iter().any(|event| event.to_string().contains("tau-42")), "{model}: {results:?}");
    let made = std::fs::read_to_string(place.work().join("made.txt"));
    assert_eq!(made.unwrap_or_default(), "by the mock\n", "{model}");
    std::fs::remove_file(place.work().join("made.txt")).unwrap();
    let last = ends("message_end").pop().unwrap();
    assert_eq!(last["message"]["stopReason"], "stop", "{model}: {last}");
    assert!(last["message"]["content"].to_string().contains("both are done"), "{model}: {last}");
    assert_eq!(place.sessions().len(), begun + 1);
    let run = place.run(&["-p", "-c", "tau-text"]);
    assert_eq!(
        (run.code, run.out.as_str()),
        (Some(0), "words of the mock: é 日本 🙂\n"),
        "{model}: {}",
        run.err
    );
}

/// The end of what a run printed.
pub(crate) fn excerpt(run: &Run) -> String {
    let tail =
        |text: &str| text.chars().rev().take(1500).collect::<Vec<_>>().into_iter().rev().collect::<String>();
    format!("exit {:?}\n{}\n{}", run.code, tail(&run.out), tail(&run.err))
}

/// Asks a peer for JSON; `null` when the answer is none.
pub(crate) fn ask(method: &'static str, url: &str, body: &Value) -> Value {
    let request = HttpRequest {
        method,
        url: url.to_owned(),
        headers: vec![("content-type".into(), "application/json".into())],
        body: Arc::new(if body.is_null() { Vec::new() } else { body.to_string().into_bytes() }),
        head_timeout_ms: Some(120_000),
        idle_timeout_ms: Some(120_000),
        proxy: None,
    };
    let (mut status, mut answer) = (0, Vec::new());
    let mut take = |reply: Reply| match reply {
        Reply::Head { status: code, .. } => status = code,
        Reply::Chunk { bytes, .. } => answer.extend(bytes),
        _ => {}
    };
    Client::new()
        .run(&request, &mut take, &CancelToken::new())
        .unwrap_or_else(|fault| panic!("{url}: {fault}"));
    assert!(status < 300, "{url}: {status} {}", String::from_utf8_lossy(&answer));
    serde_json::from_slice(&answer).unwrap_or_default()
}
