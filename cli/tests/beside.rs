//! Two processes at work in one session: each goes on from what is whole, both are branches, and people are told.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use tau_tests::program::{Sandbox, records, roles};
use tau_tests::server::{Gate, Part, Reply, Server, openai};

const TAU: &str = env!("CARGO_BIN_EXE_tau");

/// A reply that is there, but does not end before the test says so.
fn held(text: &str) -> (Reply, Gate) {
    let gate = Gate::default();
    let mut reply = openai::text(text);
    // The head and nothing else, until the gate is open.
    reply.parts.insert(0, Part::Gate(gate.clone()));
    (reply, gate)
}

#[test]
fn an_open_run_is_not_the_beginning_of_another_one() {
    // In a session that is there; and in one that the first process has just made.
    for begun in [true, false] {
        let place = Sandbox::new(TAU);
        let server = Server::start([]);
        place.configure(&server);
        if begun {
            server.script([openai::text("zero")]);
            let run = place.run(&["-p", "start"]).ok();
            assert_eq!(run.err, "");
        }
        let (reply, gate) = held("first answer");
        server.script([reply, openai::text("second answer")]);
        let first = place.start(place.command(&["-c", "-p", "from the first"]));
        gate.wait_reached();
        let second = place.run(&["-c", "-p", "from the second"]).ok();
        assert!(second.err.contains("another process is at work in this session"), "{}", second.err);
        gate.open();
        let _ = first.finish().ok();

        let files = place.sessions();
        assert_eq!(files.len(), 1, "{files:?}");
        let all = records(&files[0]);
        assert_eq!(roles(&all).len(), if begun { 6 } else { 4 }, "{:?}", roles(&all));
        let asked = server.requests();
        let second =
            asked.iter().find(|request| request.users().contains(&"from the second".into())).unwrap();
        assert!(!second.users().contains(&"from the first".into()), "{:?}", second.users());

        // Nobody is at work any more: the newest branch goes on, and it is whole.
        server.script([openai::text("third answer")]);
        let third = place.run(&["-c", "-p", "from the third"]).ok();
        assert_eq!(third.err, "");
        let roles =
            server.requests().last().unwrap().roles().into_iter().map(str::to_owned).collect::<Vec<_>>();
        let talk: Vec<&str> = roles.iter().map(String::as_str).filter(|role| *role != "system").collect();
        let turns = if begun { 3 } else { 2 };
        assert_eq!(talk, ["user", "assistant"].repeat(turns)[..turns * 2 - 1], "begun: {begun}");
    }
}

/// A process that is at rest is told of, and what is whole is gone on from.
#[test]
fn a_process_at_rest_is_told_of() {
    let place = Sandbox::new(TAU);
    let server = Server::start([openai::text("zero"), openai::text("one")]);
    place.configure(&server);
    let _ = place.run(&["-p", "start"]).ok();
    let mut command = place.command(&["--mode", "rpc", "-c"]);
    let mut rpc = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = rpc.stdin.take().unwrap();
    stdin.write_all(b"{\"type\":\"get_state\"}\n").unwrap();
    let mut line = String::new();
    BufReader::new(rpc.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let run = place.run(&["-c", "-p", "more"]).ok();
    assert!(run.err.contains("another process has this session open"), "{}", run.err);
    assert_eq!(server.requests()[1].users(), ["start", "more"]);
    drop(stdin);
    assert!(rpc.wait().unwrap().success());
}
