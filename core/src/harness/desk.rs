//! Commands, records and the end of an activity.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::prompt_state::{self, Sections};
use crate::agent::{Agent, AgentConfig, HookSet, Out, Refusal};
use crate::entropy::Entropy;
use crate::event::Event;
use crate::fault::Fault;
use crate::input::{Command, QueueMode};
use crate::json::Value;
use crate::message::{Block, Message, ToolCall};
use crate::model::{Model, ThinkingLevel};
use crate::now::Now;
use crate::op::AppendOp;
use crate::session::{EntryBody, Session};
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
    /// How runs behave. Its hooks are not asked.
    pub config: AgentConfig,
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
}

/// The Desk.
#[derive(Debug)]
pub struct Desk {
    agent: Agent,
    session: Session,
    prompt: Sections,
    /// Texts of queued messages, as surfaces show them.
    steering: Vec<String>,
    follow_up: Vec<String>,
    activity: Activity,
    closing: Closing,
}

/// Where the current activity stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    /// Nothing is going on.
    Idle,
    /// A run is active.
    Running,
    /// A run ended; what follows is not decided yet.
    Ended {
        /// The user aborted it.
        aborted: bool,
        /// It was asked to end at a turn boundary.
        stopped: bool,
    },
}

/// Whether the end of everything was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    No,
    Wanted,
    Done,
}

impl Desk {
    /// Takes over a session. A fresh one begins with its model and thinking level; one that was read gets a
    /// thinking level if its branch has none (spec 60 §1.6 rule 5).
    pub fn new(boot: DeskBoot, cx: &mut Cx<'_>) -> Self {
        let thinking = boot.model.clamp(boot.thinking);
        // Nobody here answers hooks: a run that asks one would wait for ever.
        let config = AgentConfig { hooks: HookSet::default(), ..boot.config };
        let mut agent = Agent::new(config, boot.model, thinking);
        agent.set_context(boot.session.context().messages.clone());
        agent.set_tools(boot.tools);
        agent.steering.mode = boot.steering_mode;
        agent.follow_up.mode = boot.follow_up_mode;
        let mut desk = Self {
            agent,
            session: boot.session,
            prompt: boot.prompt,
            steering: Vec::new(),
            follow_up: Vec::new(),
            activity: Activity::Idle,
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
        self.activity == Activity::Idle
    }

    /// Whether a run ended, and what follows is not decided yet.
    #[must_use]
    pub const fn has_run_ended(&self) -> bool {
        matches!(self.activity, Activity::Ended { .. })
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

    // ----- commands -----

    /// Follows a command, or says why not; a refused command changes nothing.
    ///
    /// # Errors
    /// `closed`, `busy`, `nothing_to_continue`, `empty_name`.
    pub fn command(&mut self, command: Command, cx: &mut Cx<'_>) -> Result<(), Fault> {
        if self.closing != Closing::No {
            return Err(Fault::new("closed", "This agent was shut down; start a new one."));
        }
        match command {
            Command::Prompt { text, images } => self.prompt(text, images, cx)?,
            Command::Continue => self.continue_run(cx)?,
            Command::Steer { text, images } => {
                self.steering.push(text.clone());
                self.agent.steering.push(Arc::new(Message::user(text, images, cx.now.wall.0)));
                self.show_queues(cx);
            }
            Command::FollowUp { text, images } => {
                self.follow_up.push(text.clone());
                self.agent.follow_up.push(Arc::new(Message::user(text, images, cx.now.wall.0)));
                self.show_queues(cx);
            }
            Command::ClearQueues => {
                self.agent.steering.clear();
                self.agent.follow_up.clear();
                self.steering.clear();
                self.follow_up.clear();
                self.show_queues(cx);
            }
            Command::Abort => self.agent.abort(),
            Command::GracefulStop => {
                self.agent.stop_at_turn_end();
            }
            Command::SetModel { model, thinking } => self.set_model(model, thinking, cx),
            Command::SetThinking(level) => self.set_thinking(level, cx),
            Command::SetSteeringMode(mode) => self.agent.steering.mode = mode,
            Command::SetFollowUpMode(mode) => self.agent.follow_up.mode = mode,
            Command::Note(message) => self.note(message, cx),
            Command::SetName(name) => self.set_name(&name, cx)?,
            Command::Shutdown => {
                self.closing = Closing::Wanted;
                self.agent.abort();
            }
        }
        Ok(())
    }

    fn prompt(&mut self, text: String, images: Vec<Block>, cx: &mut Cx<'_>) -> Result<(), Fault> {
        if !self.is_idle() {
            return Err(Fault::new(
                "busy",
                "A run is active. Queue the message as steering or follow-up, or abort the run first.",
            ));
        }
        self.record_selection(cx);
        let mut messages: Vec<Arc<Message>> =
            prompt_state::patch(self.agent.context(), &self.prompt, cx.now.wall.0).into_iter().collect();
        messages.push(Arc::new(Message::user(text, images, cx.now.wall.0)));
        self.agent.prompt(messages, cx.now).map_err(refused)?;
        self.activity = Activity::Running;
        Ok(())
    }

    fn continue_run(&mut self, cx: &mut Cx<'_>) -> Result<(), Fault> {
        if !self.is_idle() {
            return Err(refused(Refusal::Busy));
        }
        self.agent.continue_run(cx.now).map_err(refused)?;
        self.record_selection(cx);
        self.activity = Activity::Running;
        Ok(())
    }

    /// Records the model and the level when the branch says otherwise.
    fn record_selection(&mut self, cx: &mut Cx<'_>) {
        let (model, level) = (self.agent.model().clone(), self.agent.thinking());
        let context = self.session.context();
        let same = |m: &crate::session::ModelRef| *m.provider == *model.provider && *m.model_id == *model.id;
        let (new_model, new_level) =
            (!context.model.as_ref().is_some_and(same), context.thinking() != Some(level));
        if new_model {
            self.record(EntryBody::model(&model.provider, &model.id), cx);
        }
        if new_level {
            self.record(EntryBody::thinking(level), cx);
        }
    }

    fn set_model(&mut self, model: Arc<Model>, thinking: Option<ThinkingLevel>, cx: &mut Cx<'_>) {
        self.record(EntryBody::model(&model.provider, &model.id), cx);
        self.agent.set_model(model);
        self.set_thinking(thinking.unwrap_or_else(|| self.agent.thinking()), cx);
    }

    fn set_thinking(&mut self, level: ThinkingLevel, cx: &mut Cx<'_>) {
        let level = self.agent.model().clamp(level);
        if level != self.agent.thinking() {
            self.agent.set_thinking(level);
            self.record(EntryBody::thinking(level), cx);
            cx.out.push(Want::Event(Event::ThinkingLevel(level)));
        }
    }

    fn set_name(&mut self, name: &str, cx: &mut Cx<'_>) -> Result<(), Fault> {
        if name.trim().is_empty() {
            return Err(Fault::new("empty_name", "A session name needs at least one visible character."));
        }
        self.record(EntryBody::session_name(name), cx);
        cx.out.push(Want::Event(Event::SessionName(self.session.name().map(String::from))));
        Ok(())
    }

    fn note(&mut self, message: Arc<Message>, cx: &mut Cx<'_>) {
        self.record(entry_of(&message), cx);
        self.agent.append(message);
    }

    fn show_queues(&self, cx: &mut Cx<'_>) {
        let (steering, follow_up) = (self.steering.clone(), self.follow_up.clone());
        cx.out.push(Want::Event(Event::QueueUpdate { steering, follow_up }));
    }

    // ----- the run -----

    /// Moves on by one step. `false` when there is nothing to do until the world answers.
    pub fn advance(&mut self, cx: &mut Cx<'_>) -> bool {
        if let Some(out) = self.agent.poll(cx.now) {
            self.out(out, cx);
            return true;
        }
        if let Activity::Ended { aborted, stopped } = self.activity {
            self.after_run(aborted, stopped, cx);
            return true;
        }
        false
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
            Out::Finished { aborted, stopped } => self.activity = Activity::Ended { aborted, stopped },
            // No hook is switched on: the Desk acts between runs only.
            Out::Hook(_) => {}
        }
    }

    /// Shows an event of the run; a complete message is stored right after its event.
    fn event(&mut self, event: Event, cx: &mut Cx<'_>) {
        match &event {
            Event::MessageStart(message) => self.delivered(message, cx),
            Event::MessageEnd(message) => {
                let body = entry_of(message);
                cx.out.push(Want::Event(event));
                self.record(body, cx);
                return;
            }
            _ => {}
        }
        cx.out.push(Want::Event(event));
    }

    /// A queued message reached the transcript: it leaves the display.
    fn delivered(&mut self, message: &Message, cx: &mut Cx<'_>) {
        let Message::User(user) = message else { return };
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

    /// After a run: queued messages start another one unless the user aborted (D23) or asked for an end, else
    /// everything is settled.
    fn after_run(&mut self, aborted: bool, stopped: bool, cx: &mut Cx<'_>) {
        let queued = !self.agent.steering.is_empty() || !self.agent.follow_up.is_empty();
        if queued
            && !aborted
            && !stopped
            && self.closing == Closing::No
            && self.agent.continue_run(cx.now).is_ok()
        {
            self.activity = Activity::Running;
            return;
        }
        self.activity = Activity::Idle;
        cx.out.push(Want::Event(Event::AgentSettled { aborted }));
    }

    /// Appends an entry; what cannot be stored is reported and the session goes on in memory.
    fn record(&mut self, body: EntryBody, cx: &mut Cx<'_>) {
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

    /// An append failed: its lines go out with the next one.
    pub fn append_failed(&mut self, op: AppendOp, reason: &str, cx: &mut Cx<'_>) {
        let text = format!(
            "The session could not be written to {}: {reason}. The conversation goes on in memory; free space or \
             repair the folder, the next message tries again.",
            op.path
        );
        self.session.append_failed(op);
        cx.out.push(Want::Event(Event::Error(Fault::new("session_write", text))));
    }
}

/// The entry that stores a message.
fn entry_of(message: &Arc<Message>) -> EntryBody {
    match &**message {
        Message::Custom(custom) => EntryBody::CustomMessage(Box::new(custom.clone())),
        _ => EntryBody::Message(message.clone()),
    }
}

fn refused(refusal: Refusal) -> Fault {
    match refusal {
        Refusal::Busy => Fault::new("busy", "A run is active; abort it or wait for its end."),
        Refusal::NothingToContinue => {
            Fault::new("nothing_to_continue", "There is nothing to continue: send a message first.")
        }
    }
}
