//! An editor without credentials: what it is told, and what it does in its terminal.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use serde_json::{Value, json};
use tau_tests::editor::Editor;
use tau_tests::program::Sandbox;
use tau_tests::server::openai;
use tau_tests::terminal;

const TAU: &str = env!("CARGO_BIN_EXE_tau");

fn methods(editor: &mut Editor, can: Value) -> Value {
    let hello = editor.result("initialize", json!({"protocolVersion": 1, "clientCapabilities": can}));
    hello["authMethods"].clone()
}

#[test]
fn a_way_to_sign_in_is_offered_to_those_who_can_go_it() {
    let mut editor = Editor::new(TAU, []);
    for without in
        [json!({}), json!(null), json!({"auth": {"terminal": false}}), json!({"auth": {"terminal": "yes"}})]
    {
        assert_eq!(methods(&mut editor, without), json!([]));
    }
    let by_protocol = methods(&mut editor, json!({"auth": {"terminal": true}}));
    assert_eq!(by_protocol.as_array().unwrap().len(), 1);
    let way = &by_protocol[0];
    assert_eq!(
        (&way["id"], &way["type"], &way["args"]),
        (&json!("login"), &json!("terminal"), &json!(["login"]))
    );
    assert!(way["name"].is_string() && way.get("_meta").is_none());
    let by_custom = methods(&mut editor, json!({"_meta": {"terminal-auth": true}}));
    let command = &by_custom[0]["_meta"]["terminal-auth"];
    assert_eq!(command["args"], json!(["acp", "login"]));
    assert!(command["command"].as_str().unwrap().starts_with('/'));
    assert_eq!(editor.code("authenticate", json!({"methodId": "other"})), -32_602);
    assert_eq!(editor.call("authenticate", json!({"methodId": "login"}))["result"], json!({}));
    drop(editor.finish());
}

#[test]
fn who_signs_in_goes_on_where_they_were() {
    let bare = |place: &Sandbox| {
        let text = std::fs::read_to_string(place.agent().join("models.json")).unwrap();
        let mut models: Value = serde_json::from_str(&text).unwrap();
        models["providers"]["mock"].as_object_mut().unwrap().remove("apiKey");
        place.put("agent/models.json", models.to_string());
    };
    let mut editor = Editor::with(TAU, [openai::text("hello")], &[], bare);
    let cwd = editor.cwd();
    let session = editor.call("session/new", json!({"cwd": cwd, "mcpServers": []}));
    let id = session["result"]["sessionId"].as_str().unwrap().to_owned();
    let refused = editor.prompt(&id, "x");
    let refused = editor.wait(refused);
    assert_eq!(refused["error"]["code"], -32_000, "{refused}");
    assert_eq!(editor.code("authenticate", json!({"methodId": "login"})), -32_000);

    let login = |typed: &str| terminal::run_wholly(editor.place.command(&["acp", "login"]), typed);
    for typed in ["\n", "nobody\n", "mock\n\n"] {
        assert_eq!(login(typed).code, Some(1), "{typed:?}");
    }
    let nobody = editor.place.run(&["acp", "login"]).ended_with(1);
    assert!(nobody.out.is_empty() && nobody.err.contains("terminal"), "{}", nobody.err);
    let run = login("mock\nsk-of-a-person\n").ok();
    assert!(run.err.contains("kimi-coding") && run.err.contains("auth.json"), "{}", run.err);

    assert_eq!(editor.call("authenticate", json!({"methodId": "login"}))["result"], json!({}));
    let request = editor.prompt(&id, "x");
    let told = editor.update(json!({"sessionUpdate": "config_option_update"}));
    assert_eq!(told["configOptions"][1]["currentValue"], "mock/m1");
    assert_eq!(editor.stop_reason(request), "end_turn");
    assert_eq!(editor.server.requests()[0].header("authorization"), Some("Bearer sk-of-a-person"));
    drop(editor.finish());
}
