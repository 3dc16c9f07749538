//! `--permission`: what is asked about, who is asked, and what happens where nobody answers.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use serde_json::{Value, json};
use tau_tests::program::Sandbox;
use tau_tests::server::{Server, openai};
use tau_tests::talk::Talk;

const TAU: &str = env!("CARGO_BIN_EXE_tau");

fn writing(names: &[&str]) -> (Sandbox, Server) {
    let write = |(at, name): (usize, &&str)| {
        openai::calls(&[(&format!("c{at}"), "write", json!({"path": name, "content": "x"}))])
    };
    let mut script: Vec<_> = names.iter().enumerate().map(write).collect();
    script.push(openai::text("done"));
    Sandbox::served(TAU, script)
}

#[test]
fn a_client_is_asked_and_answers() {
    let (place, server) = writing(&["a.txt", "b.txt", "c.txt"]);
    let mut talk = Talk::start(place.command(&["--mode", "rpc", "--permission", "ask"]));
    let _ = talk.ask("p", json!({"type": "prompt", "message": "write"}));
    let exists = |name: &str| place.work().join(name).exists();
    for (name, answer, written) in [("a.txt", "Reject", false), ("b.txt", "Allow for this session", true)] {
        let asked = talk.wait(&json!({"type": "extension_ui_request", "method": "select"}));
        assert!(asked["title"].as_str().unwrap().contains(name), "{asked}");
        assert!(!exists(name));
        // Somebody else's answer is none.
        talk.send(&json!({"type": "extension_ui_response", "id": "other", "value": "Allow"}));
        talk.send(&json!({"type": "extension_ui_response", "id": asked["id"], "value": answer}));
        let end = talk.wait(&json!({"type": "tool_execution_end"}));
        assert_eq!((end["isError"] == true, exists(name)), (!written, written), "{end}");
    }
    // The third one was allowed with the second.
    let _ = talk.wait(&json!({"type": "agent_settled"}));
    assert!(exists("c.txt"));
    assert_eq!(server.requests().len(), 4);
    let _ = talk.finish().ok();
}

#[test]
fn an_open_question_holds_up_nothing_but_its_call() {
    let (place, _server) = writing(&["a.txt"]);
    let mut talk = Talk::start(place.command(&["--mode", "rpc", "--permission", "ask"]));
    let _ = talk.ask("p", json!({"type": "prompt", "message": "write"}));
    let asked = talk.wait(&json!({"type": "extension_ui_request"}));
    assert_eq!(talk.data("s", json!({"type": "get_state"}))["isStreaming"], true);
    assert_eq!(talk.data("a", json!({"type": "abort"})), Value::Null);
    talk.send(&json!({"type": "extension_ui_response", "id": asked["id"], "value": "Allow"}));
    let _ = talk.finish().ok();
    assert!(!place.work().join("a.txt").exists());
}

#[test]
fn a_cancelled_question_is_a_refusal_and_closing_ends_it() {
    let (place, server) = writing(&["a.txt", "b.txt"]);
    let mut talk = Talk::start(place.command(&["--mode", "rpc", "--permission", "accept-edits"]));
    let _ = talk.ask("p", json!({"type": "prompt", "message": "write"}));
    // Edits are accepted.
    let _ = talk.wait(&json!({"type": "agent_settled"}));
    assert!(place.work().join("a.txt").exists());
    server.script([openai::calls(&[("c9", "bash", json!({"command": "touch made"}))]), openai::text("ok")]);
    let _ = talk.ask("q", json!({"type": "prompt", "message": "run"}));
    let asked = talk.wait(&json!({"type": "extension_ui_request"}));
    talk.send(&json!({"type": "extension_ui_response", "id": asked["id"], "cancelled": true}));
    let _ = talk.wait(&json!({"type": "agent_settled"}));
    assert!(!place.work().join("made").exists());
    server.script([openai::calls(&[("c10", "bash", json!({"command": "touch made"}))])]);
    let _ = talk.ask("r", json!({"type": "prompt", "message": "run"}));
    let _ = talk.wait(&json!({"type": "extension_ui_request"}));
    // The client goes away while the question is open.
    let _ = talk.finish().ok();
    assert!(!place.work().join("made").exists());
}

#[test]
fn where_nobody_can_be_asked_it_does_not_run() {
    let (place, server) = writing(&["a.txt"]);
    let run = place.run(&["-p", "--permission", "ask", "write"]).ok();
    assert_eq!(run.out.trim_end(), "done");
    assert!(!place.work().join("a.txt").exists());
    let told = server.requests()[1].texts("tool");
    assert!(told[0].contains("Nobody answered"), "{told:?}");
    server.script([
        openai::calls(&[("c", "write", json!({"path": "a.txt", "content": "x"}))]),
        openai::text("ok"),
    ]);
    let _ = place.run(&["-p", "--permission", "auto", "write"]).ok();
    assert!(place.work().join("a.txt").exists());
    let wrong = place.run(&["-p", "--permission", "maybe", "x"]).ended_with(1);
    assert!(wrong.err.contains("accept-edits"), "{}", wrong.err);
}

#[test]
fn another_session_is_asked_about_by_its_own_rules() {
    let write = |path: String| openai::calls(&[("c", "write", json!({"path": path, "content": "x"}))]);
    let (place, server) = (Sandbox::new(TAU), Server::start([openai::text("there")]));
    place.configure(&server);
    let _ = place.put("work/other/x", "");
    let other = place.work().join("other");
    let mut command = place.command(&["-p", "x"]);
    command.current_dir(&other);
    let _ = place.start(command).finish().ok();
    let elsewhere = place.sessions()[0].display().to_string();
    let mut talk = Talk::start(place.command(&["--mode", "rpc", "--permission", "ask"]));
    let round = |talk: &mut Talk, path: &std::path::Path, answer: Option<&str>| {
        server.script([write(path.display().to_string()), openai::text("done")]);
        talk.send(&json!({"id": "p", "type": "prompt", "message": "write"}));
        if let Some(answer) = answer {
            let asked = talk.wait(&json!({"type": "extension_ui_request"}));
            assert!(!path.exists());
            talk.send(&json!({"type": "extension_ui_response", "id": asked["id"], "value": answer}));
        }
        let _ = talk.wait(&json!({"type": "agent_settled"}));
        assert_eq!(path.exists(), answer != Some("Reject"), "{}", path.display());
    };
    let here = place.work();
    round(&mut talk, &here.join("a"), Some("Allow for this session"));
    round(&mut talk, &here.join("b"), None);
    // What was allowed for that session is not for the next ones, and these are asked about at all.
    let _ = talk.data("n", json!({"type": "new_session"}));
    round(&mut talk, &here.join("c"), Some("Reject"));
    round(&mut talk, &here.join("d"), Some("Allow for this session"));
    let entries = talk.data("m", json!({"type": "get_fork_messages"}))["messages"].clone();
    let _ = talk.data("f", json!({"type": "fork", "entryId": entries[1]["entryId"]}));
    round(&mut talk, &here.join("e"), Some("Reject"));
    let _ = talk.data("w", json!({"type": "switch_session", "sessionPath": elsewhere}));
    round(&mut talk, &other.join("f"), Some("Reject"));
    let _ = talk.finish().ok();
    // Which folder is the session's own follows, too.
    let mut talk = Talk::start(place.command(&["--mode", "rpc", "--permission", "accept-edits"]));
    round(&mut talk, &here.join("g"), None);
    let _ = talk.data("w", json!({"type": "switch_session", "sessionPath": elsewhere}));
    round(&mut talk, &other.join("h"), None);
    round(&mut talk, &here.join("i"), Some("Reject"));
    let _ = talk.finish().ok();
}

#[test]
fn an_answer_that_is_cancelled_is_a_refusal_whatever_else_it_says() {
    let (place, _server) = writing(&["a.txt"]);
    let mut talk = Talk::start(place.command(&["--mode", "rpc", "--permission", "ask"]));
    let _ = talk.ask("p", json!({"type": "prompt", "message": "write"}));
    let asked = talk.wait(&json!({"type": "extension_ui_request"}));
    // A session that is none changes nothing: the question is known by its id.
    let answer = json!({"type": "extension_ui_response", "id": asked["id"], "sessionId": 7, "value": "Allow", "cancelled": true});
    talk.send(&answer);
    let _ = talk.wait(&json!({"type": "agent_settled"}));
    assert!(!place.work().join("a.txt").exists());
    let run = talk.finish().ok();
    assert_eq!(run.events().iter().filter(|record| record["type"] == "response").count(), 1);
}
