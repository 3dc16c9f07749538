//! A request that brought no response is sent again (spec 10 §5.4): the waits, the limits, what ends them.

#![allow(clippy::unwrap_used, reason = "for tests")]

use std::sync::Arc;

use serde_json::json;
use tau_core::agent::AgentConfig;
use tau_core::event::Event;
use tau_core::fault::{FaultKind, IoFault};
use tau_core::harness::DeskBoot;
use tau_core::hub::{Boot, Hub, Output};
use tau_core::ids::OpId;
use tau_core::input::{Command, Input, QueueMode, Reply};
use tau_core::message::{AssistantMessage, StopReason};
use tau_core::model::ThinkingLevel;
use tau_core::now::{Mono, Now, Wall};
use tau_core::op::{Credential, Op, Outcome, Stream};
use tau_core::provider::RequestOptions;
use tau_core::retry::classify::{Class, classify};
use tau_core::session::{Header, Session};
use tau_core::tools::ToolEnv;
use tau_tests::drive::model;

/// Claims of a token of ChatGPT.
const ACCOUNT: &str =
    "eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjdC0xMjMifX0";

/// A hub after a prompt, and what it did so far.
struct World {
    hub: Hub,
    now: Now,
    /// Each request with the key it was sent with.
    requests: Vec<(Vec<u8>, String)>,
    http: Option<OpId>,
    secrets: u32,
    cancels: u32,
    replies: Vec<Arc<AssistantMessage>>,
    events: Vec<&'static str>,
}

impl World {
    fn new(max_retries: u64, max_retry_delay_ms: u64) -> Self {
        Self::of("openai-completions", max_retries, max_retry_delay_ms)
    }

    fn of(api: &str, max_retries: u64, max_retry_delay_ms: u64) -> Self {
        let options = RequestOptions { max_retries, max_retry_delay_ms, ..RequestOptions::default() };
        Self::with(api, options)
    }

    fn with(api: &str, options: RequestOptions) -> Self {
        let now = Now { mono: Mono(1), wall: Wall(1_788_315_987_887) };
        let header = Header::new("again".into(), now.wall, "/w".into(), None);
        let boot = Boot {
            seed: [3; 32],
            desk: DeskBoot {
                session: Session::new(header, None),
                model: Arc::new(model(api)),
                thinking: ThinkingLevel::Off,
                tools: Vec::new(),
                prompt: vec![("base".into(), "You are a test.".into())],
                config: AgentConfig::default(),
                steering_mode: QueueMode::OneAtATime,
                settings: Arc::default(),
                follow_up_mode: QueueMode::OneAtATime,
            },
            env: Arc::new(ToolEnv::default()),
            options,
            block_images: false,
        };
        let mut world = Self {
            hub: Hub::new(boot, now),
            now,
            requests: Vec::new(),
            http: None,
            secrets: 0,
            cancels: 0,
            replies: Vec::new(),
            events: Vec::new(),
        };
        // Failures are to stay: the layer above would try again.
        world.give(Input::Command(Command::SetAutoRetry(false)));
        world.give(Input::Command(Command::Prompt { text: "go".into(), images: Vec::new() }));
        world
    }

    fn give(&mut self, input: Input) {
        self.hub.handle(self.now, input);
        while let Some(output) = self.hub.poll() {
            match output {
                Output::Start { op, what: Op::Secret(_) } => {
                    // Keys may be refreshed between two attempts.
                    self.secrets += 1;
                    // In the form of ChatGPT's tokens, which are keys like others to everybody else.
                    let api_key = Some(format!("key {}.{ACCOUNT}.s", self.secrets));
                    let credential = Credential { api_key, ..Credential::default() };
                    let reply = Reply::Done(Outcome::Secret(Ok(credential)));
                    self.hub.handle(self.now, Input::Reply { op, reply });
                }
                Output::Start { op, what: Op::Http(request) } => {
                    let mut headers = request.headers.iter();
                    let key = headers.find(|(name, _)| name == "authorization").unwrap().1.clone();
                    self.requests.push((request.body.to_vec(), key));
                    self.http = Some(op);
                }
                Output::Start { what, .. } => panic!("unexpected op {what:?}"),
                Output::Event(event) => self.see(event),
                Output::Cancel { .. } => self.cancels += 1,
            }
        }
    }

    fn see(&mut self, event: Event) {
        self.events.push(match event {
            Event::MessageEnd(message) => match message.as_assistant() {
                Some(reply) => {
                    self.replies.push(Arc::new(reply.clone()));
                    "reply"
                }
                None => "message",
            },
            Event::AgentEnd { .. } => "end",
            Event::AgentSettled { .. } => "settled",
            _ => return,
        });
    }

    fn reply(&mut self, reply: Reply) {
        let op = self.http.unwrap();
        self.give(Input::Reply { op, reply });
    }

    fn status(&mut self, status: u16, headers: &[(&str, &str)]) {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        self.reply(Reply::Head { status, headers });
        let bytes = br#"{"error":{"message":"words of the service"}}"#.to_vec();
        self.reply(Reply::Chunk { stream: Stream::Body, bytes });
        self.reply(Reply::Done(Outcome::BodyEnd));
    }

    fn answer(&mut self) {
        self.reply(Reply::Head { status: 200, headers: Vec::new() });
        let delta = json!({"content": "fine"});
        let chunk = json!({"id": "r", "choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]});
        let bytes = format!("data: {chunk}\n\ndata: [DONE]\n\n").into_bytes();
        self.reply(Reply::Chunk { stream: Stream::Body, bytes });
        self.reply(Reply::Done(Outcome::BodyEnd));
    }

    /// Milliseconds to the deadline.
    fn wait(&self) -> Option<u64> {
        self.hub.poll_timeout().map(|at| at.since(self.now.mono))
    }

    fn pass(&mut self, ms: u64) {
        self.now.mono = self.now.mono.plus(ms);
        self.give(Input::Tick);
    }

    fn failure(&self) -> &str {
        assert!(self.hub.is_idle() && self.hub.poll_timeout().is_none());
        assert_eq!(self.replies.len(), 1);
        self.replies[0].error_message.as_deref().unwrap()
    }
}

#[test]
fn the_same_request_goes_out_again_with_fresh_credentials() {
    let mut world = World::new(3, 60_000);
    world.status(503, &[]);
    let first = world.wait().unwrap();
    assert!((375..=500).contains(&first), "{first}");
    world.pass(first - 1);
    assert_eq!(world.requests.len(), 1, "too early");
    world.pass(1);
    assert_eq!((world.requests.len(), world.wait()), (2, None));
    world.reply(Reply::Failed(IoFault::new(FaultKind::Reset, "connection reset")));
    let second = world.wait().unwrap();
    assert!((750..=1000).contains(&second), "{second}");
    world.pass(second);
    world.reply(Reply::Done(Outcome::BodyEnd));
    world.pass(world.wait().unwrap());
    world.answer();
    assert_eq!(world.events, ["message", "message", "reply", "end", "settled"]);
    assert_eq!(world.replies[0].stop_reason, StopReason::Stop);
    let keys: Vec<&str> = world.requests.iter().map(|(_, key)| key.as_str()).collect();
    let wanted = [1, 2, 3, 4].map(|number| format!("Bearer key {number}.{ACCOUNT}.s"));
    assert_eq!(keys, wanted);
    assert!(world.requests.iter().all(|(body, _)| *body == world.requests[0].0));
    assert!(world.hub.is_idle());
}

/// The status says enough: a refusal without end is neither read nor waited for.
#[test]
fn the_body_of_a_refusal_has_limits() {
    let long = vec![b'x'; 40_000];
    for (pieces, wait) in [(0, Some(5000)), (1, Some(5000)), (2, Some(0))] {
        let mut world = World::new(0, 60_000);
        world.reply(Reply::Head { status: 401, headers: Vec::new() });
        for _ in 0..pieces {
            world.reply(Reply::Chunk { stream: Stream::Body, bytes: long.clone() });
        }
        assert_eq!((world.wait(), world.replies.len(), world.cancels), (wait, 0, 0), "{pieces}");
        world.pass(wait.unwrap());
        assert_eq!(world.cancels, 1, "{pieces}");
        let text = world.replies[0].error_message.clone().unwrap();
        assert!(text.starts_with("401 ") && text.contains("tau auth"), "{text}");
        // What still comes of it is nobody's.
        world.reply(Reply::Failed(IoFault::new(FaultKind::Cancelled, "cancelled")));
        assert_eq!(world.failure(), text);
    }
}

/// Bytes that only keep a connection alive do not count: the reply must be complete in time.
#[test]
fn a_reply_must_be_complete_in_time() {
    let options =
        RequestOptions { total_timeout_ms: Some(1000), max_retries: 1, ..RequestOptions::default() };
    // Before the head: the request is sent again, and gets as much time.
    let mut world = World::with("openai-completions", options.clone());
    assert_eq!(world.wait(), Some(1000));
    world.pass(1000);
    assert_eq!((world.cancels, world.requests.len()), (1, 1));
    world.pass(world.wait().unwrap());
    assert_eq!((world.requests.len(), world.wait()), (2, Some(1000)));
    world.pass(999);
    world.answer();
    assert_eq!((world.replies[0].stop_reason, world.cancels), (StopReason::Stop, 1));
    // Within the body.
    let mut world = World::with("openai-completions", options);
    world.reply(Reply::Head { status: 200, headers: Vec::new() });
    for _ in 0..9 {
        world.pass(100);
        world.reply(Reply::Chunk { stream: Stream::Body, bytes: b": alive\n\n".to_vec() });
    }
    assert_eq!((world.wait(), world.replies.len()), (Some(100), 0));
    world.pass(100);
    assert_eq!((world.cancels, world.replies.len()), (1, 1));
    world.reply(Reply::Failed(IoFault::new(FaultKind::Cancelled, "cancelled")));
    let text = world.failure();
    assert!(text.contains("within 1000 ms") && text.contains("totalTimeoutMs"), "{text}");
    assert_eq!(classify(text), Class::Transient);
}

#[test]
fn what_the_service_asks_for_is_waited() {
    for (name, value, wait) in [("retry-after-ms", "1234.5", 1235), ("retry-after", "60", 60_000)] {
        let mut world = World::new(1, 60_000);
        world.status(429, &[(name, value)]);
        assert_eq!(world.wait(), Some(wait), "{name}: {value}");
    }
}

#[test]
fn a_final_refusal_tells_what_the_service_asked_for() {
    // Retries, limit of the wait, status, headers, what is known afterwards.
    for (retries, most, status, headers, asked) in [
        (0, 60_000, 429, &[("retry-after", "7")][..], Some(7000.0)),
        // Without retries nothing was refused here: the layer above has a limit of its own.
        (0, 60_000, 429, &[("retry-after", "3600")], Some(3_600_000.0)),
        (1, 60_000, 429, &[("retry-after", "3600")], None),
        (1, 60_000, 400, &[("retry-after", "9")], Some(9000.0)),
        (5, 60_000, 503, &[("x-should-retry", "false")], None),
    ] {
        let mut world = World::new(retries, most);
        world.status(status, headers);
        assert!(world.failure().contains("words of the service"));
        assert_eq!(world.hub.last_asked_ms(), asked, "{retries} {status} {headers:?}");
        assert_eq!(world.requests.len(), 1);
    }
}

#[test]
fn a_wait_above_the_limit_is_a_failure_that_names_both() {
    let mut world = World::new(5, 60_000);
    world.status(429, &[("retry-after", "3600")]);
    let text = world.failure();
    assert!(text.contains("3600 s") && text.contains("60 s") && text.contains("retry delay"), "{text}");
}

#[test]
fn a_limit_of_zero_allows_any_wait() {
    let mut world = World::new(1, 0);
    world.status(429, &[("retry-after", "1e300")]);
    // Longer than any clock: only an abort ends it.
    assert!(world.wait().unwrap() > u64::MAX / 2);
    world.give(Input::Command(Command::Abort));
    assert_eq!(world.replies[0].stop_reason, StopReason::Aborted);
}

#[test]
fn retries_run_out() {
    let mut world = World::new(2, 60_000);
    for _ in 0..2 {
        world.status(500, &[("retry-after-ms", "1")]);
        world.pass(world.wait().unwrap());
    }
    world.status(500, &[("retry-after-ms", "1")]);
    assert!(world.failure().starts_with("500 "));
    assert_eq!((world.requests.len(), world.hub.last_asked_ms()), (3, Some(1.0)));
    // The next prompt starts afresh.
    world.give(Input::Command(Command::Prompt { text: "again".into(), images: Vec::new() }));
    assert_eq!(world.hub.last_asked_ms(), None);
    world.status(500, &[]);
    assert!(world.wait().is_some());
}

#[test]
fn what_another_try_does_not_help_fails_at_once() {
    let faults = [FaultKind::Tls, FaultKind::Invalid, FaultKind::TooBig];
    for kind in faults {
        let mut world = World::new(5, 60_000);
        world.reply(Reply::Failed(IoFault::new(kind, "no")));
        world.failure();
    }
}

/// The service of ChatGPT says in words whether another try helps; its waits double from one second on.
#[test]
fn chatgpt_has_a_rule_of_its_own() {
    let refused = |words: &str| {
        let mut world = World::of("openai-codex-responses", 5, 60_000);
        world.reply(Reply::Head { status: 429, headers: Vec::new() });
        let bytes = json!({"error": {"type": words}}).to_string().into_bytes();
        world.reply(Reply::Chunk { stream: Stream::Body, bytes });
        world.reply(Reply::Done(Outcome::BodyEnd));
        world
    };
    assert!(refused("usage_limit_reached").failure().contains("usage limit"));
    let mut world = refused("slow_down");
    for wait in [1_000, 2_000, 4_000] {
        assert_eq!(world.wait(), Some(wait));
        world.pass(wait);
        world.status(503, &[]);
    }
}

#[test]
fn a_response_that_began_is_never_sent_again() {
    let mut world = World::new(5, 60_000);
    world.reply(Reply::Head { status: 200, headers: Vec::new() });
    world.reply(Reply::Failed(IoFault::new(FaultKind::Reset, "connection reset")));
    world.failure();
    assert_eq!(world.requests.len(), 1);
}

#[test]
fn an_abort_ends_the_wait_at_once() {
    let mut world = World::new(5, 60_000);
    world.status(503, &[]);
    world.give(Input::Command(Command::Abort));
    assert_eq!(world.replies[0].stop_reason, StopReason::Aborted);
    world.failure();
    // The deadline of a wait that is over does nothing.
    world.pass(10_000);
    assert_eq!(world.requests.len(), 1);
}

#[test]
fn an_abort_while_the_refusal_is_read_ends_the_request() {
    let mut world = World::new(5, 60_000);
    world.reply(Reply::Head { status: 503, headers: Vec::new() });
    world.give(Input::Command(Command::Abort));
    world.reply(Reply::Failed(IoFault::cancelled()));
    assert_eq!(world.replies[0].stop_reason, StopReason::Aborted);
    world.failure();
}
