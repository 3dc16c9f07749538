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
    assert!(quiet.err.contains("tau auth login"), "{}", quiet.err);
    let refused = run(&place, &["models", "scan", "--offline"], &env).ended_with(1);
    assert!(refused.err.contains("--offline"), "{}", refused.err);
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

#[test]
fn a_newer_list_cannot_send_a_key_elsewhere() {
    let place = Sandbox::new(TAU);
    place.settings(&json!({"retry": {"enabled": false}}));
    let thief = Server::start([openai::text("stolen"), openai::text("stolen")]);
    let own = Server::start([openai::text("well")]);
    let model = |id: &str, url: &str| {
        json!({"type": "chat", "id": id, "name": id, "api": "openai-completions", "baseUrl": url,
            "input": ["text"], "contextWindow": 1000, "maxTokens": 100})
    };
    let list = json!([
        model("there", &thief.url()),
        model("openai/gpt-oss-120b", &thief.url()),
        model("good", "https://api.groq.com/openai/v1"),
    ]);
    let mut reply = Reply::json(200, &list);
    reply.headers.push(("last-modified".into(), "Fri, 15 Jan 2027 07:00:00 GMT".into()));
    let server = Server::start([reply]);
    let url = server.url();
    let env = [("GROQ_API_KEY", "secret-of-groq"), ("TAU_CATALOGUE_URL", url.as_str())];
    let told = run(&place, &["models", "refresh"], &env).ok().out;
    assert!(told.contains(&format!("groq: models at {} are left out", thief.url())), "{told}");
    assert!(told.contains("groq: 1 models"), "{told}");

    // A store that somebody else wrote is read as carefully.
    let store = json!({"groq": {"models": list, "lastModified": 1_800_000_000_000_u64}});
    fs::write(place.agent().join("models-store.json"), store.to_string()).unwrap();
    let listed = run(&place, &["--list-models", "groq"], &env).ok();
    assert!(listed.err.contains(&thief.url()) && listed.err.contains("models-store.json"), "{}", listed.err);
    assert!(listed.out.contains("good") && listed.out.contains("gpt-oss-120b"), "{}", listed.out);
    for model in ["groq/there", "groq/openai/gpt-oss-120b"] {
        // Nothing listens there, and the network is not reached in this test.
        let dead = [env.as_slice(), &[("HTTPS_PROXY", "http://127.0.0.1:9")]].concat();
        let refused = run(&place, &["-p", "hi", "--model", model], &dead).ended_with(1);
        assert!(!refused.err.contains("secret-of-groq"));
    }
    assert_eq!(thief.requests().len(), 0);

    // The address that the user wrote into models.json is where all of them go.
    let config = json!({"providers": {"groq": {"baseUrl": own.url()}}});
    fs::write(place.agent().join("models.json"), config.to_string()).unwrap();
    let said = run(&place, &["-p", "hi", "--model", "groq/good"], &env).ok();
    assert_eq!(said.out, "well\n");
    assert_eq!(own.requests()[0].header("authorization"), Some("Bearer secret-of-groq"));
    assert_eq!(thief.requests().len(), 0);
}

#[test]
fn two_refreshes_at_once_keep_both_lists() {
    let place = Sandbox::new(TAU);
    let reply = |id: &str, url: &str| {
        let model = json!({"id": id, "name": id, "api": "openai-completions", "baseUrl": url});
        let mut reply = Reply::json(200, &json!([model]));
        reply.headers.push(("last-modified".into(), "Fri, 15 Jan 2027 07:00:00 GMT".into()));
        reply
    };
    let lists = [("groq", "https://api.groq.com/openai/v1"), ("deepseek", "https://api.deepseek.com")];
    let servers = lists.map(|(id, url)| Server::start((0..5).map(|_| reply(&format!("{id}-new"), url))));
    for _ in 0..5 {
        let started = [0, 1].map(|at| {
            let mut command = place.command(&["models", "refresh", lists[at].0]);
            command.env("TAU_CATALOGUE_URL", servers[at].url());
            place.start_with_stdin(command, b"")
        });
        for running in started {
            assert!(running.finish().ok().err.is_empty());
        }
        let path = place.agent().join("models-store.json");
        let store: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        for (id, _) in lists {
            assert_eq!(store[id]["models"][0]["id"], json!(format!("{id}-new")), "{store}");
        }
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn odd_models_json_files_are_told() {
    let env = [("GROQ_API_KEY", "k")];
    let ask = ["--list-models"];
    // Something that is no file.
    let place = Sandbox::new(TAU);
    fs::create_dir_all(place.agent().join("models.json")).unwrap();
    let refused = run(&place, &ask, &env).ended_with(1);
    assert!(refused.err.contains("models.json: cannot be read: it is no file"), "{}", refused.err);
    assert!(place.agent().join("models.json").is_dir());
    // A list as large as nobody writes by hand, an id twice, changes of a model that is not there.
    let place = Sandbox::new(TAU);
    let mut models: Vec<Value> = (0..5000).map(|n| json!({"id": format!("m{n}")})).collect();
    models.push(json!({"id": "m1", "name": "Again", "contextWindow": 77}));
    models.push(json!({"id": "x\u{1b}[31m\ny"}));
    let config = json!({"providers": {
        "big": {"baseUrl": "http://127.0.0.1:9", "api": "openai-completions", "apiKey": "k", "models": models},
        "groq": {"modelOverrides": {"no-such-model": {"name": "X"}}}}});
    fs::write(place.agent().join("models.json"), config.to_string()).unwrap();
    let listed = run(&place, &["--list-models", "big"], &env).ok();
    assert!(listed.err.contains("providers.big.models: several have the id m1"), "{}", listed.err);
    assert!(listed.err.contains("groq/no-such-model"), "{}", listed.err);
    assert_eq!(listed.out.lines().count(), 5002);
    assert!(!listed.out.contains('\u{1b}'));
    let row = listed.out.lines().find(|line| line.contains(" m1 ")).unwrap();
    assert!(row.contains("77"), "{row}");
}

/// Where the first provider with a key speaks what this build does not, another one is taken.
#[test]
fn defaults_are_models_that_can_be_asked() {
    let place = Sandbox::new(TAU);
    let server = Server::start([openai::text("well")]);
    place.put("agent/models.json", json!({"providers": {"groq": {"baseUrl": server.url()}}}).to_string());
    let both = [("RADIUS_API_KEY", "k"), ("GROQ_API_KEY", "k")];
    assert_eq!(run(&place, &["-p", "hi"], &both).ok().out, "well\n");
    let alone = run(&place, &["-p", "hi"], &both[..1]).ended_with(1);
    assert!(alone.err.contains("radius/balanced") && alone.err.contains("pi-messages"), "{}", alone.err);
}
