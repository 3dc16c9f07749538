//! The end of RPC mode, whatever goes on: in time, with its exit code, a session that can be read, and no process left.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tau_tests::program::{Sandbox, records};
use tau_tests::server::{Part, Reply, Server, openai};
use tau_tests::talk::Talk;

const TAU: &str = env!("CARGO_BIN_EXE_tau");

/// A command that notes its children, who would stay for long, and ignores polite requests.
const STUBBORN: &str = "trap '' TERM INT HUP; sleep 300 & echo $$ $! > pids.new; mv pids.new pids; sleep 300";

/// What goes on when the end comes.
#[derive(Clone, Copy, Debug)]
enum State {
    Nothing,
    HalfRecord,
    NoAnswerYet,
    Streaming,
    Tool,
    Question,
    RetryWait,
    Shell,
    Compacting,
    Replacing,
    Closing,
}

const STATES: [State; 11] = [
    State::Nothing,
    State::HalfRecord,
    State::NoAnswerYet,
    State::Streaming,
    State::Tool,
    State::Question,
    State::RetryWait,
    State::Shell,
    State::Compacting,
    State::Replacing,
    State::Closing,
];

impl State {
    /// What the server says.
    fn script(self) -> Vec<Reply> {
        let stubborn = || openai::calls(&[("c", "bash", json!({"command": STUBBORN}))]);
        match self {
            Self::NoAnswerYet => vec![Reply::stream(vec![Part::Stall])],
            Self::Streaming => vec![openai::stalled("and")],
            Self::Tool | Self::Question => vec![stubborn()],
            Self::RetryWait => vec![Reply::error(500, "broken")],
            Self::Compacting => vec![openai::text("one"), openai::text("two"), openai::stalled("and")],
            Self::Nothing | Self::HalfRecord | Self::Shell | Self::Replacing | Self::Closing => Vec::new(),
        }
    }

    /// Brings it about in a session.
    fn reach(self, talk: &mut Talk, place: &Sandbox, session: &Value) {
        let with = |mut command: Value| {
            if !session.is_null() {
                command["sessionId"] = session.clone();
            }
            command
        };
        let prompt = |text: &str| with(json!({"type": "prompt", "message": text}));
        match self {
            Self::Nothing => {}
            Self::HalfRecord => talk.send_bytes(b"{\"type\":\"prompt\",\"mess"),
            Self::NoAnswerYet => drop(talk.data("p", prompt("x"))),
            Self::Streaming | Self::Question | Self::RetryWait | Self::Tool => {
                let sign = match self {
                    Self::Streaming => "message_update",
                    Self::Question => "extension_ui_request",
                    Self::RetryWait => "auto_retry_start",
                    _ => "tool_execution_start",
                };
                let _ = talk.data("p", prompt("x"));
                let _ = talk.wait(&with(json!({"type": sign})));
            }
            Self::Compacting => {
                for text in ["first ", "second "] {
                    let _ = talk.data("p", prompt(&text.repeat(3000)));
                    let _ = talk.wait(&with(json!({"type": "agent_settled"})));
                }
                talk.send(&with(json!({"id": "c", "type": "compact"})));
                let _ = talk.wait(&with(json!({"type": "compaction_start"})));
            }
            Self::Shell | Self::Replacing | Self::Closing => {
                talk.send(&with(json!({"id": "b", "type": "bash", "command": STUBBORN})));
            }
        }
        if matches!(self, Self::Tool | Self::Shell | Self::Replacing | Self::Closing) {
            let end = Instant::now() + Duration::from_secs(20);
            while !place.work().join("pids").exists() {
                assert!(Instant::now() < end, "{self:?}: the command did not start");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        match self {
            Self::Replacing => talk.send(&with(json!({"id": "n", "type": "new_session"}))),
            Self::Closing if !session.is_null() => {
                talk.send(&with(json!({"id": "n", "type": "close_session"})))
            }
            _ => {}
        }
    }
}

fn is_gone(process: &str) -> bool {
    let state = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    state.is_empty() || state.contains(") Z ")
}

fn end_in(state: State, beside: bool, signal: Option<i32>) {
    let place = Sandbox::new(TAU);
    let server = Server::start(state.script());
    place.configure(&server);
    place.settings(&json!({
        "retry": {"enabled": matches!(state, State::RetryWait), "baseDelayMs": 60_000},
        "compaction": {"keepRecentTokens": 100},
    }));
    let asks: &[&str] = if matches!(state, State::Question) { &["--permission", "ask"] } else { &[] };
    let mut talk = Talk::start(place.command(&[&["--mode", "rpc"], asks].concat()));
    let _ = talk.data("s", json!({"type": "get_state"}));
    let open = |talk: &mut Talk| talk.data("o", json!({"type": "open_session"}))["sessionId"].clone();
    let session = if beside { open(&mut talk) } else { Value::Null };
    state.reach(&mut talk, &place, &session);
    let begun = Instant::now();
    let (run, code) = match signal {
        Some(number) => {
            talk.signal(number);
            (talk.wait_exit(), 128 + number)
        }
        None => (talk.finish(), 0),
    };
    let case = format!("{state:?}, beside: {beside}, signal: {signal:?}");
    assert_eq!((run.code, run.err.as_str()), (Some(code), ""), "{case}");
    assert!(begun.elapsed() < Duration::from_secs(6), "{case}: {:?}", begun.elapsed());
    // Whole records only.
    let _ = run.events();
    for file in place.sessions() {
        assert!(fs::read(&file).unwrap().ends_with(b"\n") && !records(&file).is_empty(), "{case}");
    }
    let pids = fs::read_to_string(place.work().join("pids")).unwrap_or_default();
    let left = || pids.split_whitespace().filter(|process| !is_gone(process)).count();
    let end = Instant::now() + Duration::from_secs(5);
    while left() > 0 {
        assert!(Instant::now() < end, "{case}: {} processes stay", left());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_signal_ends_everything() {
    STATES.into_iter().for_each(|state| end_in(state, false, Some(15)));
}

#[test]
fn a_signal_ends_everything_of_other_sessions() {
    STATES.into_iter().for_each(|state| end_in(state, true, Some(1)));
}

#[test]
fn the_end_of_input_ends_everything() {
    STATES.into_iter().for_each(|state| end_in(state, false, None));
}

#[test]
fn the_end_of_input_ends_everything_of_other_sessions() {
    STATES.into_iter().for_each(|state| end_in(state, true, None));
}
