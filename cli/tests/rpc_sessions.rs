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
