//! Several sessions in one process of RPC mode.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;

use serde_json::{Value, json};
use tau_tests::program::{Sandbox, records, roles};
use tau_tests::server::{Gate, Part, Reply, Server, openai};
use tau_tests::talk::Talk;

const TAU: &str = env!("CARGO_BIN_EXE_tau");

fn talk(place: &Sandbox) -> Talk {
    Talk::start(place.command(&["--mode", "rpc"]))
}

fn open(talk: &mut Talk, more: Value) -> Value {
    let mut command = json!({"type": "open_session"});
    command.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    talk.data("open", command)
}

#[test]
fn sessions_run_side_by_side_in_their_own_places() {
    let gate = Gate::default();
    let late = r#"{"id":"1","choices":[{"index":0,"delta":{"content":"late"},"finish_reason":"stop"}]}"#;
    let first = Reply::stream(vec![
        Part::Bytes(b": the answer comes later\n\n".to_vec()),
        Part::Gate(gate.clone()),
        Part::Bytes(format!("data: {late}\n\ndata: [DONE]\n\n").into_bytes()),
    ]);
    let pwd = openai::calls(&[("c1", "bash", json!({"command": "pwd; echo $MARK"}))]);
    let (place, server) = (Sandbox::new(TAU), Server::start([first]));
    place.configure(&server);
    let other = place.agent().join("other");
    fs::create_dir_all(&other).unwrap();
    let mut talk = talk(&place);
    let _ = talk.ask("p1", json!({"type": "prompt", "message": "one"}));
    gate.wait_reached();
    server.script([pwd, openai::text("of the second")]);
    let data = open(&mut talk, json!({"cwd": other.display().to_string(), "env": {"MARK": "set"}}));
    let id = data["sessionId"].as_str().unwrap().to_owned();
    let prompted = talk.ask("p2", json!({"type": "prompt", "message": "two", "sessionId": id}));
    assert_eq!(prompted["sessionId"], id.as_str());
    let end = talk.wait(&json!({"type": "tool_execution_end", "sessionId": id}));
    let shown = end["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(shown.trim_end(), format!("{}\nset", other.display()));
    let _ = talk.wait(&json!({"type": "agent_settled", "sessionId": id}));
    // The first one still waits, and its records name no session.
    let list = talk.data("l", json!({"type": "list_sessions"}));
    let streaming = list["sessions"].as_array().unwrap().iter().map(|one| one["isStreaming"] == true);
    assert_eq!(streaming.collect::<Vec<_>>(), [true, false]);
    gate.open();
    let settled = talk.wait(&json!({"type": "agent_settled"}));
    assert_eq!(settled.get("sessionId"), None, "{settled}");
    assert_eq!(talk.data("c", json!({"type": "close_session", "sessionId": id})), Value::Null);
    let gone = talk.ask("g", json!({"type": "get_state", "sessionId": id}));
    assert!(gone["error"].as_str().unwrap().contains(&id), "{gone}");
    let _ = talk.finish().ok();
    assert_eq!(place.sessions().len(), 2);
    for file in place.sessions() {
        assert!(roles(&records(&file)).contains(&"assistant"), "{}", file.display());
    }
}

#[test]
fn the_end_of_input_ends_all_of_them() {
    let call = openai::calls(&[("c1", "bash", json!({"command": "echo on; sleep 300"}))]);
    let (place, server) = (Sandbox::new(TAU), Server::start([call]));
    place.configure(&server);
    let mut talk = talk(&place);
    let id = open(&mut talk, json!({}))["sessionId"].clone();
    let _ = talk.ask("p", json!({"type": "prompt", "message": "go", "sessionId": id}));
    let _ = talk.wait(&json!({"type": "tool_execution_update", "sessionId": id}));
    let _ = talk.finish().ok();
    let file = place.sessions().into_iter().next().unwrap();
    assert!(roles(&records(&file)).contains(&"toolResult"));
}

#[test]
fn what_cannot_be_opened_changes_nothing() {
    let (place, server) = (Sandbox::new(TAU), Server::start([openai::text("stored")]));
    place.configure(&server);
    let mut talk = talk(&place);
    let _ = talk.ask("p", json!({"type": "prompt", "message": "store me"}));
    let _ = talk.wait(&json!({"type": "agent_settled"}));
    let state = talk.data("s", json!({"type": "get_state"}));
    for (number, (command, part)) in [
        (json!({"type": "open_session", "cwd": "rel"}), "cwd"),
        (json!({"type": "open_session", "cwd": "/no/such"}), "cwd"),
        (json!({"type": "open_session", "env": {"A": 1}}), "env"),
        (json!({"type": "open_session", "sessionPath": state["sessionFile"]}), "open already"),
        (json!({"type": "open_session", "model": "no/such"}), "no/such"),
        (json!({"type": "close_session", "sessionId": "x"}), "x"),
        (json!({"type": "close_session"}), "sessionId"),
        (json!({"type": "get_state", "sessionId": 7}), "sessionId"),
        (json!({"type": "get_state", "sessionId": "x"}), "x"),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = talk.ask(&format!("n{number}"), command.clone());
        let error = answer["error"].as_str().unwrap_or_else(|| panic!("{command}: {answer}"));
        assert!(error.contains(part), "{command}: {error}");
    }
    let named = talk.data("t", json!({"type": "get_state", "sessionId": state["sessionId"]}));
    assert_eq!(named, talk.data("u", json!({"type": "get_state"})));
    let _ = talk.finish().ok();
}

#[test]
fn closing_one_leaves_the_process_and_the_others_alone() {
    let busy = openai::calls(&[("c1", "bash", json!({"command": "echo on; sleep 300"}))]);
    let (place, server) = (Sandbox::new(TAU), Server::start([busy, openai::text("still here")]));
    place.configure(&server);
    let mut talk = talk(&place);
    let id = open(&mut talk, json!({}))["sessionId"].clone();
    let _ = talk.ask("p", json!({"type": "prompt", "message": "go", "sessionId": id}));
    let _ = talk.wait(&json!({"type": "tool_execution_update", "sessionId": id}));
    let closed = talk.ask("c", json!({"type": "close_session", "sessionId": id}));
    assert_eq!((&closed["success"], &closed["sessionId"]), (&json!(true), &id));
    // Longer than an end of the process may take.
    std::thread::sleep(std::time::Duration::from_millis(4500));
    let _ = talk.ask("q", json!({"type": "prompt", "message": "hello"}));
    let end = talk.wait(&json!({"type": "agent_settled"}));
    assert_eq!(end.get("sessionId"), None);
    let _ = talk.finish().ok();
}

/// Providers `mock` (with a key) and `other` (with the key of a variable).
fn with_two_providers(server: &Server) -> Sandbox {
    let place = Sandbox::new(TAU);
    place.configure(server);
    let provider = |key: Value| {
        json!({"baseUrl": format!("{}/v1", server.url()), "api": "openai-completions",
        "apiKey": key, "models": [{"id": "m1", "contextWindow": 100_000, "maxTokens": 4096}]})
    };
    let models =
        json!({"providers": {"mock": provider(json!("stored-key")), "other": provider(json!("$OTHER_KEY"))}});
    place.put("agent/models.json", models.to_string());
    place
}

fn prompt(talk: &mut Talk, id: &Value) -> Value {
    talk.ask("prompt", json!({"type": "prompt", "message": "x", "sessionId": id}))
}

fn wait_settled(talk: &mut Talk, id: &Value) {
    let _ = talk.wait(&json!({"type": "agent_settled", "sessionId": id}));
}

#[test]
fn a_key_of_the_command_line_goes_to_its_provider_only() {
    let server = Server::start(["one", "two", "three"].map(openai::text));
    let place = with_two_providers(&server);
    let args = ["--mode", "rpc", "--model", "mock/m1", "--api-key", "key-of-the-line"];
    let mut talk = Talk::start(place.command(&args));
    let env = json!({"OTHER_KEY": "key-of-the-session"});
    let other = open(&mut talk, json!({"model": "other/m1", "env": env}))["sessionId"].clone();
    assert_eq!(prompt(&mut talk, &other)["success"], true);
    wait_settled(&mut talk, &other);
    let same = open(&mut talk, json!({}))["sessionId"].clone();
    assert_eq!(prompt(&mut talk, &same)["success"], true);
    wait_settled(&mut talk, &same);
    // And when a session of the other provider comes to this one.
    let _ =
        talk.data("m", json!({"type": "set_model", "provider": "mock", "modelId": "m1", "sessionId": other}));
    let _ = prompt(&mut talk, &other);
    wait_settled(&mut talk, &other);
    let _ = talk.finish().ok();
    let requests = server.requests();
    let keys: Vec<_> = requests.iter().filter_map(|request| request.header("authorization")).collect();
    assert_eq!(keys, ["Bearer key-of-the-session", "Bearer key-of-the-line", "Bearer key-of-the-line"]);
}

#[test]
fn the_environment_of_a_session_counts_for_its_keys_and_stays_with_it() {
    let echo = |id: &str| openai::calls(&[(id, "bash", json!({"command": "echo $MARK"}))]);
    let server = Server::start([echo("c1"), openai::text("one"), echo("c2"), openai::text("two")]);
    let place = with_two_providers(&server);
    let mut talk = talk(&place);
    let bare = open(&mut talk, json!({}))["sessionId"].clone();
    let models = |talk: &mut Talk, id: &Value| {
        let list = talk.data("models", json!({"type": "get_available_models", "sessionId": id}));
        list["models"].as_array().unwrap().iter().map(|model| model["provider"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(models(&mut talk, &bare), ["mock"]);
    let env = json!({"OTHER_KEY": "key-of-the-session", "MARK": "set"});
    let id = open(&mut talk, json!({"env": env}))["sessionId"].clone();
    assert_eq!(models(&mut talk, &id), ["mock", "other"]);
    let set = json!({"type": "set_model", "provider": "other", "modelId": "m1", "sessionId": id});
    let _ = talk.data("m", set);
    let refused =
        talk.ask("n", json!({"type": "set_model", "provider": "other", "modelId": "m1", "sessionId": bare}));
    assert!(refused["error"].as_str().unwrap().contains("API key"), "{refused}");
    for round in 0..2 {
        let _ = prompt(&mut talk, &id);
        let end = talk.wait(&json!({"type": "tool_execution_end", "sessionId": id}));
        assert_eq!(end["result"]["content"][0]["text"], "set\n", "{round}: {end}");
        wait_settled(&mut talk, &id);
        // Another session in its place has the same environment.
        let _ = talk.data("new", json!({"type": "new_session", "sessionId": id}));
    }
    let _ = talk.finish().ok();
    let requests = server.requests();
    assert!(
        requests.iter().all(|request| request.header("authorization") == Some("Bearer key-of-the-session"))
    );
}

#[test]
fn a_file_is_open_once() {
    let (place, server) =
        (Sandbox::new(TAU), Server::start(["one", "two", "three", "four"].map(openai::text)));
    place.configure(&server);
    let mut talk = talk(&place);
    let _ = talk.ask("p", json!({"type": "prompt", "message": "x"}));
    let _ = talk.wait(&json!({"type": "agent_settled"}));
    let first = talk.data("s", json!({"type": "get_state"}))["sessionFile"].clone();
    let id = open(&mut talk, json!({}))["sessionId"].clone();
    let _ = prompt(&mut talk, &id);
    wait_settled(&mut talk, &id);
    let second = talk.data("t", json!({"type": "get_state", "sessionId": id}))["sessionFile"].clone();
    let refused = |talk: &mut Talk, command: Value| {
        let answer = talk.ask("refused", command.clone());
        let error = answer["error"].as_str().unwrap_or_else(|| panic!("{command}: {answer}"));
        assert!(error.contains("open already"), "{command}: {error}");
    };
    // By another name, too.
    let link = place.work().join("link.jsonl");
    std::os::unix::fs::symlink(first.as_str().unwrap(), &link).unwrap();
    for path in [first.clone(), json!(link.display().to_string())] {
        refused(&mut talk, json!({"type": "switch_session", "sessionPath": path, "sessionId": id}));
        refused(&mut talk, json!({"type": "open_session", "sessionPath": path}));
    }
    refused(&mut talk, json!({"type": "switch_session", "sessionPath": second}));
    let here = talk.data("u", json!({"type": "get_state"}));
    assert_eq!((&here["sessionFile"], &here["messageCount"]), (&first, &json!(3)));
    // One that was left can be taken.
    let _ = talk.data("n", json!({"type": "new_session"}));
    let _ = talk.data("w", json!({"type": "switch_session", "sessionPath": first, "sessionId": id}));
    let _ = talk.data("v", json!({"type": "switch_session", "sessionPath": second}));
    // Each keeps its name; a session whose name is in use gets another one.
    let list = talk.data("l", json!({"type": "list_sessions"}));
    assert_eq!((&list["sessions"][1]["sessionId"], &list["sessions"][1]["sessionFile"]), (&id, &first));
    let _ = talk.data("n2", json!({"type": "new_session"}));
    let beside = open(&mut talk, json!({"sessionPath": second}))["sessionId"].clone();
    assert_eq!(beside, format!("{}-2", id.as_str().unwrap()));
    let _ = prompt(&mut talk, &beside);
    wait_settled(&mut talk, &beside);
    let _ = talk.data("c", json!({"type": "close_session", "sessionId": id}));
    let again = open(&mut talk, json!({"sessionPath": first}));
    assert_eq!(again["sessionFile"], first);
    let _ = prompt(&mut talk, &again["sessionId"]);
    wait_settled(&mut talk, &again["sessionId"]);
    let _ = talk.finish().ok();
    let stored = records(std::path::Path::new(first.as_str().unwrap()));
    assert_eq!(roles(&stored), ["user", "assistant", "user", "assistant"]);
}

#[test]
fn the_end_waits_for_a_session_that_is_being_closed() {
    let call = openai::calls(&[("c1", "bash", json!({"command": "trap '' TERM; echo on; sleep 300"}))]);
    let (place, server) = (Sandbox::new(TAU), Server::start([call]));
    place.configure(&server);
    let mut talk = talk(&place);
    let id = open(&mut talk, json!({}))["sessionId"].clone();
    let _ = prompt(&mut talk, &id);
    let _ = talk.wait(&json!({"type": "tool_execution_update", "sessionId": id}));
    talk.send(&json!({"id": "c", "type": "close_session", "sessionId": id}));
    let run = talk.finish().ok();
    let closed = run.events().into_iter().find(|record| record["id"] == "c");
    assert_eq!(closed.expect("the command is answered")["success"], true);
    let file = place.sessions().into_iter().next().unwrap();
    assert!(roles(&records(&file)).contains(&"toolResult"));
}

#[test]
fn a_session_that_is_opened_again_is_recorded_again() {
    let (place, server) = (Sandbox::new(TAU), Server::start(["one", "two"].map(openai::text)));
    place.configure(&server);
    let log = place.work().join("log").display().to_string();
    let mut talk = Talk::start(place.command(&["--mode", "rpc", "--record", &log]));
    let mut path = Value::Null;
    let mut first = Value::Null;
    for _ in 0..2 {
        let data = open(&mut talk, if path.is_null() { json!({}) } else { json!({"sessionPath": path}) });
        let id = data["sessionId"].clone();
        let _ = prompt(&mut talk, &id);
        wait_settled(&mut talk, &id);
        let _ = talk.data("c", json!({"type": "close_session", "sessionId": id}));
        (path, first) = (data["sessionFile"].clone(), id);
    }
    let _ = talk.finish().ok();
    for name in [format!("{log}.{}", first.as_str().unwrap()), format!("{log}.{}.2", first.as_str().unwrap())]
    {
        let run = place.run(&["replay", &name, "--verify"]).ok();
        assert!(run.err.contains("everything is as it was"), "{name}: {}", run.err);
    }
}
