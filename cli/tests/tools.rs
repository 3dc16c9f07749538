//! Batches of tool calls, from the model's message to the files.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use tau_tests::program::{Sandbox, decode_base64};
use tau_tests::server::{Server, openai};

const TAU: &str = env!("CARGO_BIN_EXE_tau");

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({ "path": path, "edits": [{ "oldText": old, "newText": new }] })
}

/// Runs one batch in `place` and returns what the model was told, in the order of the calls.
fn batch(place: &Sandbox, calls: &[(&str, &str, Value)]) -> Vec<String> {
    let server = Server::start([openai::calls(calls), openai::text("done")]);
    place.configure(&server);
    let run = place.run(&["-p", "go", "--tools", "read,bash,edit,write,grep,find,ls"]).ok();
    assert_eq!(run.out, "done\n");
    server.requests()[1].texts("tool")
}

#[test]
fn parallel_edits_of_one_file_all_happen() {
    let place = Sandbox::new(TAU);
    let lines: String = (0..40).map(|n| format!("line {n} end\n")).collect();
    fs::write(place.work().join("file.txt"), lines).unwrap();
    symlink("file.txt", place.work().join("alias.txt")).unwrap();
    let ids: Vec<String> = (0..40).map(|n| format!("call_{n}")).collect();
    let calls: Vec<(&str, &str, Value)> = (0..40)
        .map(|n| {
            let path = if n % 3 == 0 { "alias.txt" } else { "file.txt" };
            (ids[n].as_str(), "edit", edit(path, &format!("line {n} end"), &format!("changed {n}")))
        })
        .collect();
    let told = batch(&place, &calls);
    assert!(told.iter().all(|text| text.contains("1 replacement")), "{told:?}");
    let want: String = (0..40).map(|n| format!("changed {n}\n")).collect();
    assert_eq!(fs::read_to_string(place.work().join("file.txt")).unwrap(), want);
}

#[test]
fn changes_of_one_file_happen_in_the_order_of_their_calls() {
    let place = Sandbox::new(TAU);
    let told = batch(
        &place,
        &[
            ("a", "write", json!({ "path": "sub/new.txt", "content": "one\n" })),
            ("b", "edit", edit("sub/new.txt", "one", "two")),
            ("c", "edit", edit("sub/new.txt", "two", "three")),
            ("d", "write", json!({ "path": "other.txt", "content": "x" })),
        ],
    );
    assert_eq!(fs::read_to_string(place.work().join("sub/new.txt")).unwrap(), "three\n", "{told:?}");
}

#[test]
fn every_tool_answers_in_one_batch() {
    let place = Sandbox::new(TAU);
    fs::create_dir(place.work().join("src")).unwrap();
    fs::write(place.work().join("src/a.rs"), "fn needle() {}\n").unwrap();
    // A picture of one black pixel.
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==";
    fs::write(place.work().join("picture"), decode_base64(png)).unwrap();
    let told = batch(
        &place,
        &[
            ("a", "read", json!({ "path": "src/a.rs" })),
            ("b", "bash", json!({ "command": "echo out; echo err >&2; exit 3" })),
            ("c", "grep", json!({ "pattern": "needle" })),
            ("d", "find", json!({ "pattern": "*.rs" })),
            ("e", "ls", json!({ "path": "src" })),
            ("f", "read", json!({ "path": "missing" })),
            ("g", "nothing", json!({})),
            ("h", "read", json!({})),
            ("i", "read", json!({ "path": "picture" })),
        ],
    );
    let facts = [
        "fn needle",
        "code 3",
        "src/a.rs:1: fn needle",
        "src/a.rs",
        "a.rs",
        "missing",
        "nothing",
        "path",
        "image/png",
    ];
    assert_eq!(told.len(), facts.len());
    for (text, fact) in told.iter().zip(facts) {
        assert!(text.contains(fact), "{text:?} lacks {fact:?}");
    }
}
