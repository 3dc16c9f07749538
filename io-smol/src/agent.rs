//! An agent whose prompts are futures, and whose events are a stream.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use smol::stream::{Stream, StreamExt};
use tau_core::event::Event;
use tau_core::fault::Fault;
use tau_core::hub::Hub;
use tau_core::input::Command;
use tau_core::message::Message;
use tau_core::model::{Model, ThinkingLevel};
use tau_core::session::stats::Stats;
use tau_core::tools::shell_env::retuned;
use tau_io_std::embed::{Options, Prompt, answer_of, session_lines, session_stats};
use tau_io_std::machine::{EventSink, SinkFlow};
use tau_io_std::sys::append;
use tau_io_std::sys::clock::Clock;

use crate::driver::{Control, Watch, drive};
use crate::http::Client;

/// One agent, among any number of them on one thread. Its methods may be called from any task or thread; dropping it
/// aborts what goes on, and its driver stores that before it ends. Only [`close`](Self::close) tells when.
///
/// ```
/// use smol::stream::StreamExt;
/// use tau_io_smol::Agent;
/// use tau_io_std::embed::Options;
///
/// smol::block_on(async {
///     let agent = Agent::spawn(Options::demo())?;
///     let mut run = agent.run("Show me around.")?;
///     while let Some(event) = run.next().await {
///         println!("{event:?}");
///     }
///     println!("{}", run.finish().await?);
///     agent.close().await;
///     Ok::<(), tau_core::fault::Fault>(())
/// })?;
/// # Ok::<(), tau_core::fault::Fault>(())
/// ```
pub struct Agent {
    control: Control<Hub>,
    mail: Arc<Mail>,
}

impl Agent {
    /// Starts an idle agent; nothing happens unless the future is awaited, on an executor of any kind. It ends some
    /// time after the agent was dropped. When it is dropped before, the agent ends with it: what is awaited is ready,
    /// and whatever is asked of the agent is refused (`closed`). Agents that share `http` share connections.
    ///
    /// # Errors
    /// As [`Options::into_parts`].
    pub fn start(
        options: Options,
        http: Arc<Client>,
    ) -> Result<(Self, impl Future<Output = ()> + Send + use<>), Fault> {
        let mut parts = options.into_parts()?;
        // At once: what a command changes is stored and shown when it returns.
        parts.handlers.append.get_or_insert_with(|| Box::new(append::append));
        let clock = Clock::start();
        let hub = Hub::new(parts.boot, clock.now());
        let mail = Arc::new(Mail::default());
        let sink = ToMail { mail: Arc::clone(&mail), on_event: parts.on_event };
        let (control, driver) = drive(hub, clock, parts.handlers, http, sink);
        // What is due to be written is written.
        control.with_mut(|_| ());
        Ok((Self { control, mail }, driver))
    }

    /// As [`start`](Self::start), on smol's global executor, with connections of its own.
    ///
    /// # Errors
    /// As [`Options::into_parts`].
    pub fn spawn(options: Options) -> Result<Self, Fault> {
        let (agent, driver) = Self::start(options, Arc::default())?;
        smol::spawn(driver).detach();
        Ok(agent)
    }

    // ----- prompts -----

    /// Sends a message; ready when everything that follows is done, with the last answer. Dropping the future does
    /// not end the run.
    ///
    /// # Errors
    /// `busy` while a run is active; else as [`answer_of`].
    pub async fn prompt(&self, prompt: impl Into<Prompt>) -> Result<String, Fault> {
        self.run(prompt)?.finish().await
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
        self.check_driver()?;
        let now = self.control.now();
        self.control.with_mut(|hub| {
            if self.mail.is_open() {
                return Err(Fault::new("busy", "The events of a run are being read; finish that first."));
            }
            hub.command(now, command)?;
            self.mail.open();
            Ok(Run { agent: self, last: None, end: None, watch: Watch::default() })
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
        let now = self.control.now();
        let _ = self.control.with_mut(|hub| hub.command(now, Command::Abort));
    }

    /// Ready when nothing goes on any more.
    pub async fn wait(&self) {
        self.until(Hub::is_idle).await;
    }

    /// Aborts what goes on, and is ready when everything is stored.
    pub async fn close(self) {
        self.control.command(Command::Shutdown);
        self.until(|hub| hub.desk().check_open().is_err() && hub.is_idle()).await;
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
        self.check_driver()?;
        let now = self.control.now();
        let retunes = matches!(command, Command::SetModel { .. } | Command::SetThinking(_));
        self.control.with_mut(|hub| {
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
        self.with(Hub::is_idle)
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
        self.control.with(look)
    }

    /// Ready when `done` holds, or never will. Nothing is woken before the agent is idle.
    async fn until(&self, done: fn(&Hub) -> bool) {
        let mut waiting = Waiting { control: &self.control, watch: Watch::default() };
        poll_fn(|cx| waiting.control.poll_until(&mut waiting.watch, cx, done)).await;
    }

    fn check_driver(&self) -> Result<(), Fault> {
        if self.control.has_ended() { Err(no_driver()) } else { Ok(()) }
    }
}

/// Why an agent without its driver does nothing.
fn no_driver() -> Fault {
    Fault::new("closed", "The future that drives this agent has ended; keep it for as long as the agent.")
}

/// Gives its place among the watchers back.
struct Waiting<'a> {
    control: &'a Control<Hub>,
    watch: Watch,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.control.forget(&mut self.watch);
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let now = self.control.now();
        let _ = self.control.with_mut(|hub| hub.command(now, Command::Shutdown));
        self.control.stop();
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").finish_non_exhaustive()
    }
}

/// The events of a run, in order, until the agent has settled. They wait in memory until they are taken. Dropping it
/// does not end the run.
#[must_use = "a stream does nothing unless it is polled"]
#[derive(Debug)]
pub struct Run<'a> {
    agent: &'a Agent,
    last: Option<Arc<Message>>,
    end: Option<End>,
    watch: Watch,
}

/// Why no event follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Settled,
    /// The driver is gone.
    Cut,
}

impl Run<'_> {
    /// Waits for the end and gives the last answer.
    ///
    /// # Errors
    /// As [`answer_of`]; `closed` when the driver's future was dropped before the end.
    pub async fn finish(mut self) -> Result<String, Fault> {
        while self.next().await.is_some() {}
        if self.end == Some(End::Cut) {
            return Err(no_driver());
        }
        answer_of(self.last.as_deref())
    }
}

impl Stream for Run<'_> {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            if let Some(event) = self.agent.mail.take(cx) {
                if let Event::MessageEnd(message) = &event
                    && message.as_assistant().is_some()
                {
                    self.last = Some(Arc::clone(message));
                }
                return Poll::Ready(Some(event));
            }
            if self.end.is_some() {
                return Poll::Ready(None);
            }
            // What has ended now has brought all of its events.
            let Self { agent, watch, .. } = &mut *self;
            self.end = match agent.control.poll_until(watch, cx, Hub::is_settled) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(true) => Some(End::Settled),
                Poll::Ready(false) => Some(End::Cut),
            };
        }
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.agent.mail.close();
        self.agent.control.forget(&mut self.watch);
    }
}

/// Events on their way to whoever reads a run; collected only while someone does.
#[derive(Default)]
struct Mail(Mutex<Option<Letters>>);

#[derive(Default)]
struct Letters {
    events: VecDeque<Event>,
    reader: Option<Waker>,
}

impl Mail {
    fn lock(&self) -> MutexGuard<'_, Option<Letters>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) {
        *self.lock() = Some(Letters::default());
    }

    fn is_open(&self) -> bool {
        self.lock().is_some()
    }

    fn close(&self) {
        *self.lock() = None;
    }

    fn put(&self, event: &Event) {
        let reader = self.lock().as_mut().and_then(|mail| {
            mail.events.push_back(event.clone());
            mail.reader.take()
        });
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// The next event; else the reader is woken by it.
    fn take(&self, cx: &Context<'_>) -> Option<Event> {
        let mut mail = self.lock();
        let mail = mail.as_mut()?;
        let event = mail.events.pop_front();
        if event.is_none() {
            mail.reader = Some(cx.waker().clone());
        }
        event
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
        self.mail.put(event);
        SinkFlow::Go
    }
}
