//! An agent whose prompts block.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tau_core::event::Event;
use tau_core::fault::Fault;
use tau_core::hub::Hub;
use tau_core::input::Command;
use tau_core::message::Message;
use tau_core::model::{Model, ThinkingLevel};
use tau_core::session::stats::Stats;
use tau_core::tools::shell_env::retuned;

use crate::driver::Engine;
use crate::embed::{Options, Prompt, answer_of, session_lines, session_stats};
use crate::machine::{EventSink, SinkFlow};
use crate::sys::clock::Clock;

/// How long closing waits for ops that are under way.
const CLOSING: Duration = Duration::from_secs(5);

/// One agent. Its methods may be called from any thread; dropping it aborts what goes on and stores it.
///
/// ```
/// use tau_io_std::{Agent, embed::Options};
///
/// let agent = Agent::start(Options::demo())?;
/// let answer = agent.prompt("Show me around.")?;
/// assert!(answer.contains("demo"));
/// # Ok::<(), tau_core::fault::Fault>(())
/// ```
///
/// Deadlines (waits before retries, time limits of commands) are kept by a thread that waits in [`prompt`](Self::prompt),
/// a [`Run`] or [`wait`](Self::wait); everything else goes on by itself.
pub struct Agent {
    engine: Engine<Hub>,
    mail: Arc<Mail>,
    turns: Turns,
}

impl Agent {
    /// Starts an idle agent. No thread exists before it has something to do.
    ///
    /// # Errors
    /// As [`Options::into_parts`], and `no_descriptor`.
    pub fn start(options: Options) -> Result<Self, Fault> {
        let parts = options.into_parts()?;
        let clock = Clock::start();
        let hub = Hub::new(parts.boot, clock.now());
        let mail = Arc::new(Mail::default());
        let sink = ToMail { mail: Arc::clone(&mail), on_event: parts.on_event };
        let engine = Engine::new(hub, clock, parts.handlers, Box::new(sink)).map_err(|e| {
            Fault::new(
                "no_descriptor",
                format!("The agent cannot start: {e}. Close files or raise the limit."),
            )
        })?;
        // What is due to be written is written.
        engine.with_mut(|_| ());
        Ok(Self { engine, mail, turns: Turns::default() })
    }

    // ----- prompts -----

    /// Sends a message and blocks until everything that follows is done. Gives the last answer.
    ///
    /// # Errors
    /// `busy` while a run is active; else as [`answer_of`].
    pub fn prompt(&self, prompt: impl Into<Prompt>) -> Result<String, Fault> {
        self.run(prompt)?.finish()
    }

    /// Sends a message and gives the events of what follows, as they come.
    ///
    /// # Errors
    /// `busy` while a run is active.
    pub fn run(&self, prompt: impl Into<Prompt>) -> Result<Run<'_>, Fault> {
        let (text, images) = prompt.into().into_parts();
        self.run_command(Command::Prompt { text, images })
    }

    /// Follows a command that starts something (a prompt, [`Command::Continue`], [`Command::Compact`] …), and gives
    /// the events of what follows.
    ///
    /// # Errors
    /// Why the command is refused.
    pub fn run_command(&self, command: Command) -> Result<Run<'_>, Fault> {
        let now = self.engine.now();
        self.engine.with_mut(|hub| {
            if self.mail.is_open() {
                return Err(Fault::new("busy", "The events of a run are being read; finish that first."));
            }
            hub.command(now, command)?;
            self.mail.open();
            Ok(Run { agent: self, last: None, ended: false })
        })
    }

    /// Adds a message to the active run: the model gets it with the next request. While nothing runs it waits for the
    /// next prompt, and goes with it.
    ///
    /// # Errors
    /// `closed`.
    pub fn steer(&self, message: impl Into<Prompt>) -> Result<(), Fault> {
        let (text, images) = message.into().into_parts();
        self.command(Command::Steer { text, images })
    }

    /// Queues a message for when the active run would end; while nothing runs, the next one.
    ///
    /// # Errors
    /// `closed`.
    pub fn follow_up(&self, message: impl Into<Prompt>) -> Result<(), Fault> {
        let (text, images) = message.into().into_parts();
        self.command(Command::FollowUp { text, images })
    }

    /// Ends the run at once; what was done stays. Returns before it has ended. While nothing runs it does nothing, to
    /// later prompts neither.
    pub fn abort(&self) {
        self.engine.command(Command::Abort);
    }

    /// Blocks until nothing goes on any more.
    pub fn wait(&self) {
        self.wait_for(Hub::is_idle);
    }

    /// Aborts what goes on, and returns when everything is stored, as dropping does. What does not end within 5 s is
    /// left alone.
    pub fn close(self) {
        drop(self);
    }

    /// Changes the model for later requests; the thinking level is clamped to it.
    ///
    /// # Errors
    /// `closed`.
    pub fn set_model(&self, model: Model) -> Result<(), Fault> {
        self.command(Command::SetModel { model: Arc::new(model), thinking: None })
    }

    /// Changes the thinking level for later requests; the nearest one that the model knows.
    ///
    /// # Errors
    /// `closed`.
    pub fn set_thinking(&self, level: ThinkingLevel) -> Result<(), Fault> {
        self.command(Command::SetThinking(level))
    }

    /// Any other command.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn command(&self, command: Command) -> Result<(), Fault> {
        let now = self.engine.now();
        let retunes = matches!(command, Command::SetModel { .. } | Command::SetThinking(_));
        self.engine.with_mut(|hub| {
            hub.command(now, command)?;
            if retunes {
                let (agent, session) = (hub.desk().agent(), hub.desk().session());
                let env = retuned(hub.env(), session, agent.model(), agent.thinking());
                hub.set_env(Arc::new(env));
            }
            Ok(())
        })
    }

    // ----- looking -----

    /// Whether nothing goes on.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.engine.with(Hub::is_idle)
    }

    /// The conversation as the next request will see it.
    #[must_use]
    pub fn messages(&self) -> Vec<Arc<Message>> {
        self.with(|hub| hub.desk().agent().context().to_vec())
    }

    /// The session on every branch, as a file holds it: its header, then one entry a line.
    #[must_use]
    pub fn entries(&self) -> Vec<String> {
        self.with(|hub| session_lines(hub.desk().session()))
    }

    /// What the session cost and holds, all branches together.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.with(|hub| session_stats(hub.desk().session()))
    }

    /// Looks at the machine. The agent stands still meanwhile: be quick, and do not call it (it would wait for itself).
    pub fn with<T>(&self, look: impl FnOnce(&Hub) -> T) -> T {
        self.engine.with(look)
    }

    fn wait_for(&self, mut done: impl FnMut(&Hub) -> bool) {
        loop {
            let seen = self.turns.seen();
            if self.engine.with(&mut done) {
                return;
            }
            if let Some(_turn) = self.turns.take(seen) {
                self.engine.wait_unless(&mut done);
            }
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.engine.command(Command::Shutdown);
        let _ = self.engine.shutdown(CLOSING);
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").finish_non_exhaustive()
    }
}

/// The events of a run, in order, until the agent has settled; each `next` blocks until there is one. They wait in
/// memory until they are taken. Dropping it does not end the run.
#[must_use = "the run goes on, but nobody keeps its deadlines; take the events or call `finish`"]
#[derive(Debug)]
pub struct Run<'a> {
    agent: &'a Agent,
    last: Option<Arc<Message>>,
    ended: bool,
}

impl Run<'_> {
    /// Waits for the end and gives the last answer.
    ///
    /// # Errors
    /// As [`answer_of`].
    pub fn finish(mut self) -> Result<String, Fault> {
        self.by_ref().for_each(drop);
        answer_of(self.last.as_deref())
    }
}

impl Iterator for Run<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.agent.mail.take() {
                if let Event::MessageEnd(message) = &event
                    && message.as_assistant().is_some()
                {
                    self.last = Some(Arc::clone(message));
                }
                return Some(event);
            }
            if self.ended {
                return None;
            }
            let mail = &self.agent.mail;
            self.agent.wait_for(|hub| hub.is_idle() || mail.has_some());
            // What is idle now has brought all of its events.
            self.ended = self.agent.is_idle();
        }
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.agent.mail.close();
    }
}

/// Events on their way to whoever reads a run; collected only while someone does.
#[derive(Default)]
struct Mail {
    events: Mutex<Option<VecDeque<Event>>>,
}

impl Mail {
    fn lock(&self) -> MutexGuard<'_, Option<VecDeque<Event>>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) {
        *self.lock() = Some(VecDeque::new());
    }

    fn is_open(&self) -> bool {
        self.lock().is_some()
    }

    fn close(&self) {
        *self.lock() = None;
    }

    fn take(&self) -> Option<Event> {
        self.lock().as_mut()?.pop_front()
    }

    fn has_some(&self) -> bool {
        self.lock().as_ref().is_some_and(|events| !events.is_empty())
    }
}

struct ToMail {
    mail: Arc<Mail>,
    on_event: Option<Box<dyn FnMut(&Event) + Send>>,
}

impl EventSink<Hub> for ToMail {
    fn event(&mut self, event: &Event, _: &Hub) -> SinkFlow {
        if let Some(look) = &mut self.on_event {
            look(event);
        }
        match &mut *self.mail.lock() {
            Some(events) => {
                events.push_back(event.clone());
                SinkFlow::Wake
            }
            None => SinkFlow::Go,
        }
    }
}

/// Lets one thread at a time wait for the engine; the others look again whenever it did.
#[derive(Default)]
struct Turns {
    state: Mutex<Turn>,
    changed: Condvar,
}

#[derive(Default)]
struct Turn {
    taken: bool,
    /// How often someone has waited.
    count: u64,
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, Turn> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seen(&self) -> u64 {
        self.lock().count
    }

    /// The right to wait for the engine; `None` when another thread did since `seen`.
    fn take(&self, seen: u64) -> Option<TakenTurn<'_>> {
        let waits = |turn: &mut Turn| turn.taken && turn.count == seen;
        let mut turn = self.changed.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner);
        if turn.taken || turn.count != seen {
            return None;
        }
        turn.taken = true;
        Some(TakenTurn(self))
    }
}

struct TakenTurn<'a>(&'a Turns);

impl Drop for TakenTurn<'_> {
    fn drop(&mut self) {
        let mut turn = self.0.lock();
        turn.taken = false;
        turn.count += 1;
        self.0.changed.notify_all();
    }
}
