//! The loop around a machine, as one future.
//!
//! Whoever has an input locks the driver's state, hands the input to the machine, and carries out what the machine
//! then says; ops become futures **inside** the future of the driver. So nothing of an agent outlives its driver, one
//! thread drives as many agents as there are futures on it, and any executor will do. Ops that block run on smol's
//! pool for blocking work.
//!
//! What arrives waits in a queue of bounded length: a machine (or a sink) that is slow slows the socket
//! or the pipe down. After a few inputs in a row the future lets others run.

mod ops;
pub(crate) mod replies;
mod state;
mod watch;

use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use smol::Timer;
use smol::channel::{Sender, bounded};
use smol::future::{poll_fn, yield_now};
use smol::stream::Stream;
use tau_core::ids::OpId;
use tau_core::input::{Command, Input, Reply};
use tau_core::now::{Mono, Now};
use tau_io_std::machine::{EventSink, Handlers, Machine, Sink};
use tau_io_std::sys::clock::Clock;
use tau_io_std::sys::mutex::lock_within;
use tau_io_std::sys::wake::Wake;

use crate::http::Client;
use ops::{Ops, begin};
use replies::WAITING;
use state::State;
pub(crate) use watch::Watch;

/// Inputs in a row before other tasks of the thread get their turn.
const IN_A_ROW: u32 = 32;

/// What all parts of a driver share.
pub(crate) struct Shared<M: Machine> {
    state: Mutex<State<M>>,
    /// Signalled at the last reply after a stop.
    ended: Condvar,
    /// Wakes the thread that waits for the machine, where there is one.
    wake: Option<Arc<Wake>>,
    clock: Clock,
    handlers: Handlers,
    http: Arc<Client>,
}

impl<M: Machine> Shared<M> {
    pub(crate) fn new(
        machine: M,
        clock: Clock,
        mut handlers: Handlers,
        http: Arc<Client>,
        sink: Sink<M>,
        wake: Option<Arc<Wake>>,
    ) -> Arc<Self> {
        let state = Mutex::new(State::new(machine, sink, handlers.append.take()));
        Arc::new(Self { state, ended: Condvar::new(), wake, clock, handlers, http })
    }

    fn lock(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of the lock, then wakes whom the change concerns.
    fn unlock(&self, mut state: MutexGuard<'_, State<M>>) {
        let task = state.task.take();
        self.unlock_in_task(state);
        if let Some(task) = task {
            task.wake();
        }
    }

    /// The same for the task itself, which looks at the state anyway before it sleeps.
    fn unlock_in_task(&self, mut state: MutexGuard<'_, State<M>>) {
        let wake = state.take_wake();
        let called = state.watchers.take_called();
        drop(state);
        called.into_iter().for_each(Waker::wake);
        if let Some(waiting) = self.wake.as_ref().filter(|_| wake) {
            waiting.wake();
        }
    }

    /// Hands an input to the machine on the calling thread.
    pub(crate) fn feed(&self, input: Input) {
        let mut state = self.lock();
        state.feed(&self.clock, input);
        self.unlock(state);
    }

    /// As [`feed`](Self::feed), but gives up when the lock cannot be had in time.
    pub(crate) fn feed_within(&self, input: Input, limit: Duration) -> bool {
        let Some(mut state) = lock_within(&self.state, limit) else { return false };
        state.feed(&self.clock, input);
        self.unlock(state);
        true
    }

    /// Leaves an input for the task.
    fn post(&self, input: Input) {
        let mut state = self.lock();
        if !state.is_stopped() {
            state.inputs.push_back(input);
        }
        self.unlock(state);
    }

    pub(crate) fn now(&self) -> Now {
        self.clock.now()
    }

    pub(crate) fn with<T>(&self, look: impl FnOnce(&M) -> T) -> T {
        look(&self.lock().machine)
    }

    pub(crate) fn with_mut<T>(&self, change: impl FnOnce(&mut M) -> T) -> T {
        let mut state = self.lock();
        // What was said before counts before.
        while let Some(input) = state.inputs.pop_front() {
            state.feed(&self.clock, input);
        }
        let result = change(&mut state.machine);
        state.drain(&self.clock);
        self.unlock(state);
        result
    }

    /// The thread that owns the driver is about to wait, unless `done` holds (then `true`).
    pub(crate) fn waits(&self, done: impl FnOnce(&M) -> bool) -> bool {
        let mut state = self.lock();
        let done = done(&state.machine);
        state.waiting = !done;
        done
    }

    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.stop();
        self.unlock(state);
    }

    /// Stops, then waits until every op has answered; tells whether they have.
    pub(crate) fn shutdown(&self, limit: Duration) -> bool {
        let start = Instant::now();
        let Some(mut state) = lock_within(&self.state, limit) else { return false };
        state.stop();
        self.unlock(state);
        let left = || limit.saturating_sub(start.elapsed());
        let Some(state) = lock_within(&self.state, left()) else { return false };
        let (state, _) = self
            .ended
            .wait_timeout_while(state, left(), |state| state.has_open())
            .unwrap_or_else(PoisonError::into_inner);
        !state.has_open()
    }
}

/// Speaks to a running driver, from any task or thread.
pub struct Control<M: Machine> {
    shared: Arc<Shared<M>>,
}

impl<M: Machine> Clone for Control<M> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<M: Machine> Control<M> {
    /// Hands a command to the machine. It is carried out by the driver's task.
    pub fn command(&self, command: Command) {
        self.input(Input::Command(command));
    }

    /// Hands any input to the machine.
    pub fn input(&self, input: Input) {
        self.shared.post(input);
    }

    /// The time of the driver's clock.
    #[must_use]
    pub fn now(&self) -> Now {
        self.shared.now()
    }

    /// Looks at the machine.
    pub fn with<T>(&self, look: impl FnOnce(&M) -> T) -> T {
        self.shared.with(look)
    }

    /// Changes the machine beside its inputs, and carries out what it then says: events go to the sink on the
    /// calling thread.
    pub fn with_mut<T>(&self, change: impl FnOnce(&mut M) -> T) -> T {
        self.shared.with_mut(change)
    }

    /// Ready when `done` holds, which is looked at whenever the machine became idle or settled; nothing is woken
    /// before. Ready as well, with `false`, when the driver has ended, so that it never will.
    pub(crate) fn poll_until(
        &self,
        watch: &mut Watch,
        cx: &Context<'_>,
        done: impl FnOnce(&M) -> bool,
    ) -> Poll<bool> {
        let mut state = self.shared.lock();
        let holds = done(&state.machine);
        if holds || state.is_stopped() {
            state.watchers.forget(watch);
            return Poll::Ready(holds);
        }
        state.watchers.wait(watch, cx.waker());
        Poll::Pending
    }

    /// Nobody waits any more.
    pub(crate) fn forget(&self, watch: &mut Watch) {
        self.shared.lock().watchers.forget(watch);
    }

    /// Whether the driver has ended, or was dropped.
    pub(crate) fn has_ended(&self) -> bool {
        self.shared.lock().is_stopped()
    }

    /// Ends the driver: every op is cancelled, and the future is ready once all have answered. Lines that are to be
    /// appended to a session still are.
    pub fn stop(&self) {
        self.shared.stop();
    }
}

/// Drives a machine until [`Control::stop`]. The future does nothing unless it is awaited, and ends everything it
/// does when it is dropped: connections are closed, process groups killed. Agents that share `http` share
/// connections.
pub fn drive<M: Machine>(
    machine: M,
    clock: Clock,
    handlers: Handlers,
    http: Arc<Client>,
    sink: impl EventSink<M> + 'static,
) -> (Control<M>, impl Future<Output = ()> + Send) {
    let shared = Shared::new(machine, clock, handlers, http, Box::new(sink), None);
    (Control { shared: Arc::clone(&shared) }, run(Driven(shared)))
}

/// What the future of a driver holds, from before it begins: when it is gone, nobody waits for it in vain.
pub(crate) struct Driven<M: Machine>(pub(crate) Arc<Shared<M>>);

impl<M: Machine> Drop for Driven<M> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// What the task is woken for.
enum Event {
    /// A look at the state.
    News,
    Reply(OpId, Reply),
    Tick,
}

/// The deadline that the task waits for.
#[derive(Default)]
struct Alarm(Option<(Mono, Timer)>);

impl Alarm {
    fn set(&mut self, due: Option<Mono>, clock: &Clock) {
        if self.0.as_ref().map(|(due, _)| *due) != due {
            self.0 = due.map(|due| (due, Timer::after(clock.until(due))));
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some((_, timer)) = &mut self.0 else { return Poll::Pending };
        let ready = pin!(timer).poll(cx).map(drop);
        if ready.is_ready() {
            self.0 = None;
        }
        ready
    }
}

pub(crate) async fn run<M: Machine>(driven: Driven<M>) {
    let shared = &driven.0;
    let (sender, replies) = bounded(WAITING);
    let mut replies = pin!(replies);
    let mut ops = Ops::default();
    let mut alarm = Alarm::default();
    let mut in_a_row = 0;
    loop {
        let event = poll_fn(|cx| {
            ops.poll(cx);
            if let Poll::Ready(Some((op, reply))) = replies.as_mut().poll_next(cx) {
                return Poll::Ready(Event::Reply(op, reply));
            }
            let mut state = shared.lock();
            if state.has_news() {
                return Poll::Ready(Event::News);
            }
            alarm.set(state.machine.poll_timeout().filter(|_| !state.is_stopped()), &shared.clock);
            if alarm.poll(cx).is_ready() {
                return Poll::Ready(Event::Tick);
            }
            if state.task.as_ref().is_none_or(|task| !task.will_wake(cx.waker())) {
                state.task = Some(cx.waker().clone());
            }
            in_a_row = 0;
            Poll::Pending
        })
        .await;
        if turn(shared, event, &mut ops, &sender) {
            return;
        }
        in_a_row += 1;
        if in_a_row >= IN_A_ROW {
            in_a_row = 0;
            yield_now().await;
        }
    }
}

/// Hands over what came, and starts and ends ops; `true` = the driver has ended.
fn turn<M: Machine>(
    shared: &Arc<Shared<M>>,
    event: Event,
    ops: &mut Ops,
    sender: &Sender<(OpId, Reply)>,
) -> bool {
    let mut state = shared.lock();
    match event {
        Event::Reply(op, reply) => {
            if state.accept(op, &reply) {
                state.feed(&shared.clock, Input::Reply { op, reply });
            }
        }
        Event::Tick => state.feed(&shared.clock, Input::Tick),
        Event::News => {}
    }
    while let Some(input) = state.inputs.pop_front() {
        state.feed(&shared.clock, input);
    }
    for op in state.drops.drain(..) {
        ops.drop(op);
    }
    for job in state.starts.drain(..) {
        ops.add(job.op, begin(shared, job, sender));
    }
    if state.is_stopped() {
        shared.ended.notify_all();
    }
    let over = state.is_over();
    shared.unlock_in_task(state);
    over
}
