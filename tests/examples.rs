//! The examples run, without a network and without a key.

#![allow(missing_docs)]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Example, what goes in, what must come out.
const EXAMPLES: [(&str, &str, &[&str]); 6] = [
    ("minimal_core_loop", "", &["[bash {", "1 tool calls ran"]),
    (
        "in_browser_shape",
        "",
        &[
            "[POST https://models.example/v1/chat/completions with ",
            "Bytes in, text out: ünïcödé in any pieces.\n[settled; a tick is due at None]",
        ],
    ),
    ("blocking_chat", "Show me around.\nAnd again.\n", &["[read {", "That was the demo"]),
    (
        "host_tool",
        "",
        &["allowed: weather", "asking the station", "It rains in Lisbon.", "answer: Take an umbrella."],
    ),
    ("many_agents", "", &["1000 agents, 1000 tool calls", "That was the demo"]),
    ("tokio_host", "", &["one calls read", "one: ", "two: ", "three: "]),
];

/// Builds them as the tests of the workspace are built, so that nothing is built twice; gives their folder.
fn built() -> PathBuf {
    let release: &[&str] = if cfg!(debug_assertions) { &[] } else { &["--release"] };
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--offline", "--locked", "--workspace", "--examples"])
        .args(release)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .status();
    assert!(status.expect("cargo runs").success());
    let own = std::env::current_exe().unwrap();
    own.parent().and_then(Path::parent).unwrap().join("examples")
}

#[test]
fn every_example_runs() {
    let folder = built();
    for (name, input, expected) in EXAMPLES {
        let place = tempfile::tempdir().unwrap();
        let mut child = Command::new(folder.join(name))
            .current_dir(place.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the example is there");
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{name}: {out}\n{err}");
        for text in expected {
            assert!(out.contains(text), "{name} does not say {text:?}: {out}\n{err}");
        }
    }
}
