//! What a client can do wrong to `tau acp`: messages of every bad shape, and ends of every kind.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tau_tests::editor::{Editor, checked};
use tau_tests::program::{Sandbox, records};
use tau_tests::server::{Part, Reply, Server, openai};

const TAU: &str = env!("CARGO_BIN_EXE_tau");

fn editor(script: impl IntoIterator<Item = Reply>) -> Editor {
    Editor::new(TAU, script)
}

/// Lines, and what is said to each; the answer begins with these characters.
const LINES: &[(&str, &[&str])] = &[
    ("", &[]),
    (" \t\r", &[]),
    ("{oops", &[r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700"#]),
    ("\u{0}", &[r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700"#]),
    ("null", &[r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600"#]),
    ("7", &[r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600"#]),
    ("[]", &[r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600"#]),
    (
        r#"[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}]"#,
        &[r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600"#],
    ),
    ("{}", &[r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600"#]),
    (r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#, &[r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600"#]),
    (r#"{"jsonrpc":"2.0","id":1}"#, &[r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600"#]),
    (r#"{"jsonrpc":"2.0","id":1,"method":null}"#, &[r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600"#]),
    (r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#, &[r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600"#]),
    (
        r#"{"jsonrpc":"2.0","id":true,"method":"x"}"#,
        &[r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600"#],
    ),
    // An id comes back as it was written.
    (
        r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#,
        &[r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601"#],
    ),
    (r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, &[r#"{"jsonrpc":"2.0","id":1.5,"error":{"code":-32601"#]),
    (
        r#"{"jsonrpc":"2.0","id":9007199254740993,"method":"x"}"#,
        &[r#"{"jsonrpc":"2.0","id":9007199254740993,"error":{"code":-32601"#],
    ),
    (
        r#"{"jsonrpc":"2.0","id":"a\u0000\"ü","method":"x"}"#,
        &[r#"{"jsonrpc":"2.0","id":"a\u0000\"ü","error":{"code":-32601"#],
    ),
    (
        r#"{"jsonrpc":"2.0","id":2,"method":"x","params":[]}"#,
        &[r#"{"jsonrpc":"2.0","id":2,"error":{"code":-3260"#],
    ),
    // Nobody answers a notification, whatever is wrong with it.
    (r#"{"jsonrpc":"2.0","method":"x","params":[]}"#, &[]),
    (r#"{"jsonrpc":"2.0","method":"session/cancel","params":"x"}"#, &[]),
    (r#"{"jsonrpc":"2.0","method":"session/cancel"}"#, &[]),
    (r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":7}}"#, &[]),
    (r#"{"jsonrpc":"2.0","method":"session/new","params":{}}"#, &[]),
    (r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":{}}}"#, &[]),
    (r#"{"jsonrpc":"2.0","method":"$/cancel_request"}"#, &[]),
    // Nor an answer.
    (r#"{"jsonrpc":"2.0","id":0,"result":{}}"#, &[]),
    (r#"{"jsonrpc":"2.0","id":"none","result":null}"#, &[]),
    (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#, &[]),
    (r#"{"id":0,"result":{}}"#, &[]),
    (r#"{"jsonrpc":"2.0","result":{}}"#, &[]),
];

#[test]
fn every_line_gets_its_answer_or_none() {
    let place = Sandbox::new(TAU);
    let mut input: String = LINES.iter().map(|(line, _)| format!("{line}\n")).collect();
    for depth in [2_000, 200_000] {
        let deep = "[".repeat(depth);
        input.push_str(&format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{deep}\n"));
    }
    let mut bytes = input.into_bytes();
    bytes.extend_from_slice(b"\xff\xfe{}\n");
    bytes.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"no\xff\"}\n");
    // The last record has no end of line, and half of one follows nothing.
    bytes.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"last\"}");
    let run = place.start_with_stdin(place.command(&["acp"]), &bytes).finish().ok();
    let mut wanted: Vec<&str> = LINES.iter().flat_map(|(_, answers)| answers.iter().copied()).collect();
    // Too deep, more values than a line may hold, and bytes that are no text.
    let unreadable = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700"#;
    wanted.extend([unreadable, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600"#, unreadable]);
    wanted.extend([r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32601"#, r#"{"jsonrpc":"2.0","id":4"#]);
    let told: Vec<&str> = run.out.lines().collect();
    for (told, wanted) in told.iter().zip(&wanted) {
        assert!(told.starts_with(wanted), "{told} instead of {wanted}");
    }
    assert_eq!(told.len(), wanted.len(), "{}", run.out);
}

#[test]
fn half_a_record_at_the_end_is_no_record() {
    let place = Sandbox::new(TAU);
    let run = place
        .start_with_stdin(place.command(&["acp"]), b"{\"jsonrpc\":\"2.0\",\"id\":1,\"meth")
        .finish()
        .ok();
    assert_eq!(run.out.lines().count(), 1);
    assert!(run.out.contains("-32700"), "{}", run.out);
}

#[test]
fn parameters_of_every_wrong_kind_are_refused() {
    let mut editor = editor([openai::text("fine")]);
    let id = editor.session();
    let cwd = editor.cwd();
    let text = json!([{"type": "text", "text": "x"}]);
    for (method, params) in [
        ("session/new", json!({})),
        ("session/new", json!({"cwd": 7, "mcpServers": []})),
        ("session/new", json!({"cwd": null, "mcpServers": []})),
        ("session/new", json!({"cwd": "", "mcpServers": []})),
        ("session/new", json!({"cwd": format!("{cwd}/none"), "mcpServers": []})),
        ("session/new", json!({"cwd": "/\u{0}", "mcpServers": []})),
        ("session/load", json!({"cwd": cwd, "mcpServers": []})),
        ("session/load", json!({"sessionId": 1, "cwd": cwd, "mcpServers": []})),
        ("session/resume", json!({"sessionId": id, "cwd": "work"})),
        ("session/list", json!({"cwd": "work"})),
        ("session/list", json!({"cwd": 7})),
        ("session/list", json!({"cursor": "soon"})),
        ("session/list", json!({"cursor": 7})),
        ("session/close", json!({})),
        ("session/prompt", json!({"sessionId": id})),
        ("session/prompt", json!({"prompt": text})),
        ("session/prompt", json!({"sessionId": [id], "prompt": text})),
        ("session/prompt", json!({"sessionId": id, "prompt": "x"})),
        ("session/prompt", json!({"sessionId": id, "prompt": []})),
        ("session/prompt", json!({"sessionId": id, "prompt": [{"type": "text", "text": " \n"}]})),
        ("session/prompt", json!({"sessionId": id, "prompt": [null]})),
        ("session/prompt", json!({"sessionId": id, "prompt": [{"text": "x"}]})),
        ("session/prompt", json!({"sessionId": id, "prompt": [{"type": "text", "text": 7}]})),
        ("session/prompt", json!({"sessionId": id, "prompt": [{"type": "image", "data": "AA=="}]})),
        (
            "session/prompt",
            json!({"sessionId": id, "prompt": [{"type": "image", "mimeType": "image/png", "data": "no base64!"}]}),
        ),
        (
            "session/prompt",
            json!({"sessionId": id, "prompt": [{"type": "audio", "mimeType": "audio/wav", "data": "AA=="}]}),
        ),
        ("session/prompt", json!({"sessionId": id, "prompt": [{"type": "resource_link", "name": "x"}]})),
        ("session/prompt", json!({"sessionId": id, "prompt": [{"type": "resource", "uri": "x"}]})),
        (
            "session/prompt",
            json!({"sessionId": id, "prompt": [{"type": "resource", "resource": {"uri": "x"}}]}),
        ),
        ("session/set_mode", json!({"sessionId": id, "modeId": null})),
        ("session/set_mode", json!({"sessionId": id})),
        ("session/set_config_option", json!({"sessionId": id, "configId": "mode", "value": "none"})),
        (
            "session/set_config_option",
            json!({"sessionId": id, "configId": "mode", "type": "boolean", "value": true}),
        ),
        ("session/set_config_option", json!({"sessionId": id, "configId": [], "value": "x"})),
        ("session/set_config_option", json!({"sessionId": id, "value": "x"})),
    ] {
        assert_eq!(editor.code(method, params.clone()), -32_602, "{method} {params}");
    }
    // None of it did any harm.
    let request = editor.prompt(&id, "still there");
    assert_eq!(editor.stop_reason(request), "end_turn");
    assert_eq!(editor.server.requests().len(), 1);
    assert_eq!(editor.server.requests()[0].users(), ["still there"]);
    assert_eq!(editor.place.sessions().len(), 1);
    drop(editor.finish());
}

/// A program whose client may leave in any way.
struct Loose {
    place: Sandbox,
    _server: Server,
    child: Child,
}

impl Loose {
    fn new(script: impl IntoIterator<Item = Reply>) -> Self {
        let (place, server) = (Sandbox::new(TAU), Server::start(script));
        place.configure(&server);
        let mut command = place.command(&["acp", "--permission", "auto"]);
        let child = command.stdin(Stdio::piped()).spawn().unwrap();
        Self { place, _server: server, child }
    }

    /// Opens a session and sends a prompt; says nothing more.
    fn begin(&mut self) {
        let cwd = self.place.work().display().to_string();
        let new = json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": cwd, "mcpServers": []}});
        self.write(&new);
        let mut reader = BufReader::new(self.child.stdout.take().unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let id = serde_json::from_str::<Value>(&line).unwrap()["result"]["sessionId"].clone();
        let prompt = json!([{"type": "text", "text": "go"}]);
        self.write(&json!({"jsonrpc": "2.0", "id": 2, "method": "session/prompt",
            "params": {"sessionId": id, "prompt": prompt}}));
        assert!(reader.buffer().len() < 4096);
        self.child.stdout = Some(reader.into_inner());
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn ends_within(&mut self, limit: Duration) -> Option<i32> {
        let end = Instant::now() + limit;
        loop {
            match self.child.try_wait().unwrap() {
                Some(status) => return status.code(),
                None => assert!(Instant::now() < end, "it goes on"),
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Loose {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a process with these words exists.
fn runs(words: &str) -> bool {
    let wanted: Vec<u8> = words.bytes().map(|byte| if byte == b' ' { 0 } else { byte }).collect();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| line.strip_suffix(b"\0") == Some(&wanted[..]))
}

fn wait_until(holds: impl Fn() -> bool, what: &str) {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A session that can be read: whole lines, and calls with their results or an aborted end.
fn stored(place: &Sandbox) -> Vec<Value> {
    let files = place.sessions();
    assert_eq!(files.len(), 1);
    assert!(fs::read_to_string(&files[0]).unwrap().ends_with('\n'));
    records(&files[0])
}

#[test]
fn whatever_way_a_client_leaves_nothing_survives_it() {
    type Leave = fn(&mut Loose);
    let ways: [(&str, Leave, i32); 4] = [
        ("971.1", |loose| drop(loose.child.stdin.take()), 0),
        ("971.2", |loose| drop((loose.child.stdin.take(), loose.child.stdout.take())), 0),
        ("971.3", |loose| drop(loose.child.stdout.take()), 1),
        (
            "971.4",
            |loose| {
                let id = loose.child.id().to_string();
                let _ = std::process::Command::new("kill").args(["-15", &id]).status().unwrap();
            },
            143,
        ),
    ];
    for (seconds, leave, code) in ways {
        let command = format!("echo on; (sleep {seconds} & wait); echo off");
        let mut loose = Loose::new([openai::calls(&[("c1", "bash", json!({"command": command}))])]);
        loose.begin();
        let sleep = format!("sleep {seconds}");
        wait_until(|| runs(&sleep), "the command does not begin");
        leave(&mut loose);
        if loose.child.stdout.is_none() && loose.child.stdin.is_some() {
            // That nobody reads is seen by whoever writes.
            loose.write(&json!({"jsonrpc": "2.0", "id": 9, "method": "x"}));
        }
        let ended = loose.ends_within(Duration::from_secs(10));
        // Whether the pipe or the end of input is seen first is a matter of luck.
        assert!(ended == Some(code) || (seconds == "971.2" && ended == Some(1)), "{seconds}: {ended:?}");
        wait_until(|| !runs(&sleep), "the command survives");
        let records = stored(&loose.place);
        let last = &records.last().unwrap()["message"];
        assert!(last["role"] == "toolResult" || last["stopReason"] == "aborted", "{seconds}: {last}");
    }
}

#[test]
fn a_client_that_does_not_read_holds_nothing_up_for_ever() {
    let long = || openai::long_text("some text that nobody reads ", 60_000);
    for signal in [false, true] {
        let mut loose = Loose::new([long()]);
        loose.begin();
        thread::sleep(Duration::from_millis(500));
        // It asks for more and reads nothing still.
        loose.write(&json!({"jsonrpc": "2.0", "id": 3, "method": "session/list", "params": {}}));
        let memory = fs::read_to_string(format!("/proc/{}/status", loose.child.id())).unwrap();
        let peak = memory.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(peak < 64 * 1024, "{peak} kB");
        if signal {
            let id = loose.child.id().to_string();
            assert!(std::process::Command::new("kill").args(["-15", &id]).status().unwrap().success());
        } else {
            drop(loose.child.stdin.take());
        }
        let code = loose.ends_within(Duration::from_secs(20));
        assert!(code.is_some(), "killed");
        drop(stored(&loose.place));
    }
    // Who reads late misses nothing.
    let mut loose = Loose::new([openai::long_text("piece ", 20_000)]);
    loose.begin();
    thread::sleep(Duration::from_millis(300));
    drop(loose.child.stdin.take());
    let mut out = String::new();
    loose.child.stdout.as_mut().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(loose.ends_within(Duration::from_secs(10)), Some(0));
    for line in out.lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        assert_eq!(message["jsonrpc"], "2.0");
    }
}

#[test]
fn what_is_open_is_answered_when_input_ends() {
    let mut editor = editor([openai::stalled("begun")]);
    let id = editor.session();
    let request = editor.prompt(&id, "x");
    let _ = editor.update(json!({"sessionUpdate": "agent_message_chunk"}));
    let run = editor.talk.finish().ok();
    drop(checked(&run));
    let answer = run.events().into_iter().find(|message| message["id"] == request);
    assert_eq!(answer.unwrap()["result"]["stopReason"], "cancelled");
}

#[test]
fn prompts_of_two_sessions_do_not_mix() {
    let gated = openai::texts(&["one "]).then(Part::Pause(Duration::from_millis(1)));
    let mut editor = editor([gated, openai::text("two")]);
    let (first, second) = (editor.session(), editor.session());
    let requests = [editor.prompt(&first, "a"), editor.prompt(&second, "b")];
    // Their answers come in any order.
    let mut answers: Vec<Value> = Vec::new();
    while answers.len() < 2 {
        let message = editor.talk.wait(&json!({"jsonrpc": "2.0"}));
        if message.get("result").is_some() && requests.iter().any(|id| message["id"] == *id) {
            answers.push(message);
        }
    }
    assert!(answers.iter().all(|answer| answer["result"]["stopReason"] == "end_turn"));
    let asked: Vec<Vec<String>> = editor.server.requests().iter().map(|request| request.users()).collect();
    assert!(asked.contains(&vec!["a".into()]) && asked.contains(&vec!["b".into()]), "{asked:?}");
    drop(editor.finish());
}

#[test]
fn choices_are_followed_while_the_model_speaks() {
    let mut editor = editor([openai::long_text("word ", 30_000)]);
    let id = editor.session();
    let request = editor.prompt(&id, "x");
    let _ = editor.update(json!({"sessionUpdate": "agent_message_chunk"}));
    for count in 0..25 {
        let model = if count % 2 == 0 { "mock/m2" } else { "mock/m1" };
        let choice = json!({"sessionId": id, "configId": "model", "value": model});
        let _ = editor.send("session/set_config_option", choice);
        let mode = if count % 2 == 0 { "auto" } else { "ask" };
        let _ = editor.send("session/set_mode", json!({"sessionId": id, "modeId": mode}));
    }
    assert_eq!(editor.stop_reason(request), "end_turn");
    drop(editor.finish());
}
