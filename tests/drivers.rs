//! Both drivers show the same events for the same dialogue.

#![allow(missing_docs)]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::{Arc, Mutex};

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use tau_core::event::Event;
use tau_core::hub::Hub;
use tau_core::input::Command;
use tau_core::settings::{Scope, Source, load};
use tau_core::tools::BUILTIN_NAMES;
use tau_io_std::embed::{HostTool, Options};
use tau_io_std::machine::{Sink, SinkFlow};
use tau_io_std::sys::clock::Clock;
use tau_tests::server::{Part, Reply, Server, openai};

/// What the model says.
#[derive(Clone, Debug)]
enum Saying {
    Texts(Vec<String>),
    /// Calls of a tool that tells a number of intermediate results.
    Calls(Vec<u8>),
    /// Calls of built-in tools, one after the other; numbers choose them.
    Works(Vec<u8>),
    Cut(String),
    Refused(u16),
    /// The connection closes in the middle of the text.
    Broken(String),
}

/// A dialogue, and how its bytes arrive: in pieces of this size, or one event at a time.
#[derive(Clone, Debug)]
struct Dialogue {
    sayings: Vec<Saying>,
    pieces: Option<usize>,
    follow_ups: usize,
    retries: bool,
}

fn saying() -> impl Strategy<Value = Saying> {
    let text = "[a-zé😀 \n]{0,12}";
    prop_oneof![
        4 => vec(text, 1..6).prop_map(Saying::Texts),
        4 => vec(0..4u8, 1..4).prop_map(Saying::Calls),
        4 => vec(any::<u8>(), 1..4).prop_map(Saying::Works),
        1 => text.prop_map(Saying::Cut),
        1 => prop_oneof![Just(400u16), Just(429), Just(500)].prop_map(Saying::Refused),
        1 => text.prop_map(Saying::Broken),
    ]
}

fn dialogue() -> impl Strategy<Value = Dialogue> {
    (vec(saying(), 1..7), prop_oneof![Just(None), (1..80usize).prop_map(Some)], 0..3usize, any::<bool>())
        .prop_map(|(sayings, pieces, follow_ups, retries)| Dialogue { sayings, pieces, follow_ups, retries })
}

/// A call of a built-in tool: files of a few names, commands, searches, and what fails.
fn work(number: u8) -> (&'static str, serde_json::Value) {
    let file = format!("file{}.txt", number % 3);
    match number / 3 % 10 {
        0 | 1 => ("write", json!({"path": file, "content": format!("one\ntwo {number}\nthree\n")})),
        2 => ("read", json!({"path": file})),
        3 => ("edit", json!({"path": file, "edits": [{"oldText": "two", "newText": "2"}]})),
        4 => (
            "bash",
            json!({"command": format!("printf 'é😀'; echo err >&2; cat {file}; exit {}", number % 3)}),
        ),
        5 => ("bash", json!({"command": "seq 1 3000"})),
        6 => ("grep", json!({"pattern": "t(wo|hree)"})),
        7 => ("find", json!({"pattern": "*.txt"})),
        8 => ("ls", json!({})),
        _ => ("read", json!({"path": "no/such/file"})),
    }
}

impl Dialogue {
    fn replies(&self) -> Vec<Reply> {
        let reply = |saying: &Saying| match saying {
            Saying::Texts(texts) => openai::texts(&texts.iter().map(String::as_str).collect::<Vec<_>>()),
            Saying::Calls(steps) => {
                let ids: Vec<String> = (0..steps.len()).map(|at| format!("call_{at}")).collect();
                let calls = ids.iter().zip(steps);
                let calls = calls.map(|(id, steps)| (id.as_str(), "count", json!({"steps": steps})));
                openai::calls(&calls.collect::<Vec<_>>())
            }
            Saying::Works(numbers) => {
                let ids: Vec<String> = (0..numbers.len()).map(|at| format!("work_{at}")).collect();
                let calls = ids.iter().zip(numbers).map(|(id, number)| {
                    let (name, args) = work(*number);
                    (id.as_str(), name, args)
                });
                openai::calls(&calls.collect::<Vec<_>>())
            }
            Saying::Cut(text) => openai::cut(text),
            Saying::Refused(status) => Reply::error(*status, "not now"),
            Saying::Broken(text) => {
                let mut reply = openai::text(text);
                reply.parts.truncate(1);
                reply.then(Part::Close)
            }
        };
        let split = |mut reply: Reply| {
            let Some(size) = self.pieces else { return reply };
            reply = reply.at_once();
            reply.parts = reply
                .parts
                .into_iter()
                .flat_map(|part| match part {
                    Part::Bytes(bytes) => {
                        bytes.chunks(size).map(|piece| Part::Bytes(piece.to_vec())).collect::<Vec<_>>()
                    }
                    other => vec![other],
                })
                .collect();
            reply
        };
        self.sayings.iter().map(reply).map(split).collect()
    }
}

/// The face that both engines have.
macro_rules! shown_by {
    ($engine:path, $dialogue:expr) => {{
        let dialogue: &Dialogue = $dialogue;
        let server = Server::start(dialogue.replies());
        let settings = json!({"retry": {"enabled": dialogue.retries, "baseDelayMs": 1, "maxRetries": 2}});
        let settings = settings.to_string();
        let source = Source { scope: Scope::Global, path: "settings.json", text: Ok(Some(&settings)) };
        let schema = r#"{"type":"object","properties":{"steps":{"type":"integer"}},"required":["steps"]}"#;
        let count = HostTool::new("count", "Counts.", schema, |call| {
            let steps = call.args()["steps"].as_u64().unwrap_or(0);
            for step in 0..steps {
                call.update(format!("step {step}"));
            }
            if steps == 3 { Err("three is too many".into()) } else { Ok(format!("counted {steps}")) }
        });
        let base_url = format!("{}/v1", server.url());
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().canonicalize().unwrap().to_str().unwrap().to_owned();
        let options = Options::server(&base_url, "openai-completions", "m1")
            .key("k")
            .cwd(&place)
            .tools(BUILTIN_NAMES)
            .sequential_tools()
            .host_tool(count)
            .settings(load(&[source]).0);
        let mut parts = options.into_parts().unwrap();
        parts.boot.seed = [7; 32];
        let clock = Clock::start();
        let hub = Hub::new(parts.boot, clock.now());
        let events = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&events);
        let sink: Sink<Hub> = Box::new(move |event: &Event, _: &Hub| {
            seen.lock().unwrap().push(match event {
                // When the output of a command is shown depends on when it came.
                Event::ToolUpdate { name, .. } if &**name == "bash" => return SinkFlow::Go,
                // Its usage is what has arrived by then, which the network decides.
                Event::MessageUpdate { update, .. } => format!("{update:?}"),
                event => format!("{event:?}"),
            });
            SinkFlow::Go
        });
        let engine = <$engine>::new(hub, clock, parts.handlers, sink).unwrap();
        let text = |text: String| (text, Vec::new());
        let now = engine.now();
        engine.with_mut(|hub| {
            let (prompt, images) = text("begin".into());
            hub.command(now, Command::Prompt { text: prompt, images }).unwrap();
            for number in 0..dialogue.follow_ups {
                let (text, images) = text(format!("and then {number}"));
                hub.command(now, Command::FollowUp { text, images }).unwrap();
            }
        });
        engine.wait_idle();
        let url = server.url();
        let masked = |text: &str| mask(&text.replace(&url, "http://server").replace(&place, "/folder"));
        let asked: Vec<_> =
            server.requests().into_iter().map(|request| masked(&request.body.to_string())).collect();
        let events: Vec<String> = events.lock().unwrap().iter().map(|event| masked(event)).collect();
        (events, asked)
    }};
}

/// Without what the clock says: numbers of many digits are times, and a session's id begins with one.
fn mask(event: &str) -> String {
    let mut parts = event.split("duration_ms: Some(");
    let first = parts.next().unwrap_or_default().to_owned();
    let event =
        parts.fold(first, |all, part| all + "took (" + part.trim_start_matches(|c: char| c.is_ascii_digit()));
    let mut masked = String::new();
    let mut word = String::new();
    for c in event.chars().chain(['\0']) {
        let inside = !word.is_empty() && matches!(c, ':' | '.') && word.starts_with("20");
        if c.is_ascii_alphanumeric() || c == '-' || inside {
            word.push(c);
            continue;
        }
        let digits = word.chars().filter(char::is_ascii_digit).count();
        // So are names of files that hold the whole output of a command.
        let is_file = word.contains("-bash-");
        let is_time = is_file || digits >= 12 || (word.len() == 36 && word.matches('-').count() == 4);
        masked.push_str(if is_time { "<time>" } else { &word });
        word.clear();
        if c != '\0' {
            masked.push(c);
        }
    }
    masked
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_show_the_same(dialogue in dialogue()) {
        let (std, asked_by_std) = shown_by!(tau_io_std::driver::Engine<Hub>, &dialogue);
        let (smol, asked_by_smol) = shown_by!(tau_io_smol::engine::Engine<Hub>, &dialogue);
        for (at, (one, other)) in std.iter().zip(&smol).enumerate() {
            prop_assert_eq!(one, other, "event {} of {}", at, std.len());
        }
        prop_assert_eq!(std.len(), smol.len());
        prop_assert_eq!(asked_by_std, asked_by_smol);
        prop_assert!(std.len() > 5);
    }
}
