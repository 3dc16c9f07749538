//! The driver on a thread of its own, behind the face of the blocking engine: whoever is written for
//! `tau_io_std::driver::Engine` drives this one as well.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tau_core::input::{Command, Input};
use tau_core::now::Now;
use tau_io_std::machine::{Handlers, Machine, Sink};
use tau_io_std::sys::append;
use tau_io_std::sys::clock::Clock;
use tau_io_std::sys::wake::Wake;

use crate::driver::{Driven, Shared, run};

/// Drives one machine. Cheap to clone; all clones drive the same machine. When the last is dropped, every op is
/// cancelled.
///
/// Inputs are handled on the thread that brings them; replies and deadlines on the driver's thread.
pub struct Engine<M: Machine> {
    owner: Arc<Owner<M>>,
}

impl<M: Machine> Clone for Engine<M> {
    fn clone(&self) -> Self {
        Self { owner: Arc::clone(&self.owner) }
    }
}

/// Exists as long as an engine; the driver's thread holds only what is inside.
struct Owner<M: Machine> {
    shared: Arc<Shared<M>>,
    wake: Arc<Wake>,
}

impl<M: Machine> Drop for Owner<M> {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl<M: Machine> Engine<M> {
    /// Takes over a machine, and starts the thread of its driver. Nothing runs yet.
    ///
    /// # Errors
    /// When no descriptor or no thread is left.
    pub fn new(machine: M, clock: Clock, mut handlers: Handlers, sink: Sink<M>) -> io::Result<Self> {
        // At once, as in the blocking engine: what a command changes is stored and shown when it returns.
        handlers.append.get_or_insert_with(|| Box::new(append::append));
        let wake = Arc::new(Wake::new()?);
        let shared = Shared::new(machine, clock, handlers, Arc::default(), sink, Some(Arc::clone(&wake)));
        let driver = run(Driven(Arc::clone(&shared)));
        thread::Builder::new().name("tau-driver".into()).spawn(move || smol::block_on(driver))?;
        Ok(Self { owner: Arc::new(Owner { shared, wake }) })
    }

    /// Hands a command to the machine. From any thread but that of a sink.
    pub fn command(&self, command: Command) {
        self.input(Input::Command(command));
    }

    /// Hands any input to the machine.
    pub fn input(&self, input: Input) {
        self.owner.shared.feed(input);
    }

    /// As [`command`](Self::command), but gives up after `limit`: the engine stays locked while a sink is stuck.
    #[must_use]
    pub fn command_within(&self, command: Command, limit: Duration) -> bool {
        self.owner.shared.feed_within(Input::Command(command), limit)
    }

    /// The time of the engine's clock.
    #[must_use]
    pub fn now(&self) -> Now {
        self.owner.shared.now()
    }

    /// Looks at the machine.
    pub fn with<T>(&self, look: impl FnOnce(&M) -> T) -> T {
        self.owner.shared.with(look)
    }

    /// Changes the machine beside its inputs (at start-up), and carries out what it then says.
    pub fn with_mut<T>(&self, change: impl FnOnce(&mut M) -> T) -> T {
        self.owner.shared.with_mut(change)
    }

    /// Wakes the thread in [`wait_unless`](Self::wait_unless): from any thread, and from a signal handler.
    #[must_use]
    pub fn waker(&self) -> Arc<Wake> {
        Arc::clone(&self.owner.wake)
    }

    /// Waits until `done` holds. It is looked at after each event that ends [`wait_unless`](Self::wait_unless).
    pub fn run_until(&self, mut done: impl FnMut(&M) -> bool) {
        while !self.wait_unless(&mut done) {}
    }

    /// Waits until the machine is idle.
    pub fn wait_idle(&self) {
        self.run_until(M::is_idle);
    }

    /// Waits once, unless `done` holds already (then `true`): until the machine became idle or settled, or a sink or
    /// [`waker`](Self::waker) woke this thread. One thread at a time. Deadlines are the driver's business.
    pub fn wait_unless(&self, done: impl FnOnce(&M) -> bool) -> bool {
        if self.owner.shared.waits(done) {
            return true;
        }
        self.owner.wake.wait(None);
        self.owner.wake.clear();
        false
    }

    /// Cancels every op, takes no more, and waits at most `limit` until all have answered; tells whether they have.
    #[must_use]
    pub fn shutdown(&self, limit: Duration) -> bool {
        self.owner.shared.shutdown(limit)
    }
}
