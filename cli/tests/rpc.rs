//! RPC mode beside the recorded talks: back-pressure, wrong input, changes of the session.

use std::fs;
use std::io::{Read, Write};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tau_tests::program::{Sandbox, records, roles};
use tau_tests::server::{Gate, Part, Reply, Server, openai};
use tau_tests::talk::Talk;

const TAU: &str = env!("CARGO_BIN_EXE_tau");

fn place(script: impl IntoIterator<Item = Reply>) -> (Sandbox, Server) {
    Sandbox::served(TAU, script)
}

fn talk(place: &Sandbox) -> Talk {
    Talk::start(place.command(&["--mode", "rpc"]))
}

fn settled(talk: &mut Talk) {
    let _ = talk.wait(&json!({"type": "agent_settled"}));
}

#[test]
fn a_second_prompt_is_refused_whenever_it_comes() {
    // The answer does not come to its end by itself.
    let (place, server) = place([openai::stalled("one")]);
    let mut talk = talk(&place);
    // Both are there before the first is followed.
    let prompt = |id: &str| json!({"id": id, "type": "prompt", "message": id});
    talk.send_bytes(format!("{}\n{}\n", prompt("a"), prompt("b")).as_bytes());
    assert_eq!(talk.wait(&json!({"id": "a"}))["success"], true);
    let refused = talk.wait(&json!({"id": "b"}));
    assert!(refused["error"].as_str().unwrap().contains("streamingBehavior"), "{refused}");
    server.wait(1);
    let _ = talk.data("e", json!({"type": "abort"}));
    assert_eq!(talk.data("s", json!({"type": "get_state"}))["isStreaming"], false);
    let _ = talk.finish().ok();
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn wrong_fields_are_told_and_change_nothing() {
    let (place, server) = place([]);
    let mut talk = talk(&place);
    let before = talk.data("s", json!({"type": "get_state"}));
    for (number, (wrong, part)) in [
        (json!({"type": "prompt", "message": 7}), "message"),
        (json!({"type": "prompt", "message": "x", "images": "y"}), "images"),
        (json!({"type": "prompt", "message": "x", "images": [{}]}), "images[0]"),
        (
            json!({"type": "prompt", "message": "x", "images": [{"data": "%", "mimeType": "image/png"}]}),
            "image",
        ),
        (json!({"type": "prompt", "message": "x", "streamingBehavior": "later"}), "later"),
        (json!({"type": "set_steering_mode", "mode": "some"}), "some"),
        (json!({"type": "set_follow_up_mode"}), "mode"),
        (json!({"type": "set_thinking_level", "level": 3}), "level"),
        (json!({"type": "set_session_name", "name": "  "}), "name"),
        (json!({"type": "get_entries", "since": {}}), "since"),
        (json!({"type": "switch_session"}), "sessionPath"),
        (json!({"type": "new_session", "parentSession": []}), "parentSession"),
        (json!({"type": "no_such_thing"}), "no_such_thing"),
    ]
    .into_iter()
    .enumerate()
    {
        let response = talk.ask(&number.to_string(), wrong);
        assert_eq!(response["success"], false, "{response}");
        assert!(response["error"].as_str().unwrap().contains(part), "{response}");
    }
    talk.send_bytes(b"null\n\xff\xfe\n{\"type\":\"get_state\"\n[[[[\n");
    for command in [Value::Null, json!("parse"), json!("parse"), json!("parse")] {
        let response = talk.wait(&json!({"type": "response"}));
        assert_eq!((&response["command"], &response["success"]), (&command, &json!(false)));
    }
    assert_eq!(talk.data("e", json!({"type": "get_state"})), before);
    let _ = talk.finish().ok();
    assert_eq!((server.requests().len(), place.sessions().len()), (0, 0));
}

#[test]
fn commands_of_prompts_are_listed_with_their_origin() {
    let (place, _server) = place([]);
    let _ = place.put("agent/prompts/fix.md", "---\ndescription: Fixes things\n---\nFix $1");
    let skill = "---\nname: deploy\ndescription: Deploys\ndisable-model-invocation: true\n---\nBODY";
    let _ = place.put("agent/skills/deploy/SKILL.md", skill);
    let extra = place.put("extra/more.md", "First line\nsecond");
    let extra = extra.to_str().unwrap();
    let mut talk = Talk::start(place.command(&["--mode", "rpc", "--prompt-template", extra]));
    let list = talk.data("c", json!({"type": "get_commands"}));
    let agent = place.agent();
    let path = |rest: &str| agent.join(rest).display().to_string();
    let info = |path: &str, source: &str, scope: &str, base: &str| json!({"path": path, "source": source, "scope": scope, "origin": "top-level", "baseDir": base});
    let own = place.agent().display().to_string();
    assert_eq!(
        list["commands"],
        json!([
            {"name": "fix", "description": "Fixes things", "source": "prompt",
             "sourceInfo": info(&path("prompts/fix.md"), "auto", "user", &own)},
            {"name": "more", "description": "First line", "source": "prompt",
             "sourceInfo": info(extra, "local", "temporary", extra.rsplit_once('/').unwrap().0)},
            {"name": "skill:deploy", "description": "Deploys", "source": "skill",
             "sourceInfo": info(&path("skills/deploy/SKILL.md"), "auto", "user", &own)},
        ])
    );
    let _ = talk.finish().ok();
    let mut talk = Talk::start(place.command(&["--mode", "rpc", "--no-skills", "--no-prompt-templates"]));
    assert_eq!(talk.data("c", json!({"type": "get_commands"})), json!({"commands": []}));
    let _ = talk.finish().ok();
}

#[test]
fn a_deeply_nested_record_is_an_error() {
    let (place, _server) = place([]);
    let mut talk = talk(&place);
    talk.send_bytes(format!("{}\n", "[".repeat(1_000_000)).as_bytes());
    assert_eq!(talk.wait(&json!({"type": "response"}))["command"], "parse");
    let _ = talk.data("s", json!({"type": "get_state"}));
    let _ = talk.finish().ok();
}

#[test]
fn sessions_change_while_the_process_stays() {
    let (place, server) = place([openai::text("one"), openai::text("two"), openai::text("three")]);
    let mut talk = talk(&place);
    let _ = talk.data("m", json!({"type": "set_model", "provider": "mock", "modelId": "m2"}));
    let _ = talk.data("1", json!({"type": "prompt", "message": "first"}));
    settled(&mut talk);
    let first = talk.data("s", json!({"type": "get_state"}))["sessionFile"].clone();
    assert_eq!(talk.data("n", json!({"type": "new_session"})), json!({"cancelled": false}));
    let state = talk.data("s2", json!({"type": "get_state"}));
    assert_eq!((&state["model"]["id"], &state["messageCount"]), (&json!("m2"), &json!(0)));
    let _ = talk.data("2", json!({"type": "prompt", "message": "second"}));
    settled(&mut talk);
    let _ = talk.data("w", json!({"type": "switch_session", "sessionPath": first}));
    let _ = talk.data("3", json!({"type": "prompt", "message": "third"}));
    settled(&mut talk);
    assert_eq!(talk.data("t", json!({"type": "get_last_assistant_text"})), json!({"text": "three"}));
    let _ = talk.finish().ok();
    assert_eq!(server.requests()[1].users(), ["second"]);
    assert_eq!(server.requests()[2].users(), ["first", "third"]);
    let stored = records(std::path::Path::new(first.as_str().unwrap()));
    assert_eq!(roles(&stored), ["user", "assistant", "user", "assistant"]);
    assert_eq!(place.sessions().len(), 2);
}

#[test]
fn a_session_of_another_folder_brings_its_folder() {
    let (place, server) =
        place([openai::text("there"), openai::calls(&[("c", "bash", json!({"command": "pwd"}))])]);
    let other = place.put("work/other/AGENTS.md", "rule of the other folder").parent().unwrap().to_path_buf();
    let mut command = place.command(&["-p", "x"]);
    command.current_dir(&other);
    let _ = place.start(command).finish().ok();
    let path = place.sessions()[0].display().to_string();
    let mut talk = talk(&place);
    let _ = talk.data("w", json!({"type": "switch_session", "sessionPath": path}));
    server.script([openai::text("done")]);
    let _ = talk.data("p", json!({"type": "prompt", "message": "where"}));
    settled(&mut talk);
    let _ = talk.finish().ok();
    let results = server.requests()[2].texts("tool");
    assert_eq!(results, [format!("{}\n", other.display())]);
    assert!(server.requests()[1].body.to_string().contains("rule of the other folder"));
}

#[test]
fn tools_know_the_model_of_the_moment() {
    let ask = || openai::calls(&[("c", "bash", json!({"command": "echo $PI_MODEL $PI_REASONING_LEVEL"}))]);
    let (place, server) = place([ask(), openai::text("done")]);
    let mut talk = talk(&place);
    let _ = talk.data("m", json!({"type": "set_model", "provider": "mock", "modelId": "m2"}));
    let _ = talk.data("l", json!({"type": "set_thinking_level", "level": "high"}));
    let _ = talk.data("p", json!({"type": "prompt", "message": "x"}));
    settled(&mut talk);
    let _ = talk.finish().ok();
    assert_eq!(server.requests()[1].texts("tool"), ["m2 high\n"]);
}

#[test]
fn the_level_of_a_model_goes_with_it_in_one_step() {
    let (place, _server) = place([]);
    place.settings(&json!({"modelThinkingLevels": {"mock/m2": "high"}}));
    let mut talk = talk(&place);
    let _ = talk.data("m", json!({"type": "set_model", "provider": "mock", "modelId": "m2"}));
    let entries = talk.data("e", json!({"type": "get_entries"}));
    let levels: Vec<&Value> = entries["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry.get("thinkingLevel"))
        .collect();
    assert_eq!(levels, ["off", "high"]);
    let run = talk.finish().ok();
    let changes = run.events().into_iter().filter(|event| event["type"] == "thinking_level_changed").count();
    assert_eq!(changes, 1);
}

#[test]
fn all_entries_of_a_long_session_are_given() {
    let (place, _server) = place((0..3).map(|n| openai::text(&format!("answer {n}"))));
    let _ = place.run(&["-p", "one"]).ok();
    let _ = place.run(&["-p", "-c", "two"]).ok();
    let stored = place.session();
    let mut talk = Talk::start(place.command(&["--mode", "rpc", "-c"]));
    let given = talk.data("e", json!({"type": "get_entries"}));
    assert_eq!(given["entries"], json!(stored[1..]));
    assert_eq!(given["leafId"], stored.last().unwrap()["id"]);
    // One chain: each entry is the only child of the one before.
    let tree = talk.data("t", json!({"type": "get_tree"}));
    let mut level = &tree["tree"];
    for entry in &stored[1..] {
        assert_eq!((level.as_array().map(Vec::len), &level[0]["entry"]), (Some(1), entry));
        level = &level[0]["children"];
    }
    assert_eq!(*level, json!([]));
    let _ = talk.finish().ok();
}

/// A client that reads nothing: output beyond the pipe's size.
fn flood() -> Reply {
    let text = "x".repeat(2000);
    openai::texts(&vec![text.as_str(); 200])
}

#[test]
fn a_client_that_does_not_read_stops_the_run_and_nothing_is_lost() {
    let (place, server) = place([flood()]);
    let mut child = place.command(&["--mode", "rpc"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{}", json!({"type": "prompt", "message": "x"})).unwrap();
    server.wait(1);
    thread::sleep(Duration::from_millis(300));
    let mut out = String::new();
    let mut stdout = child.stdout.take().unwrap();
    let reader = thread::spawn(move || stdout.read_to_string(&mut out).map(|_| out).unwrap_or_default());
    let end = Instant::now() + Duration::from_secs(20);
    // Header, model, level, system, user, answer.
    let stored =
        || place.sessions().first().and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
    while stored().matches('\n').count() < 6 {
        assert!(Instant::now() < end, "the answer was not stored");
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(roles(&place.session()), ["user", "assistant"]);
    drop(stdin);
    let out = reader.join().unwrap();
    assert!(child.wait().unwrap().success());
    let events: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let deltas = events.iter().filter_map(|event| event["assistantMessageEvent"]["delta"].as_str());
    assert_eq!(deltas.map(str::len).sum::<usize>(), 400_000);
}

#[test]
fn a_signal_ends_a_program_whose_client_does_not_read() {
    let (place, server) = place([flood()]);
    let mut child = place.command(&["--mode", "rpc"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{}", json!({"type": "prompt", "message": "x"})).unwrap();
    server.wait(1);
    thread::sleep(Duration::from_millis(300));
    let begun = Instant::now();
    let _ = std::process::Command::new("kill").arg("-15").arg(child.id().to_string()).status();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert!(begun.elapsed() < Duration::from_millis(3800), "{:?}", begun.elapsed());
    assert_eq!(roles(&place.session())[..1], ["user"]);
}

#[test]
fn a_client_that_goes_away_ends_the_program() {
    let gate = Gate::default();
    let (place, server) = place([Reply::stream(vec![
        Part::Gate(gate.clone()),
        Part::Bytes(b"data: {}\n\n".to_vec()),
        Part::Stall,
    ])]);
    let mut child = place.command(&["--mode", "rpc"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{}", json!({"type": "prompt", "message": "x"})).unwrap();
    server.wait(1);
    gate.wait_reached();
    drop(child.stdout.take());
    // Another test that starts a program at this moment may hold the pipe a little longer.
    let end = Instant::now() + Duration::from_secs(20);
    let status = loop {
        let _ = stdin.write_all(b"{\"type\":\"get_state\"}\n");
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => thread::sleep(Duration::from_millis(20)),
        }
        assert!(Instant::now() < end, "the program goes on");
    };
    assert_eq!(status.code(), Some(1));
    assert_eq!(roles(&place.session()), ["user", "assistant"]);
}

#[test]
fn a_fork_goes_on_from_an_earlier_message() {
    let (place, server) = place((0..5).map(|n| openai::text(&format!("answer {n}"))));
    let mut talk = talk(&place);
    for message in ["one", "two"] {
        let _ = talk.data(message, json!({"type": "prompt", "message": message}));
        settled(&mut talk);
    }
    let source = fs::read(&place.sessions()[0]).unwrap();
    let messages = talk.data("m", json!({"type": "get_fork_messages"}))["messages"].clone();
    let fork = json!({"type": "fork", "entryId": messages[1]["entryId"]});
    assert_eq!(talk.data("f", fork), json!({"text": "two", "cancelled": false}));
    // The copy is stored when the response comes, and can be looked at.
    let entries = talk.data("e", json!({"type": "get_entries"}));
    assert_eq!(roles(entries["entries"].as_array().unwrap()), ["user", "assistant"]);
    let _ = talk.data("p", json!({"type": "prompt", "message": "other"}));
    settled(&mut talk);
    let _ = talk.data("c", json!({"type": "clone"}));
    assert_eq!(talk.data("s", json!({"type": "get_session_stats"}))["userMessages"], 2);
    // A fork before the first message is stored with its next message only.
    let first = talk.data("m2", json!({"type": "get_fork_messages"}))["messages"][0]["entryId"].clone();
    let _ = talk.data("f2", json!({"type": "fork", "entryId": first}));
    assert_eq!(place.sessions().len(), 3);
    let entries = talk.data("e2", json!({"type": "get_entries"}));
    assert!(entries["entries"].as_array().unwrap().iter().all(Value::is_object), "{entries}");
    let _ = talk.data("p2", json!({"type": "prompt", "message": "anew"}));
    settled(&mut talk);
    let _ = talk.finish().ok();
    assert_eq!(server.requests()[2].users(), ["one", "other"]);
    assert_eq!(server.requests()[3].users(), ["anew"]);
    let files = place.sessions();
    assert_eq!((files.len(), fs::read(&files[0]).unwrap()), (4, source));
    for file in &files {
        let ids: Vec<Value> = records(file)[1..].iter().map(|entry| entry["id"].clone()).collect();
        let parents: Vec<Value> = records(file)[1..].iter().map(|entry| entry["parentId"].clone()).collect();
        assert_eq!(parents[1..], ids[..ids.len() - 1]);
    }
}

#[test]
fn an_abort_is_answered_before_the_next_run_begins() {
    let rounds = 12;
    let (place, _server) = place((0..=rounds).map(|_| openai::stalled("and now")));
    let mut talk = talk(&place);
    let _ = talk.data("p", json!({"type": "prompt", "message": "x"}));
    for round in 0..rounds {
        let _ = talk.wait(&json!({"type": "message_update"}));
        talk.send(&json!({"id": format!("a{round}"), "type": "abort"}));
        // The next prompt comes as soon as the run can be over.
        let begun = (0..).find(|try_| {
            let prompt = json!({"type": "prompt", "message": format!("{round} {try_}")});
            talk.ask(&format!("p{round}-{try_}"), prompt)["success"] == true
        });
        assert!(begun.is_some());
    }
    talk.send(&json!({"id": "last", "type": "abort"}));
    let run = talk.finish().ok();
    // Each of them, before the first event of the run behind it.
    let mut open = 0;
    for record in run.events() {
        match (record["type"].as_str(), record["command"].as_str(), record["success"] == true) {
            (Some("response"), Some("abort"), _) => open -= 1,
            (Some("agent_settled"), ..) => open += 1,
            (Some("response"), Some("prompt"), true) => assert_eq!(open, 0, "{record}"),
            _ => {}
        }
    }
}

#[test]
fn a_reason_is_short_whatever_is_wrong() {
    let (place, _server) = place([]);
    let mut talk = talk(&place);
    let long = "ä".repeat(500_000);
    for command in [
        json!({"type": "switch_session", "sessionPath": long}),
        json!({"type": "set_steering_mode", "mode": long}),
        json!({"type": "set_model", "provider": long, "modelId": long}),
        json!({"type": "fork", "entryId": long}),
        json!({"type": "open_session", "cwd": "/", "model": long}),
        json!({"type": "open_session", "cwd": "/", "model": format!("x{}", ":off".repeat(200_000))}),
        json!({"type": "get_state", "sessionId": long}),
    ] {
        let kind = command["type"].clone();
        let begun = Instant::now();
        let answer = talk.ask("x", command);
        let error = answer["error"].as_str().unwrap();
        assert!(error.len() < 20_000 && !error.is_empty(), "{kind}: {} bytes", error.len());
        // Nobody is kept waiting by it either.
        assert!(begun.elapsed() < Duration::from_secs(5), "{kind}: {:?}", begun.elapsed());
    }
    let _ = talk.finish().ok();
}
