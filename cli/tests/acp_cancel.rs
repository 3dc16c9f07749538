//! Questions and cancels of `tau acp`: whatever is answered, and whenever a turn is cancelled, nothing unwanted is done,
//! the prompt is answered, and the session goes on.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tau_tests::editor::{Editor, of_kind};
use tau_tests::server::{Part, Reply, openai};

const TAU: &str = env!("CARGO_BIN_EXE_tau");

fn editor(script: impl IntoIterator<Item = Reply>) -> Editor {
    Editor::new(TAU, script)
}

fn write(id: &str, path: &str) -> Reply {
    openai::calls(&[(id, "write", json!({"path": path, "content": "x"}))])
}

fn exists(editor: &Editor, name: &str) -> bool {
    editor.place.work().join(name).exists()
}

fn cancel(editor: &mut Editor, session: &str) {
    editor.notify("session/cancel", json!({"sessionId": session}));
}

/// The session still works, and what the model sees of it is whole: each call has its result.
fn goes_on(mut editor: Editor, session: &str) -> Vec<Value> {
    editor.server.script([openai::text("and on")]);
    let request = editor.prompt(session, "go on");
    assert_eq!(editor.stop_reason(request), "end_turn");
    let requests = editor.server.requests();
    let last = requests.last().unwrap();
    assert_eq!(last.users().last().unwrap(), "go on");
    let messages = last.body["messages"].as_array().unwrap();
    let calls: Vec<&Value> = messages
        .iter()
        .flat_map(|m| m["tool_calls"].as_array().into_iter().flatten())
        .map(|c| &c["id"])
        .collect();
    let results: Vec<&Value> =
        messages.iter().filter(|m| m["role"] == "tool").map(|m| &m["tool_call_id"]).collect();
    assert_eq!(calls, results);
    editor.finish()
}

/// What a client answers to a question, and whether the call is made then.
#[test]
fn only_a_choice_that_was_offered_allows() {
    let selected = |option: &str| json!({"result": {"outcome": {"outcome": "selected", "optionId": option}}});
    for (answer, made) in [
        (selected("allow"), true),
        (selected("always"), true),
        (selected("reject"), false),
        (selected("none"), false),
        (json!({"result": {"outcome": {"outcome": "cancelled"}}}), false),
        (json!({"result": {"outcome": {"outcome": "cancelled", "optionId": "allow"}}}), false),
        (json!({"result": {"outcome": {"outcome": "maybe", "optionId": "allow"}}}), false),
        (json!({"result": {"outcome": {"optionId": "allow"}}}), false),
        (json!({"result": {"outcome": "selected"}}), false),
        (json!({"result": {"optionId": "allow"}}), false),
        (json!({"result": {}}), false),
        (json!({"result": null}), false),
        (json!({"result": [1]}), false),
        (json!({"error": {"code": -32_603, "message": "the window is gone"}}), false),
        (json!({"error": null}), false),
        (
            json!({"error": {"code": 1, "message": "both"}, "result": {"outcome": {"outcome": "selected",
            "optionId": "allow"}}}),
            false,
        ),
    ] {
        let mut editor = editor([write("c1", "a.txt"), openai::text("done")]);
        let session = editor.session();
        let request = editor.prompt(&session, "write");
        let question = editor.question();
        // An answer to something else changes nothing.
        editor.answer(&json!({"id": 77}), json!({"outcome": {"outcome": "selected", "optionId": "allow"}}));
        assert!(!exists(&editor, "a.txt"));
        let mut message = answer.clone();
        message["jsonrpc"] = json!("2.0");
        message["id"] = question["id"].clone();
        editor.talk.send(&message);
        // Nor does a second one.
        editor.choose(&question, "allow");
        assert_eq!(editor.stop_reason(request), "end_turn", "{answer}");
        assert_eq!(exists(&editor, "a.txt"), made, "{answer}");
        let updates = editor.finish();
        let last = of_kind(&updates, "tool_call_update").last().unwrap()["status"].clone();
        assert_eq!(last, if made { "completed" } else { "failed" }, "{answer}");
    }
}

#[test]
fn what_is_always_rejected_is_not_asked_again() {
    let calls = [write("c1", "a.txt"), write("c2", "b.txt"), openai::text("done")];
    let mut editor = editor(calls);
    let session = editor.session();
    let request = editor.prompt(&session, "write");
    let question = editor.question();
    let kinds: Vec<&Value> =
        question["params"]["options"].as_array().unwrap().iter().map(|o| &o["kind"]).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once", "reject_always"]);
    editor.choose(&question, "never");
    assert_eq!(editor.stop_reason(request), "end_turn");
    assert!(!exists(&editor, "a.txt") && !exists(&editor, "b.txt"));
    // Until somebody says otherwise.
    editor.server.script([write("c3", "c.txt"), openai::text("done")]);
    let _ = editor.call("session/set_mode", json!({"sessionId": session, "modeId": "ask"}));
    let request = editor.prompt(&session, "write");
    let question = editor.question();
    editor.choose(&question, "allow");
    assert_eq!(editor.stop_reason(request), "end_turn");
    assert!(exists(&editor, "c.txt"));
    drop(editor.finish());
}

#[test]
fn questions_of_one_reply_are_each_answered() {
    let calls =
        ["c1", "c2", "c3"].map(|id| (id, "write", json!({"path": format!("{id}.txt"), "content": "x"})));
    let mut editor = editor([openai::calls(&calls), openai::text("done")]);
    let session = editor.session();
    let request = editor.prompt(&session, "write");
    for _ in 0..3 {
        let question = editor.question();
        let call = question["params"]["toolCall"]["toolCallId"].clone();
        editor.choose(&question, if call == "c2" { "reject" } else { "allow" });
    }
    assert_eq!(editor.stop_reason(request), "end_turn");
    assert_eq!(["c1.txt", "c2.txt", "c3.txt"].map(|name| exists(&editor, name)), [true, false, true]);
    drop(editor.finish());
}

#[test]
fn a_cancel_without_a_turn_is_nothing() {
    let mut editor = editor([]);
    let session = editor.session();
    cancel(&mut editor, &session);
    cancel(&mut editor, "none");
    drop(goes_on(editor, &session));
}

#[test]
fn a_cancel_right_behind_the_prompt_counts() {
    let mut editor = editor([openai::stalled("never ends")]);
    let session = editor.session();
    let prompt = json!({"jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": {"sessionId": session,
        "prompt": [{"type": "text", "text": "x"}]}});
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
    editor.talk.send_bytes(format!("{prompt}\n{cancel}\n").as_bytes());
    let answer = editor.talk.wait(&json!({"id": "p"}));
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    // Whether the request had left, and when the server sees it, is a matter of luck: the next one gets either reply.
    editor.server.script([openai::text("it had left"), openai::text("it was late")]);
    let request = editor.prompt(&session, "whichever comes");
    let update = editor.update(json!({"sessionUpdate": "agent_message_chunk"}));
    // The piece may be one of the prompt before.
    let stalls = update["content"]["text"] == "never ends";
    if stalls {
        self::cancel(&mut editor, &session);
    }
    let reason = editor.stop_reason(request);
    assert!(reason == "end_turn" || (stalls && reason == "cancelled"), "{reason}");
    drop(goes_on(editor, &session));
}

#[test]
fn a_cancel_in_a_stream_counts() {
    let silent = Reply::stream(vec![Part::Stall]);
    for reply in [silent, openai::stalled("begun"), openai::calls(&[]).then(Part::Stall)] {
        let mut editor = editor([reply]);
        let session = editor.session();
        let request = editor.prompt(&session, "x");
        editor.server.wait(1);
        cancel(&mut editor, &session);
        cancel(&mut editor, &session);
        assert_eq!(editor.stop_reason(request), "cancelled");
        drop(goes_on(editor, &session));
    }
}

#[test]
fn a_cancel_while_a_retry_is_waited_for_counts() {
    let prepare = |place: &tau_tests::program::Sandbox| {
        place.settings(&json!({"retry": {"enabled": true, "baseDelayMs": 60_000, "maxDelayMs": 60_000}}));
    };
    let mut editor = Editor::with(TAU, [Reply::error(503, "later")], &[], prepare);
    let session = editor.session();
    let request = editor.prompt(&session, "x");
    editor.server.wait(1);
    thread::sleep(Duration::from_millis(200));
    cancel(&mut editor, &session);
    assert_eq!(editor.stop_reason(request), "cancelled");
    drop(goes_on(editor, &session));
}

#[test]
fn a_cancel_in_a_command_ends_it() {
    let calls = [
        ("c1", "bash", json!({"command": "echo on; (sleep 972.5 & wait)"})),
        ("c2", "bash", json!({"command": "(sleep 972.5 & wait)"})),
    ];
    let mut editor = Editor::with(TAU, [openai::calls(&calls)], &["--permission", "auto"], |_| {});
    let session = editor.session();
    let request = editor.prompt(&session, "x");
    let _ = editor.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "content": [{}]}));
    let sleeps = || {
        let lines = fs::read_dir("/proc").unwrap().flatten();
        lines
            .filter_map(|p| fs::read(p.path().join("cmdline")).ok())
            .filter(|l| l == b"sleep\x00972.5\0")
            .count()
    };
    let wait = |count: usize| {
        let end = Instant::now() + Duration::from_secs(20);
        while sleeps() != count {
            assert!(Instant::now() < end, "{} instead of {count}", sleeps());
            thread::sleep(Duration::from_millis(5));
        }
    };
    wait(2);
    cancel(&mut editor, &session);
    assert_eq!(editor.stop_reason(request), "cancelled");
    wait(0);
    let updates = goes_on(editor, &session);
    for id in ["c1", "c2"] {
        let last = updates.iter().rfind(|update| update["toolCallId"] == id).unwrap();
        assert_eq!(last["status"], "failed", "{last}");
    }
}

#[test]
fn a_cancel_at_a_question_ends_it_whatever_is_answered_later() {
    let calls = ["c1", "c2"].map(|id| (id, "write", json!({"path": format!("{id}.txt"), "content": "x"})));
    let mut editor = editor([openai::calls(&calls)]);
    let session = editor.session();
    let request = editor.prompt(&session, "x");
    let question = editor.question();
    cancel(&mut editor, &session);
    assert_eq!(editor.stop_reason(request), "cancelled");
    editor.choose(&question, "always");
    // A question of later is not answered by it.
    editor.server.script([write("c3", "c3.txt"), openai::text("done")]);
    let request = editor.prompt(&session, "again");
    let later = editor.question();
    assert_ne!(later["id"], question["id"]);
    editor.choose(&question, "always");
    editor.choose(&later, "reject");
    assert_eq!(editor.stop_reason(request), "end_turn");
    assert!(["c1.txt", "c2.txt", "c3.txt"].iter().all(|name| !exists(&editor, name)));
    drop(goes_on(editor, &session));
}

#[test]
fn a_request_can_be_cancelled_by_its_id() {
    let mut editor = editor([openai::stalled("begun")]);
    let session = editor.session();
    let request = editor.prompt(&session, "x");
    editor.server.wait(1);
    for other in [json!(request + 1), json!(request.to_string()), json!(null)] {
        editor.notify("$/cancel_request", json!({"requestId": other}));
    }
    assert_eq!(editor.code("session/fly", json!({})), -32_601);
    let busy = editor.prompt(&session, "two at once");
    assert_eq!(editor.wait(busy)["error"]["code"], -32_600);
    editor.notify("$/cancel_request", json!({"requestId": request}));
    assert_eq!(editor.stop_reason(request), "cancelled");
    // It is over: there is nothing to cancel.
    editor.notify("$/cancel_request", json!({"requestId": request}));
    drop(goes_on(editor, &session));
}

#[test]
fn a_session_that_cannot_be_opened_again_stays_open() {
    let mut editor = editor([openai::stalled("begun")]);
    let session = editor.session();
    let request = editor.prompt(&session, "x");
    editor.server.wait(1);
    let cwd = editor.cwd();
    for (method, wrong) in [("session/load", json!("work")), ("session/resume", json!(format!("{cwd}/none")))]
    {
        let params = json!({"sessionId": session, "cwd": wrong, "mcpServers": []});
        assert_eq!(editor.code(method, params), -32_602);
    }
    cancel(&mut editor, &session);
    assert_eq!(editor.stop_reason(request), "cancelled");
    drop(goes_on(editor, &session));
}

#[test]
fn what_goes_on_in_a_session_ends_before_it_is_opened_again_or_closed() {
    let mut editor = editor([write("c1", "a.txt")]);
    let session = editor.session();
    let request = editor.prompt(&session, "x");
    let question = editor.question();
    let params = json!({"sessionId": session, "cwd": editor.cwd(), "mcpServers": []});
    let load = editor.send("session/load", params);
    assert_eq!(editor.stop_reason(request), "cancelled");
    assert!(editor.wait(load)["result"].is_object());
    editor.choose(&question, "allow");
    editor.server.script([write("c2", "b.txt")]);
    let request = editor.prompt(&session, "y");
    let question = editor.question();
    let close = editor.send("session/close", json!({"sessionId": session}));
    assert_eq!(editor.stop_reason(request), "cancelled");
    assert_eq!(editor.wait(close)["result"], json!({}));
    editor.choose(&question, "allow");
    cancel(&mut editor, &session);
    let params = json!({"sessionId": session, "cwd": editor.cwd()});
    drop(editor.result("session/resume", params));
    assert!(!exists(&editor, "a.txt") && !exists(&editor, "b.txt"));
    drop(goes_on(editor, &session));
}
