//! What the glue of a web page needs: numbers, texts and bytes in, a list of wishes out. Nothing here needs `std`;
//! `.ci/no-std-check.sh` compiles this file without it.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tau_core::agent::AgentConfig;
use tau_core::event::{Event, MessageUpdate};
use tau_core::fault::{FaultKind, IoFault};
use tau_core::harness::DeskBoot;
use tau_core::hub::{Boot, Hub, Output};
use tau_core::ids::OpId;
use tau_core::input::{Command, Input, QueueMode, Reply};
use tau_core::model::{Model, ThinkingLevel};
use tau_core::now::{Mono, Now, Wall};
use tau_core::op::{Credential, HttpRequest, Op, Outcome, Stream};
use tau_core::provider::RequestOptions;
use tau_core::session::{Header, Session};
use tau_core::tools::ToolEnv;

/// What the page is to do.
pub enum Wish {
    /// `fetch` this; then [`Page::head`], [`Page::bytes`] and [`Page::end`] with the number.
    Fetch(u64, HttpRequest),
    /// Abort that `fetch`; then [`Page::failed`].
    AbortFetch(u64),
    /// Add this to the answer on the page.
    Text(String),
    /// The answer is complete.
    Settled,
}

/// One agent of a page.
pub struct Page {
    hub: Hub,
    key: String,
    mono: u64,
}

impl Page {
    /// `seed` is from the page's source of randomness, the time from its clock (ms).
    pub fn new(base_url: &str, key: &str, seed: [u8; 32], wall_ms: i64) -> Self {
        let model = Model {
            id: "scripted".into(),
            provider: "page".into(),
            api: "openai-completions".into(),
            base_url: base_url.into(),
            text_input: true,
            ..Model::default()
        };
        let now = Now { mono: Mono(0), wall: Wall(wall_ms) };
        let desk = DeskBoot {
            session: Session::new(Header::new("in-a-page".into(), now.wall, "/".into(), None), None),
            model: Arc::new(model),
            thinking: ThinkingLevel::Off,
            tools: Vec::new(),
            prompt: alloc::vec![("preamble".into(), "You live in a web page.".into())],
            config: AgentConfig::default(),
            settings: Arc::default(),
            steering_mode: QueueMode::OneAtATime,
            follow_up_mode: QueueMode::OneAtATime,
        };
        let boot = Boot {
            seed,
            desk,
            env: Arc::new(ToolEnv::default()),
            options: RequestOptions::default(),
            block_images: false,
        };
        Self { hub: Hub::new(boot, now), key: key.into(), mono: 0 }
    }

    /// A person said something.
    pub fn prompt(&mut self, text: &str, now_ms: u64) -> Vec<Wish> {
        self.input(Input::Command(Command::Prompt { text: text.into(), images: Vec::new() }), now_ms)
    }

    /// The head of a response came.
    pub fn head(&mut self, fetch: u64, status: u16, now_ms: u64) -> Vec<Wish> {
        let headers = alloc::vec![("content-type".into(), "text/event-stream".into())];
        self.reply(fetch, Reply::Head { status, headers }, now_ms)
    }

    /// Some bytes of its body, cut anywhere.
    pub fn bytes(&mut self, fetch: u64, bytes: &[u8], now_ms: u64) -> Vec<Wish> {
        self.reply(fetch, Reply::Chunk { stream: Stream::Body, bytes: bytes.to_vec() }, now_ms)
    }

    /// The body is complete.
    pub fn end(&mut self, fetch: u64, now_ms: u64) -> Vec<Wish> {
        self.reply(fetch, Reply::Done(Outcome::BodyEnd), now_ms)
    }

    /// The fetch failed.
    pub fn failed(&mut self, fetch: u64, why: &str, now_ms: u64) -> Vec<Wish> {
        self.reply(fetch, Reply::Failed(IoFault::new(FaultKind::Connect, why)), now_ms)
    }

    /// When [`tick`](Self::tick) is due, ms: for `setTimeout`.
    pub fn due(&self) -> Option<u64> {
        self.hub.poll_timeout().map(|at| at.0)
    }

    /// That time came.
    pub fn tick(&mut self, now_ms: u64) -> Vec<Wish> {
        self.input(Input::Tick, now_ms)
    }

    fn reply(&mut self, fetch: u64, reply: Reply, now_ms: u64) -> Vec<Wish> {
        self.input(Input::Reply { op: OpId(fetch), reply }, now_ms)
    }

    fn input(&mut self, input: Input, now_ms: u64) -> Vec<Wish> {
        let mut wishes = Vec::new();
        let mut next = Some(input);
        self.mono = self.mono.max(now_ms);
        while let Some(input) = next.take() {
            let now = Now { mono: Mono(self.mono), wall: Wall(i64::try_from(self.mono).unwrap_or(i64::MAX)) };
            self.hub.handle(now, input);
            while next.is_none()
                && let Some(output) = self.hub.poll()
            {
                next = self.output(output, &mut wishes);
            }
        }
        wishes
    }

    /// What the page need not know is answered here.
    fn output(&self, output: Output, wishes: &mut Vec<Wish>) -> Option<Input> {
        match output {
            Output::Event(Event::MessageUpdate {
                update: MessageUpdate::TextDelta { delta, .. }, ..
            }) => {
                wishes.push(Wish::Text(delta));
            }
            Output::Event(Event::AgentSettled { .. }) => wishes.push(Wish::Settled),
            Output::Event(_) => {}
            Output::Start { op, what: Op::Http(request) } => wishes.push(Wish::Fetch(op.0, request)),
            Output::Start { op, what: Op::Secret(_) } => {
                let credential = Credential { api_key: Some(self.key.clone()), ..Credential::default() };
                let reply = Reply::Done(Outcome::Secret(Ok(credential)));
                return Some(Input::Reply { op, reply });
            }
            Output::Start { op, .. } => {
                let fault = IoFault::new(FaultKind::Other, "a page has neither files nor processes");
                return Some(Input::Reply { op, reply: Reply::Failed(fault) });
            }
            Output::Cancel { op } => wishes.push(Wish::AbortFetch(op.0)),
        }
        None
    }
}
