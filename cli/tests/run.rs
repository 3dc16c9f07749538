//! The program against a scripted model server.

use std::fs;
use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tau_tests::program::{Sandbox, outline, records, roles};
use tau_tests::server::{Reply, Server, openai};

const TAU: &str = env!("CARGO_BIN_EXE_tau");

fn place(script: impl IntoIterator<Item = Reply>) -> (Sandbox, Server) {
    Sandbox::served(TAU, script)
}

fn bash(id: &str, command: &str) -> Reply {
    openai::calls(&[(id, "bash", json!({"command": command}))])
}

#[test]
fn an_answer_is_printed_and_stored() {
    let (place, server) = place([openai::texts(&["Grüße ", "👋\nsecond line"])]);
    let run = place.run(&["-p", "hello"]).ok();
    assert_eq!((run.out.as_str(), run.err.as_str()), ("Grüße 👋\nsecond line\n", ""));
    let request = &server.requests()[0];
    assert_eq!(request.users(), ["hello"]);
    assert_eq!(request.header("authorization"), Some("Bearer key-for-tests"));
    assert_eq!(roles(&place.session()), ["user", "assistant"]);
}

#[test]
fn a_tool_loop_changes_real_files() {
    let write = json!({"path": "new/a.txt", "content": "one\ntwo\n"});
    let edit = json!({"path": "new/a.txt", "edits": [{"oldText": "two", "newText": "2"}]});
    let (place, server) = place([
        openai::calls(&[("c1", "write", write)]),
        openai::calls(&[("c2", "edit", edit)]),
        bash("c3", "cat new/a.txt; echo $PI_MODEL"),
        openai::text("done"),
    ]);
    assert_eq!(place.run(&["-p", "go"]).ok().out, "done\n");
    assert_eq!(fs::read_to_string(place.work().join("new/a.txt")).unwrap(), "one\n2\n");
    let results = server.requests()[3].texts("tool");
    assert_eq!(results.last().map(String::as_str), Some("one\n2\nm1\n"));
}

#[test]
fn a_refused_request_is_sent_again_when_the_settings_say_so() {
    let busy = || {
        let mut reply = Reply::error(503, "busy");
        reply.headers.push(("retry-after-ms".into(), "1".into()));
        reply
    };
    let (place, server) = place([busy(), openai::text("fine"), busy()]);
    place.settings(&json!({"retry": {"enabled": false, "provider": {"maxRetries": 1}}}));
    assert_eq!(place.run(&["-p", "hello"]).ok().out, "fine\n");
    assert_eq!(server.requests().len(), 2);
    place.settings(&json!({"retry": {"enabled": false, "provider": {"maxRetries": 0}}}));
    assert!(place.run(&["-p", "hello"]).ended_with(1).err.contains("busy"));
    assert_eq!(server.requests().len(), 3);
}

/// `omit` is off without a word about it: to a server that has a word for off.
#[test]
fn thinking_can_be_left_unmentioned() {
    let (place, server) = place(["1", "2", "3", "4"].map(openai::text));
    let file = place.agent().join("models.json");
    let mut models: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    models["providers"]["mock"]["models"][1]["compat"] = json!({"thinkingFormat": "qwen"});
    fs::write(&file, models.to_string()).unwrap();
    for (model, level) in [("m2", "off"), ("m2", "omit"), ("m2:omit", ""), ("m2:high", "")] {
        let level = (!level.is_empty()).then_some(["--thinking", level]);
        let args = ["-p", "hello", "--model", model].into_iter().chain(level.into_iter().flatten());
        assert_eq!(place.run(&args.collect::<Vec<_>>()).ok().err, "");
    }
    let said = |at: usize| server.requests()[at].body.get("enable_thinking").cloned();
    assert_eq!([0, 1, 2, 3].map(said), [Some(json!(false)), None, None, Some(json!(true))]);
}

#[test]
fn events_come_in_order_one_a_line() {
    let (place, _server) = place([bash("c1", "echo hi"), openai::text("done")]);
    let events = place.run(&["--mode", "json", "go"]).ok().events();
    assert_eq!(events[0]["type"], "session");
    assert_eq!(
        outline(&events),
        [
            "agent_start",
            "turn_start",
            "message_start(user)",
            "message_end(user)",
            "message_start(assistant)",
            "message_end(assistant)",
            "tool_execution_start",
            "tool_execution_end",
            "message_start(toolResult)",
            "message_end(toolResult)",
            "turn_end",
            "turn_start",
            "message_start(assistant)",
            "message_end(assistant)",
            "turn_end",
            "agent_end",
            "agent_settled",
        ]
    );
}

#[test]
fn a_torn_session_goes_on() {
    let (place, server) = place([openai::text("first"), openai::text("second")]);
    let _ = place.run(&["-p", "one"]).ok();
    let path = &place.sessions()[0];
    let mut bytes = fs::read(path).unwrap();
    bytes.extend_from_slice(b"{\"type\":\"message\",\"id\":\"torn");
    fs::write(path, &bytes).unwrap();
    assert_eq!(place.run(&["-p", "two", "-c"]).ok().out, "second\n");
    assert_eq!(server.requests()[1].users(), ["one", "two"]);
    let after = fs::read(path).unwrap();
    assert!(after.starts_with(&bytes), "earlier bytes were rewritten");
    let text = String::from_utf8_lossy(&after[bytes.len()..]).into_owned();
    let rest: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(roles(&rest), ["user", "assistant"]);
}

#[test]
fn a_session_belongs_to_its_working_directory() {
    let (place, server) = place([openai::text("a"), openai::text("b"), openai::text("c")]);
    // Both folders have the same encoded name.
    for (folder, prompt) in [("x/y", "one"), ("x-y", "two")] {
        let cwd = place.work().join(folder);
        fs::create_dir_all(&cwd).unwrap();
        let mut command = place.command(&["-p", "-c", prompt]);
        command.current_dir(cwd);
        let _ = place.start(command).finish().ok();
    }
    assert_eq!(server.requests()[1].users(), ["two"]);
    assert_eq!(place.sessions().len(), 2);
}

#[test]
fn a_signal_ends_the_run_in_order() {
    for (number, code) in [(2, 130), (15, 143), (1, 129)] {
        let (place, server) = place([openai::stalled("partial answer")]);
        let running = place.start(place.command(&["--mode", "json", "x"]));
        server.wait(1);
        std::thread::sleep(Duration::from_millis(300));
        running.signal(number);
        let run = running.finish().ended_with(code);
        let events = run.events();
        assert_eq!(events.last().unwrap(), &json!({"type": "agent_settled", "aborted": true}));
        let session = place.session();
        assert_eq!(roles(&session), ["user", "assistant"]);
        assert_eq!(session.last().unwrap()["message"]["stopReason"], "aborted");
    }
}

#[test]
fn a_signal_ends_what_the_tools_started() {
    let (place, server) = place([bash("c1", "echo $$ > pid; sleep 60.5 & sleep 61.5; echo never")]);
    let running = place.start(place.command(&["-p", "x"]));
    server.wait(1);
    let pid = loop {
        match fs::read_to_string(place.work().join("pid")) {
            Ok(pid) if pid.ends_with('\n') => break pid.trim().to_owned(),
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    running.signal(15);
    let _ = running.finish().ended_with(143);
    assert!(fs::metadata(format!("/proc/{pid}")).is_err(), "the shell lives on");
    assert_eq!(roles(&place.session())[..3], ["user", "assistant", "toolResult"]);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_reader_that_leaves_is_no_drama() {
    let answer = "x".repeat(400_000);
    let (place, _server) = place([openai::text(&answer)]);
    let mut command = place.command(&["-p", "x"]);
    let (mut reader, writer) = std::io::pipe().unwrap();
    command.stdout(Stdio::from(writer));
    let mut child = command.spawn().unwrap();
    drop(command);
    reader.read_exact(&mut [0; 10]).unwrap();
    drop(reader);
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    let _ = child.wait().unwrap();
    assert_eq!(err, "");
    let stored = place.session().last().unwrap()["message"]["content"][0]["text"].as_str().unwrap().len();
    assert_eq!(stored, answer.len());
}

#[test]
fn stdin_and_files_come_before_the_message() {
    let (place, server) = place([openai::text("ok"), openai::text("ok")]);
    place.put("work/a.txt", "AAA");
    let _ = place.run_with_stdin(&["-p", "@a.txt", "explain"], "  piped \n").ok();
    let path = place.work().join("a.txt").display().to_string();
    assert_eq!(server.requests()[0].users(), [format!("piped<file name=\"{path}\">\nAAA\n</file>\nexplain")]);
    let run = place.run(&["-p", "@missing.txt", "x"]).ended_with(1);
    assert!(run.err.contains("missing.txt"), "{}", run.err);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_silent_stdin_is_not_waited_for_without_end() {
    let (place, _server) = place([openai::text("answer")]);
    let mut command = place.command(&["-p", "x"]);
    let (reader, writer) = std::io::pipe().unwrap();
    command.stdin(Stdio::from(reader));
    let begin = Instant::now();
    let run = place.start(command).finish().ok();
    assert_eq!(run.out, "answer\n");
    assert!(run.err.contains("stdin") && begin.elapsed() < Duration::from_secs(10));
    drop(writer);
}

#[test]
fn failures_say_what_and_where() {
    let (place, server) = place([Reply::error(401, "no such key"), openai::cut("as far as it")]);
    let run = place.run(&["-p", "x"]).ended_with(1);
    assert!(run.out.is_empty() && run.err.contains("401") && run.err.contains("no such key"), "{}", run.err);
    let run = place.run(&["-p", "x", "--no-session"]).ended_with(1);
    assert!(run.out == "as far as it\n" && !run.err.is_empty());
    for (args, part) in [
        (&["-p", "x", "--model", "no-such"][..], "no-such"),
        (&["-p", "x", "--provider", "mock"][..], "--model"),
        (&["-p", "x", "--session", "zzz"][..], "zzz"),
        (&["-p", "x", "--session-id", "-bad"][..], "-bad"),
        (&["-p", "x", "--resume"][..], "--resume"),
    ] {
        let run = place.run(args).ended_with(1);
        assert!(run.err.contains(part), "{args:?}: {}", run.err);
    }
    place.put("agent/models.json", "{\"providers\": {");
    let run = place.run(&["-p", "x"]).ended_with(1);
    assert!(run.err.contains("models.json"), "{}", run.err);
    place.put("agent/auth.json", "{\"mock\": ");
    place.configure(&server);
    let run = place.run(&["-p", "x"]).ended_with(1);
    assert!(run.err.contains("auth.json"), "{}", run.err);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn keys_come_from_commands_too() {
    let (place, server) = place([openai::text("ok"), openai::text("ok")]);
    let text = fs::read_to_string(place.agent().join("models.json")).unwrap();
    place.put("agent/models.json", text.replace("\"key-for-tests\"", "\"!echo from-command\""));
    let _ = place.run(&["-p", "x"]).ok();
    let _ = place.run(&["-p", "x", "--model", "mock/m1", "--api-key", "from-flag"]).ok();
    let keys: Vec<String> =
        server.requests().iter().map(|r| r.header("authorization").unwrap_or_default().to_owned()).collect();
    assert_eq!(keys, ["Bearer from-command", "Bearer from-flag"]);
}

#[test]
fn a_copy_of_a_session_is_its_own() {
    let (place, server) = place([openai::text("a"), openai::text("b")]);
    let _ = place.run(&["-p", "one", "--session-id", "first"]).ok();
    let _ = place.run(&["-p", "two", "--fork", "first", "--session-id", "second"]).ok();
    assert_eq!(server.requests()[1].users(), ["one", "two"]);
    let of = |id: &str| {
        let files = place.sessions();
        records(files.iter().find(|path| path.ends_with_id(id)).unwrap())
    };
    assert_eq!(roles(&of("first")), ["user", "assistant"]);
    assert_eq!(roles(&of("second")), ["user", "assistant", "user", "assistant"]);
    assert!(of("second")[0]["parentSession"].as_str().unwrap().contains("first"));
}

trait HasId {
    fn ends_with_id(&self, id: &str) -> bool;
}

impl HasId for std::path::PathBuf {
    fn ends_with_id(&self, id: &str) -> bool {
        self.to_string_lossy().ends_with(&format!("_{id}.jsonl"))
    }
}

#[test]
fn the_demo_needs_nothing() {
    let place = Sandbox::new(TAU);
    let run = place.run(&["--model", "demo/tour", "-p", "show me"]).ok();
    assert!(run.out.contains("demo") && run.err.is_empty(), "{}{}", run.out, run.err);
    assert!(fs::read_to_string(place.work().join("tau-tour.txt")).unwrap().contains("edited"));
    // It must be asked for.
    assert!(place.run(&["-p", "x"]).ended_with(1).err.contains("demo/tour"));
}
