//! The run machine: the transitions of spec 10 §2.3–§2.9.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::batch::Batch;
use super::call_ids::{CallIds, TakenIds};
use super::declare::{Declared, declaration};
use super::hooks::{HookCall, HookReply, HookSet, TurnChange, TurnDecision};
use super::queue::Queue;
use super::run::{Run, Step, Task, Waiting};
use crate::event::Event;
use crate::json::Value;
use crate::message::{Message, ToolCall};
use crate::model::{Model, ThinkingLevel};
use crate::now::Now;
use crate::tools::{ExecutionMode, Tool};

/// How runs behave.
#[derive(Clone, Copy, Debug, Default)]
pub struct AgentConfig {
    /// Whether calls of one reply run side by side.
    pub tool_execution: ExecutionMode,
    /// Hooks the host answers.
    pub hooks: HookSet,
}

/// What the machine wants next.
#[derive(Clone, Debug)]
pub enum Out {
    /// Show this.
    Event(Event),
    /// Answer this with [`Agent::on_hook`].
    Hook(HookCall),
    /// Make a request of the context; answer with updates and one reply. If the run is aborted already, answer
    /// with an aborted reply at once.
    Request,
    /// Run this call; answer with updates and one end.
    Execute {
        /// Place in the batch.
        index: usize,
        /// The tool.
        tool: Arc<Tool>,
        /// The call as the model made it.
        call: ToolCall,
        /// The validated arguments.
        args: Arc<Value>,
    },
    /// Cancel the request; it still answers with an aborted reply.
    AbortStream,
    /// Cancel the running calls; they still answer.
    AbortTools,
    /// Cancel the questions to the host; they still are answered.
    AbortHooks,
    /// The run is over.
    Finished {
        /// The user aborted it.
        aborted: bool,
        /// It was asked to end at a turn boundary.
        stopped: bool,
    },
}

/// Why a run cannot start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A run is active.
    Busy,
    /// There is nothing to continue from.
    NothingToContinue,
}

/// The agent: transcript, queues, and the active run.
#[derive(Clone, Debug)]
pub struct Agent {
    pub(super) config: AgentConfig,
    pub(super) model: Arc<Model>,
    pub(super) thinking: ThinkingLevel,
    pub(super) context: Vec<Arc<Message>>,
    /// Those of the transcript, so that what they say can be told without a walk through all of it.
    systems: Vec<Arc<Message>>,
    pub(super) taken_ids: TakenIds,
    tools: Vec<Arc<Tool>>,
    declarations: Vec<Value>,
    declared: Declared,
    /// Something changed since the declarations were last compared.
    undeclared: bool,
    /// Messages for the next request.
    pub steering: Queue,
    /// Messages for the end of the run.
    pub follow_up: Queue,
    pub(super) run: Option<Run>,
    error_message: Option<String>,
}

impl Agent {
    /// An idle agent with an empty transcript and no tools.
    #[must_use]
    pub fn new(config: AgentConfig, model: Arc<Model>, thinking: ThinkingLevel) -> Self {
        Self {
            config,
            model,
            thinking,
            context: Vec::new(),
            systems: Vec::new(),
            taken_ids: TakenIds::default(),
            tools: Vec::new(),
            declarations: Vec::new(),
            declared: Declared::default(),
            undeclared: true,
            steering: Queue::default(),
            follow_up: Queue::default(),
            run: None,
            error_message: None,
        }
    }

    /// Replaces the transcript.
    pub fn set_context(&mut self, context: Vec<Arc<Message>>) {
        self.declared = Declared::replay(context.iter().map(|m| &**m));
        self.systems = context.iter().filter(|m| matches!(***m, Message::System(_))).cloned().collect();
        self.taken_ids = TakenIds::default();
        self.context = context;
        self.undeclared = true;
    }

    /// Adds a message without any event.
    pub fn append(&mut self, message: Arc<Message>) {
        if let Message::System(system) = &*message {
            self.declared.apply(system);
            self.undeclared = true;
            self.systems.push(message.clone());
        }
        self.context.push(message);
    }

    /// Replaces the tools; a running run keeps its own until the host gives it new ones.
    pub fn set_tools(&mut self, tools: Vec<Arc<Tool>>) {
        self.declarations = tools.iter().map(|tool| declaration(tool)).collect();
        self.tools = tools;
        self.undeclared = true;
    }

    /// Lets the active run use the current tools from its next turn on.
    pub fn refresh_run_tools(&mut self) {
        if let Some(run) = &mut self.run {
            run.tools.clone_from(&self.tools);
        }
    }

    /// Replaces the model.
    pub fn set_model(&mut self, model: Arc<Model>) {
        self.model = model;
    }

    /// Replaces the thinking level.
    pub const fn set_thinking(&mut self, level: ThinkingLevel) {
        self.thinking = level;
    }

    /// Which hooks are asked.
    #[must_use]
    pub const fn hooks(&self) -> HookSet {
        self.config.hooks
    }

    /// The transcript.
    #[must_use]
    pub fn context(&self) -> &[Arc<Message>] {
        &self.context
    }

    /// The system messages of the transcript.
    #[must_use]
    pub fn systems(&self) -> &[Arc<Message>] {
        &self.systems
    }

    /// The tools.
    #[must_use]
    pub fn tools(&self) -> &[Arc<Tool>] {
        &self.tools
    }

    /// The model.
    #[must_use]
    pub const fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// The thinking level.
    #[must_use]
    pub const fn thinking(&self) -> ThinkingLevel {
        self.thinking
    }

    /// Error of the last turn that had one.
    #[must_use]
    pub fn error_message(&self) -> Option<&str> {
        self.error_message.as_deref()
    }

    /// Whether a run is active.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        self.run.is_some()
    }

    /// Whether the active run is aborted.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.aborted)
    }

    /// Ids of calls that are not settled.
    pub fn pending_calls(&self) -> impl Iterator<Item = &str> {
        self.run.iter().filter_map(|run| run.batch.as_ref()).flat_map(Batch::pending_ids)
    }

    // ----- starting and ending (spec 10 §2.3) -----

    /// Starts a run with messages.
    ///
    /// # Errors
    /// While a run is active.
    pub fn prompt(&mut self, messages: Vec<Arc<Message>>, now: Now) -> Result<(), Refusal> {
        if self.run.is_some() {
            return Err(Refusal::Busy);
        }
        self.start(messages, false, now);
        Ok(())
    }

    /// Starts a run from the transcript as it is; after a reply, from what is queued.
    ///
    /// # Errors
    /// While a run is active, or when nothing waits for an answer.
    pub fn continue_run(&mut self, now: Now) -> Result<(), Refusal> {
        if self.run.is_some() {
            return Err(Refusal::Busy);
        }
        match self.context.iter().rev().find(|m| !matches!(***m, Message::System(_))).map(|m| &**m) {
            None => return Err(Refusal::NothingToContinue),
            Some(Message::Assistant(_)) => {
                let steering = self.steering.drain();
                let skip = !steering.is_empty();
                let messages = if skip { steering } else { self.follow_up.drain() };
                if messages.is_empty() {
                    return Err(Refusal::NothingToContinue);
                }
                self.start(messages, skip, now);
            }
            Some(_) => self.start(Vec::new(), false, now),
        }
        Ok(())
    }

    fn start(&mut self, messages: Vec<Arc<Message>>, skip_first_poll: bool, now: Now) {
        let messages = if messages.is_empty() { messages } else { self.declare(messages, now) };
        let mut run = Run::new(self.tools.clone());
        run.skip_first_poll = skip_first_poll;
        run.push(Step::Out(Out::Event(Event::AgentStart)));
        run.push(Step::Out(Out::Event(Event::TurnStart)));
        messages.into_iter().for_each(|m| run.message(m));
        run.task(Task::PollFirst);
        self.run = Some(run);
    }

    fn declare(&mut self, pending: Vec<Arc<Message>>, now: Now) -> Vec<Arc<Message>> {
        let has_system = pending.iter().any(|m| matches!(**m, Message::System(_)));
        if !self.undeclared && !has_system {
            return pending;
        }
        self.undeclared = false;
        self.declared.declare(pending, &self.declarations, now.wall.0)
    }

    /// Aborts the active run; nothing when idle.
    pub fn abort(&mut self) {
        let Some(run) = &mut self.run else { return };
        if run.aborted {
            return;
        }
        run.aborted = true;
        if self.config.hooks.asks_host() {
            run.agenda.push_front(Step::Out(Out::AbortHooks));
        }
        // The cancel goes out before anything that waits in the agenda.
        match run.waiting {
            Waiting::Reply => run.agenda.push_front(Step::Out(Out::AbortStream)),
            _ if run.batch.as_ref().is_some_and(Batch::is_running) => {
                run.agenda.push_front(Step::Out(Out::AbortTools));
            }
            _ => {}
        }
    }

    /// Ends the active run at its next turn boundary. Says whether there is one.
    pub const fn stop_at_turn_end(&mut self) -> bool {
        match &mut self.run {
            Some(run) => {
                run.stop_requested = true;
                true
            }
            None => false,
        }
    }

    // ----- stepping -----

    /// The next output; `None` when the machine waits or is idle.
    pub fn poll(&mut self, now: Now) -> Option<Out> {
        loop {
            let run = self.run.as_mut()?;
            match run.agenda.pop_front()? {
                Step::Out(out) => {
                    if matches!(out, Out::Event(Event::AgentEnd { .. })) {
                        run.task(Task::Finished);
                    }
                    return Some(out);
                }
                Step::MessageStart(message) => return Some(Out::Event(Event::MessageStart(message))),
                Step::MessageEnd(message) => {
                    run.new_messages.push(message.clone());
                    self.append(message.clone());
                    return Some(Out::Event(Event::MessageEnd(message)));
                }
                Step::TurnEnd(message, results) => {
                    self.error_message = message.as_assistant().and_then(|m| m.error_message.clone());
                    return Some(Out::Event(Event::TurnEnd { message, results }));
                }
                Step::Execute(index) => {
                    if let Some(out) = self.execute(index, now) {
                        return Some(out);
                    }
                }
                Step::Task(Task::Finished) => {
                    let (aborted, stopped) = (run.aborted, run.stop_requested);
                    self.run = None;
                    return Some(Out::Finished { aborted, stopped });
                }
                Step::Task(task) => self.decide(task, now),
            }
        }
    }

    /// Whether steps wait to be polled.
    #[must_use]
    pub fn has_steps(&self) -> bool {
        self.run.as_ref().is_some_and(|run| !run.agenda.is_empty())
    }

    fn decide(&mut self, task: Task, now: Now) {
        match task {
            Task::PollFirst => {
                let Some(run) = &mut self.run else { return };
                run.pending = if core::mem::take(&mut run.skip_first_poll) {
                    Vec::new()
                } else {
                    self.steering.drain()
                };
                run.more = true;
                run.task(Task::Turn);
            }
            Task::Turn => self.turn(),
            Task::BeginTurn => {
                let Some(run) = &mut self.run else { return };
                if run.pending.is_empty() {
                    run.pending = self.steering.drain();
                }
                run.push(Step::Out(Out::Event(Event::TurnStart)));
                run.task(Task::Inject);
            }
            Task::Inject => {
                let Some(run) = &mut self.run else { return };
                let pending = core::mem::take(&mut run.pending);
                let pending = self.declare(pending, now);
                let Some(run) = &mut self.run else { return };
                pending.into_iter().for_each(|m| run.message(m));
                run.task(Task::PrepareRequest);
            }
            Task::PrepareRequest => self.ask_or(
                self.config.hooks.prepare_request,
                || HookCall::PrepareRequest,
                |run| run.task(Task::Request),
            ),
            Task::Request => {
                let Some(run) = &mut self.run else { return };
                run.started = false;
                run.call_ids = CallIds::default();
                run.waiting = Waiting::Reply;
                run.push(Step::Out(Out::Request));
            }
            Task::AssistantDone => self.assistant_done(),
            Task::NextCall(index) => self.next_call(index),
            Task::Prepare(index) => self.prepare_call(index),
            Task::StartReady => self.start_ready(),
            Task::Result(index) => self.result(index, now),
            Task::Results => self.results(now),
            Task::FinishTurn => self.ask_finish_turn(),
            Task::AfterTurn(decision) => self.after_turn(decision),
            Task::Finished => {}
        }
    }

    /// Asks the host when the hook is on, else goes on at once.
    pub(super) fn ask_or(&mut self, on: bool, call: impl FnOnce() -> HookCall, go_on: impl FnOnce(&mut Run)) {
        let Some(run) = &mut self.run else { return };
        if on {
            run.waiting = Waiting::Hook;
            run.push(Step::Out(Out::Hook(call())));
        } else {
            go_on(run);
        }
    }

    fn turn(&mut self) {
        let Some(run) = &mut self.run else { return };
        if run.more || !run.pending.is_empty() {
            if run.had_turn {
                let on = self.config.hooks.prepare_next_turn;
                self.ask_or(on, || HookCall::PrepareNextTurn, |run| run.task(Task::BeginTurn));
            } else {
                run.task(Task::Inject);
            }
            return;
        }
        let follow_up = self.follow_up.drain();
        if !follow_up.is_empty() {
            run.forced = false;
            run.pending = follow_up;
            run.task(Task::Turn);
        } else if core::mem::take(&mut run.forced) {
            run.more = true;
            run.task(Task::Turn);
        } else {
            Self::end(run);
        }
    }

    fn end(run: &mut Run) {
        let messages = core::mem::take(&mut run.new_messages);
        run.push(Step::Out(Out::Event(Event::AgentEnd { messages, will_retry: false })));
    }

    fn assistant_done(&mut self) {
        let Some(run) = &mut self.run else { return };
        let Some(reply) = run.reply.clone() else { return };
        let Some(message) = reply.as_assistant() else { return };
        run.results.clear();
        run.batch = None;
        let has_calls = message.tool_calls().next().is_some();
        if message.stop_reason.is_failure() {
            // The host hears of the turn, but cannot revive it.
            self.ask_finish_turn();
        } else if !has_calls {
            run.more = false;
            run.task(Task::FinishTurn);
        } else {
            run.more = true;
            run.batch = Some(Batch::new(message, &run.tools, self.config.tool_execution));
            run.task(Task::NextCall(0));
        }
    }

    fn ask_finish_turn(&mut self) {
        let Some(run) = &self.run else { return };
        let Some(message) = run.reply.clone() else { return };
        let results = run.results.clone();
        self.ask_or(
            self.config.hooks.finish_turn,
            || HookCall::FinishTurn { message, results },
            |run| Self::turn_end(run, None),
        );
    }

    fn turn_end(run: &mut Run, decision: Option<TurnDecision>) {
        run.waiting = Waiting::Nothing;
        let Some(reply) = run.reply.clone() else { return };
        let failed = reply.as_assistant().is_some_and(|m| m.stop_reason.is_failure());
        if run.batch.as_ref().is_some_and(Batch::terminates) {
            run.more = false;
        }
        run.batch = None;
        let results = core::mem::take(&mut run.results);
        run.push(Step::TurnEnd(reply, results));
        if failed {
            Self::end(run);
        } else {
            run.task(Task::AfterTurn(decision));
        }
    }

    fn after_turn(&mut self, decision: Option<TurnDecision>) {
        let Some(run) = &mut self.run else { return };
        run.had_turn = true;
        if decision == Some(TurnDecision::End) || run.stop_requested {
            Self::end(run);
            return;
        }
        run.forced = decision == Some(TurnDecision::Continue);
        run.pending = self.steering.drain();
        if run.more || !run.pending.is_empty() {
            run.forced = false;
        }
        run.task(Task::Turn);
    }

    // ----- hooks -----

    /// Takes the answer to a hook; ignored when none was asked.
    pub fn on_hook(&mut self, reply: HookReply, now: Now) {
        match reply {
            HookReply::Failed(text) => self.fail(&text, now),
            HookReply::BeforeToolCall { index, verdict } => self.on_verdict(index, verdict),
            HookReply::AfterToolCall { index, change } => self.on_change(index, change),
            HookReply::FinishTurn(decision) => {
                if let Some(run) = self.run.as_mut().filter(|run| run.waiting == Waiting::Hook) {
                    Self::turn_end(run, decision);
                }
            }
            HookReply::PrepareNextTurn(change) => self.on_turn_change(change, Task::BeginTurn),
            HookReply::PrepareRequest(change) => self.on_turn_change(change, Task::Request),
            // Whoever makes the request asked for it, and keeps it.
            HookReply::TransformContext(_) => {}
        }
    }

    fn on_turn_change(&mut self, change: TurnChange, next: Task) {
        if !self.run.as_ref().is_some_and(|run| run.waiting == Waiting::Hook) {
            return;
        }
        if let Some(context) = change.context {
            self.set_context(context);
        }
        if let Some(model) = change.model {
            self.model = model;
        }
        if let Some(level) = change.thinking {
            self.thinking = level;
        }
        let Some(run) = &mut self.run else { return };
        run.waiting = Waiting::Nothing;
        if !change.messages.is_empty() {
            let queued = core::mem::replace(&mut run.pending, change.messages);
            run.pending.extend(queued);
        }
        run.task(next);
    }
}
