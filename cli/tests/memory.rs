//! Peak resident memory (targets P4, P10, P16, P17; spec 70 §6). What counts is the memory beyond that of a run with next to
//! no data, because a build without optimisation is itself larger.
//!
//! A process of its own that stays small itself: see `tau_tests::usage::Usage`.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::Stdio;

use serde_json::json;
use tau_tests::program::Sandbox;
use tau_tests::server::{Part, Reply, Server, openai};

const TAU: &str = env!("CARGO_BIN_EXE_tau");

const MB: u64 = 1000;

fn place(script: impl IntoIterator<Item = Reply>) -> (Sandbox, Server) {
    Sandbox::served(TAU, script)
}

fn peak(place: &Sandbox, args: &[&str]) -> u64 {
    let mut command = place.command(args);
    command.stdout(Stdio::null());
    let (run, usage) = place.start(command).finish_measured();
    let _ = run.ok();
    usage.peak_kb
}

fn peak_of(script: impl IntoIterator<Item = Reply>) -> u64 {
    let (place, _server) = place(script);
    peak(&place, &["--mode", "text", "-p", "go"])
}

/// One test, one case after the other: the memory of this process must stay small.
#[test]
fn memory_has_ceilings() {
    // Target P4: 5 MB, at most 12; an unoptimised binary is larger.
    let base = peak_of([openai::text("hi")]);
    println!("one-shot: {base} kB");
    assert!(base <= 16 * MB, "one-shot: {base} kB");

    // Target P10: 28 MB, at most 45.
    let text = peak_of([openai::long_text(&"x".repeat(100), 100_000)]);
    println!("10 MB of text: {text} kB");
    assert!(text <= base + 33 * MB, "10 MB of text: {text} kB, base {base} kB");

    // A line of 100 MB is given up at 64 MiB.
    let (place, server) = place([Reply::stream(vec![
        Part::Bytes(b"data: \"".to_vec()),
        Part::Repeat(vec![b'x'; 1000], 100_000),
    ])]);
    let (run, usage) = place.start(place.command(&["-p", "go"])).finish_measured();
    let run = run.ended_with(1);
    println!("100 MB of a line: {} kB", usage.peak_kb);
    assert!(run.err.contains("larger than any answer") && run.err.contains(&server.url()), "{}", run.err);
    assert!(usage.peak_kb <= base + 75 * MB, "100 MB of a line: {} kB, base {base} kB", usage.peak_kb);

    // Target P17: 6 MB, at most 12, for 200 MB of output: it does not grow with the output.
    let command = "head -c 200000000 /dev/zero | tr '\\0' 'a' | fold -w 99";
    let call = json!({"command": command});
    let output = peak_of([openai::calls(&[("c1", "bash", call)]), openai::text("done")]);
    println!("200 MB of output: {output} kB");
    assert!(output <= base + 4 * MB, "200 MB of output: {output} kB, base {base} kB");

    // Target P16: 12 MB for 100 MB that end in a compaction: it does not grow with what was left behind.
    let (place, _server) = self::place([openai::text("again")]);
    let session = compacted_session(&place, 100_000_000);
    let resumed = peak(&place, &["--session", &session, "-p", "go on"]);
    println!("resume of 100 MB, compacted: {resumed} kB");
    assert!(resumed <= base + 6 * MB, "resume of 100 MB, compacted: {resumed} kB, base {base} kB");

    // The same session as a page: one entry after the other.
    let page = place.work().join("page.html").display().to_string();
    let exported = peak(&place, &["--export", &session, &page]);
    println!("page of 100 MB: {exported} kB");
    assert!(std::fs::metadata(&page).unwrap().len() > 200 * 1_000_000);
    assert!(exported <= base + 6 * MB, "page of 100 MB: {exported} kB, base {base} kB");
}

/// A session of about `bytes` whose last entries but three are summarised.
fn compacted_session(place: &Sandbox, bytes: usize) -> String {
    let path = place.put("agent/sessions/big.jsonl", "");
    let mut file = BufWriter::new(File::create(&path).unwrap());
    let at = "2026-01-01T00:00:00.000Z";
    let cwd = place.work().display().to_string();
    let mut line = |value: serde_json::Value| writeln!(file, "{value}").unwrap();
    line(json!({"type": "session", "version": 3, "id": "big", "timestamp": at, "cwd": cwd}));
    let filler = "word ".repeat(2000);
    let count = bytes / filler.len();
    let id = |n: usize| format!("{n:08x}");
    for n in 1..=count {
        let parent = (n > 1).then(|| id(n - 1));
        let content = json!([{"type": "text", "text": filler}]);
        line(json!({"type": "message", "id": id(n), "parentId": parent, "timestamp": at,
            "message": {"role": "user", "content": content, "timestamp": 1}}));
    }
    line(json!({"type": "compaction", "id": id(count + 1), "parentId": id(count), "timestamp": at,
        "summary": "words", "firstKeptEntryId": id(count - 2), "tokensBefore": 1000}));
    drop(file);
    path.display().to_string()
}
