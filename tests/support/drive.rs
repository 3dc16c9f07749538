//! A hub with one request open, to be fed by hand.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "for tests")]

use std::sync::Arc;

use tau_core::agent::AgentConfig;
use tau_core::harness::DeskBoot;
use tau_core::hub::{Boot, Hub, Output};
use tau_core::ids::OpId;
use tau_core::input::{Command, Input, QueueMode, Reply};
use tau_core::message::Message;
use tau_core::model::{Model, ThinkingLevel};
use tau_core::now::{Mono, Now, Wall};
use tau_core::op::{Credential, HttpRequest, Op, Outcome, Stream};
use tau_core::provider::RequestOptions;
use tau_core::session::{EntryBody, Header, Session};
use tau_core::tools::{Tool, ToolEnv};

/// A hub, its request and the last time it was given.
#[derive(Debug)]
pub struct Driven {
    /// The hub.
    pub hub: Hub,
    /// The open request.
    pub op: OpId,
    /// What was requested.
    pub request: HttpRequest,
    now: Now,
}

/// A model of a protocol on a server that does not exist.
#[must_use]
pub fn model(api: &str) -> Model {
    Model {
        id: "m1".into(),
        api: api.into(),
        provider: "mock".into(),
        base_url: "http://mock.invalid/v1".into(),
        text_input: true,
        context_window: 1_000_000,
        max_tokens: 4_000,
        ..Model::default()
    }
}

/// A session without a file.
#[must_use]
pub fn session(now: Now) -> Session {
    Session::new(Header::new("driven".into(), now.wall, "/w".into(), None), None)
}

/// What a machine is made of that has a session and tools, and nothing else.
#[must_use]
pub fn boot(api: &str, tools: Vec<Tool>, session: Session) -> Boot {
    Boot {
        seed: [7; 32],
        desk: DeskBoot {
            session,
            model: Arc::new(model(api)),
            thinking: ThinkingLevel::Off,
            tools: tools.into_iter().map(Arc::new).collect(),
            prompt: vec![("base".into(), "You are a test.".into())],
            config: AgentConfig::default(),
            steering_mode: QueueMode::OneAtATime,
            settings: Arc::default(),
            follow_up_mode: QueueMode::OneAtATime,
        },
        env: Arc::new(ToolEnv { cwd: "/w".into(), ..ToolEnv::default() }),
        options: RequestOptions::default(),
        block_images: false,
    }
}

impl Driven {
    /// Prompts a fresh in-memory agent, with a history before it, up to the open request and its head.
    ///
    /// # Panics
    /// When the hub does something else.
    #[must_use]
    pub fn new(api: &str, tools: Vec<Tool>, history: Vec<Message>) -> Self {
        let mut driven = Self::asked(api, tools, history);
        driven.accept();
        driven
    }

    /// The same without the head: the request waits for its answer.
    ///
    /// # Panics
    /// When the hub does something else.
    #[must_use]
    pub fn asked(api: &str, tools: Vec<Tool>, history: Vec<Message>) -> Self {
        let now = Now { mono: Mono(1), wall: Wall(1_788_315_987_887) };
        let mut session = session(now);
        let mut rng = tau_core::entropy::Entropy::new([1; 32]);
        for message in history {
            session.append(EntryBody::message(message), now.wall, &mut rng).unwrap();
        }
        let boot = boot(api, tools, session);
        let hub = Hub::new(boot, now);
        let request = HttpRequest {
            method: "",
            url: String::new(),
            headers: Vec::new(),
            body: Arc::default(),
            head_timeout_ms: None,
            idle_timeout_ms: None,
            proxy: None,
        };
        let mut driven = Self { hub, op: OpId(u64::MAX), request, now };
        driven.ask("go");
        driven
    }

    /// Sends a prompt and goes on to its open request and its head.
    ///
    /// # Panics
    /// When the hub does something else.
    pub fn prompt(&mut self, text: &str) {
        self.ask(text);
        self.accept();
    }

    fn accept(&mut self) {
        let headers = vec![("content-type".into(), "text/event-stream".into())];
        self.reply(Reply::Head { status: 200, headers });
    }

    fn ask(&mut self, text: &str) {
        let command = Command::Prompt { text: text.into(), images: Vec::new() };
        self.hub.handle(self.now, Input::Command(command));
        loop {
            match self.hub.poll().expect("the hub stopped before it made a request") {
                Output::Start { op, what: Op::Secret(_) } => {
                    let credential = Credential { api_key: Some("k".into()), ..Credential::default() };
                    let reply = Reply::Done(Outcome::Secret(Ok(credential)));
                    self.hub.handle(self.now, Input::Reply { op, reply });
                }
                Output::Start { op, what: Op::Http(request) } => {
                    (self.op, self.request) = (op, request);
                    return;
                }
                Output::Start { what, .. } => panic!("unexpected op {what:?}"),
                Output::Cancel { .. } | Output::Event(_) => {}
            }
        }
    }

    /// Answers the request. Poll afterwards.
    pub fn reply(&mut self, reply: Reply) {
        self.now.mono = self.now.mono.plus(1);
        self.hub.handle(self.now, Input::Reply { op: self.op, reply });
    }

    /// Gives bytes of the body and drains the outputs; returns how many events came.
    pub fn chunk(&mut self, bytes: Vec<u8>) -> usize {
        self.reply(Reply::Chunk { stream: Stream::Body, bytes });
        self.drain()
    }

    /// Polls until nothing is left; returns how many events came.
    pub fn drain(&mut self) -> usize {
        let mut events = 0;
        while let Some(output) = self.hub.poll() {
            events += usize::from(matches!(output, Output::Event(_)));
        }
        events
    }

    /// Ends the body.
    pub fn end(&mut self) -> usize {
        self.reply(Reply::Done(Outcome::BodyEnd));
        self.drain()
    }
}
