//! Memory of one RPC process over many prompts: what compactions leave behind is in the session file only, and is given
//! from there.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;

use serde_json::{Value, json};
use tau_tests::program::{Sandbox, records};
use tau_tests::server::{Reply, Server};
use tau_tests::talk::Talk;

const TAU: &str = env!("CARGO_BIN_EXE_tau");

/// A prompt and its answer, bytes.
const SAID: usize = 8000;

/// An answer after which a context of 100,000 tokens holds so many.
fn answer(text: &str, tokens: u64) -> Reply {
    let choice = |delta: Value, finish: Value| json!({"id": "1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    let usage = json!({"id": "1", "choices": [],
        "usage": {"prompt_tokens": tokens, "completion_tokens": 7, "total_tokens": tokens + 7}});
    let events = [choice(json!({"content": text}), Value::Null), choice(json!({}), json!("stop")), usage];
    Reply::events(&events).at_once()
}

/// A program whose context is compacted after every tenth of so many prompts.
fn started(prompts: usize) -> (Sandbox, Server, Talk) {
    let mut script = Vec::new();
    for number in 1..=prompts {
        let text = format!("answer {number} {}", "a".repeat(SAID / 2));
        script.push(answer(&text, if number % 10 == 0 { 95_000 } else { 1000 }));
        if number % 10 == 0 {
            script.push(answer(&format!("summary {number} {}", "s".repeat(SAID / 2)), 1000));
        }
    }
    let (place, server) = (Sandbox::new(TAU), Server::start(script));
    place.configure(&server);
    place.settings(&json!({"compaction": {"keepRecentTokens": 1500}}));
    let talk = Talk::start(place.command(&["--mode", "rpc"]));
    (place, server, talk)
}

fn prompt(talk: &mut Talk, number: usize) {
    let message = format!("question {number} {}", "q".repeat(SAID / 2));
    let _ = talk.data("p", json!({"type": "prompt", "message": message}));
    if number.is_multiple_of(10) {
        let end = talk.wait(&json!({"type": "compaction_end"}));
        assert_eq!(end["reason"], "threshold", "{end}");
        assert!(end["result"]["summary"].is_string(), "{end}");
    }
    let _ = talk.wait(&json!({"type": "agent_settled"}));
}

/// Memory that is not of a file, kB.
fn anonymous(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Anonymous:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn memory_stays_over_prompts_and_compactions() {
    let (first, last) = (50, 200);
    let (place, _server, mut talk) = started(last);
    let mut before = 0;
    for number in 1..=last {
        prompt(&mut talk, number);
        if number == first {
            before = anonymous(talk.id());
        }
    }
    let after = anonymous(talk.id());
    let stored = fs::metadata(&place.sessions()[0]).unwrap().len() / 1024;
    println!("{before} kB after {first} prompts, {after} kB after {last}, {stored} kB of session");
    // What was said since is beyond a megabyte.
    assert!(stored > 1500, "{stored} kB");
    assert!(after < before + 600, "{before} kB after {first} prompts, {after} kB after {last}");
    let _ = talk.finish().ok();
}

#[test]
fn what_was_left_behind_is_given_from_the_file() {
    let (place, server, mut talk) = started(20);
    (1..=20).for_each(|number| prompt(&mut talk, number));
    let stored = records(&place.sessions()[0]);
    let entries = talk.data("e", json!({"type": "get_entries"}));
    assert_eq!(entries["entries"], json!(stored[1..]));
    let stats = talk.data("s", json!({"type": "get_session_stats"}));
    assert_eq!((&stats["userMessages"], &stats["assistantMessages"]), (&json!(20), &json!(20)));
    // Counting goes on where it was; summaries cost, too.
    let output = stats["tokens"]["output"].as_u64().unwrap();
    assert_eq!(output, 22 * 7);
    let messages = talk.data("m", json!({"type": "get_fork_messages"}))["messages"].clone();
    let texts: Vec<&str> =
        messages.as_array().unwrap().iter().filter_map(|one| one["text"].as_str()).collect();
    assert!(texts.len() == 20 && texts[0].starts_with("question 1 "), "{}", texts.len());
    let tree = talk.data("t", json!({"type": "get_tree"}));
    assert_eq!(tree["tree"][0]["entry"], stored[1]);
    server.script([answer("after", 1000), answer("in the copy", 1000)]);
    // Before both summaries, and on from there.
    let moved = talk.data("n", json!({"type": "navigate_tree", "entryId": messages[2]["entryId"]}));
    assert!(moved["editorText"].as_str().unwrap().starts_with("question 3 "));
    prompt(&mut talk, 21);
    let sent = server.requests().last().unwrap().users();
    let begins: Vec<&str> = sent.iter().map(|text| text.split(" q").next().unwrap()).collect();
    assert_eq!(begins, ["question 1", "question 2", "question 21"]);
    let stats = talk.data("s2", json!({"type": "get_session_stats"}));
    assert_eq!(stats["userMessages"], 21);
    // A copy of a branch that was summarised.
    let _ = talk.data("f", json!({"type": "fork", "entryId": messages[12]["entryId"]}));
    prompt(&mut talk, 22);
    let sent = server.requests().last().unwrap().users();
    assert!(sent[0].contains("summary 10 "), "{}", sent[0]);
    assert!(sent.last().unwrap().starts_with("question 22 "));
    let _ = talk.finish().ok();
    for file in place.sessions() {
        assert!(records(&file).len() > 10);
    }
}
