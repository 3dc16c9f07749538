//! Settings and trust: the command `config`, what RPC clients save, who is asked about a project.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use tau_tests::program::{Run, Sandbox};
use tau_tests::server::{Server, openai};
use tau_tests::talk::Talk;
use tau_tests::terminal;

const TAU: &str = env!("CARGO_BIN_EXE_tau");

fn global(place: &Sandbox) -> String {
    fs::read_to_string(place.agent().join("settings.json")).unwrap()
}

fn json(run: Run) -> Value {
    serde_json::from_str(&run.ok().out).unwrap()
}

#[test]
fn settings_are_set_and_told() {
    let place = Sandbox::new(TAU);
    let config = |args: &[&str]| place.run(&[&["config"], args].concat());
    assert_eq!(config(&["get", "retry.maxRetries"]).ok().out, "3\n");
    assert_eq!(config(&["set", "retry.maxRetries", "5"]).ok().out, "");
    assert_eq!(config(&["get", "retry.maxRetries"]).ok().out, "5\n");
    assert_eq!(global(&place), "{\n  \"retry\": {\n    \"maxRetries\": 5\n  }\n}");
    let mode = fs::metadata(place.agent().join("settings.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let _ = config(&["set", "shellCommandPrefix", "set -e # true"]).ok();
    let _ = config(&["set", "defaultTools", "read", "ls"]).ok();
    let _ = config(&["set", "skills", "../more"]).ok();
    let _ = config(&["set", "modelThinkingLevels.a/b-1.5", "high"]).ok();
    assert_eq!(config(&["get", "shellCommandPrefix"]).ok().out, "set -e # true\n");
    let found = json(config(&["get", "modelThinkingLevels.a/b-1.5", "--json"]));
    assert_eq!(
        found,
        json!({"key": "modelThinkingLevels.a/b-1.5", "value": "high", "origin": "global", "known": true})
    );
    let all = json(config(&["list", "--json"]));
    let find =
        |name: &str| all["settings"].as_array().unwrap().iter().find(|row| row["key"] == name).cloned();
    assert_eq!(find("defaultTools").unwrap()["value"], json!(["read", "ls"]));
    assert_eq!(find("skills").unwrap()["value"], json!(["../more"]));
    assert_eq!(find("steeringMode").unwrap()["origin"], "default");
    assert_eq!(find("tuiMode"), None);
    let lines = config(&["list"]).ok().out;
    let line = lines.lines().find(|line| line.starts_with("retry.maxRetries ")).unwrap();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["retry.maxRetries", "5", "global"]);

    let _ = config(&["unset", "retry.maxRetries"]).ok();
    assert_eq!(config(&["get", "retry.maxRetries"]).ok().out, "3\n");
    assert!(!global(&place).contains("\"retry\""), "{}", global(&place));
    assert!(!place.agent().join("settings.json.lock").exists());
}

#[test]
fn wrong_settings_are_refused_with_a_reason() {
    let place = Sandbox::new(TAU);
    for (args, told) in [
        (&["set", "retry.enabled", "yes"] as &[&str], "true or false"),
        (&["set", "retry.maxRetries", "-1"], "not negative"),
        (&["set", "steeringMode", "some"], "one-at-a-time"),
        (&["set", "defaultThinkingLevel", "much"], "xhigh"),
        (&["set", "compaction.reserveTokens", "1.5"], "whole number"),
        (&["set", "httpIdleTimeoutMs", "soon"], "disabled"),
        (&["set", "retry", "5"], "object"),
        (&["set", "retry", "{\"enabled\": 1}"], "retry.enabled: must be true or false"),
        (&["set", "images", "{\"blockImages\": \"x\"}"], "images.blockImages"),
        (&["set", "retry.enabled", "true", "false"], "more than one"),
        (&["set", "--project", "httpProxy", "http://x"], "global file only"),
        (&["get", "steeringmode"], "steeringMode is one"),
        (&["get", "shellPath"], "no default"),
        (&["get", "queueMode"], "called steeringMode now"),
        (&["set", "retry.maxDelayMs", "5"], "retry.provider.maxRetryDelayMs"),
        (&["set", "retry.enabled"], "tau config set NAME"),
        (&["get", "a", "--bogus"], "--bogus"),
        (&["trust", "perhaps"], "parent"),
        (&[], "tau config list"),
    ] {
        let run = place.run(&[&["config"], args].concat()).ended_with(1);
        assert!(run.err.contains(told) && run.out.is_empty(), "{args:?}: {}", run.err);
    }
    assert!(!place.agent().join("settings.json").exists());
    // What nobody knows may belong to another program.
    let run = place.run(&["config", "set", "mine.\"a.b\"", "[1]"]).ok();
    assert!(run.err.contains("no setting is called"), "{}", run.err);
    assert_eq!(serde_json::from_str::<Value>(&global(&place)).unwrap(), json!({"mine": {"a.b": [1]}}));
    let run = place.run(&["config", "set", "retry.enabeld", "true"]).ok();
    assert!(run.err.contains("no setting is called retry.enabeld"), "{}", run.err);
    assert!(place.run(&["config", "--help"]).ok().out.contains("retry.maxRetries: a number"));
}

#[test]
fn a_file_keeps_its_comments_and_a_broken_one_everything() {
    let place = Sandbox::new(TAU);
    let text = "{\n  // mine\n  \"theme\": \"x\", // dark\n  \"retry\": {\"own\": 1},\n}\n";
    let file = place.put("agent/settings.json", text);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let _ = place.run(&["config", "set", "retry.enabled", "false"]).ok();
    assert_eq!(global(&place), text.replace("{\"own\": 1}", "{\"own\": 1, \"enabled\": false}"));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);

    for broken in [b"{\"theme\": \"x\",\n oops".to_vec(), b"[1]".to_vec(), b"{\"theme\": \"\xff\"}".to_vec()]
    {
        fs::write(&file, &broken).unwrap();
        let run = place.run(&["config", "set", "retry.enabled", "true"]).ended_with(1);
        assert!(run.err.contains("settings.json") && run.err.contains("nothing was written"), "{}", run.err);
        assert_eq!(fs::read(&file).unwrap(), broken);
    }
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let run = place.run(&["config", "set", "retry.enabled", "true"]).ended_with(1);
    assert!(run.err.contains("settings.json"), "{}", run.err);
    fs::remove_dir(&file).unwrap();
    // A link stays one.
    let real = place.put("elsewhere.json", "{}");
    std::os::unix::fs::symlink(&real, &file).unwrap();
    let _ = place.run(&["config", "set", "retry.enabled", "true"]).ok();
    assert!(fs::symlink_metadata(&file).unwrap().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().contains("true"));
}

#[test]
fn programs_that_save_at_the_same_time_lose_nothing() {
    let place = Sandbox::new(TAU);
    place.put("agent/settings.json", "{\"mine\": true}");
    let names = ["a", "b", "c", "d", "e", "f"].map(|name| format!("modelThinkingLevels.p/{name}"));
    let running: Vec<_> =
        names.iter().map(|name| place.start(place.command(&["config", "set", name, "low"]))).collect();
    for run in running {
        let _ = run.finish().ok();
    }
    let saved: Value = serde_json::from_str(&global(&place)).unwrap();
    assert_eq!((saved["modelThinkingLevels"].as_object().unwrap().len(), &saved["mine"]), (6, &json!(true)));
    let names = fs::read_dir(place.agent()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["settings.json"]);
}

#[test]
fn a_project_has_settings_of_its_own() {
    let place = Sandbox::new(TAU);
    let config = |args: &[&str]| place.run(&[&["config"], args].concat());
    let run = config(&["set", "--project", "retry.maxRetries", "7"]).ok();
    assert!(run.err.contains("config trust yes"), "{}", run.err);
    let file = place.work().join(".pi/settings.json");
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\n  \"retry\": {\n    \"maxRetries\": 7\n  }\n}");
    // Nobody decided that it counts.
    assert_eq!(config(&["get", "retry.maxRetries"]).ok().out, "3\n");
    assert_eq!(config(&["get", "retry.maxRetries", "--approve"]).ok().out, "7\n");
    let refused = config(&["set", "--project", "retry.maxRetries", "8"]).ended_with(1);
    assert!(refused.err.contains("--approve"), "{}", refused.err);
    let _ = config(&["set", "--project", "--approve", "retry.maxRetries", "8"]).ok();
    assert!(!place.agent().join("trust.json").exists(), "flags are not saved");

    assert!(config(&["trust"]).ok().out.contains("nobody decided"));
    let told = config(&["trust", "yes"]).ok().out;
    assert!(told.contains("count") && told.contains("settings.json"), "{told}");
    let work = place.work().display().to_string();
    let stored = fs::read_to_string(place.agent().join("trust.json")).unwrap();
    assert_eq!(stored, format!("{{\n  \"{work}\": true\n}}\n"));
    let found = json(config(&["get", "retry.maxRetries", "--json"]));
    assert_eq!((&found["value"], &found["origin"]), (&json!(8), &json!("project")));
    let run = config(&["set", "retry.maxRetries", "1"]).ok();
    assert!(run.err.contains("project's own"), "{}", run.err);
    assert_eq!(config(&["get", "retry.maxRetries", "--no-approve"]).ok().out, "1\n");

    let told = json(config(&["trust", "no", "--json"]));
    assert_eq!((&told["trusted"], &told["saved"]["trusted"]), (&json!(false), &json!(false)));
    let _ = config(&["trust", "parent"]).ok();
    let stored: Value =
        serde_json::from_str(&fs::read_to_string(place.agent().join("trust.json")).unwrap()).unwrap();
    assert_eq!(stored, json!({ place.root(): true }));
    fs::write(place.agent().join("trust.json"), "[]").unwrap();
    let run = config(&["trust", "yes"]).ended_with(1);
    assert!(run.err.contains("trust.json") && run.err.contains("nothing was written"), "{}", run.err);
    assert_eq!(fs::read_to_string(place.agent().join("trust.json")).unwrap(), "[]");
}

#[test]
fn what_clients_set_is_saved() {
    let (place, server) = (Sandbox::new(TAU), Server::start([]));
    place.configure(&server);
    place.put(
        "agent/settings.json",
        "{\"defaultProvider\":\"mock\",\"defaultModel\":\"m1\",\"queueMode\":\"all\",\"mine\":{\"a\":1},\
         \"retry\":{\"maxDelayMs\":5}}",
    );
    let mut talk = Talk::start(place.command(&["--mode", "rpc"]));
    assert_eq!(talk.data("0", json!({"type": "get_state"}))["steeringMode"], "all");
    for (number, command) in [
        json!({"type": "set_steering_mode", "mode": "one-at-a-time"}),
        json!({"type": "set_follow_up_mode", "mode": "all"}),
        json!({"type": "set_auto_compaction", "enabled": false}),
        json!({"type": "set_auto_retry", "enabled": false}),
        // Those of the session are not saved.
        json!({"type": "set_model", "provider": "mock", "modelId": "m2"}),
        json!({"type": "set_thinking_level", "level": "high"}),
    ]
    .into_iter()
    .enumerate()
    {
        let response = talk.ask(&number.to_string(), command);
        assert_eq!(response["success"], true, "{response}");
    }
    let saved: Value = serde_json::from_str(&global(&place)).unwrap();
    assert_eq!(
        saved,
        json!({
            "defaultProvider": "mock", "defaultModel": "m1", "mine": {"a": 1}, "steeringMode": "one-at-a-time",
            "followUpMode": "all", "compaction": {"enabled": false},
            "retry": {"enabled": false, "provider": {"maxRetryDelayMs": 5}},
        })
    );
    // What cannot be saved is told, and followed all the same.
    place.put("agent/settings.json", "{oops");
    assert_eq!(
        talk.ask("x", json!({"type": "set_follow_up_mode", "mode": "one-at-a-time"}))["success"],
        true
    );
    assert_eq!(talk.data("y", json!({"type": "get_state"}))["followUpMode"], "one-at-a-time");
    let run = talk.finish().ok();
    assert!(run.err.contains("followUpMode") && run.err.contains("settings.json"), "{}", run.err);
    assert_eq!(global(&place), "{oops");
}

#[test]
fn a_person_is_asked_about_a_project() {
    // What is typed, whether the project's settings count, what is stored about which folder.
    for (typed, counts, stored) in [
        ("y\n", true, Some(("work", true))),
        ("huh\np\n", true, Some(("", true))),
        ("o\n", true, None),
        ("n\n", false, Some(("work", false))),
        ("\n", false, None),
        ("\u{4}", false, None),
    ] {
        let (place, server) =
            (Sandbox::new(TAU), Server::start([openai::text("done"), openai::text("done")]));
        place.configure(&server);
        place.put("work/.pi/settings.json", "{\"defaultModel\": \"m2\"}");
        let run = terminal::run(place.command(&["-p", "x"]), typed).ok();
        assert!(run.err.contains(".pi/settings.json") && run.err.contains("only this time"), "{}", run.err);
        let model = if counts { "m2" } else { "m1" };
        assert_eq!(server.requests()[0].body["model"], model, "{typed:?}");
        let trust = fs::read_to_string(place.agent().join("trust.json")).ok();
        let wanted = stored.map(|(folder, decision)| {
            let folder = [place.root(), folder.to_owned()].join("/");
            format!("{{\n  \"{}\": {decision}\n}}\n", folder.trim_end_matches('/'))
        });
        assert_eq!(trust, wanted, "{typed:?}");
        // What is stored is not asked again.
        if stored.is_some() {
            let run = terminal::run(place.command(&["-p", "x"]), "").ok();
            assert_eq!(server.requests()[1].body["model"], model, "{typed:?}");
            assert!(!run.err.contains("only this time"), "{}", run.err);
        }
    }
}

#[test]
fn nobody_is_asked_where_nobody_can_answer() {
    let (place, server) = (Sandbox::new(TAU), Server::start([openai::text("done"), openai::text("done")]));
    place.configure(&server);
    place.put("work/.pi/settings.json", "{\"defaultModel\": \"m2\"}");
    let run = place.run(&["-p", "x"]).ok();
    assert!(run.err.contains("--approve") && !run.err.contains("only this time"), "{}", run.err);
    let run = terminal::run(place.command(&["--mode", "json", "x"]), "y\n").ok();
    assert!(run.err.contains("--approve") && !run.err.contains("only this time"), "{}", run.err);
    let models: Vec<Value> = server.requests().iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(models, ["m1", "m1"]);
    assert!(!place.agent().join("trust.json").exists());
}

/// Skills beside the project need a decision too, and a person can make it.
#[test]
fn a_person_is_asked_about_shared_skills() {
    let (place, server) = (Sandbox::new(TAU), Server::start([openai::text("done")]));
    place.configure(&server);
    place.put(
        "work/.agents/skills/one/SKILL.md",
        "---\nname: one\ndescription: The first skill.\n---\nDo it.\n",
    );
    let run = terminal::run(place.command(&["-p", "x"]), "o\n").ok();
    assert!(run.err.contains(".agents/skills"), "{}", run.err);
    assert!(server.requests()[0].body.to_string().contains("The first skill."));
}
