//! The engine: drives a [`Machine`] with threads that block.
//!
//! Whoever has an input locks the engine, hands the input to the machine, and carries out what the machine then
//! says: events go to the sink in the same call stack, ops go to a queue. A worker that finished an op takes the
//! next one itself. So a run of many turns stays on one thread, and a chunk of a reply travels from the socket to
//! the printed line without a change of threads. More workers exist only while several long ops run at once.
//!
//! The thread that owns the engine waits in [`Engine::wait_unless`]; it feeds ticks when the machine's deadline is
//! reached, and commands. While nothing happens, no thread runs.

mod state;
mod work;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tau_core::input::{Command, Input};
use tau_core::now::Now;

use state::State;
pub use work::perform;

use crate::http::Client;
pub use crate::machine::{EventSink, Exchange, Handlers, Machine, Sink, SinkFlow};
use crate::sys::clock::Clock;
use crate::sys::mutex::lock_within;
use crate::sys::wake::Wake;

/// Drives one machine. Cheap to clone; all clones drive the same machine. When the last is dropped, every op is
/// cancelled.
pub struct Engine<M: Machine> {
    owner: Arc<Owner<M>>,
}

impl<M: Machine> Clone for Engine<M> {
    fn clone(&self) -> Self {
        Self { owner: Arc::clone(&self.owner) }
    }
}

/// Exists as long as an engine; workers hold only what is inside.
struct Owner<M: Machine> {
    shared: Arc<Shared<M>>,
}

impl<M: Machine> Drop for Owner<M> {
    fn drop(&mut self) {
        self.shared.lock().stop();
        self.shared.work.notify_all();
    }
}

struct Shared<M: Machine> {
    state: Mutex<State<M>>,
    /// Idle workers wait here for [`State::calls`].
    work: Condvar,
    /// [`Engine::shutdown`] waits here for the last reply.
    ended: Condvar,
    /// The thread in [`Engine::wait_unless`] waits here.
    wake: Arc<Wake>,
    clock: Clock,
    handlers: Handlers,
    http: Client,
}

impl<M: Machine> Engine<M> {
    /// Takes over a machine. Nothing runs yet, and no thread exists.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn new(machine: M, clock: Clock, mut handlers: Handlers, sink: Sink<M>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(machine, sink, handlers.append.take())),
            work: Condvar::new(),
            ended: Condvar::new(),
            wake: Arc::new(Wake::new()?),
            clock,
            handlers,
            http: Client::new(),
        });
        Ok(Self { owner: Arc::new(Owner { shared }) })
    }

    /// Hands a command to the machine. From any thread but that of a sink.
    pub fn command(&self, command: Command) {
        self.input(Input::Command(command));
    }

    /// Hands any input to the machine.
    pub fn input(&self, input: Input) {
        let shared = &self.owner.shared;
        shared.feed(&mut shared.lock(), input);
    }

    /// As [`command`](Self::command), but gives up after `limit`: the engine stays locked while a sink is stuck.
    #[must_use]
    pub fn command_within(&self, command: Command, limit: Duration) -> bool {
        let shared = &self.owner.shared;
        let Some(mut state) = lock_within(&shared.state, limit) else { return false };
        shared.feed(&mut state, Input::Command(command));
        true
    }

    /// The time of the engine's clock.
    #[must_use]
    pub fn now(&self) -> Now {
        self.owner.shared.clock.now()
    }

    /// Looks at the machine.
    pub fn with<T>(&self, look: impl FnOnce(&M) -> T) -> T {
        look(&self.owner.shared.lock().machine)
    }

    /// Changes the machine beside its inputs (at start-up), and carries out what it then says.
    pub fn with_mut<T>(&self, change: impl FnOnce(&mut M) -> T) -> T {
        let mut state = self.owner.shared.lock();
        let result = change(&mut state.machine);
        self.owner.shared.drain(&mut state);
        result
    }

    /// Wakes the thread in [`wait_unless`](Self::wait_unless): from any thread, and from a signal handler.
    #[must_use]
    pub fn waker(&self) -> Arc<Wake> {
        Arc::clone(&self.owner.shared.wake)
    }

    /// Waits until `done` holds. It is looked at after each event that ends [`wait_unless`](Self::wait_unless).
    pub fn run_until(&self, mut done: impl FnMut(&M) -> bool) {
        while !self.wait_unless(&mut done) {}
    }

    /// Waits until the machine is idle.
    pub fn wait_idle(&self) {
        self.run_until(M::is_idle);
    }

    /// Waits once, unless `done` holds already (then `true`): until the machine became idle, a sink or
    /// [`waker`](Self::waker) woke this thread, or the machine's deadline came, which is then told to it. One thread
    /// at a time.
    ///
    /// Whether to wait is decided under the lock, so that what a worker does meanwhile cannot be missed: looking at
    /// the machine first and waiting afterwards would sleep through its last change.
    pub fn wait_unless(&self, done: impl FnOnce(&M) -> bool) -> bool {
        let shared = &self.owner.shared;
        let deadline = {
            let mut state = shared.lock();
            if done(&state.machine) {
                return true;
            }
            state.arm()
        };
        shared.wake.wait(deadline.map(|at| shared.clock.until(at)));
        shared.wake.clear();
        let mut state = shared.lock();
        state.disarm();
        if deadline.is_some_and(|at| at <= shared.clock.mono()) {
            shared.feed(&mut state, Input::Tick);
        }
        false
    }

    /// Cancels every op, takes no more, and waits at most `limit` until all have answered; tells whether they have.
    #[must_use]
    pub fn shutdown(&self, limit: Duration) -> bool {
        let shared = &self.owner.shared;
        let start = Instant::now();
        let Some(mut state) = lock_within(&shared.state, limit) else { return false };
        let limit = limit.saturating_sub(start.elapsed());
        state.stop();
        shared.work.notify_all();
        let (state, _) = shared
            .ended
            .wait_timeout_while(state, limit, |state| state.has_open())
            .unwrap_or_else(PoisonError::into_inner);
        !state.has_open()
    }
}

impl<M: Machine> Shared<M> {
    fn lock(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One input, then everything that follows from it.
    fn feed(self: &Arc<Self>, state: &mut State<M>, input: Input) {
        if !state.is_stopped() {
            state.machine.handle(self.clock.now(), input);
            self.drain(state);
        }
    }

    fn drain(self: &Arc<Self>, state: &mut State<M>) {
        state.drain(&self.clock);
        if state.take_wake() {
            self.wake.wake();
        }
        work::call(self, state);
    }
}
