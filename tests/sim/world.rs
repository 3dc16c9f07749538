//! The world: it holds what the hub asked for and decides what happens when.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use tau_core::agent::AgentConfig;
use tau_core::event::Event;
use tau_core::fault::{FaultKind, IoFault};
use tau_core::harness::DeskBoot;
use tau_core::hub::{Boot, Hub, Output};
use tau_core::ids::OpId;
use tau_core::input::{Command, Input, QueueMode, Reply};
use tau_core::json::{self, Writer};
use tau_core::message::{AssistantMessage, Message};
use tau_core::model::{Model, ThinkingLevel};
use tau_core::now::{Mono, Now, Wall};
use tau_core::op::{AppendOp, Credential, Op, Outcome, ProcExit, Stream};
use tau_core::provider::RequestOptions;
use tau_core::session::reader::{self, Want};
use tau_core::session::{Header, Session};
use tau_core::tools::{BuiltinOptions, ExecutionMode, Runner, Tool, ToolEnv, ToolOutput, builtins};

use super::check::{Coverage, Watch};
use super::dice::Dice;
use super::disk::Disk;
use super::model;

const SESSION: &str = "/s/session.jsonl";
const SECRET: &str = "sk-very-secret-key";

/// What will come of an op, reply by reply.
enum Pending {
    Script(VecDeque<Reply>),
    Append(AppendOp),
    Fs(tau_core::op::FsOp),
    /// Nothing, until it is cancelled.
    Stalled,
}

pub(crate) struct World {
    hub: Hub,
    rng: Dice,
    now: Now,
    disk: Disk,
    pending: BTreeMap<OpId, (Op, Pending)>,
    watch: Watch,
    rounds: u64,
    log: Vec<String>,
    idle_timeouts: u64,
    closing: bool,
}

impl World {
    /// A world whose first choices are `choices`; the rest follows from the seed.
    pub(crate) fn new(seed: u64, choices: &[u8]) -> Self {
        let mut bytes = [0u8; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let mut rng = Dice::new(bytes, choices);
        let now = Now { mono: Mono(1), wall: Wall(1_788_315_987_887) };
        let mut disk = Disk::default();
        disk.put("/w/a.txt", b"one\ntwo\nthree\n");
        disk.put("/w/b.txt", b"two\r\nthree\r\n");
        disk.put("/w/sub/c.txt", "nothing hére".as_bytes());
        let model = Model {
            id: "m1".into(),
            api: "openai-completions".into(),
            provider: "mock".into(),
            base_url: "http://mock.invalid/v1".into(),
            text_input: true,
            context_window: 100_000,
            max_tokens: 4_000,
            ..Model::default()
        };
        let header = Header::new("0190-sim".into(), now.wall, "/w".into(), None);
        let mode = |rng: &mut Dice| if rng.below(2) == 0 { QueueMode::OneAtATime } else { QueueMode::All };
        let (steering_mode, follow_up_mode) = (mode(&mut rng), mode(&mut rng));
        let config = AgentConfig {
            tool_execution: if rng.below(4) == 0 {
                ExecutionMode::Sequential
            } else {
                ExecutionMode::Parallel
            },
            ..AgentConfig::default()
        };
        let boot = Boot {
            seed: bytes,
            desk: DeskBoot {
                session: Session::new(header, Some(SESSION.into())),
                model: Arc::new(model),
                thinking: ThinkingLevel::Off,
                tools: tools(),
                prompt: vec![("base".into(), "You are a test.".into())],
                config,
                steering_mode,
                settings: Arc::default(),
                follow_up_mode,
            },
            env: Arc::new(ToolEnv {
                cwd: "/w".into(),
                shell: vec!["/bin/sh".into(), "-c".into()],
                output_dir: "/tmp/out".into(),
                ..ToolEnv::default()
            }),
            options: RequestOptions { max_retries: rng.below(3), ..RequestOptions::default() },
            block_images: false,
        };
        Self {
            hub: Hub::new(boot, now),
            rng,
            now,
            disk,
            pending: BTreeMap::new(),
            watch: Watch::default(),
            rounds: 0,
            log: Vec::new(),
            idle_timeouts: 0,
            closing: false,
        }
    }

    pub(crate) fn run(&mut self) {
        self.drain();
        let prompts = 1 + self.rng.below(3);
        if self.rng.below(4) == 0 {
            // Nobody waits for it: it may run into the prompts.
            let command = self.shell("first".into());
            self.command(command);
        }
        for i in 0..prompts {
            self.command(Command::Prompt { text: format!("prompt {i}"), images: Vec::new() });
            self.until_idle();
        }
        self.closing = true;
        self.command(Command::Shutdown);
        self.until_idle();
        if self.log.iter().filter(|line| *line == "Closed").count() != 1 {
            self.watch.fail("not one closed event");
        }
        self.watch.end();
        self.compare_session();
        self.compare_call_ids();
        self.compare_shells();
    }

    pub(crate) fn failures(&self) -> &[String] {
        &self.watch.failures
    }

    pub(crate) fn coverage(&self) -> Coverage {
        self.watch.seen
    }

    pub(crate) fn transcript(&self) -> &[String] {
        &self.log
    }

    pub(crate) fn session_bytes(&self) -> Option<&[u8]> {
        self.disk.get(SESSION)
    }

    fn until_idle(&mut self) {
        for _ in 0..20_000 {
            if self.pending.is_empty() && self.hub.poll_timeout().is_none() {
                if !self.hub.is_idle() {
                    self.watch.fail("the hub waits for nothing");
                }
                return;
            }
            self.step();
        }
        self.watch.fail("the run does not end");
    }

    /// One thing happens.
    fn step(&mut self) {
        self.now.mono = self.now.mono.plus(self.rng.below(20));
        // The wall clock may jump either way.
        let jump = if self.rng.below(50) == 0 { self.rng.below(7_200_000) as i64 - 3_600_000 } else { 3 };
        self.now.wall = Wall(self.now.wall.0 + jump);
        match self.rng.below(40) {
            0 => self.any_command(),
            1 => self.input(Input::Tick),
            2 => self.input(Input::Reply { op: OpId(9_999_999), reply: Reply::Done(Outcome::Unit) }),
            _ => self.progress(),
        }
    }

    fn any_command(&mut self) {
        let text = format!("note {}", self.rng.below(1_000));
        let command = match self.rng.below(10) {
            0 => Command::Steer { text, images: Vec::new() },
            1 => Command::FollowUp { text, images: Vec::new() },
            2 => Command::Abort,
            3 => Command::ClearQueues,
            4 => Command::GracefulStop,
            5 => Command::Prompt { text, images: Vec::new() },
            6 => Command::AbortShells,
            7 | 8 => self.shell(text),
            _ => Command::SetName(text),
        };
        self.command(command);
    }

    fn shell(&mut self, command: String) -> Command {
        // After the end it is refused and brings no event.
        let id = if self.closing { 0 } else { self.watch.new_shell() };
        Command::Shell { id, command, excluded: self.rng.below(2) == 0 }
    }

    fn progress(&mut self) {
        let live: Vec<OpId> = self
            .pending
            .iter()
            .filter(|(_, (_, p))| !matches!(p, Pending::Stalled))
            .map(|(id, _)| *id)
            .collect();
        let Some(op) = live.get(self.rng.below(live.len() as u64) as usize).copied() else {
            match self.hub.poll_timeout() {
                Some(at) => {
                    self.now.mono = self.now.mono.max(at);
                    self.idle_timeouts += 1;
                    if self.idle_timeouts > 5_000 {
                        self.watch.fail("a deadline that never passes");
                        self.pending.clear();
                    }
                    self.input(Input::Tick);
                }
                // Only stalled ops are left: somebody loses patience.
                None => {
                    self.command(Command::Abort);
                    self.command(Command::AbortShells);
                }
            }
            return;
        };
        let Some((what, pending)) = self.pending.remove(&op) else { return };
        let reply = match pending {
            Pending::Script(mut script) => {
                let Some(reply) = script.pop_front() else { return };
                if !reply.is_last() {
                    self.pending.insert(op, (what, Pending::Script(script)));
                }
                reply
            }
            Pending::Append(append) => match self.rng.below(40) {
                0 => {
                    self.watch.seen.failed_appends += 1;
                    self.disk.torn_append(&append)
                }
                1 => {
                    self.watch.seen.failed_appends += 1;
                    Reply::Failed(IoFault::new(FaultKind::NoSpace, "no space left"))
                }
                _ => self.disk.append(&append),
            },
            Pending::Fs(fs) => self.disk.run(&fs),
            Pending::Stalled => return,
        };
        if reply.is_last() {
            self.watch.last_reply(op);
        }
        self.input(Input::Reply { op, reply });
    }

    fn command(&mut self, command: Command) {
        self.log.push(format!("{command:?}"));
        self.input(Input::Command(command));
    }

    fn input(&mut self, input: Input) {
        self.hub.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.hub.poll() {
            match output {
                Output::Event(event) => {
                    if self.pending.values().any(|(what, _)| matches!(what, Op::Append(_))) {
                        self.watch.fail("an event was shown before an entry said earlier was written");
                    }
                    self.watch.event(&event, SECRET);
                    self.log.push(format!("{event:?}"));
                    // A surface may speak up while it looks at an event.
                    if self.rng.below(300) == 0 {
                        let command = match self.rng.below(3) {
                            0 => Command::Abort,
                            1 => Command::Steer { text: "quick".into(), images: Vec::new() },
                            _ => Command::FollowUp { text: "later".into(), images: Vec::new() },
                        };
                        self.log.push(format!("{command:?}"));
                        self.hub.handle(self.now, Input::Command(command));
                    }
                    if matches!(event, Event::Closed) {
                        assert!(self.pending.is_empty());
                    }
                }
                Output::Start { op, what } => self.start(op, what),
                Output::Cancel { op } => self.cancel(op),
            }
        }
    }

    fn start(&mut self, op: OpId, what: Op) {
        self.watch.start(op);
        self.log.push(format!("start {op} {what:?}"));
        // D20: nothing starts while something said before it is not written; ids tell what came before.
        let unwritten = self.pending.range(..op).any(|(_, (what, _))| matches!(what, Op::Append(_)));
        if unwritten {
            self.watch.fail(format!("{op} started before the entry it depends on was written"));
        }
        let pending = match &what {
            Op::Append(append) => Pending::Append(append.clone()),
            Op::Fs(fs) => Pending::Fs(fs.clone()),
            Op::Secret(_) => {
                let secret = if self.rng.below(40) == 0 {
                    Err("no key for mock".into())
                } else {
                    Ok(Credential { api_key: Some(SECRET.into()), ..Credential::default() })
                };
                script([Reply::Done(Outcome::Secret(secret))])
            }
            Op::Http(request) => {
                self.rounds += 1;
                let body: Value = serde_json::from_slice(&request.body).unwrap();
                self.watch.request(&body);
                self.http(&body)
            }
            Op::Proc(_) => self.process(),
            Op::Host(_) => match self.rng.below(6) {
                0 => Pending::Stalled,
                1 => script([Reply::Failed(IoFault::new(FaultKind::Other, "the host failed"))]),
                _ => script([
                    Reply::Update(ToolOutput::text("half")),
                    Reply::Done(Outcome::Host(ToolOutput::text("whole"))),
                ]),
            },
            Op::Search(_) => script([Reply::Done(Outcome::Hits { hits: Vec::new(), more: false })]),
            Op::Walk(_) => script([Reply::Done(Outcome::Paths { paths: Vec::new(), more: false })]),
        };
        self.pending.insert(op, (what, pending));
    }

    fn http(&mut self, body: &Value) -> Pending {
        let rng = &mut self.rng;
        let head = |status| Reply::Head {
            status,
            headers: vec![("content-type".into(), "text/event-stream".into())],
        };
        let reset = || Reply::Failed(IoFault::new(FaultKind::Reset, "connection reset"));
        match rng.below(30) {
            0 => return Pending::Stalled,
            1 => return script([Reply::Failed(IoFault::new(FaultKind::Connect, "refused"))]),
            2 => {
                let status = [400, 401, 429, 500, 529][rng.below(5) as usize];
                let bytes = br#"{"error":{"message":"no"}}"#.to_vec();
                return script([
                    head(status),
                    Reply::Chunk { stream: Stream::Body, bytes },
                    Reply::Done(Outcome::BodyEnd),
                ]);
            }
            _ => {}
        }
        let bytes = model::reply(rng, self.rounds, body);
        let mut replies = VecDeque::from([head(200)]);
        let mut rest = bytes.as_slice();
        let cut = (rng.below(20) == 0).then(|| rng.below(bytes.len() as u64) as usize);
        let mut sent = 0;
        while !rest.is_empty() {
            let len = (1 + rng.below(200) as usize).min(rest.len());
            let (piece, tail) = rest.split_at(len);
            replies.push_back(Reply::Chunk { stream: Stream::Body, bytes: piece.to_vec() });
            rest = tail;
            sent += len;
            if cut.is_some_and(|cut| sent >= cut) {
                replies.push_back(reset());
                return Pending::Script(replies);
            }
        }
        replies.push_back(Reply::Done(Outcome::BodyEnd));
        Pending::Script(replies)
    }

    fn process(&mut self) -> Pending {
        match self.rng.below(5) {
            0 => Pending::Stalled,
            1 => script([Reply::Failed(IoFault::new(FaultKind::NotFound, "no shell"))]),
            _ => {
                let code = self.rng.below(3) as i32;
                script([
                    Reply::Chunk { stream: Stream::Stdout, bytes: b"out\n".to_vec() },
                    Reply::Chunk { stream: Stream::Stderr, bytes: b"err\xff\n".to_vec() },
                    Reply::Done(Outcome::Exit(ProcExit { code: Some(code), ..ProcExit::default() })),
                ])
            }
        }
    }

    fn cancel(&mut self, op: OpId) {
        self.watch.cancel(op);
        self.log.push(format!("cancel {op}"));
        let Some((what, pending)) = self.pending.get_mut(&op) else { return };
        let last = match what {
            Op::Proc(_) => Reply::Done(Outcome::Exit(ProcExit { killed: true, ..ProcExit::default() })),
            // A write that began is carried out.
            Op::Append(_) | Op::Fs(_) => return,
            _ => Reply::Failed(IoFault::cancelled()),
        };
        // What was on its way still arrives, or not.
        let mut script = match std::mem::replace(pending, Pending::Stalled) {
            Pending::Script(script) if self.rng.below(2) == 0 => script.into_iter().take(1).collect(),
            _ => VecDeque::new(),
        };
        if !script.back().is_some_and(Reply::is_last) {
            script.push_back(last);
        }
        *pending = Pending::Script(script);
    }

    /// Whatever the server calls its calls, no id stands for two of them: the results of the later one would be lost.
    fn compare_call_ids(&mut self) {
        let context = self.hub.desk().agent().context();
        let calls = context.iter().filter_map(|m| m.as_assistant()).flat_map(AssistantMessage::tool_calls);
        let mut seen = BTreeSet::new();
        let twice: Vec<String> = calls.filter(|call| !seen.insert(&call.id)).map(|c| c.id.clone()).collect();
        if !twice.is_empty() {
            self.watch.fail(format!("ids of several calls: {twice:?}"));
        }
    }

    /// Every command of the shell that ran left its record, once, and no record parts a call from its results.
    fn compare_shells(&mut self) {
        let context = self.hub.desk().agent().context();
        let records = context.iter().filter(|m| matches!(&***m, Message::Bash(_))).count() as u64;
        let parts = context
            .windows(2)
            .any(|pair| matches!((&*pair[0], &*pair[1]), (Message::Bash(_), Message::ToolResult(_))));
        if records != self.watch.seen.shells {
            self.watch.fail(format!("{records} records of {} commands", self.watch.seen.shells));
        }
        if parts {
            self.watch.fail("a record of the shell before a tool result");
        }
    }

    /// Invariant 5: the file, read again, is the session in memory.
    fn compare_session(&mut self) {
        let session = self.hub.desk().session();
        if session.is_dirty() {
            return;
        }
        let Some(bytes) = self.disk.get(SESSION) else {
            if session.is_stored() {
                self.watch.fail("a stored session without file");
            }
            return;
        };
        let (read, _) = match reader::open(bytes, SESSION.into(), "/w", Want::default()) {
            Ok(read) => read,
            Err(error) => {
                self.watch.fail(format!("the session cannot be read: {error}"));
                return;
            }
        };
        let show = |session: &Session| -> Vec<String> {
            let messages = session.context().messages.iter();
            messages
                .map(|m| {
                    let mut w = Writer::new();
                    m.write(&mut w);
                    // Doubles and integers are the same to JSON.
                    json::to_string(&serde_json::from_str(w.as_str()).unwrap())
                })
                .collect()
        };
        let (stored, held) = (show(&read), show(session));
        if stored != held || read.leaf_id() != session.leaf_id() {
            self.watch.fail(format!("the file differs from memory: {stored:?} / {held:?}"));
        }
    }
}

fn script<const N: usize>(replies: [Reply; N]) -> Pending {
    Pending::Script(VecDeque::from(replies))
}

fn tools() -> Vec<Arc<Tool>> {
    let host = |name: &str, mode| {
        Arc::new(Tool {
            name: name.into(),
            label: name.into(),
            description: "A tool of the host".into(),
            prompt_snippet: None,
            prompt_rules: Vec::new(),
            parameters: Arc::new(
                serde_json::json!({"type": "object", "properties": {"n": {"type": "number"}}}),
            ),
            mode,
            prepare: None,
            run: Runner::Host,
        })
    };
    let names = ["read", "write", "edit", "bash", "grep", "find", "ls"];
    let mut tools: Vec<Arc<Tool>> =
        builtins(names, BuiltinOptions::default()).into_iter().map(Arc::new).collect();
    tools.push(host("alpha", ExecutionMode::Parallel));
    tools.push(host("beta", ExecutionMode::Sequential));
    tools
}
