//! What a client of RPC mode may send by mistake or in bad faith: each is answered, changes nothing, and costs little.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::io::Write;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tau_tests::program::Sandbox;
use tau_tests::server::{Reply, Server};
use tau_tests::talk::Talk;

const TAU: &str = env!("CARGO_BIN_EXE_tau");

fn place(script: impl IntoIterator<Item = Reply>) -> (Sandbox, Server) {
    Sandbox::served(TAU, script)
}

fn talk(place: &Sandbox) -> Talk {
    Talk::start(place.command(&["--mode", "rpc"]))
}

/// What a field takes.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Flag,
    List,
    Object,
}

/// Commands with fields: name, what a field takes, whether it must be there.
const FIELDS: &[(&str, &[(&str, Kind, bool)])] = &[
    (
        "prompt",
        &[
            ("message", Kind::Text, true),
            ("images", Kind::List, false),
            ("streamingBehavior", Kind::Text, false),
        ],
    ),
    ("steer", &[("message", Kind::Text, true), ("images", Kind::List, false)]),
    ("follow_up", &[("message", Kind::Text, true), ("images", Kind::List, false)]),
    ("get_entries", &[("since", Kind::Text, false)]),
    ("set_model", &[("provider", Kind::Text, true), ("modelId", Kind::Text, true)]),
    ("set_thinking_level", &[("level", Kind::Text, true)]),
    ("set_steering_mode", &[("mode", Kind::Text, true)]),
    ("set_follow_up_mode", &[("mode", Kind::Text, true)]),
    ("compact", &[("customInstructions", Kind::Text, false)]),
    ("set_auto_compaction", &[("enabled", Kind::Flag, true)]),
    ("set_auto_retry", &[("enabled", Kind::Flag, true)]),
    ("bash", &[("command", Kind::Text, true), ("excludeFromContext", Kind::Flag, false)]),
    ("new_session", &[("parentSession", Kind::Text, false)]),
    ("switch_session", &[("sessionPath", Kind::Text, true)]),
    ("fork", &[("entryId", Kind::Text, true)]),
    ("export_html", &[("outputPath", Kind::Text, false)]),
    ("set_session_name", &[("name", Kind::Text, true)]),
    (
        "navigate_tree",
        &[
            ("entryId", Kind::Text, true),
            ("summarize", Kind::Flag, false),
            ("customInstructions", Kind::Text, false),
            ("replaceInstructions", Kind::Flag, false),
            ("label", Kind::Text, false),
        ],
    ),
    ("set_label", &[("entryId", Kind::Text, true), ("label", Kind::Text, false)]),
    (
        "open_session",
        &[
            ("cwd", Kind::Text, false),
            ("sessionPath", Kind::Text, false),
            ("model", Kind::Text, false),
            ("name", Kind::Text, false),
            ("env", Kind::Object, false),
        ],
    ),
    ("close_session", &[("sessionId", Kind::Text, true)]),
];

/// A value that each required field would take.
fn good(field: &str) -> Value {
    match field {
        "mode" => json!("all"),
        "enabled" => json!(true),
        "command" => json!("touch ran"),
        _ => json!("x"),
    }
}

/// Every field of every command with everything that it does not take.
#[test]
fn a_field_of_the_wrong_type_is_named_and_nothing_happens() {
    let (place, server) = place([]);
    let mut talk = talk(&place);
    let before = talk.data("s", json!({"type": "get_state"}));
    let kinds = [
        (json!("x"), Some(Kind::Text)),
        (json!(true), Some(Kind::Flag)),
        (json!([]), Some(Kind::List)),
        (json!({}), Some(Kind::Object)),
        (json!(7), None),
        (json!(1e300), None),
        (json!([["x"]]), None),
        (json!({"x": {}}), None),
        (Value::Null, None),
    ];
    let mut tried = 0;
    for (name, fields) in FIELDS {
        for (field, kind, required) in *fields {
            for (value, own) in &kinds {
                if *own == Some(*kind) || value.is_null() && !required {
                    continue;
                }
                let mut command = json!({"type": name});
                let needed = fields.iter().filter(|(_, _, required)| *required);
                needed.for_each(|(field, ..)| command[*field] = good(field));
                command[*field] = value.clone();
                let answer = talk.ask("x", command.clone());
                let error = answer["error"].as_str().unwrap_or_else(|| panic!("{command}: {answer}"));
                assert!(error.contains(field) && answer["command"] == *name, "{command}: {error}");
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "{tried}");
    assert_eq!(talk.data("t", json!({"type": "get_state"})), before);
    assert_eq!(talk.data("l", json!({"type": "list_sessions"}))["sessions"].as_array().unwrap().len(), 1);
    let _ = talk.finish().ok();
    assert_eq!((server.requests().len(), place.sessions().len()), (0, 0));
    assert!(!place.work().join("ran").exists());
}

#[test]
fn names_and_variables_that_are_none_open_nothing() {
    let (place, _server) = place([]);
    let mut talk = talk(&place);
    for (more, part) in [
        (json!({"env": {"A=B": "x"}}), "A=B"),
        (json!({"env": {"": "x"}}), "env"),
        (json!({"env": {"A\0": "x"}}), "env"),
        (json!({"env": {"GOOD": "x", "BAD": "y\0z"}}), "BAD"),
        (json!({"name": ""}), "name"),
        (json!({"name": " \n"}), "name"),
        (json!({"cwd": "/\0"}), "cwd"),
    ] {
        let mut command = json!({"type": "open_session"});
        command.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = talk.ask("x", command);
        assert!(answer["error"].as_str().unwrap_or_default().contains(part), "{more}: {answer}");
    }
    assert_eq!(talk.data("l", json!({"type": "list_sessions"}))["sessions"].as_array().unwrap().len(), 1);
    let run = talk.finish().ok();
    assert_eq!(run.err, "");
}

/// The peak of the resident memory of a process, kB.
fn peak(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Small values take a hundred times the bytes that they are written in.
#[test]
fn a_line_of_many_small_values_costs_its_length_only() {
    let (place, _server) = place([]);
    let mut talk = talk(&place);
    let before = talk.data("s", json!({"type": "get_state"}));
    for part in ["{\"a\":0},", "[],", "0,"] {
        let values = part.repeat(20_000_000 / part.len());
        talk.send_bytes(format!("{{\"id\":1,\"type\":\"get_state\",\"x\":[{values}0]}}\n").as_bytes());
        let refused = talk.wait(&json!({"type": "response"}));
        assert_eq!((&refused["command"], &refused["success"]), (&json!("parse"), &json!(false)));
        assert!(refused["error"].as_str().unwrap().contains("too many values"), "{refused}");
    }
    assert_eq!(talk.data("t", json!({"type": "get_state"})), before);
    let most = peak(talk.id());
    println!("20 MB of small values: {most} kB");
    assert!(most < 100_000, "{most} kB");
    let _ = talk.finish().ok();
}

/// Node and shells share descriptors, and with them whether they block.
#[test]
fn input_that_does_not_block_is_waited_for() {
    let (place, _server) = place([]);
    let (reader, mut writer) = std::io::pipe().unwrap();
    rustix::fs::fcntl_setfl(&reader, rustix::fs::OFlags::NONBLOCK).unwrap();
    let mut command = place.command(&["--mode", "rpc"]);
    command.stdin(reader);
    let mut running = command.spawn().unwrap();
    drop(command);
    thread::sleep(Duration::from_millis(300));
    writer.write_all(b"{\"id\":\"late\",\"type\":\"get_state\"}\n").unwrap();
    drop(writer);
    let out = std::io::read_to_string(running.stdout.take().unwrap()).unwrap();
    assert!(running.wait().unwrap().success());
    assert!(out.contains("\"late\"") && out.lines().count() == 1, "{out}");
}
