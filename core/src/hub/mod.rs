//! The hub: inputs in, outputs out, everything else inside (architecture §6, §10).
//!
//! ```text
//! loop {
//!     while let Some(output) = hub.poll() { /* show events, start and cancel ops */ }
//!     wait for a reply, a command or hub.poll_timeout()
//!     hub.handle(now, input)
//! }
//! ```
//!
//! Contract: after each `handle`, poll until `None`; a tick that comes too early is harmless; every started op brings
//! exactly one last reply, also after a cancel; replies of unknown ops are ignored; the order of events is the order
//! in which a surface must show them. The hub moves only when it is polled, so a command given between two polls
//! counts before the next step.

mod hooks;
mod ops;
mod request;
mod shell;
mod summary;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use ops::{Ops, Owner};
use request::{Next, Progress, Wire};
use summary::Summary;

use crate::agent::HookCall;
use crate::entropy::Entropy;
use crate::event::Event;
use crate::fault::Fault;
use crate::harness::{Cx, Desk, DeskBoot, Shells, Want};
use crate::ids::{OpId, UuidV7};
use crate::input::{Command, Input, Reply};
use crate::json::Value;
use crate::message::{AssistantMessage, Message, ToolCall};
use crate::now::{Mono, Now};
use crate::op::{HostCall, Lane, Op, Outcome};
use crate::provider::RequestOptions;
use crate::record::{self, Recorder};
use crate::tools::schedule::Bench;
use crate::tools::{Runner, Tool, ToolEnv, ToolInput, ToolOutput, ToolRequest, ToolStep};

/// What a hub starts with.
#[derive(Debug)]
pub struct Boot {
    /// Seed of ids; the same seed and inputs give the same bytes.
    pub seed: [u8; 32],
    /// Session, model, tools, prompt.
    pub desk: DeskBoot,
    /// Surroundings of the tools.
    pub env: Arc<ToolEnv>,
    /// Options of every request.
    pub options: RequestOptions,
    /// Withhold images from every request.
    pub block_images: bool,
}

/// The only way out.
#[derive(Clone, Debug)]
pub enum Output {
    /// Begin an effect. Lanes are kept by the hub: it may run at once.
    Start {
        /// Its id.
        op: OpId,
        /// The effect.
        what: Op,
    },
    /// End an effect early; it still brings its last reply.
    Cancel {
        /// Its id.
        op: OpId,
    },
    /// Show this.
    Event(Event),
}

/// The machine of one agent.
#[derive(Debug)]
pub struct Hub {
    now: Now,
    rng: Entropy,
    ops: Ops,
    desk: Desk,
    wire: Wire,
    /// The request for a summary.
    summary: Option<Summary>,
    /// Ids of summary requests.
    summary_ids: UuidV7,
    bench: Bench,
    shells: Shells,
    env: Arc<ToolEnv>,
    options: RequestOptions,
    wants: Vec<Want>,
    /// What the current request is made of, when the embedding program changed it.
    context: Option<Vec<Arc<Message>>>,
    recorder: Recording,
}

/// Who keeps a record, if anyone does.
#[derive(Default)]
struct Recording(Option<Box<dyn Recorder>>);

impl core::fmt::Debug for Recording {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(if self.0.is_some() { "recorded" } else { "not recorded" })
    }
}

impl Hub {
    /// Takes over a session. Poll afterwards: a session that is due to be written says so.
    #[must_use]
    pub fn new(boot: Boot, now: Now) -> Self {
        Self::with_ops(boot, now, Ops::default())
    }

    /// The machine as it was after what a [record] holds: it need not run from the beginning of
    /// time again. What it said then is not said again; what was under way is still expected.
    ///
    /// # Errors
    /// What is wrong with a record, or that something is not as it was.
    pub fn restore(log: &[u8]) -> Result<Self, String> {
        record::Replay::new().restore(log)
    }

    /// Goes on with another session, model and prompt. Poll afterwards. Only when the hub is idle: what is under way
    /// is forgotten. Ids of ops go on where they were, so that a late reply never meets an op of the new session.
    pub fn renew(&mut self, boot: Boot, now: Now) {
        let now = Now { mono: self.now.mono.max(now.mono), wall: now.wall };
        let mut recorder = core::mem::take(&mut self.recorder);
        if let Some(recorder) = &mut recorder.0 {
            recorder.renewed(now, &boot);
        }
        *self = Self { recorder, ..Self::with_ops(boot, now, self.ops.successor()) };
    }

    /// Lets someone keep a record of everything that goes in and comes out from now on. To be called right after
    /// [`new`](Self::new), with a recorder that saw the boot.
    pub fn record(&mut self, recorder: Box<dyn Recorder>) {
        self.recorder = Recording(Some(recorder));
    }

    /// Changes the surroundings of the tools, for calls that begin later.
    pub fn set_env(&mut self, env: Arc<ToolEnv>) {
        if let Some(recorder) = &mut self.recorder.0 {
            recorder.env(&env);
        }
        self.env = env;
    }

    fn with_ops(boot: Boot, now: Now, ops: Ops) -> Self {
        let mut rng = Entropy::new(boot.seed);
        let mut wants = Vec::new();
        let desk = Desk::new(boot.desk, &mut Cx { now, rng: &mut rng, out: &mut wants });
        let mut wire = Wire::default();
        wire.block_images(boot.block_images);
        let mut hub = Self {
            now,
            rng,
            ops,
            desk,
            wire,
            summary: None,
            summary_ids: UuidV7::default(),
            bench: Bench::default(),
            shells: Shells::default(),
            env: boot.env,
            options: boot.options,
            wants,
            context: None,
            recorder: Recording::default(),
        };
        hub.carry_out();
        hub
    }

    /// Takes one input. Never blocks, never fails: a refused command becomes an error event.
    pub fn handle(&mut self, now: Now, input: Input) {
        if let Some(recorder) = &mut self.recorder.0 {
            recorder.input(now, &input);
        }
        match input {
            Input::Command(command) => {
                if let Err(fault) = self.follow(now, command) {
                    self.ops.event(Event::Error(fault));
                }
            }
            Input::Reply { op, reply } => {
                self.set_now(now);
                self.route(op, reply);
            }
            Input::Tick => {
                self.set_now(now);
                self.tick();
            }
        }
    }

    /// Follows a command, or says why not; a refused command changes nothing.
    ///
    /// # Errors
    /// See [`Desk::command`].
    pub fn command(&mut self, now: Now, command: Command) -> Result<(), Fault> {
        if let Some(recorder) = &mut self.recorder.0 {
            recorder.command(now, &command);
        }
        self.follow(now, command)
    }

    fn follow(&mut self, now: Now, command: Command) -> Result<(), Fault> {
        self.set_now(now);
        match command {
            Command::Shell { id, command, excluded } => return self.start_shell(id, command, excluded),
            Command::AbortShells => {
                self.abort_shells();
                return Ok(());
            }
            Command::Shutdown => self.abort_shells(),
            _ => {}
        }
        let mut cx = Cx { now: self.now, rng: &mut self.rng, out: &mut self.wants };
        let outcome = self.desk.command(command, &mut cx);
        self.carry_out();
        outcome
    }

    /// The next output. Poll until `None` after every input.
    #[must_use]
    pub fn poll(&mut self) -> Option<Output> {
        let output = self.next();
        if let Some(recorder) = &mut self.recorder.0 {
            match &output {
                Some(output) => recorder.output(output),
                None => recorder.drained(),
            }
        }
        output
    }

    fn next(&mut self) -> Option<Output> {
        loop {
            if let Some(output) = self.ops.next_output() {
                return Some(output);
            }
            if !self.advance() {
                return None;
            }
        }
    }

    /// When to send a tick at the latest; `None` = not needed. May change with every input.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        let summary = self.summary.as_ref().and_then(Summary::deadline);
        let all = [self.bench.deadline(), self.wire.deadline(), summary, self.desk.deadline()];
        all.into_iter().flatten().min()
    }

    /// Whether nothing is going on and nothing is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.desk.is_idle() && self.ops.is_idle() && !self.desk.wants_close()
    }

    /// Whether nothing is going on but commands of the user's shell.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.desk.is_idle() && self.ops.is_settled() && !self.desk.wants_close()
    }

    /// Number of ops that have not brought their last reply.
    #[must_use]
    pub fn open_ops(&self) -> usize {
        self.ops.open_count()
    }

    /// Surroundings of the tools.
    #[must_use]
    pub const fn env(&self) -> &Arc<ToolEnv> {
        &self.env
    }

    /// The Desk, to look at: session, agent, queues.
    #[must_use]
    pub const fn desk(&self) -> &Desk {
        &self.desk
    }

    /// The reply that is streaming.
    #[must_use]
    pub fn streaming(&self) -> Option<&AssistantMessage> {
        self.wire.partial()
    }

    /// The wait, in ms, that the service asked for when it refused the last request; `None` when it named none, or
    /// one above the limit for requests, whose failure says so.
    #[must_use]
    pub const fn last_asked_ms(&self) -> Option<f64> {
        self.wire.asked_ms()
    }

    /// Time never goes back, whatever a backend says.
    fn set_now(&mut self, now: Now) {
        self.now = Now { mono: self.now.mono.max(now.mono), wall: now.wall };
    }

    // ----- moving on -----

    fn advance(&mut self) -> bool {
        if let Some((op, reply)) = self.ops.next_undone() {
            self.route(op, reply);
            return true;
        }
        // Who hears that everything is settled finds it in the file; a summary counts when it is stored.
        if self.desk.waits_for_file() && self.ops.is_writing() {
            return false;
        }
        let mut cx = Cx { now: self.now, rng: &mut self.rng, out: &mut self.wants };
        if self.desk.advance(&mut cx) {
            self.carry_out();
            return true;
        }
        if self.stream() || self.summary_stream() {
            return true;
        }
        if self.desk.wants_close() && self.ops.is_idle() {
            self.desk.closed();
            self.ops.event(Event::Closed);
            return true;
        }
        false
    }

    /// Does what the Desk wants, in order.
    fn carry_out(&mut self) {
        let mut wants = core::mem::take(&mut self.wants);
        for want in wants.drain(..) {
            match want {
                Want::Event(event) => self.ops.event(event),
                Want::Append(op) => {
                    self.ops.start(Owner::Append(op.clone()), Lane::Session, Op::Append(op));
                }
                Want::Request => self.prepare_request(),
                Want::Execute { index, tool, call, args } => self.execute(index, &tool, call, args),
                Want::AbortStream => {
                    if let Some(op) = self.wire.abort(self.now) {
                        self.ops.cancel(op);
                    }
                }
                Want::AbortTools => self.abort_tools(),
                Want::Hook(call) => self.ask(call),
                Want::AbortHooks => self.ops.cancel_hooks(),
                Want::Summarize(request) => self.summarize(&request),
                Want::AbortSummary => self.abort_summary(),
            }
        }
        // The buffer is kept; steps of other rooms do not add to it meanwhile.
        self.wants = wants;
    }

    // ----- replies -----

    fn route(&mut self, op: OpId, reply: Reply) {
        match self.ops.owner_of(op, &reply) {
            None => {}
            Some(Owner::Hook(asked)) => self.hook_reply(asked, reply),
            Some(Owner::Request) => {
                let context = self.context.as_deref().unwrap_or_else(|| self.desk.agent().context());
                let next = self.wire.on_reply(op, reply, context, self.now, &mut self.rng);
                self.start_request_op(next);
            }
            Some(Owner::Summary) => self.summary_reply(op, reply),
            Some(Owner::Call(index, slot)) => self.call_input(index, ToolInput::Reply(slot, reply)),
            Some(Owner::Shell) => self.shell_reply(op, &reply),
            Some(Owner::Append(append)) => match reply {
                Reply::Done(Outcome::Appended { len, .. }) => self.desk.appended(len),
                Reply::Failed(fault) => {
                    let mut cx = Cx { now: self.now, rng: &mut self.rng, out: &mut self.wants };
                    let mut lost = alloc::vec![append];
                    lost.append(&mut self.ops.take_behind());
                    self.desk.append_failed(lost, &fault.detail, &mut cx);
                    self.carry_out();
                }
                _ => {}
            },
        }
    }

    fn tick(&mut self) {
        let of_summary = self.summary.as_mut().and_then(|summary| summary.overdue(self.now, &mut self.rng));
        let of_run = self.wire.overdue(self.now, &mut self.rng);
        for op in of_run.into_iter().chain(of_summary) {
            self.ops.disown(op);
            self.ops.cancel(op);
        }
        let context = self.context.as_deref().unwrap_or_else(|| self.desk.agent().context());
        let next = self.wire.resume(context, self.now);
        self.start_request_op(next);
        self.summary_resume();
        for index in self.bench.take_due(self.now.mono) {
            self.call_input(index, ToolInput::Tick);
        }
    }

    // ----- the request -----

    /// Makes a request of the transcript, or of what the embedding program makes of it.
    fn prepare_request(&mut self) {
        self.context = None;
        let agent = self.desk.agent();
        if agent.hooks().transform_context && !agent.is_aborted() {
            let messages = agent.context().to_vec();
            return self.ask(HookCall::TransformContext { messages });
        }
        self.request();
    }

    fn request(&mut self) {
        let agent = self.desk.agent();
        if agent.is_aborted() {
            let message = Wire::aborted(agent.model(), self.now);
            self.desk.agent_mut().on_reply(message);
            return;
        }
        let options =
            RequestOptions { session_id: Some(self.desk.session().id().into()), ..self.options.clone() };
        let context = self.context.as_deref().unwrap_or_else(|| agent.context());
        let next = self.wire.begin(agent.model(), agent.thinking(), &options, context, self.now);
        self.start_request_op(next);
    }

    fn start_request_op(&mut self, next: Next) {
        if let Next::Start(op) = next {
            let id = self.ops.start(Owner::Request, Lane::Free, op);
            self.wire.sent(id);
        }
    }

    /// Shows the next event of the stream, or hands the complete reply to the run.
    fn stream(&mut self) -> bool {
        match self.wire.progress(self.now) {
            Progress::Nothing => false,
            Progress::Event(event) => {
                let Some(partial) = self.wire.partial() else { return true };
                if let Some(event) = self.desk.agent_mut().on_update(event, partial) {
                    self.ops.event(event);
                }
                true
            }
            Progress::Reply(message) => {
                self.desk.note_asked_wait(self.wire.asked_ms());
                self.desk.agent_mut().on_reply(*message);
                true
            }
        }
    }

    // ----- tool calls -----

    fn execute(&mut self, index: usize, tool: &Tool, call: ToolCall, args: Arc<Value>) {
        match tool.run {
            Runner::Machine(make) => self.bench.add(index, make(args)),
            Runner::Host => {
                let call = HostCall { tool: call.name, call_id: call.id, args };
                self.bench.add(index, Box::new(crate::tools::host::HostTool::new(call)));
            }
        }
        self.call_input(index, ToolInput::Begin);
    }

    fn call_input(&mut self, index: usize, input: ToolInput) {
        let mut requests = Vec::new();
        let Some(step) = self.bench.step(index, input, self.now, &self.env, &mut requests) else { return };
        for request in requests {
            match request {
                ToolRequest::Start(slot, lane, op) => {
                    let id = self.ops.start(Owner::Call(index, slot), lane, op);
                    self.bench.started(index, slot, id);
                }
                ToolRequest::Cancel(slot) => {
                    if let Some(op) = self.bench.op(index, slot) {
                        self.ops.cancel(op);
                    }
                }
                ToolRequest::Update(output) => self.desk.agent_mut().on_tool_update(index, output),
                ToolRequest::Deadline(at) => self.bench.set_deadline(index, at),
            }
        }
        if let ToolStep::Done(output) = step {
            self.call_done(index, output);
        }
    }

    fn call_done(&mut self, index: usize, output: ToolOutput) {
        self.ops.release_call(index);
        let now = self.now;
        self.desk.agent_mut().on_tool_done(index, output, now);
    }

    fn abort_tools(&mut self) {
        for index in self.bench.take_uncancelled() {
            self.call_input(index, ToolInput::Cancel);
        }
    }
}
