//! The state of the Desk, the steps of a run as they are recorded, and the end of an activity.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::navigating::Moved;
use super::notes::Notes;
use super::prompt_state::Sections;
use super::recovery::Recovery;
use super::summarizing::{Compacted, Job};
use crate::agent::{Agent, AgentConfig, HookCall, HookReply, HookSet, Out, Refusal, TurnChange};
use crate::compaction::SummaryRequest;
use crate::entropy::Entropy;
use crate::event::Event;
use crate::fault::Fault;
use crate::input::QueueMode;
use crate::json::Value;
use crate::message::{Block, Message, ToolCall};
use crate::model::{Model, ThinkingLevel};
use crate::now::{Mono, Now};
use crate::op::AppendOp;
use crate::session::{EntryBody, Session};
use crate::settings::{Retry, Settings};
use crate::tokens::Estimator;
use crate::tools::Tool;

/// What a Desk starts with.
#[derive(Debug)]
pub struct DeskBoot {
    /// The session, fresh or read from its file.
    pub session: Session,
    /// The model.
    pub model: Arc<Model>,
    /// The thinking level; clamped to the model.
    pub thinking: ThinkingLevel,
    /// Tools the model may call.
    pub tools: Vec<Arc<Tool>>,
    /// The system prompt.
    pub prompt: Sections,
    /// How runs behave. What happens between turns is the Desk's own affair; the other hooks are as given here.
    pub config: AgentConfig,
    /// Retries, compaction and summaries of branches go by these.
    pub settings: Arc<Settings>,
    /// Delivery of steering messages.
    pub steering_mode: QueueMode,
    /// Delivery of follow-up messages.
    pub follow_up_mode: QueueMode,
}

/// Time, randomness and the way out, for one step.
#[derive(Debug)]
pub struct Cx<'a> {
    /// The time.
    pub now: Now,
    /// Source of ids.
    pub rng: &'a mut Entropy,
    /// Events and appends, in order.
    pub out: &'a mut Vec<Want>,
}

/// What the Desk wants from the other rooms.
#[derive(Clone, Debug)]
pub enum Want {
    /// Show this.
    Event(Event),
    /// Write this.
    Append(AppendOp),
    /// Make a request of the context.
    Request,
    /// Run a call.
    Execute {
        /// Place in the batch.
        index: usize,
        /// The tool.
        tool: Arc<Tool>,
        /// The call as the model made it.
        call: ToolCall,
        /// Validated arguments.
        args: Arc<Value>,
    },
    /// Cancel the request.
    AbortStream,
    /// Cancel the running calls.
    AbortTools,
    /// Ask the embedding program; answer with [`Agent::on_hook`].
    Hook(HookCall),
    /// Cancel what it was asked.
    AbortHooks,
    /// Ask for a summary; answer with [`Desk::on_summary`].
    Summarize(Box<SummaryRequest>),
    /// Cancel the request for a summary; it still answers with an aborted reply.
    AbortSummary,
}

/// The Desk.
#[derive(Debug)]
pub struct Desk {
    pub(super) agent: Agent,
    pub(super) session: Session,
    pub(super) prompt: Sections,
    pub(super) settings: Arc<Settings>,
    /// Switched on or off since the start.
    pub(super) auto_compaction: Option<bool>,
    pub(super) auto_retry: Option<bool>,
    /// Texts of queued messages, as surfaces show them.
    pub(super) steering: Vec<String>,
    pub(super) follow_up: Vec<String>,
    pub(super) notes: Notes,
    /// A prompt on its way to become a message.
    pub(super) waiting_prompt: Option<(String, Vec<Block>)>,
    pub(super) activity: Activity,
    /// An abort was asked for since the activity began.
    pub(super) abort_requested: bool,
    pub(super) recovery: Recovery,
    pub(super) estimator: Estimator,
    /// The summary that is being made.
    pub(super) job: Option<Job>,
    /// What a person wants the next compaction to look at.
    pub(super) focus: Option<String>,
    /// A compaction that was asked for while something else was going on.
    pub(super) wants_compaction: Option<Option<String>>,
    pub(super) compacted: Option<Result<Arc<Compacted>, Fault>>,
    pub(super) moved: Option<Result<Moved, Fault>>,
    pub(super) closing: Closing,
}

/// Where the current activity stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// Nothing is going on.
    Idle,
    /// A run is active.
    Running,
    /// A run ended; what follows is not decided yet.
    Ended(RunEnd),
    /// Before another try of the run that failed.
    Backoff {
        /// When it begins.
        until: Mono,
    },
    /// A summary is made, before or after a run.
    Summarizing,
}

/// How a run ended, and how far what follows is decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RunEnd {
    /// The user aborted it.
    pub(super) aborted: bool,
    /// It was asked to end at a turn boundary.
    pub(super) stopped: bool,
    /// Retry and compaction are decided.
    pub(super) reviewed: bool,
    /// Nothing may follow, not even what is queued.
    pub(super) stays: bool,
}

/// Whether the end of everything was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    No,
    Wanted,
    Done,
}

impl Desk {
    /// Takes over a session. A fresh one begins with its model and thinking level; one that was read gets a
    /// thinking level if its branch has none (spec 60 §1.6 rule 5).
    pub fn new(boot: DeskBoot, cx: &mut Cx<'_>) -> Self {
        let thinking = boot.model.clamp(boot.thinking);
        let hooks = HookSet { prepare_next_turn: true, ..boot.config.hooks };
        let config = AgentConfig { hooks, ..boot.config };
        let mut agent = Agent::new(config, boot.model, thinking);
        agent.set_context(boot.session.context().messages.clone());
        agent.set_tools(boot.tools);
        agent.steering.mode = boot.steering_mode;
        agent.follow_up.mode = boot.follow_up_mode;
        let mut desk = Self {
            agent,
            session: boot.session,
            prompt: boot.prompt,
            settings: boot.settings,
            auto_compaction: None,
            auto_retry: None,
            steering: Vec::new(),
            follow_up: Vec::new(),
            notes: Notes::default(),
            waiting_prompt: None,
            activity: Activity::Idle,
            abort_requested: false,
            recovery: Recovery::default(),
            estimator: Estimator::default(),
            job: None,
            focus: None,
            wants_compaction: None,
            compacted: None,
            moved: None,
            closing: Closing::No,
        };
        if let Some(op) = desk.session.flush() {
            cx.out.push(Want::Append(op));
        }
        let context = desk.session.context();
        if context.model.is_none() && context.messages.is_empty() {
            let (model, level) = (desk.agent.model().clone(), desk.agent.thinking());
            if !model.is_placeholder() {
                desk.record(EntryBody::model(&model.provider, &model.id), cx);
            }
            desk.record(EntryBody::thinking(level), cx);
        } else if desk.session.context().thinking_level.is_none() {
            desk.record(EntryBody::thinking(desk.agent.thinking()), cx);
        }
        desk
    }

    /// The agent.
    #[must_use]
    pub const fn agent(&self) -> &Agent {
        &self.agent
    }

    /// The agent, for replies of the world.
    pub const fn agent_mut(&mut self) -> &mut Agent {
        &mut self.agent
    }

    /// The session.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Texts waiting for the next request, and for the end of the run.
    #[must_use]
    pub fn queued(&self) -> (&[String], &[String]) {
        (&self.steering, &self.follow_up)
    }

    /// Whether nothing is going on.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.activity == Activity::Idle && self.job.is_none()
    }

    /// Whether an activity goes on that a prompt began: messages can be queued for it.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.activity != Activity::Idle
    }

    /// Whether a context is being compacted.
    #[must_use]
    pub fn is_compacting(&self) -> bool {
        self.job.as_ref().is_some_and(Job::is_compaction)
    }

    /// Whether the next step waits until everything said before is written.
    #[must_use]
    pub fn waits_for_file(&self) -> bool {
        matches!(self.activity, Activity::Ended(_)) || self.is_saving()
    }

    /// When to look again at the latest; `None` = not needed.
    #[must_use]
    pub fn deadline(&self) -> Option<Mono> {
        match self.activity {
            Activity::Backoff { until } => Some(until),
            _ => self.job_deadline(),
        }
    }

    /// What came of the compaction that was asked for last; `None` while it is under way.
    #[must_use]
    pub const fn compacted(&self) -> Option<&Result<Arc<Compacted>, Fault>> {
        self.compacted.as_ref()
    }

    /// What came of the last way to another entry; `None` while it is under way.
    #[must_use]
    pub const fn moved(&self) -> Option<&Result<Moved, Fault>> {
        self.moved.as_ref()
    }

    /// Whether compaction happens by itself.
    #[must_use]
    pub fn auto_compaction(&self) -> bool {
        self.auto_compaction.unwrap_or_else(|| self.settings.compaction_enabled())
    }

    /// Whether failed runs are tried again.
    #[must_use]
    pub fn auto_retry(&self) -> bool {
        self.retry_settings().enabled
    }

    /// `retry.*` as it stands.
    #[must_use]
    pub(super) fn retry_settings(&self) -> Retry {
        let settings = self.settings.retry();
        Retry { enabled: self.auto_retry.unwrap_or(settings.enabled), ..settings }
    }

    /// Whether the end was asked for and nothing is left to do but to say so.
    #[must_use]
    pub fn wants_close(&self) -> bool {
        self.closing == Closing::Wanted && self.is_idle()
    }

    /// The last event went out.
    pub const fn closed(&mut self) {
        self.closing = Closing::Done;
    }

    // ----- the run -----

    /// Moves on by one step. `false` when there is nothing to do until the world answers.
    pub fn advance(&mut self, cx: &mut Cx<'_>) -> bool {
        if self.advance_job(cx) {
            return true;
        }
        if let Some(out) = self.agent.poll(cx.now) {
            self.out(out, cx);
            return true;
        }
        match self.activity {
            Activity::Ended(end) => self.after_run(end, cx),
            Activity::Backoff { until } if until <= cx.now.mono => self.retry_now(cx),
            _ => return false,
        }
        true
    }

    fn out(&mut self, out: Out, cx: &mut Cx<'_>) {
        match out {
            Out::Event(event) => self.event(event, cx),
            Out::Request => cx.out.push(Want::Request),
            Out::Execute { index, tool, call, args } => {
                cx.out.push(Want::Execute { index, tool, call, args })
            }
            Out::AbortStream => cx.out.push(Want::AbortStream),
            Out::AbortTools => cx.out.push(Want::AbortTools),
            Out::Finished { aborted, stopped } => {
                self.activity = Activity::Ended(RunEnd { aborted, stopped, ..RunEnd::default() });
            }
            Out::Hook(HookCall::PrepareNextTurn) => {
                if !self.between_turns(cx) {
                    self.agent.on_hook(HookReply::PrepareNextTurn(TurnChange::default()), cx.now);
                }
            }
            Out::Hook(call) => cx.out.push(Want::Hook(call)),
            Out::AbortHooks => cx.out.push(Want::AbortHooks),
        }
    }

    /// Shows an event of the run; a complete message is stored right after its event.
    fn event(&mut self, mut event: Event, cx: &mut Cx<'_>) {
        match &mut event {
            Event::MessageStart(message) => self.delivered(message, cx),
            Event::MessageEnd(message) => {
                let message = Arc::clone(message);
                cx.out.push(Want::Event(event));
                self.record(entry_of(&message), cx);
                if let Some(reply) = message.as_assistant() {
                    self.reply_ended(reply, cx);
                }
                return;
            }
            Event::TurnEnd { .. } => {
                cx.out.push(Want::Event(event));
                self.tell_held_notes(cx);
                return;
            }
            Event::AgentEnd { messages, will_retry } => {
                let reply = messages.iter().rev().find_map(|message| message.as_assistant());
                *will_retry = self.will_retry(reply);
            }
            _ => {}
        }
        cx.out.push(Want::Event(event));
    }

    /// A queued message reached the transcript: it leaves the display.
    fn delivered(&mut self, message: &Message, cx: &mut Cx<'_>) {
        let Message::User(user) = message else { return };
        self.user_spoke();
        if self.steering.is_empty() && self.follow_up.is_empty() {
            return;
        }
        let text: String = user.content.texts().collect();
        let place = |queue: &[String]| queue.iter().position(|queued| *queued == text);
        if let Some(at) = place(&self.steering) {
            self.steering.remove(at);
        } else if let Some(at) = place(&self.follow_up) {
            self.follow_up.remove(at);
        } else {
            return;
        }
        self.show_queues(cx);
    }

    /// After a run: another try, a compaction, or a run for what is queued, unless the user aborted (D23) or asked for
    /// an end; else everything is settled.
    fn after_run(&mut self, end: RunEnd, cx: &mut Cx<'_>) {
        let may_follow = !end.aborted && !end.stopped && !self.abort_requested && self.closing == Closing::No;
        if may_follow && !end.reviewed {
            self.activity = Activity::Ended(RunEnd { reviewed: true, ..end });
            if self.review(cx) {
                return;
            }
        }
        if !may_follow {
            self.drop_retries(cx);
        }
        let queued = !self.agent.steering.is_empty() || !self.agent.follow_up.is_empty();
        if queued && may_follow && !end.stays && self.agent.continue_run(cx.now).is_ok() {
            self.activity = Activity::Running;
            return;
        }
        self.settle(end.aborted || self.abort_requested, cx);
    }

    fn settle(&mut self, aborted: bool, cx: &mut Cx<'_>) {
        self.tell_held_notes(cx);
        self.append_late_notes(cx);
        self.activity = Activity::Idle;
        self.abort_requested = false;
        cx.out.push(Want::Event(Event::AgentSettled { aborted }));
        if let Some(focus) = self.wants_compaction.take() {
            self.compact_now(focus, cx);
        }
    }

    /// Appends an entry; what cannot be stored is reported and the session goes on in memory.
    pub(super) fn record(&mut self, body: EntryBody, cx: &mut Cx<'_>) {
        match self.session.append(body, cx.now.wall, cx.rng) {
            Ok(plan) => cx.out.extend(plan.op.map(Want::Append)),
            Err(fault) => cx.out.push(Want::Event(Event::Error(fault))),
        }
    }

    /// An append went well; the file has `len` bytes now. Lines of another writer stay in the file as a branch of
    /// their own; they do not concern this one.
    pub fn appended(&mut self, len: u64) {
        self.session.appended(len);
    }

    /// An append failed, and with it those that were to follow: their lines go out with the next one, in order.
    pub fn append_failed(&mut self, ops: Vec<AppendOp>, reason: &str, cx: &mut Cx<'_>) {
        let path = ops.first().map_or("its file", |op| &op.path);
        let text = format!(
            "The session could not be written to {path}: {reason}. The conversation goes on in memory; free space or \
             repair the folder, the next message tries again."
        );
        ops.into_iter().for_each(|op| self.session.append_failed(op));
        self.job_not_written();
        cx.out.push(Want::Event(Event::Error(Fault::new("session_write", text))));
    }
}

/// The entry that stores a message.
pub(super) fn entry_of(message: &Arc<Message>) -> EntryBody {
    match &**message {
        Message::Custom(custom) => EntryBody::CustomMessage(Box::new(custom.clone())),
        _ => EntryBody::Message(message.clone()),
    }
}

pub(super) fn refused(refusal: Refusal) -> Fault {
    match refusal {
        Refusal::Busy => Fault::new("busy", "A run is active; abort it or wait for its end."),
        Refusal::NothingToContinue => {
            Fault::new("nothing_to_continue", "There is nothing to continue: send a message first.")
        }
    }
}
