//! `tau acp` as an editor sees it. Everything it says must have the shape that the protocol demands.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;

use serde_json::{Value, json};
use tau_tests::program::Sandbox;
use tau_tests::server::{Reply, Server, openai};
use tau_tests::talk::Talk;

const TAU: &str = env!("CARGO_BIN_EXE_tau");

/// Fields that the protocol demands of results, by method.
const RESULTS: &[(&str, &[&str])] = &[
    (
        "initialize",
        &["protocolVersion", "agentCapabilities.loadSession", "agentInfo.name", "agentInfo.version"],
    ),
    (
        "session/new",
        &["sessionId", "modes.currentModeId", "modes.availableModes.0.id", "configOptions.0.options"],
    ),
    ("session/load", &["modes.currentModeId", "configOptions.0.currentValue"]),
    ("session/list", &["sessions.0.sessionId", "sessions.0.cwd", "sessions.0.updatedAt"]),
    ("session/set_config_option", &["configOptions.0.id", "configOptions.0.name", "configOptions.0.type"]),
];

/// Fields that it demands of updates, by kind.
const UPDATES: &[(&str, &[&str])] = &[
    ("user_message_chunk", &["content.type", "content.text"]),
    ("agent_message_chunk", &["content.type", "content.text"]),
    ("agent_thought_chunk", &["content.type", "content.text"]),
    ("tool_call", &["toolCallId", "title", "kind", "status"]),
    ("tool_call_update", &["toolCallId", "status"]),
    ("available_commands_update", &["availableCommands.0.name", "availableCommands.0.description"]),
    ("usage_update", &["used", "size"]),
    ("session_info_update", &["title"]),
];

/// Demands that all of these fields are there.
fn demand(value: &Value, fields: &[&str]) {
    for field in fields {
        let found = field.split('.').try_fold(value, |value, name| match name.parse::<usize>() {
            Ok(at) => value.get(at),
            Err(_) => value.get(name),
        });
        assert!(found.is_some_and(|found| !found.is_null()), "no {field}: {value}");
    }
}

struct Editor {
    place: Sandbox,
    server: Server,
    talk: Talk,
    next: u64,
}

impl Editor {
    fn new(script: impl IntoIterator<Item = Reply>) -> Self {
        let (place, server) = (Sandbox::new(TAU), Server::start(script));
        place.configure(&server);
        let talk = Talk::start(place.command(&["acp"]));
        Self { place, server, talk, next: 0 }
    }

    fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        self.talk.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        self.next
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.talk.wait(&json!({"id": id}))
    }

    fn result(&mut self, method: &str, params: Value) -> Value {
        let answer = self.call(method, params);
        let needed = RESULTS.iter().find(|(name, _)| *name == method).map(|(_, needed)| *needed);
        demand(&answer["result"], needed.unwrap_or_else(|| panic!("{method}")));
        answer["result"].clone()
    }

    fn code(&mut self, method: &str, params: Value) -> i64 {
        self.call(method, params)["error"]["code"].as_i64().unwrap()
    }

    fn cwd(&self) -> String {
        self.place.work().display().to_string()
    }

    fn session(&mut self) -> String {
        let cwd = self.cwd();
        let session = self.result("session/new", json!({"cwd": cwd, "mcpServers": []}));
        session["sessionId"].as_str().unwrap().to_owned()
    }

    fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send("session/prompt", json!({"sessionId": session, "prompt": prompt}))
    }

    /// Ends the program; what it said on its own account, checked.
    fn finish(self) -> Vec<Value> {
        let run = self.talk.finish().ok();
        let mut updates = Vec::new();
        for message in run.events() {
            assert_eq!(message["jsonrpc"], "2.0", "{message}");
            let params = message["params"].clone();
            match message["method"].as_str() {
                Some("session/update") => {
                    demand(&params, &["sessionId", "update.sessionUpdate"]);
                    let kind = params["update"]["sessionUpdate"].as_str().unwrap();
                    let needed = UPDATES.iter().find(|(name, _)| *name == kind).map(|(_, needed)| *needed);
                    demand(&params["update"], needed.unwrap_or_else(|| panic!("{kind}")));
                    updates.push(params["update"].clone());
                }
                Some("session/request_permission") => {
                    let option = |field| format!("options.0.{field}");
                    let options = ["optionId", "name", "kind"].map(option);
                    demand(&params, &["sessionId", "toolCall.toolCallId", "toolCall.title"]);
                    demand(&params, &options.each_ref().map(String::as_str));
                }
                Some(other) => panic!("{other}"),
                None => {}
            }
        }
        updates
    }
}

fn of_kind<'a>(updates: &'a [Value], kind: &str) -> Vec<&'a Value> {
    updates.iter().filter(|update| update["sessionUpdate"] == kind).collect()
}

fn text_of(updates: &[Value], kind: &str) -> String {
    of_kind(updates, kind).iter().filter_map(|update| update["content"]["text"].as_str()).collect()
}

#[test]
fn a_turn_is_told_and_answered() {
    let mut editor = Editor::new([openai::text("hello from the agent")]);
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
    let mut editor = Editor::new(script);
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
    let mut editor = Editor::new([read, openai::text("done")]);
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
    let mut editor = Editor::new([openai::text("ok")]);
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
    let value = models["result"]["configOptions"][0]["options"][0]["value"].clone();
    let choice = of(json!({"configId": "model", "value": value}));
    assert_eq!(editor.result("session/set_config_option", choice)["configOptions"][0]["currentValue"], value);
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
    let mut editor = Editor::new([openai::text("first answer"), openai::text("second")]);
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
