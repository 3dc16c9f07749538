//! `tau acp` as an editor sees it. Everything it says must have the shape that the protocol demands.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;

use serde_json::{Value, json};
use tau_tests::editor::{Editor, checked, of_kind, text_of};
use tau_tests::server::{Reply, openai};

const TAU: &str = env!("CARGO_BIN_EXE_tau");

fn editor(script: impl IntoIterator<Item = Reply>) -> Editor {
    Editor::new(TAU, script)
}

#[test]
fn a_turn_is_told_and_answered() {
    let mut editor = editor([openai::text("hello from the agent")]);
    let hello = editor.result("initialize", json!({"protocolVersion": 9}));
    assert_eq!(hello["protocolVersion"], 1);
    let id = editor.session();
    let request = editor.prompt(&id, "hi");
    let answer = editor.talk.wait(&json!({"id": request}));
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    let list = editor.result("session/list", json!({}));
    assert_eq!(list["sessions"][0]["sessionId"], id.as_str());
    assert_eq!(list["sessions"][0]["title"], "hi");
    let updates = editor.finish();
    assert_eq!(text_of(&updates, "agent_message_chunk"), "hello from the agent");
    assert_eq!(of_kind(&updates, "available_commands_update").len(), 1);
}

#[test]
fn what_is_asked_is_not_done_before_it_is_allowed() {
    let write = |id: &str, path: &str| openai::calls(&[(id, "write", json!({"path": path, "content": "x"}))]);
    let script = [write("c1", "a.txt"), write("c2", "b.txt"), write("c3", "c.txt"), openai::text("done")];
    let mut editor = editor(script);
    let id = editor.session();
    let request = editor.prompt(&id, "write");
    let file = |editor: &Editor, name: &str| editor.place.work().join(name).exists();
    for (name, option, exists) in [("a.txt", "reject", false), ("b.txt", "always", true)] {
        let asked = editor.talk.wait(&json!({"method": "session/request_permission"}));
        assert!(!file(&editor, name));
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        editor.talk.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": outcome}));
        let call = &asked["params"]["toolCall"]["toolCallId"];
        let status = if exists { "completed" } else { "failed" };
        let _ = editor.talk.wait(&json!({"method": "session/update",
            "params": {"update": {"toolCallId": call, "status": status}}}));
        assert_eq!(file(&editor, name), exists, "{name}");
    }
    // The third one was allowed with the second.
    assert_eq!(editor.talk.wait(&json!({"id": request}))["result"]["stopReason"], "end_turn");
    assert!(file(&editor, "c.txt"));
    assert_eq!(editor.server.requests().len(), 4);
    let updates = editor.finish();
    let diff = of_kind(&updates, "tool_call_update").into_iter().find(|u| u["content"][0]["type"] == "diff");
    assert_eq!(diff.unwrap()["content"][0]["newText"], "x");
}

#[test]
fn outside_of_the_workspace_even_reading_is_asked_about() {
    let read = openai::calls(&[("c1", "read", json!({"path": "link/secret.txt"}))]);
    let mut editor = editor([read, openai::text("done")]);
    let outside = editor.place.agent().join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("secret.txt"), "s").unwrap();
    std::os::unix::fs::symlink(&outside, editor.place.work().join("link")).unwrap();
    let id = editor.session();
    let request = editor.prompt(&id, "read");
    let asked = editor.talk.wait(&json!({"method": "session/request_permission"}));
    editor.talk.send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": id}}));
    assert_eq!(editor.talk.wait(&json!({"id": request}))["result"]["stopReason"], "cancelled");
    // An answer that comes too late does no harm.
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow"}});
    editor.talk.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": outcome}));
    assert_eq!(editor.server.requests().len(), 1);
    drop(editor.finish());
}

#[test]
fn choices_count_and_wrong_ones_change_nothing() {
    let mut editor = editor([openai::text("ok")]);
    let id = editor.session();
    let of = |more: Value| {
        let mut params = json!({"sessionId": id});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    assert_eq!(editor.code("session/set_mode", of(json!({"modeId": "none"}))), -32_602);
    assert_eq!(editor.call("session/set_mode", of(json!({"modeId": "auto"})))["result"], json!({}));
    assert_eq!(editor.code("session/set_config_option", of(json!({"configId": "x", "value": "y"}))), -32_602);
    let wrong = of(json!({"configId": "model", "value": "x/y"}));
    assert_eq!(editor.code("session/set_config_option", wrong), -32_602);
    let models = editor.call("session/new", json!({"cwd": editor.cwd(), "mcpServers": []}));
    let value = models["result"]["configOptions"][1]["options"][0]["value"].clone();
    let choice = of(json!({"configId": "model", "value": value}));
    assert_eq!(editor.result("session/set_config_option", choice)["configOptions"][1]["currentValue"], value);
    for (method, params, code) in [
        ("session/new", json!({"cwd": "rel"}), -32_602),
        ("session/new", json!({"cwd": "/no/such/folder"}), -32_602),
        ("session/load", json!({"cwd": editor.cwd(), "sessionId": "none"}), -32_002),
        ("session/prompt", json!({"sessionId": "none", "prompt": []}), -32_002),
        ("session/close", json!({"sessionId": "none"}), -32_002),
        ("session/fly", json!({}), -32_601),
        ("authenticate", json!({"methodId": "x"}), -32_602),
    ] {
        assert_eq!(editor.code(method, params), code, "{method}");
    }
    assert_eq!(editor.call("session/close", of(json!({})))["result"], json!({}));
    assert_eq!(editor.code("session/prompt", of(json!({"prompt": []}))), -32_002);
    drop(editor.finish());
}

#[test]
fn a_stored_session_is_told_again() {
    let mut editor = editor([openai::text("first answer"), openai::text("second")]);
    let id = editor.session();
    let request = editor.prompt(&id, "remember this");
    let _ = editor.talk.wait(&json!({"id": request}));
    let params = json!({"sessionId": id, "cwd": editor.cwd(), "mcpServers": []});
    // Loading what is open already opens it anew.
    drop(editor.result("session/load", params));
    let request = editor.prompt(&id, "and now");
    let _ = editor.talk.wait(&json!({"id": request}));
    assert_eq!(editor.server.requests()[1].users(), ["remember this", "and now"]);
    let updates = editor.finish();
    assert_eq!(text_of(&updates, "user_message_chunk"), "remember this");
    assert_eq!(text_of(&updates, "agent_message_chunk"), "first answerfirst answersecond");
}

#[test]
fn a_mode_is_an_option_too_and_both_tell_the_same() {
    let write = openai::calls(&[("c1", "write", json!({"path": "a.txt", "content": "x"}))]);
    let mut editor = editor([write, openai::text("done")]);
    let cwd = editor.cwd();
    let session = editor.result("session/new", json!({"cwd": cwd, "mcpServers": []}));
    let id = session["sessionId"].as_str().unwrap().to_owned();
    let option = &session["configOptions"][0];
    assert_eq!((&option["id"], &option["category"]), (&json!("mode"), &json!("mode")));
    let of = |list: &Value, name: &str| -> Vec<Value> {
        list.as_array().unwrap().iter().map(|entry| entry[name].clone()).collect()
    };
    assert_eq!(of(&option["options"], "value"), of(&session["modes"]["availableModes"], "id"));
    assert_eq!(option["currentValue"], session["modes"]["currentModeId"]);
    // Chosen as a mode, told as an option.
    assert_eq!(
        editor.call("session/set_mode", json!({"sessionId": id, "modeId": "accept-edits"}))["result"],
        json!({})
    );
    let told = editor.update(json!({"sessionUpdate": "config_option_update"}));
    assert_eq!(told["configOptions"][0]["currentValue"], "accept-edits");
    // And the other way round.
    let choice = json!({"sessionId": id, "configId": "mode", "value": "auto"});
    assert_eq!(
        editor.result("session/set_config_option", choice)["configOptions"][0]["currentValue"],
        "auto"
    );
    let _ = editor.update(json!({"sessionUpdate": "current_mode_update", "currentModeId": "auto"}));
    let request = editor.prompt(&id, "write");
    assert_eq!(editor.stop_reason(request), "end_turn");
    assert!(editor.place.work().join("a.txt").exists());
    drop(editor.finish());
}

#[test]
fn what_files_and_commands_say_is_no_markdown() {
    let calls = [
        ("c1", "read", json!({"path": "a.md"})),
        ("c2", "bash", json!({"command": "printf '# no heading'; sleep 0.3; exit 1"})),
        ("c3", "edit", json!({"path": "a.md", "edits": [{"oldText": "none", "newText": "x"}]})),
    ];
    let prepare =
        |place: &tau_tests::program::Sandbox| drop(place.put("work/a.md", "# Title\n```\ncode\n```\n"));
    let script = [openai::calls(&calls), openai::text("done")];
    let mut editor = Editor::with(TAU, script, &["--permission", "auto"], prepare);
    let id = editor.session();
    let request = editor.prompt(&id, "x");
    assert_eq!(editor.stop_reason(request), "end_turn");
    let params = json!({"sessionId": id, "cwd": editor.cwd(), "mcpServers": []});
    drop(editor.result("session/load", params));
    let updates = editor.finish();
    let last = |call: &str| -> Vec<String> {
        let of_call =
            updates.iter().filter(|update| update["toolCallId"] == call && update["status"] != "pending");
        of_call
            .filter_map(|update| update["content"][0]["content"]["text"].as_str())
            .map(str::to_owned)
            .collect()
    };
    let read = last("c1");
    assert_eq!(read, vec!["````\n# Title\n```\ncode\n```\n````"; 2]);
    let bash = last("c2");
    assert!(bash.len() >= 3 && bash.iter().all(|text| text.starts_with("```\n# no heading\n")), "{bash:?}");
    assert!(bash.iter().all(|text| text.ends_with("\n```")), "{bash:?}");
    // Sentences of the program itself stay as they are.
    assert!(last("c3").iter().all(|text| !text.contains("```")), "{:?}", last("c3"));
}

#[test]
fn remarks_reach_those_who_show_them() {
    let servers = json!([{"name": "files", "command": "/bin/false", "args": [], "env": [{"name": "K", "value": "secret-1"}]}]);
    for shows in [false, true] {
        let mut editor = editor([]);
        let can =
            if shows { json!({"session": {"notices": {}}}) } else { json!({"session": {"notices": null}}) };
        drop(editor.result("initialize", json!({"protocolVersion": 1, "clientCapabilities": can})));
        let cwd = editor.cwd();
        drop(editor.result("session/new", json!({"cwd": cwd, "mcpServers": servers})));
        let run = editor.talk.finish().ok();
        let updates = checked(&run);
        let remarks = of_kind(&updates, "notice");
        assert_eq!(remarks.len(), usize::from(shows));
        for text in remarks.iter().map(|remark| remark["title"].as_str().unwrap()).chain([run.err.as_str()]) {
            assert!(text.contains("MCP") && text.contains("files") && !text.contains("secret-1"), "{text}");
        }
    }
}

#[test]
fn a_session_stays_in_its_directory() {
    let mut editor = editor([openai::text("one"), openai::text("two")]);
    let can = json!({"session": {"notices": {}}});
    drop(editor.result("initialize", json!({"protocolVersion": 1, "clientCapabilities": can})));
    let id = editor.session();
    let request = editor.prompt(&id, "x");
    assert_eq!(editor.stop_reason(request), "end_turn");
    let other = editor.place.put("work/inner/a.txt", "").parent().unwrap().display().to_string();
    let cwd = editor.cwd();
    for (folder, told) in [(cwd.clone(), false), (format!("{cwd}//"), false), (other, true)] {
        drop(editor.result("session/resume", json!({"sessionId": id, "cwd": folder})));
        let last = if told { "notice" } else { "available_commands_update" };
        let update = editor.update(json!({"sessionUpdate": last}));
        assert!(!told || update["title"].as_str().unwrap().contains(&cwd), "{update}");
    }
    let updates = editor.finish();
    assert_eq!(of_kind(&updates, "notice").len(), 1);
}

#[test]
fn a_compaction_is_told() {
    for shows in [false, true] {
        let prepare = |place: &tau_tests::program::Sandbox| {
            place.settings(&json!({"compaction": {"keepRecentTokens": 10}}));
        };
        let script = ["first", "second", "a summary", "more of it"].map(openai::text);
        let mut editor = Editor::with(TAU, script, &[], prepare);
        let can = if shows { json!({"session": {"compaction": {}}}) } else { json!({}) };
        drop(editor.result("initialize", json!({"protocolVersion": 1, "clientCapabilities": can})));
        let id = editor.session();
        let long = "many words to summarise ".repeat(40);
        for text in [long.as_str(), long.as_str(), "/compact the words"] {
            let request = editor.prompt(&id, text);
            assert_eq!(editor.stop_reason(request), "end_turn");
        }
        let nothing = editor.prompt(&id, "/compact");
        let failed = editor.wait(nothing);
        assert_eq!(failed["error"]["code"], -32_603, "{failed}");
        let updates = editor.finish();
        let text = text_of(&updates, "agent_message_chunk");
        assert!(text.starts_with("first") && text.contains("summarised"), "{text}");
        // Two turns, and what is left of them.
        assert_eq!(of_kind(&updates, "usage_update").len(), 3);
        let told: Vec<&Value> =
            of_kind(&updates, "compaction_update").iter().map(|update| &update["status"]).collect();
        let wanted: &[&str] = if shows { &["in_progress", "completed"] } else { &[] };
        assert_eq!(told[..wanted.len()], *wanted, "{told:?}");
        assert!(shows || told.is_empty());
    }
}

#[test]
fn stored_sessions_are_listed_and_deleted() {
    let mut editor = editor(["one", "two"].map(openai::text));
    let ids = [editor.session(), editor.session()];
    for (id, text) in ids.iter().zip(["short", "  two\n\tlines of \u{1b}[31mtext "]) {
        let request = editor.prompt(id, text);
        assert_eq!(editor.stop_reason(request), "end_turn");
    }
    let cwd = editor.cwd();
    let list = editor.result("session/list", json!({"cwd": cwd, "cursor": null}));
    let titles: Vec<&str> =
        list["sessions"].as_array().unwrap().iter().map(|s| s["title"].as_str().unwrap()).collect();
    assert!(
        titles.contains(&"short") && titles.iter().any(|title| title.starts_with("two lines of")),
        "{titles:?}"
    );
    // An open one ends first; one that never was is gone already.
    for id in [ids[0].as_str(), ids[0].as_str(), "none", "../../settings", ""] {
        assert_eq!(editor.call("session/delete", json!({"sessionId": id}))["result"], json!({}), "{id}");
    }
    assert_eq!(editor.code("session/prompt", json!({"sessionId": ids[0], "prompt": []})), -32_002);
    // A part of an id is no id.
    let part = &ids[1][..8];
    assert_eq!(
        editor.code("session/load", json!({"sessionId": part, "cwd": cwd, "mcpServers": []})),
        -32_002
    );
    assert_eq!(editor.call("session/delete", json!({"sessionId": part}))["result"], json!({}));
    let list = editor.result("session/list", json!({}));
    assert_eq!(list["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(list["sessions"][0]["sessionId"], ids[1].as_str());
    assert_eq!(editor.place.sessions().len(), 1);
    drop(editor.finish());
}
