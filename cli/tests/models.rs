//! Where models come from: servers on this machine, newer lists of a remote catalogue, `--list-models`.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::net::TcpListener;

use serde_json::{Value, json};
use tau_tests::program::{Run, Sandbox};
use tau_tests::server::{Reply, Server, openai};

const TAU: &str = env!("CARGO_BIN_EXE_tau");

fn list(ids: &[&str]) -> Reply {
    let data: Vec<Value> = ids.iter().map(|id| json!({"id": id, "object": "model"})).collect();
    Reply::json(200, &json!({"object": "list", "data": data}))
}

fn port(server: &Server) -> String {
    server.url().rsplit(':').next().unwrap().trim_end_matches('/').to_owned()
}

fn run(place: &Sandbox, args: &[&str], env: &[(&str, &str)]) -> Run {
    let mut command = place.command(args);
    command.envs(env.iter().copied());
    place.start_with_stdin(command, b"").finish()
}

fn models_json(place: &Sandbox) -> String {
    fs::read_to_string(place.agent().join("models.json")).unwrap()
}

#[test]
fn a_local_server_is_offered_written_and_used() {
    let place = Sandbox::new(TAU);
    let server = Server::start([list(&["qwen3:8b", "nomic-embed-text"])]);
    let places = format!("ollama={}", port(&server));
    let env = [("TAU_LOCAL_SERVERS", places.as_str())];
    let offered = run(&place, &["-p", "hi"], &env).ended_with(1);
    assert!(offered.err.contains("Ollama") && offered.err.contains("qwen3:8b"), "{}", offered.err);
    assert!(offered.err.contains("tau models scan") && !offered.err.contains("nomic"), "{}", offered.err);
    assert_eq!(server.requests()[0].path, "/v1/models");

    // Asked not to look, it does not.
    let quiet = run(&place, &["-p", "hi", "--offline"], &env).ended_with(1);
    assert!(!quiet.err.contains("Ollama"), "{}", quiet.err);
    assert_eq!(server.requests().len(), 1);

    server.script([list(&["qwen3:8b"]), openai::text("hello")]);
    let written = run(&place, &["models", "scan"], &env).ok();
    assert!(written.out.contains("qwen3:8b"), "{}", written.out);
    let found: Value = serde_json::from_str(&models_json(&place)).unwrap();
    assert_eq!(found["providers"]["ollama"]["models"], json!([{"id": "qwen3:8b"}]));
    assert_eq!(run(&place, &["-p", "hi"], &env).ok().out, "hello\n");
    assert_eq!(server.requests().len(), 3, "with a model configured nobody looks for servers");
}

#[test]
fn what_is_in_models_json_stays() {
    let place = Sandbox::new(TAU);
    let server = Server::start([]);
    let places = format!("vllm={}", port(&server));
    let env = [("TAU_LOCAL_SERVERS", places.as_str())];
    let scan = |ids: &[&str]| {
        server.script([list(ids)]);
        run(&place, &["models", "scan"], &env)
    };
    let mine = "{\n  // mine\n  \"providers\": {\n    \"own\": { \"baseUrl\": \"http://h\", \"apiKey\": \"k\" }, // kept\n  }\n}\n";
    fs::create_dir_all(place.agent()).unwrap();
    let path = place.agent().join("models.json");
    fs::write(&path, mine).unwrap();
    let _ = scan(&["a"]).ok();
    let text = models_json(&place);
    assert!(text.contains("// mine") && text.contains("// kept") && text.contains("\"vllm\""), "{text}");
    // Known already; with comments a list is not written anew.
    assert!(scan(&["a"]).ok().out.contains("already"));
    assert!(scan(&["a", "b"]).ok().out.contains("by hand"));
    assert_eq!(models_json(&place), text);

    // Without comments new models join.
    fs::write(&path, r#"{"providers":{"vllm":{"baseUrl":"http://mine/v1","apiKey":"k","api":"openai-completions","models":[{"id":"a","name":"Mine"}]}}}"#).unwrap();
    let _ = scan(&["a", "b"]).ok();
    let found: Value = serde_json::from_str(&models_json(&place)).unwrap();
    let vllm = &found["providers"]["vllm"];
    assert_eq!((&vllm["baseUrl"], &vllm["models"][0]["name"]), (&json!("http://mine/v1"), &json!("Mine")));
    assert_eq!(vllm["models"][1]["id"], "b");

    for broken in ["{\"providers\":", "[]", "{\"providers\":[]}"] {
        fs::write(&path, broken).unwrap();
        let refused = scan(&["a"]).ended_with(1);
        assert!(refused.err.contains("models.json"), "{}", refused.err);
        assert_eq!(models_json(&place), broken);
    }
}

#[test]
fn servers_that_say_nothing_useful_hold_nothing_up() {
    let place = Sandbox::new(TAU);
    // Accepts and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let html = Server::start([Reply::error(404, "no")]);
    let places = format!("ollama={},vllm={},lm-studio=1", silent.local_addr().unwrap().port(), port(&html));
    let began = std::time::Instant::now();
    let none = run(&place, &["models", "scan"], &[("TAU_LOCAL_SERVERS", &places)]).ok();
    assert!(none.out.contains("no server answers"), "{}", none.out);
    assert!(began.elapsed() < std::time::Duration::from_secs(5));
    assert!(!place.agent().join("models.json").exists());
}

#[test]
fn a_newer_list_is_asked_for_only_on_request() {
    let place = Sandbox::new(TAU);
    let newer = json!([{"type": "chat", "id": "brand-new", "name": "Brand New", "api": "openai-completions",
        "baseUrl": "https://api.groq.com/openai/v1", "reasoning": true, "input": ["text"],
        "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0}, "contextWindow": 1000, "maxTokens": 100}]);
    let mut reply = Reply::json(200, &newer);
    reply.headers.push(("last-modified".into(), "Fri, 15 Jan 2027 07:00:00 GMT".into()));
    reply.headers.push(("etag".into(), "\"e1\"".into()));
    let server = Server::start([reply, Reply::error(403, "no")]);
    let url = server.url();
    let env = [("GROQ_API_KEY", "secret-of-groq"), ("TAU_CATALOGUE_URL", url.as_str())];
    assert!(!run(&place, &["--list-models", "brand"], &env).ok().out.contains("brand-new"));
    assert!(run(&place, &["models", "refresh", "--offline"], &env).ended_with(1).err.contains("offline"));
    assert_eq!(server.requests().len(), 0);

    let told = run(&place, &["models", "refresh"], &env).ok();
    assert_eq!(told.out, "groq: 1 models\n");
    let listed = run(&place, &["--list-models", "groq"], &env).ok().out;
    let row = listed.lines().find(|line| line.contains("brand-new")).unwrap();
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>(),
        ["groq", "brand-new", "1K", "100", "yes", "no", "$1/$2"]
    );
    assert!(listed.contains("openai/gpt-oss-120b"), "the built-in ones stay: {listed}");

    // A refusal keeps the list, and says so.
    let refused = run(&place, &["models", "refresh", "groq"], &env).ended_with(1);
    assert!(refused.out.contains("403"), "{}", refused.out);
    assert_eq!(server.requests()[1].header("if-none-match"), Some("\"e1\""));
    assert!(run(&place, &["--list-models", "brand"], &env).ok().out.contains("brand-new"));
    let stored = fs::read_to_string(place.agent().join("models-store.json")).unwrap();
    assert!(!stored.contains("secret-of-groq"));
    for request in server.requests() {
        assert_eq!(request.header("authorization"), None, "the catalogue learns no key");
    }

    // A broken store is told, not overwritten, and does not count.
    fs::write(place.agent().join("models-store.json"), "{").unwrap();
    let broken = run(&place, &["--list-models", "groq"], &env).ok();
    assert!(broken.err.contains("models-store.json") && broken.out.contains("gpt-oss"), "{}", broken.err);
    assert!(run(&place, &["models", "refresh"], &env).ended_with(1).err.contains("models-store.json"));
    assert_eq!(fs::read_to_string(place.agent().join("models-store.json")).unwrap(), "{");
}

#[test]
fn unknown_models_are_answered_with_similar_ones() {
    let place = Sandbox::new(TAU);
    let run = run(&place, &["-p", "hi", "--model", "claude-opus-five-5"], &[("ANTHROPIC_API_KEY", "k")]);
    assert!(run.ended_with(1).err.contains("did you mean"));
}
