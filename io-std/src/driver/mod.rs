//! The engine: drives a [`Machine`] with threads that block.
//!
//! Whoever has an input locks the engine, hands the input to the machine, and carries out what the machine then
//! says: events go to the sink in the same call stack, ops go to a queue. A worker that finished an op takes the
//! next one itself. So a run of many turns stays on one thread, and a chunk of a reply travels from the socket to
//! the printed line without a change of threads. More workers exist only while several long ops run at once.
//!
//! The thread that owns the engine waits in [`Engine::wait`]; it feeds ticks when the machine's deadline is
//! reached, and commands. While nothing happens, no thread runs.

mod work;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use tau_core::event::Event;
use tau_core::fault::IoFault;
use tau_core::ids::OpId;
use tau_core::input::{Command, Input, Reply};
use tau_core::now::{Mono, Now};
use tau_core::op::{HostCall, Op, Outcome, SecretOp};
use tau_core::tools::ToolOutput;

use crate::http::Client;
use crate::sys::CancelToken;
use crate::sys::clock::Clock;
use crate::sys::wake::Wake;

/// What a machine wants.
#[derive(Clone, Debug)]
pub enum Output {
    /// Start an op. It may run at once: lanes are the machine's business.
    Start {
        /// Its name.
        op: OpId,
        /// What to do.
        what: Op,
    },
    /// The op is no longer wanted. It still answers once.
    Cancel {
        /// Its name.
        op: OpId,
    },
    /// For surfaces.
    Event(Event),
}

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
}

/// What a sink wants of the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SinkFlow {
    /// Nothing.
    #[default]
    Go,
    /// The thread in [`Engine::wait`] should look at the machine.
    Wake,
    /// The run should end: whoever reads the events is gone.
    Abort,
}

/// Takes the events, in order. Called with the engine locked: it must not call the engine.
pub type Sink<M> = Box<dyn FnMut(&Event, &M) -> SinkFlow + Send>;

/// Answers the ops that need the embedding program. Called on worker threads, without the lock.
pub struct Handlers {
    /// Credentials of one request.
    pub secret: Box<dyn Fn(SecretOp) -> Outcome + Send + Sync>,
    /// A tool of the embedding program; the second argument takes intermediate results.
    pub host: Box<dyn Fn(HostCall, &mut dyn FnMut(ToolOutput), &CancelToken) -> Outcome + Send + Sync>,
}

impl Default for Handlers {
    /// Knows no credentials and no tools.
    fn default() -> Self {
        Self {
            secret: Box::new(|op| Outcome::Secret(Err(format!("no credentials for provider {}", op.provider)))),
            host: Box::new(|call, _, _| {
                Outcome::Host(ToolOutput::error(format!("the tool {} has no implementation", call.tool)))
            }),
        }
    }
}

/// Drives one machine. Cheap to clone; all clones drive the same machine.
pub struct Engine<M: Machine> {
    shared: Arc<Shared<M>>,
}

impl<M: Machine> Clone for Engine<M> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

struct Shared<M: Machine> {
    state: Mutex<State<M>>,
    /// Idle workers wait here for [`State::calls`].
    work: Condvar,
    /// [`Engine::shutdown`] waits here for the last reply.
    ended: Condvar,
    /// The thread in [`Engine::wait`] waits here.
    wake: Arc<Wake>,
    clock: Clock,
    handlers: Handlers,
    http: Client,
}

struct State<M: Machine> {
    machine: M,
    sink: Sink<M>,
    /// Ops that end by themselves in no time; any worker runs them between other things.
    quick: VecDeque<(OpId, Op)>,
    /// Ops that may take long; a worker each.
    long: VecDeque<(OpId, Op)>,
    /// Ops that have not given their last reply.
    open: BTreeMap<OpId, CancelToken>,
    workers: usize,
    idle: usize,
    /// Idle workers that were called and did not wake yet.
    calls: usize,
    /// The deadline that the thread in [`Engine::wait`] knows of, while it waits.
    armed: Option<Option<Mono>>,
    stopped: bool,
}

impl<M: Machine> Engine<M> {
    /// Takes over a machine. Nothing runs yet, and no thread exists.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn new(machine: M, clock: Clock, handlers: Handlers, sink: Sink<M>) -> std::io::Result<Self> {
        let state = State {
            machine,
            sink,
            quick: VecDeque::new(),
            long: VecDeque::new(),
            open: BTreeMap::new(),
            workers: 0,
            idle: 0,
            calls: 0,
            armed: None,
            stopped: false,
        };
        Ok(Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                work: Condvar::new(),
                ended: Condvar::new(),
                wake: Arc::new(Wake::new()?),
                clock,
                handlers,
                http: Client::new(),
            }),
        })
    }

    /// Hands a command to the machine. From any thread but that of a sink.
    pub fn command(&self, command: Command) {
        self.input(Input::Command(command));
    }

    /// Hands any input to the machine.
    pub fn input(&self, input: Input) {
        let shared = &self.shared;
        shared.feed(&mut shared.lock(), input);
    }

    /// As [`command`](Self::command), but gives up after `limit`: the engine stays locked while a sink is stuck.
    #[must_use]
    pub fn command_within(&self, command: Command, limit: Duration) -> bool {
        let give_up = Instant::now() + limit;
        loop {
            match self.shared.state.try_lock() {
                Ok(mut state) => {
                    self.shared.feed(&mut state, Input::Command(command));
                    return true;
                }
                Err(TryLockError::Poisoned(poisoned)) => {
                    self.shared.feed(&mut poisoned.into_inner(), Input::Command(command));
                    return true;
                }
                Err(TryLockError::WouldBlock) if Instant::now() >= give_up => return false,
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    /// Looks at the machine.
    pub fn with<T>(&self, look: impl FnOnce(&M) -> T) -> T {
        look(&self.shared.lock().machine)
    }

    /// Changes the machine beside its inputs (at start-up), and carries out what it then says.
    pub fn with_mut<T>(&self, change: impl FnOnce(&mut M) -> T) -> T {
        let mut state = self.shared.lock();
        let result = change(&mut state.machine);
        self.shared.drain(&mut state);
        result
    }

    /// Wakes the thread in [`wait`](Self::wait): from any thread, and from a signal handler.
    #[must_use]
    pub fn waker(&self) -> Arc<Wake> {
        Arc::clone(&self.shared.wake)
    }

    /// Waits until the machine became idle, a sink or [`waker`](Self::waker) woke this thread, or the machine's
    /// deadline came, which is then told to it. One thread at a time.
    pub fn wait(&self) {
        self.wait_unless(|_| false);
    }

    /// Waits until `done` holds. It is looked at after each event that ends [`wait`](Self::wait).
    pub fn run_until(&self, mut done: impl FnMut(&M) -> bool) {
        while !self.wait_unless(&mut done) {}
    }

    /// Waits until the machine is idle.
    pub fn wait_idle(&self) {
        self.run_until(M::is_idle);
    }

    fn wait_unless(&self, done: impl FnOnce(&M) -> bool) -> bool {
        let shared = &self.shared;
        let deadline = {
            let mut state = shared.lock();
            if done(&state.machine) {
                return true;
            }
            let deadline = state.machine.poll_timeout();
            state.armed = Some(deadline);
            deadline
        };
        shared.wake.wait(deadline.map(|at| shared.clock.until(at)));
        shared.wake.clear();
        let mut state = shared.lock();
        state.armed = None;
        if deadline.is_some_and(|at| at <= shared.clock.mono()) {
            shared.feed(&mut state, Input::Tick);
        }
        false
    }

    /// Cancels every op, takes no more, and waits at most `limit` until all have answered; tells whether they have.
    pub fn shutdown(&self, limit: Duration) -> bool {
        let shared = &self.shared;
        let mut state = shared.lock();
        state.stop();
        shared.work.notify_all();
        let (state, _) = shared
            .ended
            .wait_timeout_while(state, limit, |state| !state.open.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        state.open.is_empty()
    }
}

impl<M: Machine> Drop for Engine<M> {
    fn drop(&mut self) {
        // Workers hold `Shared`, not an engine.
        let mut state = self.shared.lock();
        state.handles_dropped();
        if state.stopped {
            self.shared.work.notify_all();
        }
    }
}

impl<M: Machine> Shared<M> {
    fn lock(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One input, then everything that follows from it.
    fn feed(self: &Arc<Self>, state: &mut State<M>, input: Input) {
        if !state.stopped {
            state.machine.handle(self.clock.now(), input);
            self.drain(state);
        }
    }

    fn drain(self: &Arc<Self>, state: &mut State<M>) {
        loop {
            while let Some(output) = state.machine.poll() {
                if let Some(input) = state.carry_out(output, &self.wake) {
                    state.inputs.push_back(input);
                }
            }
            let Some(input) = state.inputs.pop_front() else { break };
            state.machine.handle(self.clock.now(), input);
        }
        state.tell_waiting(&self.wake);
        work::call(self, state);
    }
}
