//! Exported pages: whatever a session says is text there, and all of it is there.

#![allow(missing_docs)]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use base64::Engine as _;
use serde_json::{Value, json};
use tau::export::html::Html;
use tau::export::markdown;
use tau_core::entropy::Entropy;
use tau_tests::page::{self, Page};

const RUNS: usize = 400;

/// Pieces of texts that try to be more than text.
const HOSTILE: &[&str] = &[
    "<",
    ">",
    "\"",
    "'",
    "&",
    "&lt;",
    "</",
    "-->",
    "<!--",
    "]]>",
    "</script>",
    "</SCRIPT >",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\" onmouseover=\"x",
    "' onclick='x",
    "<style>*{display:none}</style>",
    "</pre>",
    "</style>",
    "</title>",
    "<svg onload=x>",
    "javascript:x",
    "[a](javascript:x)",
    "[a](http://b \"c\")",
    "[a](data:text/html,x)",
    "[a](https://b/\"onclick=x)",
    "![a](http://b/c.png)",
    "<a href=x>",
    "http://a.b/?c=d&e",
    "\0",
    "\u{1b}[31m",
    "\u{202e}",
    "\u{2066}",
    "\u{7f}",
    "\u{9b}",
    "\u{feff}",
    "\u{e0041}",
    "\u{2028}",
    "\r",
    "\r\n",
    "\n",
    "\n\n",
    " ",
    "\t",
    "```\n",
    "~~~",
    "`",
    "``",
    "*",
    "**",
    "_",
    "~~",
    "# ",
    "> ",
    "- ",
    "1. ",
    "| ",
    "|-|-|\n",
    "---\n",
    "\\",
    "[",
    "](",
    ")",
    "é",
    "😀",
    "x",
    "word",
];

struct Random(Entropy);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.0.below(limit.max(1) as u64)).unwrap_or(0)
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    /// Hostile text around a mark that must be found in the page.
    fn text(&mut self, marks: &mut Vec<String>) -> String {
        let mark = format!("mark{}q", marks.len());
        let mut text = String::new();
        for part in 0..2 {
            text.extend((0..self.below(7)).map(|_| *self.pick(HOSTILE)));
            if part == 0 {
                text.push_str(&mark);
            }
        }
        marks.push(mark);
        text
    }

    /// A text that is not expected in the page as it stands.
    fn noise(&mut self) -> String {
        (0..self.below(5)).map(|_| *self.pick(HOSTILE)).collect()
    }

    fn body(&mut self, ids: &[String], calls: &mut Vec<String>, marks: &mut Vec<String>) -> Value {
        match self.below(16) {
            0 | 1 => {
                let image = json!({"type": "image", "data": self.pick(&["AAAA", "\"><b>", ""]),
                    "mimeType": self.pick(&["image/png", "image/svg+xml", "\"><script>"])});
                json!({"type": "message", "message": {"role": "user", "timestamp": 1,
                    "content": [{"type": "text", "text": self.text(marks)}, image]}})
            }
            2..=5 => {
                let call = format!("{}{}", self.noise(), calls.len());
                calls.push(call.clone());
                let mut arguments = json!({});
                for name in ["command", "path", "edits", "other"] {
                    if self.below(2) == 0 {
                        arguments[name] = json!(self.text(marks));
                    }
                }
                arguments[self.text(marks)] = json!([self.text(marks), {"a": self.text(marks)}]);
                json!({"type": "message", "message": {"role": "assistant", "api": "x", "provider": self.noise(), "model": self.noise(),
                "usage": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 3, "cost": {}},
                "stopReason": self.pick(&["stop", "error", "toolUse"]), "errorMessage": self.noise(), "timestamp": 1,
                "content": [
                    {"type": "text", "text": self.text(marks)},
                    {"type": "thinking", "thinking": self.text(marks)},
                    {"type": "toolCall", "id": call, "name": self.text(marks), "arguments": arguments},
                    {"type": "novel", "x": self.text(marks)},
                ]}})
            }
            6..=8 => {
                let call = if calls.is_empty() { String::new() } else { self.pick(calls).clone() };
                let details =
                    json!({"diff": format!("+{}\n-{}", self.text(marks), self.noise()), "exitCode": 3});
                json!({"type": "message", "message": {"role": "toolResult", "toolCallId": call, "toolName": self.noise(),
                    "content": [{"type": "text", "text": self.text(marks)}], "isError": true, "timestamp": 1,
                    "details": details, "structuredContent": {"a": self.text(marks)}}})
            }
            9 => json!({"type": "message", "message": {"role": "system", "content": self.text(marks),
                "sections": {"a b": self.text(marks)}, "toolsAdded": [{"name": self.text(marks), "description": self.text(marks),
                "parameters": {"x": self.text(marks)}}], "timestamp": 1}}),
            10 => {
                json!({"type": "message", "message": {"role": "bashExecution", "command": self.text(marks), "output": self.text(marks),
                "exitCode": 1, "cancelled": false, "truncated": true, "fullOutputPath": self.text(marks), "timestamp": 1}})
            }
            11 => {
                json!({"type": "compaction", "summary": self.text(marks), "firstKeptEntryId": self.some_id(ids), "tokensBefore": 7})
            }
            12 => json!({"type": "branch_summary", "summary": self.text(marks), "fromId": "root"}),
            13 => {
                json!({"type": "custom_message", "customType": self.text(marks), "content": self.text(marks), "display": self.below(2) == 0})
            }
            14 => match self.below(4) {
                0 => {
                    json!({"type": "model_change", "provider": self.text(marks), "modelId": self.text(marks)})
                }
                1 => json!({"type": "session_info", "name": self.text(marks)}),
                2 => {
                    json!({"type": "custom", "customType": self.text(marks), "data": {"x": self.text(marks)}})
                }
                _ => json!({"type": "novel", "x": self.text(marks)}),
            },
            _ => json!({"type": "label", "targetId": self.some_id(ids), "label": self.text(marks)}),
        }
    }

    fn some_id(&mut self, ids: &[String]) -> String {
        if ids.is_empty() { "none".into() } else { self.pick(ids).clone() }
    }

    fn session(&mut self) -> (String, Vec<String>) {
        let mut marks = Vec::new();
        let (mut ids, mut calls) = (Vec::new(), Vec::new());
        let header = json!({"type": "session", "version": 3, "id": self.text(&mut marks), "timestamp": self.noise(),
            "cwd": self.text(&mut marks), "parentSession": self.text(&mut marks)});
        let mut file = format!("{header}\n");
        for number in 0..1 + self.below(14) {
            let mut entry = self.body(&ids, &mut calls, &mut marks);
            let id = format!("{}{number}", self.noise());
            let parent = match (ids.is_empty(), self.below(5)) {
                (true, _) => Value::Null,
                (_, 0) => json!(self.some_id(&ids)),
                _ => json!(ids[ids.len() - 1]),
            };
            entry["id"] = json!(id);
            entry["parentId"] = parent;
            entry["timestamp"] = json!("2026-01-01T00:00:00.000Z");
            ids.push(id);
            let _ = writeln!(file, "{entry}");
        }
        (file, marks)
    }
}

fn file(name: &str, content: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("tau-page-{}-{name}.jsonl", std::process::id()));
    std::fs::write(&path, content).unwrap();
    path
}

fn exported(name: &str, session: &[u8]) -> (String, Page) {
    let path = file(name, session);
    let mut html = Vec::new();
    tau::export::page(path.to_str().unwrap(), None, &mut html).unwrap();
    let _ = std::fs::remove_file(path);
    let html = String::from_utf8(html).unwrap();
    let page = page::read(&html).unwrap_or_else(|why| panic!("{why}\n{}", String::from_utf8_lossy(session)));
    (html, page)
}

/// The session that stands in the page for programs.
fn data(page: &Page) -> Value {
    let json = base64::engine::general_purpose::STANDARD.decode(&page.scripts[0]).unwrap();
    tau_core::json::parse(std::str::from_utf8(&json).unwrap()).unwrap()
}

#[test]
fn nothing_a_session_says_becomes_markup() {
    let mut random = Random(Entropy::new([7; 32]));
    let own_script = include_str!("../cli/src/export/script.js");
    for _ in 0..RUNS {
        let (session, marks) = random.session();
        let (_, page) = exported("hostile", session.as_bytes());
        assert_eq!(page.scripts.len(), 2);
        assert_eq!(page.scripts[1], own_script);
        for mark in &marks {
            assert!(page.text.contains(mark.as_str()), "{mark} is missing\n{session}");
        }
        for link in page.links.iter().filter_map(|link| link.strip_prefix('#')) {
            assert!(page.ids.contains(link), "#{link} leads nowhere\n{session}");
        }
        // Each record is there for programs, as it was.
        let given: Vec<Value> =
            session.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(data(&page)["entries"], Value::from(given));
    }
}

#[test]
fn markdown_is_well_formed_and_loses_no_letter() {
    let mut random = Random(Entropy::new([8; 32]));
    // Capitals are digits of characters that are told by their number.
    let letters = |text: &str| text.chars().filter(|c| c.is_lowercase()).collect::<String>();
    let words: Vec<&str> =
        HOSTILE.iter().copied().filter(|word| !word.contains("](") && *word != "~~~").collect();
    for _ in 0..RUNS * 20 {
        let source: String = (0..random.below(30)).map(|_| *random.pick(&words)).collect();
        let mut html = Html::default();
        markdown::render(&mut html, &source);
        let html = html.as_str();
        let page = page::read(html).unwrap_or_else(|why| panic!("{why}\n{source}\n{html}"));
        assert_eq!(letters(&page.text), letters(&source), "{source}\n{html}");
    }
}

/// A message in one of the ways a session can hold it.
fn message(id: &str, parent: Option<&str>, message: &str) -> String {
    let parent = parent.map_or_else(|| "null".to_owned(), |parent| format!("\"{parent}\""));
    format!(
        "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"message\":{message}}}\n"
    )
}

const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}\n";

fn user(text: &str) -> String {
    format!("{{\"role\":\"user\",\"content\":\"{text}\",\"timestamp\":1}}")
}

#[test]
fn damaged_lines_cost_themselves() {
    let mut session = HEADER.as_bytes().to_vec();
    session.extend_from_slice(message("a", None, &user("half \\ud83d of a pair")).as_bytes());
    session.extend_from_slice(b"{\"type\":\"message\",\"id\":\"torn\n\0\0\0\n\xff\xfe\n");
    session.extend_from_slice(message("b", Some("a"), &user("good \u{e9}")).as_bytes());
    // Invalid UTF-8 in a text, and two records on one line.
    let bad = message("c", Some("b"), &user("bad #"));
    session.extend(bad.bytes().map(|b| if b == b'#' { 0xff } else { b }));
    session.extend_from_slice(message("d", Some("c"), &user("one")).trim_end().as_bytes());
    session.extend_from_slice(message("e", Some("d"), &user("two")).as_bytes());
    session.extend_from_slice(b"{\"type\":\"message\",\"id\":\"half");
    let (_, page) = exported("damaged", &session);
    for text in ["half  of a pair", "good é", "bad \u{fffd}", "one", "two"] {
        assert!(page.text.contains(text), "{text}");
    }
    assert_eq!(page.count["article"], 5);
    assert_eq!(data(&page)["entries"].as_array().unwrap().len(), 5);
}

/// Version 1: no ids and no parents.
#[test]
fn an_older_file_is_read_and_left_alone() {
    let old = "{\"type\":\"session\",\"id\":\"s\",\"timestamp\":\"2025-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}\n\
        {\"type\":\"message\",\"timestamp\":\"2025-01-01T00:00:00.000Z\",\"message\":{\"role\":\"user\",\"content\":\"from long ago\"}}\n";
    let path = file("old", old.as_bytes());
    let mut html = Vec::new();
    tau::export::page(path.to_str().unwrap(), None, &mut html).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), old);
    let _ = std::fs::remove_file(path);
    let page = page::read(&String::from_utf8(html).unwrap()).unwrap();
    assert!(page.text.contains("from long ago"));
    assert_eq!(data(&page)["header"]["version"], 3);
}

#[test]
fn branches_are_all_reachable() {
    let session = [
        HEADER.to_owned(),
        message("a", None, &user("root")),
        message("b", Some("a"), &user("left branch")),
        message("c", Some("b"), &user("left end")),
        message("x", Some("a"), &user("third branch")),
        message("d", Some("a"), &user("right branch")),
    ]
    .concat();
    let (html, page) = exported("branches", session.as_bytes());
    assert_eq!(page.count["article"], 5);
    let order = ["root", "right branch", "left branch", "left end", "third branch"]
        .map(|text| html.rfind(&format!(">{text}<")).unwrap());
    assert!(order.is_sorted(), "{order:?}");
    let forks: Vec<&str> =
        page.links.iter().map(String::as_str).filter(|link| link.starts_with("#b")).collect();
    assert_eq!(forks, ["#b0", "#b1", "#b0", "#b1"], "in the contents, and where they begin");
    assert!(page.ids.contains("b0") && page.links.iter().filter(|link| *link == "#b0").count() == 2);
    let path = file("leaf", session.as_bytes());
    let mut html = Vec::new();
    tau::export::page(path.to_str().unwrap(), Some("c"), &mut html).unwrap();
    let _ = std::fs::remove_file(path);
    let page = page::read(&String::from_utf8(html).unwrap()).unwrap();
    assert_eq!(data(&page)["leafId"], "c");
    assert!(page.text.find("left end").unwrap() < page.text.rfind("right branch").unwrap());
}

/// The one script that may run is the one whose digest the policy names.
#[test]
fn the_policy_names_the_script() {
    use sha2::Digest as _;
    let (html, page) = exported("policy", format!("{HEADER}{}", message("a", None, &user("x"))).as_bytes());
    let digest =
        base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(page.scripts[1].as_bytes()));
    assert!(html.contains(&format!("script-src 'sha256-{digest}'")), "{digest}");
    let policies: BTreeSet<&str> =
        html.match_indices("-src ").map(|(at, _)| html[..at].rsplit([' ', '"']).next().unwrap()).collect();
    assert_eq!(
        policies.into_iter().filter(|name| name.len() < 9).collect::<Vec<_>>(),
        ["default", "img", "script", "style"]
    );
}
