//! Public failure cases that only the whole program can show; `tests/bugs/README.md` lists all.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::json;
use tau_tests::program::{Sandbox, roles};
use tau_tests::server::{Part, Reply, Server, openai};
use tau_tests::talk::Talk;

const TAU: &str = env!("CARGO_BIN_EXE_tau");

fn place(script: impl IntoIterator<Item = Reply>) -> (Sandbox, Server) {
    Sandbox::served(TAU, script)
}

fn bug(file: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/bugs").join(file)).unwrap()
}

#[test]
fn case_23_a_call_that_was_cut_is_not_run() {
    let cut = bug("23-tool-call-cut-by-length/body.sse");
    let path = "big.py";
    assert!(String::from_utf8_lossy(&cut).contains(path));
    let (place, server) = place([Reply::stream(vec![Part::Bytes(cut)]), openai::text("done")]);
    place.put("work/big.py", "kept\n");
    let _ = place.run(&["-p", "x"]).ok();
    assert_eq!(fs::read_to_string(place.work().join(path)).unwrap(), "kept\n");
    let session = place.session();
    assert_eq!(roles(&session), ["user", "assistant", "toolResult", "assistant"]);
    let result = session.iter().find(|record| record["message"]["role"] == "toolResult").unwrap();
    assert_eq!(result["message"]["isError"], true);
    assert_eq!(server.requests()[1].texts("tool").len(), 1);
}

/// Cases 69 and 70: what a run reads it does not write, whatever state it is in.
#[test]
fn case_70_configuration_is_left_alone() {
    let broken =
        [bug("70-settings-parse-error-overwrites/settings.json"), b"{\"theme\": \"x\",\n oops".to_vec()];
    for (text, told) in broken.into_iter().zip([false, true]) {
        let (place, _server) = place([openai::text("done")]);
        let settings = place.put("agent/settings.json", &text);
        let auth = place.put("agent/auth.json", "{}");
        fs::set_permissions(&auth, fs::Permissions::from_mode(0o600)).unwrap();
        let run = place.run(&["-p", "x", "--provider", "mock", "--model", "m1"]).ok();
        assert_eq!(run.err.contains("settings.json") && run.err.contains("line 2"), told, "{}", run.err);
        assert_eq!(fs::read(&settings).unwrap(), text);
        assert_eq!(fs::read(&auth).unwrap(), b"{}");
        // Saving a setting changes it alone, or nothing.
        let saved = place.run(&["config", "set", "retry.enabled", "false"]);
        assert_eq!(saved.code, Some(i32::from(told)), "{}", saved.err);
        let now = fs::read_to_string(&settings).unwrap();
        assert_eq!(now.as_bytes() == text, told, "{now}");
        assert!(
            told || (now.contains("dark") && now.contains("anthropic") && now.contains("retry")),
            "{now}"
        );
        assert_eq!(fs::metadata(&auth).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn case_84_only_line_feeds_end_commands() {
    let (place, server) = place([openai::text("done")]);
    let mut talk = Talk::start(place.command(&["--mode", "rpc"]));
    // A malformed line is answered; the last line has no line feed and counts at the end of input.
    talk.send_bytes(b"{\"id\": \n");
    assert_eq!(talk.wait(&json!({"type": "response"}))["success"], false);
    talk.send_bytes(&bug("84-rpc-framing-lf-only/stdin.jsonl"));
    assert_eq!(talk.wait(&json!({"id": "1"}))["success"], true);
    server.wait(1);
    talk.close();
    assert_eq!(talk.wait(&json!({"id": "2"}))["success"], true);
    let _ = talk.finish().ok();
    let sent = &server.requests()[0].users()[0];
    assert!(sent.contains(['\u{2028}', '\u{2029}']), "{sent:?}");
}
