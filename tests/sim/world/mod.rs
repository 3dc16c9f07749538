//! The world: it holds what the hub asked for and decides what happens when.

mod commands;
mod coverage;
#[path = "../dice.rs"]
mod dice;
mod disk;
mod life;
mod model;
mod recovery;
mod server;
mod setup;
mod told;
mod watch;

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tau_core::agent::{HookCall, HookReply, ResultChange, ToolVerdict, TurnDecision};
use tau_core::event::Event;
use tau_core::fault::{FaultKind, IoFault};
use tau_core::hub::{Hub, Output};
use tau_core::ids::OpId;
use tau_core::input::{Command, Input, Reply};
use tau_core::now::{Mono, Now, Wall};
use tau_core::op::{AppendOp, Credential, FsOp, HttpRequest, Op, Outcome, ProcExit, Stream};
use tau_core::tools::ToolOutput;

pub(crate) use coverage::Coverage;
use dice::Dice;
use disk::Disk;
use server::Server;
use setup::Setup;
use told::Told;
use watch::Watch;

const SECRET: &str = "sk-very-secret-key";

/// What will come of an op, reply by reply.
enum Pending {
    Script(VecDeque<Reply>),
    Append(AppendOp),
    Fs(FsOp),
    /// Nothing, until it is cancelled.
    Stalled,
}

pub(crate) struct World {
    setup: Setup,
    server: Server,
    hub: Hub,
    rng: Dice,
    now: Now,
    disk: Disk,
    /// File of the session.
    path: String,
    pending: BTreeMap<OpId, (Op, Pending)>,
    watch: Watch,
    told: Told,
    /// Starts of the program.
    lives: u64,
    /// Records of the shell that this life began with.
    bash_entries: u64,
    rounds: u64,
    /// Of everything that was said.
    digest: DefaultHasher,
    is_loud: bool,
    closed: u64,
    idle_timeouts: u64,
    closing: bool,
    is_recorded: bool,
    /// Bodies of a record that are kept apart, by hash, and from how many bytes on they are.
    bodies: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    bodies_from: Option<usize>,
    /// What went into the machine of each life, and what came out.
    records: Vec<Arc<Mutex<Vec<u8>>>>,
}

impl World {
    /// A world whose first choices are `choices`; the rest follows from the seed.
    pub(crate) fn new(seed: u64, choices: &[u8]) -> Self {
        Self::with_turns(seed, choices, None)
    }

    /// A world in which a person does so many things, one after the other.
    pub(crate) fn long(seed: u64, turns: u64) -> Self {
        Self::with_turns(seed, &[], Some(turns))
    }

    fn with_turns(seed: u64, choices: &[u8], turns: Option<u64>) -> Self {
        let mut bytes = [0u8; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let mut rng = Dice::new(bytes, choices);
        let now = Now { mono: Mono(1), wall: Wall(1_788_315_987_887) };
        let mut disk = Disk::default();
        disk.put("/w/a.txt", b"one\ntwo\nthree\n");
        disk.put("/w/b.txt", b"two\r\nthree\r\n");
        disk.put("/w/sub/c.txt", "nothing hére".as_bytes());
        let setup = Setup::new(bytes, turns, &mut rng);
        let path = "/s/session.jsonl".to_owned();
        Self {
            server: Server::new(setup.windows, setup.talk, &mut rng),
            hub: Hub::new(setup.boot(life::new_session(now, &path), 0), now),
            watch: Watch::new(setup.max_retries),
            setup,
            rng,
            now,
            disk,
            path,
            pending: BTreeMap::new(),
            told: Told::default(),
            lives: 0,
            bash_entries: 0,
            rounds: 0,
            digest: DefaultHasher::new(),
            is_loud: std::env::var_os("TAU_SIM_LOG").is_some(),
            closed: 0,
            idle_timeouts: 0,
            closing: false,
            is_recorded: false,
            bodies: Arc::default(),
            bodies_from: None,
            records: Vec::new(),
        }
    }

    /// A world whose machines are recorded.
    pub(crate) fn recorded(seed: u64) -> Self {
        let mut world = Self::new(seed, &[]);
        world.is_recorded = true;
        world.bodies_from = (seed % 2 == 1).then_some(40 + seed as usize);
        world.hub = world.make_hub(life::new_session(world.now, &world.path));
        world
    }

    /// The record of each life.
    pub(crate) fn records(&self) -> Vec<Vec<u8>> {
        self.records.iter().map(|record| record.lock().unwrap().clone()).collect()
    }

    /// Bodies that are kept apart from the records, by name.
    pub(crate) fn bodies(&self) -> BTreeMap<String, Vec<u8>> {
        self.bodies.lock().unwrap().clone()
    }

    pub(crate) fn run(&mut self) {
        self.drain();
        if self.rng.below(4) == 0 {
            // Nobody waits for it: it may run into the prompts.
            let command = self.shell("first".into());
            self.command(command);
        }
        for number in 0..self.setup.turns {
            self.turn(number);
            self.compare_parts();
            if !self.watch.failures.is_empty() {
                break;
            }
        }
        self.closing = true;
        self.command(Command::Shutdown);
        self.until_idle();
        if self.closed != 1 {
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

    pub(crate) fn coverage(&self) -> &Coverage {
        &self.watch.seen
    }

    /// Stands for everything that was said and done.
    pub(crate) fn digest(&self) -> u64 {
        self.digest.finish()
    }

    pub(crate) fn session_bytes(&self) -> Option<&[u8]> {
        self.disk.get(&self.path)
    }

    fn say(&mut self, line: impl FnOnce() -> String) {
        let line = line();
        self.digest.write(line.as_bytes());
        if self.is_loud {
            // Both ends: a reply tells how it ended at its end.
            let (count, chars) = (line.chars().count(), line.chars());
            let start: String = chars.clone().take(200).collect();
            let end: String = chars.skip(count.max(440) - 240).collect();
            eprintln!("{} {start} … {end}", self.now.mono.0);
        }
    }

    fn until_idle(&mut self) {
        self.idle_timeouts = 0;
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
        // There are far more steps than writes.
        if self.dies(40) {
            return self.crash();
        }
        match self.rng.below(40) {
            0 => self.any_command(),
            1 => self.input(Input::Tick),
            2 => self.input(Input::Reply { op: OpId(9_999_999), reply: Reply::Done(Outcome::Unit) }),
            _ => self.progress(),
        }
    }

    /// Whether this is the end of a life; `rarer` times less often than at a write.
    fn dies(&mut self, rarer: u64) -> bool {
        let crashes = self.setup.crashes * rarer;
        crashes > 0 && !self.closing && self.rng.below(crashes) == 0
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
            Pending::Append(append) => {
                if self.dies(1) {
                    return self.crash_in(&append);
                }
                self.write(&append)
            }
            Pending::Fs(fs) => self.disk.run(&fs),
            Pending::Stalled => return,
        };
        if reply.is_last() {
            self.watch.last_reply(op);
        }
        self.input(Input::Reply { op, reply });
    }

    fn write(&mut self, append: &AppendOp) -> Reply {
        let reply = match self.rng.below(40) {
            0 => self.disk.torn_append(append),
            1 => Reply::Failed(IoFault::new(FaultKind::NoSpace, "no space left")),
            _ => self.disk.append(append),
        };
        let well = matches!(reply, Reply::Done(_));
        self.watch.seen.saw_if("failed appends", !well);
        self.told.written(append, well);
        reply
    }

    /// Whether it is followed.
    fn command(&mut self, command: Command) -> bool {
        self.say(|| format!("{command:?}"));
        let is_move = matches!(command, Command::Navigate { .. });
        let outcome = self.hub.command(self.now, command);
        if is_move && outcome.is_ok() {
            self.watch.recovery.moved();
        }
        self.say(|| format!("{outcome:?}"));
        self.drain();
        outcome.is_ok()
    }

    fn input(&mut self, input: Input) {
        self.hub.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.hub.poll() {
            match output {
                Output::Event(event) => self.event(&event),
                Output::Start { op, what } => self.start(op, what),
                Output::Cancel { op } => self.cancel(op),
            }
        }
    }

    fn event(&mut self, event: &Event) {
        if self.pending.values().any(|(what, _)| matches!(what, Op::Append(_))) {
            self.watch.fail("an event was shown before an entry said earlier was written");
        }
        let text = format!("{event:?}");
        if text.contains(SECRET) {
            self.watch.fail("a secret in an event");
        }
        self.say(|| text);
        self.watch.event(event);
        let is_file = self.disk.get(&self.path).is_some();
        self.told.event(event, is_file);
        // A surface may speak up while it looks at an event.
        if self.rng.below(300) == 0 {
            let command = match self.rng.below(5) {
                0 => Command::Abort,
                1 => Command::Steer { text: "quick".into(), images: Vec::new() },
                2 => Command::AbortRetry,
                3 => Command::AbortCompaction,
                _ => Command::FollowUp { text: "later".into(), images: Vec::new() },
            };
            self.say(|| format!("{command:?}"));
            self.hub.handle(self.now, Input::Command(command));
        }
        if matches!(event, Event::Closed) {
            self.closed += 1;
            assert!(self.pending.is_empty());
        }
    }

    fn start(&mut self, op: OpId, what: Op) {
        self.watch.start(op);
        self.say(|| format!("start {op} {what:?}"));
        // D20: nothing starts while something said before it is not written; ids tell what came before.
        let unwritten = self.pending.range(..op).any(|(_, (what, _))| matches!(what, Op::Append(_)));
        if unwritten {
            self.watch.fail(format!("{op} started before the entry it depends on was written"));
        }
        if !matches!(what, Op::Append(_)) {
            let is_file = self.disk.get(&self.path).is_some();
            self.told.next(is_file);
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
            Op::Http(request) => self.http(request),
            Op::Proc(_) => self.process(),
            Op::Host(_) => match self.rng.below(6) {
                0 => Pending::Stalled,
                1 => script([Reply::Failed(IoFault::new(FaultKind::Other, "the host failed"))]),
                _ => script([
                    Reply::Update(ToolOutput::text("half")),
                    Reply::Done(Outcome::Host(ToolOutput::text("whole"))),
                ]),
            },
            Op::Hook(call) => match self.rng.below(12) {
                0 => Pending::Stalled,
                1 => script([Reply::Failed(IoFault::new(FaultKind::Other, "the hook failed"))]),
                2 => script([Reply::Done(Outcome::Unit)]),
                _ => script([Reply::Done(Outcome::Hook(Box::new(self.opinion(call))))]),
            },
            Op::Search(_) => script([Reply::Done(Outcome::Hits { hits: Vec::new(), more: false })]),
            Op::Walk(_) => script([Reply::Done(Outcome::Paths { paths: Vec::new(), more: false })]),
        };
        self.pending.insert(op, (what, pending));
    }

    /// What the program around the machine says when it is asked.
    fn opinion(&mut self, call: &HookCall) -> HookReply {
        match (call, self.rng.below(6)) {
            (HookCall::BeforeToolCall { index, .. }, 0) => {
                let reason = Some("not this one".to_owned());
                let verdict = ToolVerdict::Block { reason, terminate: self.rng.below(2) == 0 };
                HookReply::BeforeToolCall { index: *index, verdict }
            }
            (HookCall::AfterToolCall { index, .. }, 0) => {
                let change = ResultChange { is_error: Some(true), ..ResultChange::default() };
                HookReply::AfterToolCall { index: *index, change: Ok(change) }
            }
            (HookCall::FinishTurn { .. }, 0) => HookReply::FinishTurn(Some(TurnDecision::End)),
            _ => call.neutral(),
        }
    }

    fn http(&mut self, request: &HttpRequest) -> Pending {
        self.rounds += 1;
        let body: Value = serde_json::from_slice(&request.body)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&request.body)));
        if server::is_summary(&body) {
            self.watch.summary_request(&body);
        } else {
            self.watch.request(&body);
        }
        let answer = self.server.answer(&mut self.rng, self.rounds, &body, request.body.len());
        answer.map_or(Pending::Stalled, Pending::Script)
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
        self.say(|| format!("cancel {op}"));
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
}

fn script<const N: usize>(replies: [Reply; N]) -> Pending {
    Pending::Script(VecDeque::from(replies))
}
