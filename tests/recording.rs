//! What a log consists of (D60): small chunks become few records, nothing that came in is missing, and the log is the run.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tau_core::hub::{Hub, Output};
use tau_core::ids::OpId;
use tau_core::input::{Command, Input, Reply};
use tau_core::now::{Mono, Now, Wall};
use tau_core::op::{Credential, Op, Outcome, Stream};
use tau_core::record::{Log, Places, Recorder, Replay, Step};
use tau_tests::drive::{boot, session};

const KEY: &str = "sk-secret-of-the-test-0123456789";

/// The log is in two hands: of the hub, and of the test.
struct Shared(Arc<Mutex<Log>>);

impl Recorder for Shared {
    fn renewed(&mut self, now: Now, boot: &tau_core::hub::Boot) {
        self.0.lock().unwrap().renewed(now, boot);
    }
    fn input(&mut self, now: Now, input: &Input) {
        self.0.lock().unwrap().input(now, input);
    }
    fn command(&mut self, now: Now, command: &Command) {
        self.0.lock().unwrap().command(now, command);
    }
    fn env(&mut self, env: &tau_core::tools::ToolEnv) {
        self.0.lock().unwrap().env(env);
    }
    fn output(&mut self, output: &Output) {
        self.0.lock().unwrap().output(output);
    }
    fn drained(&mut self) {
        self.0.lock().unwrap().drained();
    }
}

struct Run {
    hub: Hub,
    log: Arc<Mutex<Log>>,
    bytes: Arc<Mutex<Vec<u8>>>,
    now: Now,
    op: OpId,
}

impl Run {
    /// A recorded machine whose request is answered with a head.
    fn start() -> Self {
        let now = Now { mono: Mono(1), wall: Wall(1_788_315_987_887) };
        let boot = boot("openai-completions", Vec::new(), session(now));
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let places = Places {
            sink: Box::new(move |bytes, _| sink.lock().unwrap().extend_from_slice(bytes)),
            read: Box::new(|_| None),
            apart: None,
        };
        let log = Arc::new(Mutex::new(Log::begin("test", now, &boot, places)));
        let mut hub = Hub::new(boot, now);
        hub.record(Box::new(Shared(Arc::clone(&log))));
        let mut run = Self { hub, log, bytes, now, op: OpId(0) };
        run.give(Input::Command(Command::Prompt { text: "go".into(), images: Vec::new() }));
        let credential = Credential { api_key: Some(KEY.into()), ..Credential::default() };
        run.reply(Reply::Done(Outcome::Secret(Ok(credential))));
        let headers = vec![("content-type".into(), "text/event-stream".into())];
        run.reply(Reply::Head { status: 200, headers });
        run
    }

    /// Gives an input and polls all that follows.
    fn give(&mut self, input: Input) {
        self.hub.handle(self.now, input);
        while let Some(output) = self.hub.poll() {
            if let Output::Start { op, what: Op::Secret(_) | Op::Http(_) } = output {
                self.op = op;
            }
        }
    }

    fn reply(&mut self, reply: Reply) {
        self.give(Input::Reply { op: self.op, reply });
    }

    fn chunk(&mut self, after_ms: u64, bytes: &[u8]) {
        self.now = Now { mono: self.now.mono.plus(after_ms), ..self.now };
        self.reply(Reply::Chunk { stream: Stream::Body, bytes: bytes.to_vec() });
    }

    fn log(&self) -> Vec<u8> {
        self.bytes.lock().unwrap().clone()
    }
}

fn delta(text: &str) -> Vec<u8> {
    let event =
        serde_json::json!({"id": "r", "model": "m1", "choices": [{"index": 0, "delta": {"content": text}}]});
    format!("data: {event}\n\n").into_bytes()
}

const END: &[u8] = b"data: {\"id\":\"r\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// Sizes of the chunks in a log.
fn chunks(log: &[u8]) -> Vec<usize> {
    let lines =
        log.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    lines.filter_map(|line| Some(line.get("raw")?.as_u64()? as usize)).collect()
}

/// Runs a log again; the machine at its end.
fn again(log: &[u8]) -> Hub {
    let (mut replay, mut rest) = (Replay::new(), log);
    while let Some((step, behind)) = replay.record(rest).unwrap() {
        assert!(matches!(step, Step::Same(_)), "{step:?}");
        rest = behind;
    }
    assert!(rest.is_empty(), "half a record: {:?}", String::from_utf8_lossy(rest));
    assert!(matches!(replay.end().unwrap(), Step::Same(_)));
    replay.into_hub().unwrap()
}

/// The messages of a session, and what a machine is at.
fn talk(hub: &Hub) -> String {
    format!("{:?} {}", hub.desk().session().context().messages, hub.is_settled())
}

#[test]
fn small_chunks_become_few_records() {
    let mut run = Run::start();
    for n in 0..2_000 {
        run.chunk(2, &delta(&format!("word {n} ")));
    }
    run.chunk(2, END);
    run.reply(Reply::Done(Outcome::BodyEnd));
    let log = run.log();
    let sizes = chunks(&log);
    // 4 s of stream, 200 kB: a record for each second or each 16 KiB, beside the first and the last chunk.
    assert!((5..20).contains(&sizes.len()), "{} chunks", sizes.len());
    let hub = again(&log);
    assert!(talk(&hub) == talk(&run.hub));
}

/// Wherever the splits are: half lines, several events in a chunk, pauses, large ones between small ones.
#[test]
fn any_split_is_the_same_again() {
    let mut body: Vec<u8> = (0..300).flat_map(|n| delta(&format!("word {n} \u{e9}"))).collect();
    body.extend(delta(&"long ".repeat(10_000)));
    body.extend((0..300).flat_map(|n| delta(&format!("more {n} "))));
    body.extend(END);
    for seed in 1..40_u64 {
        let mut state = seed;
        let mut dice = |sides: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % sides
        };
        let (mut run, mut rest) = (Run::start(), &body[..]);
        while !rest.is_empty() {
            let large = dice(20) == 0;
            let size = if large { dice(40_000) } else { dice(200) } as usize + 1;
            let (chunk, behind) = rest.split_at(size.min(rest.len()));
            let pause = if dice(30) == 0 { 700 } else { dice(5) };
            run.chunk(pause, chunk);
            rest = behind;
            // A message beside the stream, between two chunks.
            if dice(50) == 0 {
                run.give(Input::Command(Command::FollowUp { text: "and then".into(), images: Vec::new() }));
            }
            if dice(50) == 0 {
                run.log.lock().unwrap().flush();
            }
        }
        if seed % 2 == 0 {
            run.reply(Reply::Done(Outcome::BodyEnd));
        }
        run.log.lock().unwrap().flush();
        let log = run.log();
        assert_eq!(chunks(&log).iter().sum::<usize>(), body.len(), "seed {seed}");
        let hub = again(&log);
        assert!(talk(&hub) == talk(&run.hub), "seed {seed}");
    }
}

/// What is held back is not lost: a log that is flushed in the middle of an input ends with it.
#[test]
fn a_log_can_end_at_any_input() {
    for polled in [true, false] {
        let mut run = Run::start();
        run.chunk(1, &delta("one "));
        run.chunk(1, &delta("two "));
        let last = delta("the last one");
        if polled {
            run.chunk(1, &last);
        } else {
            let reply = Reply::Chunk { stream: Stream::Body, bytes: last };
            run.hub.handle(run.now, Input::Reply { op: run.op, reply });
        }
        let before = run.log();
        assert!(!before.windows(12).any(|part| part == b"the last one"));
        run.log.lock().unwrap().flush();
        let log = run.log();
        assert!(log.windows(12).any(|part| part == b"the last one"));
        again(&log);
        // It goes on behind that.
        while run.hub.poll().is_some() {}
        run.chunk(1, &delta("afterwards"));
        run.chunk(1, END);
        run.reply(Reply::Done(Outcome::BodyEnd));
        again(&run.log());
    }
}

/// A service that repeats the key, in pieces or not.
#[test]
fn secrets_in_small_chunks_are_starred_out() {
    let mut run = Run::start();
    run.chunk(1, &delta("first"));
    let telling = delta(&format!("your key is {KEY}, is it not"));
    for piece in telling.chunks(9) {
        run.chunk(1, piece);
    }
    run.chunk(1, END);
    let log = run.log();
    assert!(!String::from_utf8_lossy(&log).contains("of-the-test"), "{}", String::from_utf8_lossy(&log));
}
