//! A run that is recorded, and run again from its record.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use tau_tests::program::Sandbox;
use tau_tests::server::{Server, openai};
use tau_tests::talk::Talk;

const TAU: &str = env!("CARGO_BIN_EXE_tau");
const SECRET: &str = "sk-recorded-secret-0123456789";

fn place() -> Sandbox {
    let script = [
        openai::calls(&[
            ("c1", "read", json!({"path": "a.txt"})),
            ("c2", "bash", json!({"command": "echo out; exit 3"})),
        ]),
        openai::calls(&[(
            "c3",
            "edit",
            json!({"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}]}),
        )]),
        openai::text("done"),
        openai::text("once more"),
    ];
    let (place, server) = (Sandbox::new(TAU), Server::start(script));
    place.configure(&server);
    let path = place.agent().join("models.json");
    let models = fs::read_to_string(&path).unwrap();
    let mut models: Value = serde_json::from_str(&models).unwrap();
    let providers = models["providers"].as_object_mut().unwrap();
    providers.values_mut().for_each(|provider| provider["apiKey"] = json!(SECRET));
    fs::write(path, models.to_string()).unwrap();
    fs::write(place.work().join("a.txt"), "one\n").unwrap();
    // The record needs no server: it answers nothing more when this is dropped.
    std::mem::forget(server);
    place
}

#[test]
fn everything_is_as_it_was() {
    let place = place();
    let record = place.work().join("run.tau");
    let record = record.to_str().unwrap();
    let run = place.run(&["--mode", "json", "--record", record, "work"]).ok();
    let text = fs::read_to_string(record).unwrap();
    assert!(!text.contains(SECRET) && text.contains("***"), "{text}");
    assert_eq!(fs::metadata(record).unwrap().permissions().mode() & 0o777, 0o600);
    // What it changed is changed already; nothing of it matters.
    fs::remove_file(place.work().join("a.txt")).unwrap();
    let sessions: Vec<_> = place.sessions().iter().map(|file| fs::read(file).unwrap()).collect();
    let again = place.run(&["replay", record]).ok();
    let events = |out: &str| out.lines().skip_while(|line| line.contains("\"type\":\"session\"")).count();
    assert_eq!(events(&again.out), events(&run.out));
    assert!(again.err.contains("as it was"), "{}", again.err);
    assert!(!place.work().join("a.txt").exists());
    assert_eq!(place.sessions().iter().map(|file| fs::read(file).unwrap()).collect::<Vec<_>>(), sessions);
    let quiet = place.run(&["replay", record, "--verify"]).ok();
    assert_eq!(quiet.out, "");
    // It is not written over.
    let refused = place.run(&["-p", "--record", record, "more"]).ended_with(1);
    assert!(refused.err.contains("exists already"), "{}", refused.err);
    assert_eq!(fs::read_to_string(record).unwrap(), text);
}

#[test]
fn the_first_difference_is_told() {
    let place = place();
    let record = place.work().join("run.tau");
    let path = record.to_str().unwrap();
    let _ = place.run(&["-p", "--record", path, "work"]).ok();
    let text = fs::read_to_string(&record).unwrap();
    fs::write(&record, text.replace("\"code\":3", "\"code\":4")).unwrap();
    let run = place.run(&["replay", path, "--verify"]).ended_with(1);
    assert!(run.err.contains("output") && run.err.contains("exit"), "{}", run.err);
    // What was cut off when the program died does no harm.
    fs::write(&record, &text[..text.len() - 20]).unwrap();
    let _ = place.run(&["replay", path, "--verify"]).ok();
    for (broken, part) in [
        ("", "empty"),
        ("{}\n", "line 1"),
        ("{\"tau\":99,\"m\":0,\"w\":0,\"boot\":{}}\n", "seed"),
        ("x\n", "JSON"),
    ] {
        fs::write(&record, broken).unwrap();
        let run = place.run(&["replay", path]).ended_with(2);
        assert!(run.err.contains(part), "{broken}: {}", run.err);
    }
    assert!(place.run(&["replay", "none"]).ended_with(2).err.contains("none"));
}

#[test]
fn the_machine_can_be_looked_at_in_between() {
    let place = place();
    let record = place.work().join("run.tau");
    let path = record.to_str().unwrap();
    let _ = place.run(&["-p", "--record", path, "work"]).ok();
    let text = fs::read_to_string(&record).unwrap();
    let is_record =
        |line: &&str| ["{\"tau\"", "{\"m\"", "{\"out\"", "{\"env\""].iter().any(|p| line.starts_with(p));
    let mut records = text.lines().filter(is_record);
    let line = records.position(|line| line.contains("\"in\":\"head\"")).unwrap() + 1;
    let run = place.run(&["replay", path, "--until", &line.to_string()]).ok();
    let shown: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(shown["isStreaming"], true);
    assert_eq!(shown["messages"].as_array().unwrap().last().unwrap()["role"], "user");
    let whole = place.run(&["replay", path, "--until", "100000"]).ok();
    let shown: Value = serde_json::from_str(&whole.out).unwrap();
    assert_eq!((&shown["isIdle"], &shown["openOps"]), (&json!(true), &json!(0)));
}

#[test]
fn a_resumed_session_and_a_changed_one_are_recorded_too() {
    let place = place();
    let _ = place.run(&["-p", "work"]).ok();
    let record = place.work().join("rpc.tau");
    let path = record.to_str().unwrap();
    let mut talk = Talk::start(place.command(&["--mode", "rpc", "-c", "--record", path]));
    let _ = talk.ask("t", json!({"type": "set_thinking_level", "level": "high"}));
    let _ = talk.ask("p", json!({"type": "prompt", "message": "again"}));
    let _ = talk.wait(&json!({"type": "agent_settled"}));
    let _ = talk.ask("b", json!({"type": "bash", "command": "echo hi"}));
    let _ = talk.ask("n", json!({"type": "new_session"}));
    let _ = talk.ask("s", json!({"type": "set_session_name", "name": "new one"}));
    let _ = talk.finish().ok();
    let run = place.run(&["replay", path, "--verify"]).ok();
    assert!(run.err.contains("as it was"), "{}", run.err);
}

#[test]
fn what_is_large_can_be_kept_apart() {
    let place = place();
    let long = "a line of the file\n".repeat(400);
    fs::write(place.work().join("a.txt"), format!("one\n{long}")).unwrap();
    let (record, folder) = (place.work().join("run.tau"), place.work().join("bodies"));
    let (path, bodies) = (record.to_str().unwrap(), folder.to_str().unwrap());
    let _ = place.run(&["-p", "--record", path, "--record-bodies", bodies, "work"]).ok();
    let text = fs::read_to_string(&record).unwrap();
    assert!(!text.contains("a line of the file") && text.contains("\"body\":\""), "{text}");
    let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(!names.is_empty() && names.iter().all(|name| name.extension().is_none()), "{names:?}");
    for name in &names {
        assert_eq!(fs::metadata(name).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!fs::read_to_string(name).unwrap().contains(SECRET));
    }
    let whole = place.run(&["replay", path, "--verify", "--bodies", bodies]).ok();
    assert!(whole.err.contains("as it was"), "{}", whole.err);

    // Without them, or with another one, it is told which one is missing.
    let missing = place.run(&["replay", path, "--verify"]).ended_with(2);
    assert!(missing.err.contains("kept apart and was not found"), "{}", missing.err);
    let large = names.iter().find(|name| fs::read_to_string(name).unwrap().contains("a line of the file"));
    fs::write(large.unwrap(), "something else").unwrap();
    let changed = place.run(&["replay", path, "--verify", "--bodies", bodies]).ended_with(2);
    assert!(changed.err.contains("was changed"), "{}", changed.err);
    let alone = place.run(&["-p", "--record-bodies", bodies, "work"]).ended_with(1);
    assert!(alone.err.contains("needs --record"), "{}", alone.err);
}
