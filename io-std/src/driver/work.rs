//! Worker threads: run ops, and feed what they bring.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tau_core::agent::HookCall;
use tau_core::fault::IoFault;
use tau_core::input::{Input, Reply};
use tau_core::op::{Op, Outcome};

use super::Shared;
use super::state::{Job, State};
use crate::http::Client;
use crate::machine::{Exchange, Handlers, Machine};
use crate::sys::{self, CancelToken};

/// Most threads; ops beyond wait for one to become free.
const MOST_WORKERS: usize = 64;
/// Threads that stay when there is nothing to do.
const KEEP_IDLE: usize = 2;

/// Calls workers for the ops that wait: idle ones, then new ones.
pub(super) fn call<M: Machine>(shared: &Arc<Shared<M>>, state: &mut State<M>) {
    while state.demand() > state.calls {
        if state.idle > 0 {
            state.idle -= 1;
            state.calls += 1;
            shared.work.notify_one();
        } else if state.workers >= MOST_WORKERS || !hire(shared, state) {
            return;
        }
    }
}

/// Starts a worker with the first op that waits. Without a thread the op waits on, if there are workers at all.
fn hire<M: Machine>(shared: &Arc<Shared<M>>, state: &mut State<M>) -> bool {
    let Some(job) = state.next() else { return false };
    let slot = Arc::new(Mutex::new(Some(job)));
    let (worker, first) = (Arc::clone(shared), Arc::clone(&slot));
    let take = |slot: &Mutex<Option<Job>>| slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    let started = thread::Builder::new().name("tau-op".into()).spawn(move || work(&worker, take(&first)));
    match started {
        Ok(_) => {
            state.workers += 1;
            true
        }
        Err(e) => {
            if let Some(job) = take(&slot) {
                state.put_back(job);
            }
            if state.workers == 0 {
                refuse(shared, state, &e);
            }
            false
        }
    }
}

/// Not one thread can be had: everything that waits fails.
fn refuse<M: Machine>(shared: &Arc<Shared<M>>, state: &mut State<M>, error: &std::io::Error) {
    let fault = sys::fault::of(error, "cannot start a thread");
    while let Some(job) = state.next() {
        let reply = Reply::Failed(fault.clone());
        if state.accept(job.op, &reply) {
            state.machine.handle(shared.clock.now(), Input::Reply { op: job.op, reply });
            state.drain(&shared.clock);
        }
    }
}

fn work<M: Machine>(shared: &Arc<Shared<M>>, first: Option<Job>) {
    let mut next = first;
    while let Some(job) = next {
        let op = job.op;
        let last = {
            let mut partial = |reply| bring(shared, &job, reply);
            perform(&job.what, &shared.handlers, &shared.http, &mut partial, &job.cancel)
        };
        drop(job);
        let mut state = shared.lock();
        if state.accept(op, &last) {
            if state.is_stopped() {
                shared.ended.notify_all();
            } else {
                state.machine.handle(shared.clock.now(), Input::Reply { op, reply: last });
                state.drain(&shared.clock);
            }
        }
        // The lock is kept until this thread has its next op or counts as idle: whoever comes next finds it.
        next = wait(shared, state);
    }
}

/// The next op of a worker, waited for if need be; `None` ends the thread.
fn wait<'a, M: Machine>(shared: &'a Arc<Shared<M>>, mut state: MutexGuard<'a, State<M>>) -> Option<Job> {
    loop {
        if let Some(job) = state.next() {
            call(shared, &mut state);
            unlock(shared, state);
            return Some(job);
        }
        if state.is_stopped() || state.idle >= KEEP_IDLE {
            state.workers -= 1;
            unlock(shared, state);
            return None;
        }
        state.idle += 1;
        if state.wants_wake() {
            unlock(shared, state);
            state = shared.lock();
        }
        while state.calls == 0 && !state.is_stopped() {
            state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        // Whoever called counted one idle thread less. At the end nobody counts any more.
        state.calls = state.calls.saturating_sub(1);
    }
}

/// Lets go of the lock, then wakes the waiting thread if need be: it does not wake only to wait for the lock.
fn unlock<M: Machine>(shared: &Shared<M>, mut state: MutexGuard<'_, State<M>>) {
    let wake = state.take_wake();
    drop(state);
    if wake {
        shared.wake.wake();
    }
}

/// Executes one op on the calling thread, for any driver: what comes of it before the end goes to `partial`, the result
/// is the last reply. Appends go to [`Handlers::append`] if that is there.
pub fn perform(
    op: &Op,
    handlers: &Handlers,
    http: &Client,
    partial: &mut dyn FnMut(Reply),
    cancel: &CancelToken,
) -> Reply {
    sys::last(outcome(op, handlers, http, partial, cancel))
}

fn outcome(
    op: &Op,
    handlers: &Handlers,
    http: &Client,
    partial: &mut dyn FnMut(Reply),
    cancel: &CancelToken,
) -> Result<Outcome, IoFault> {
    cancel.check()?;
    match (op, &handlers.append) {
        (Op::Http(request), _) => {
            let Some(observe) = &handlers.exchange else {
                return http.run(request, partial, cancel);
            };
            observe(Exchange::Request(request));
            let mut partial = |reply: Reply| {
                if let Reply::Head { status, headers } = &reply {
                    observe(Exchange::Response { status: *status, headers });
                }
                partial(reply);
            };
            http.run(request, &mut partial, cancel)
        }
        (Op::Secret(op), _) => Ok((handlers.secret)(op.clone())),
        (Op::Host(call), _) => {
            let mut update = |output| partial(Reply::Update(output));
            Ok((handlers.host)(call.clone(), &mut update, cancel))
        }
        (Op::Hook(call), _) => Ok(Outcome::Hook(Box::new((handlers.hook)(HookCall::clone(call), cancel)))),
        (Op::Append(op), Some(append)) => append(op),
        (other, _) => sys::run(other, partial, cancel),
    }
}

/// Feeds a partial reply, then runs the quick ops that followed from it in between.
fn bring<M: Machine>(shared: &Arc<Shared<M>>, job: &Job, reply: Reply) {
    let mut state = shared.lock();
    if state.is_stopped() || !state.accept(job.op, &reply) {
        return;
    }
    let mut input = Some(Input::Reply { op: job.op, reply });
    loop {
        if let Some(input) = input.take() {
            state.machine.handle(shared.clock.now(), input);
            state.drain(&shared.clock);
        }
        let Some(quick) = state.next_quick() else { break };
        call(shared, &mut state);
        unlock(shared, state);
        let reply = sys::last(sys::run(&quick.what, &mut |_| {}, &quick.cancel));
        state = shared.lock();
        if state.accept(quick.op, &reply) && !state.is_stopped() {
            input = Some(Input::Reply { op: quick.op, reply });
        }
    }
    call(shared, &mut state);
    unlock(shared, state);
}
