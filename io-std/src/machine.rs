//! What every driver is built around: a poll machine, a sink for its events, and the embedding program.

use tau_core::agent::{HookCall, HookReply};
use tau_core::event::Event;
use tau_core::fault::IoFault;
use tau_core::hub::{Hub, Output};
use tau_core::input::Input;
use tau_core::now::{Mono, Now};
use tau_core::op::{AppendOp, Headers, HostCall, HttpRequest, Outcome, SecretOp};
use tau_core::tools::ToolOutput;

use crate::sys::CancelToken;

/// A poll machine, as the hub of the core is one.
pub trait Machine: Send + 'static {
    /// Takes one input.
    fn handle(&mut self, now: Now, input: Input);
    /// The next output; to be drained after each input.
    fn poll(&mut self) -> Option<Output>;
    /// When a tick is due; `None` = never.
    fn poll_timeout(&self) -> Option<Mono>;
    /// Whether nothing happens any more unless someone commands it.
    fn is_idle(&self) -> bool;
    /// As [`is_idle`](Self::is_idle), but what runs beside everything else may go on.
    fn is_settled(&self) -> bool {
        self.is_idle()
    }
}

impl Machine for Hub {
    fn handle(&mut self, now: Now, input: Input) {
        Self::handle(self, now, input);
    }

    fn poll(&mut self) -> Option<Output> {
        Self::poll(self)
    }

    fn poll_timeout(&self) -> Option<Mono> {
        Self::poll_timeout(self)
    }

    fn is_idle(&self) -> bool {
        Self::is_idle(self)
    }

    fn is_settled(&self) -> bool {
        Self::is_settled(self)
    }
}

/// What a sink wants of the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SinkFlow {
    /// Nothing.
    #[default]
    Go,
    /// The thread in [`Engine::wait_unless`](crate::driver::Engine::wait_unless) should look at the machine.
    Wake,
    /// The run should end: whoever reads the events is gone.
    Abort,
}

/// Takes the events, in order. Called with the engine locked: it must not call the engine. A closure will do.
pub trait EventSink<M>: Send {
    /// Takes one event.
    fn event(&mut self, event: &Event, machine: &M) -> SinkFlow;

    /// Everything that followed from one input was given: what was kept back for a larger write may leave now.
    fn drained(&mut self) -> SinkFlow {
        SinkFlow::Go
    }
}

impl<M, F: FnMut(&Event, &M) -> SinkFlow + Send> EventSink<M> for F {
    fn event(&mut self, event: &Event, machine: &M) -> SinkFlow {
        self(event, machine)
    }
}

/// Where an engine's events go.
pub type Sink<M> = Box<dyn EventSink<M>>;

/// A request, or the beginning of what came of it.
#[derive(Clone, Copy, Debug)]
pub enum Exchange<'a> {
    /// It leaves. Its headers hold the key.
    Request(&'a HttpRequest),
    /// The head of the response came.
    Response {
        /// Status code.
        status: u16,
        /// Headers.
        headers: &'a Headers,
    },
}

/// Stores lines of a session.
pub type Append = Box<dyn Fn(&AppendOp) -> Result<Outcome, IoFault> + Send + Sync>;

/// Answers the ops that need the embedding program. Called on worker threads, without the lock.
pub struct Handlers {
    /// Credentials of one request.
    pub secret: Box<dyn Fn(SecretOp) -> Outcome + Send + Sync>,
    /// A tool of the embedding program; the second argument takes intermediate results.
    pub host: Box<dyn Fn(HostCall, &mut dyn FnMut(ToolOutput), &CancelToken) -> Outcome + Send + Sync>,
    /// Questions about a run, for the hooks that are switched on. May take its time; it must look at the token.
    pub hook: Box<dyn Fn(HookCall, &CancelToken) -> HookReply + Send + Sync>,
    /// Stores the lines of the session instead of a file, in order. Nothing else happens meanwhile: it must be quick
    /// and must not call the driver.
    pub append: Option<Append>,
    /// Looks at every HTTP exchange of the agent.
    pub exchange: Option<Box<dyn Fn(Exchange<'_>) + Send + Sync>>,
}

impl Default for Handlers {
    /// Knows no credentials and no tools, changes nothing, stores in files.
    fn default() -> Self {
        Self {
            secret: Box::new(|op| {
                Outcome::Secret(Err(format!("no credentials for provider {}", op.provider)))
            }),
            host: Box::new(|call, _, _| {
                Outcome::Host(ToolOutput::error(format!("the tool {} has no implementation", call.tool)))
            }),
            hook: Box::new(|call, _| call.neutral()),
            append: None,
            exchange: None,
        }
    }
}
