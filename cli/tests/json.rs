//! JSON mode as batch jobs use it: whole lines only, totals, exit codes.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tau_tests::program::{Run, Sandbox, roles};
use tau_tests::server::{Reply, Server, openai};

fn place(script: impl IntoIterator<Item = Reply>) -> (Sandbox, Server) {
    let (place, server) = (Sandbox::new(env!("CARGO_BIN_EXE_tau")), Server::start(script));
    place.configure(&server);
    (place, server)
}

/// Every line as a consumer that knows nothing but JSON would read it; each is an object with a type.
fn lines(run: &Run) -> Vec<Value> {
    assert!(run.out.ends_with('\n'), "{:?}", run.out);
    let lines: Vec<Value> = run
        .out
        .split_terminator('\n')
        .map(|line| serde_json::from_str(line).expect("a whole object"))
        .collect();
    assert!(lines.iter().all(|line| line["type"].is_string()));
    lines
}

fn count(lines: &[Value], kind: &str) -> usize {
    lines.iter().filter(|line| line["type"] == kind).count()
}

#[test]
fn several_prompts_are_one_stream() {
    let call =
        openai::calls(&[("c1", "bash", json!({"command": "printf 'a\\nb\\0c\\342\\200\\250d\\377'"}))]);
    let (place, server) = place([call, openai::text("one\u{2028}two\r\n"), openai::text("three")]);
    let run = place.run(&["--mode", "json", "first", "second"]).ok();
    let lines = lines(&run);
    assert_eq!((lines[0]["type"].as_str(), lines[0]["version"].as_u64()), (Some("session"), Some(3)));
    assert_eq!(
        (count(&lines, "session"), count(&lines, "agent_settled"), count(&lines, "totals")),
        (1, 2, 0)
    );
    assert_eq!(lines.last().unwrap()["type"], "agent_settled");
    assert_eq!(server.requests()[2].users(), ["first", "second"]);
}

#[test]
fn totals_are_the_last_line_when_asked_for() {
    let call = openai::calls(&[("c1", "bash", json!({"command": "true"}))]);
    let (place, _server) = place([call, openai::text("one"), openai::text("two"), openai::text("three")]);
    let run = place.run(&["--mode", "json", "--totals", "first", "second"]).ok();
    let all = lines(&run);
    let totals = all.last().unwrap();
    assert_eq!(totals["type"], "totals");
    assert_eq!(
        totals["tokens"],
        json!({"input": 36, "output": 21, "cacheRead": 0, "cacheWrite": 0, "total": 57})
    );
    assert_eq!((&totals["userMessages"], &totals["toolCalls"]), (&json!(2), &json!(1)));
    assert_eq!(totals["stopReason"], "stop");
    assert!(totals["cost"].is_number());
    let page =
        include_str!("../../docs/json.md").split("```json\n").nth(1).unwrap().split("\n```").next().unwrap();
    let shown: Value = serde_json::from_str(page).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!((keys(&shown), &shown["tokens"]), (keys(totals), &totals["tokens"]));
    // Those of this run only, also when a session goes on; without it the stream is as ever.
    let run = place.run(&["-c", "--mode", "json", "--totals", "third"]).ok();
    assert_eq!(lines(&run).last().unwrap()["tokens"]["total"], 19);
    let run = place.run(&["--mode", "json", "--totals"]).ok();
    assert_eq!(lines(&run).last().unwrap()["stopReason"], Value::Null);
}

#[test]
fn print_mode_tells_totals_beside_the_answer() {
    let (place, _server) = place([openai::text("one")]);
    let run = place.run(&["-p", "--totals", "x"]).ok();
    assert_eq!(run.out, "one\n");
    assert!(
        run.err.contains("replies: 1, tool calls: 0, tokens: 19 (12 in, 7 out, 0 + 0 cached), cost: $"),
        "{}",
        run.err
    );
    assert!(place.run(&["--mode", "rpc", "--totals"]).ended_with(1).err.contains("get_session_stats"));
}

#[test]
fn exit_codes() {
    let (place, server) = place([Reply::error(400, "no"), openai::stalled("begun"), openai::text("fine")]);
    place.settings(&json!({"retry": {"enabled": false}}));
    // A failed reply is told by the events.
    let run = place.run(&["--mode", "json", "--totals", "x"]).ok();
    assert_eq!(lines(&run).last().unwrap()["stopReason"], "error");
    // A signal: everything is told and stored, then 128 + its number.
    let running = place.start(place.command(&["--mode", "json", "--totals", "x", "never sent"]));
    server.wait(2);
    thread::sleep(Duration::from_millis(200));
    running.signal(15);
    let all = lines(&running.finish().ended_with(143));
    let tail: Vec<&Value> = all.iter().rev().take(2).map(|line| &line["type"]).collect();
    assert_eq!((tail, count(&all, "agent_settled")), (vec![&json!("totals"), &json!("agent_settled")], 1));
    assert_eq!(all.last().unwrap()["stopReason"], "aborted");
    // What cannot begin says so on stderr only.
    for args in [
        &["--mode", "json", "x", "--model", "no-such"][..],
        &["--mode", "json", "@missing", "x"],
        &["--mode", "jsonl"],
    ] {
        let run = place.run(args).ended_with(1);
        assert!(run.out.is_empty() && !run.err.is_empty(), "{args:?}");
    }
    assert_eq!(lines(&place.run(&["--mode", "json", "x"]).ok()).last().unwrap()["type"], "agent_settled");
}

#[test]
fn a_reader_that_has_enough_is_no_failure() {
    let (place, server) = place([openai::long_text("0123456789", 20_000), openai::text("not asked for")]);
    let mut command = place.command(&["--mode", "json", "--totals", "x", "y"]);
    let (mut reader, writer) = std::io::pipe().unwrap();
    command.stdout(Stdio::from(writer));
    let mut child = command.spawn().unwrap();
    drop(command);
    reader.read_exact(&mut [0; 10]).unwrap();
    drop(reader);
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((child.wait().unwrap().code(), err.as_str(), server.requests().len()), (Some(0), "", 1));
}

/// Nobody reads, and the pipe is full: a signal ends the program all the same, a second one at once.
#[test]
fn a_signal_ends_a_program_whose_reader_is_stuck() {
    let text = "x".repeat(2000);
    let flood = || openai::texts(&vec![text.as_str(); 200]);
    for (mode, signals, limit) in [("json", 1, 3500), ("json", 2, 1500), ("text", 1, 3500), ("text", 2, 1500)]
    {
        let (place, server) = place([flood()]);
        let mut child = place.command(&["--mode", mode, "-p", "x"]).spawn().unwrap();
        server.wait(1);
        // The whole answer of print mode comes at the end.
        thread::sleep(Duration::from_millis(700));
        let begun = Instant::now();
        for _ in 0..signals {
            let _ = Command::new("kill").arg("-15").arg(child.id().to_string()).status();
            thread::sleep(Duration::from_millis(300));
        }
        let case = format!("{mode}, {signals} signals");
        let end = Instant::now() + Duration::from_secs(20);
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() > end => {
                    let _ = child.kill();
                    panic!("{case}: it goes on");
                }
                None => thread::sleep(Duration::from_millis(5)),
            }
        };
        assert_eq!(status.code(), Some(143), "{case}");
        assert!(begun.elapsed() < Duration::from_millis(limit), "{case}: {:?}", begun.elapsed());
        assert_eq!(roles(&place.session())[..1], ["user"], "{case}");
    }
}

/// A disk that is full behind a redirection.
#[test]
fn output_that_cannot_be_written_is_a_failure() {
    for (args, kept) in [
        (&["--mode", "json", "x"][..], true),
        (&["-p", "x"], true),
        (&["--version"], false),
        (&["--list-models"], false),
    ] {
        let (place, _server) = place([openai::text("lost")]);
        let mut command = place.command(args);
        command.stdout(std::fs::File::options().write(true).open("/dev/full").unwrap());
        let out = command.output().unwrap();
        let told = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{args:?}: {told}");
        assert!(told.contains("standard output") && told.contains("space"), "{args:?}: {told}");
        // What was said is stored all the same.
        assert!(!kept || roles(&place.session()).contains(&"user"), "{args:?}");
    }
}
