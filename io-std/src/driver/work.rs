//! Worker threads: run ops, and feed what they bring.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tau_core::agent::HookCall;
use tau_core::fault::IoFault;
use tau_core::input::{Input, Reply};
use tau_core::op::{Op, Outcome};

use super::Shared;
use super::state::{Job, State};
use crate::machine::{Exchange, Machine};
use crate::sys;

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
        let last = sys::last(perform(shared, &job));
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

/// Executes one op on this thread.
fn perform<M: Machine>(shared: &Arc<Shared<M>>, job: &Job) -> Result<Outcome, IoFault> {
    let mut partial = |reply: Reply| bring(shared, job, reply);
    job.cancel.check()?;
    match &job.what {
        Op::Http(request) => {
            let Some(observe) = &shared.handlers.exchange else {
                return shared.http.run(request, &mut partial, &job.cancel);
            };
            observe(Exchange::Request(request));
            let mut partial = |reply: Reply| {
                if let Reply::Head { status, headers } = &reply {
                    observe(Exchange::Response { status: *status, headers });
                }
                partial(reply);
            };
            shared.http.run(request, &mut partial, &job.cancel)
        }
        Op::Secret(op) => Ok((shared.handlers.secret)(op.clone())),
        Op::Host(call) => {
            let mut update = |output| partial(Reply::Update(output));
            Ok((shared.handlers.host)(call.clone(), &mut update, &job.cancel))
        }
        Op::Hook(call) => {
            Ok(Outcome::Hook(Box::new((shared.handlers.hook)(HookCall::clone(call), &job.cancel))))
        }
        other => sys::run(other, &mut partial, &job.cancel),
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
