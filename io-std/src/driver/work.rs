//! Worker threads: run ops, and feed what they bring.

use std::sync::{Arc, PoisonError};
use std::thread;

use tau_core::fault::IoFault;
use tau_core::input::{Input, Reply};
use tau_core::op::{Op, Outcome};

use super::Shared;
use super::state::{Job, State};
use crate::machine::Machine;
use crate::sys;

/// Most threads; ops beyond wait for one to become free.
const MOST_WORKERS: usize = 64;
/// Threads that stay when there is nothing to do.
const KEEP_IDLE: usize = 2;

/// Calls workers for the ops that wait; `soon_free` threads are about to look for work by themselves.
pub(super) fn call<M: Machine>(shared: &Arc<Shared<M>>, state: &mut State<M>, soon_free: usize) {
    let coming = soon_free + state.calls;
    for _ in coming..state.demand() {
        if state.idle > 0 {
            state.idle -= 1;
            state.calls += 1;
            shared.work.notify_one();
        } else if state.workers < MOST_WORKERS {
            let worker = Arc::clone(shared);
            let started = thread::Builder::new().name("tau-op".into()).spawn(move || work(&worker));
            // A thread that is on its way counts as one that was called.
            match started {
                Ok(_) => {
                    state.workers += 1;
                    state.calls += 1;
                }
                Err(_) if state.workers > 0 => return,
                Err(e) => return refuse(shared, state, &e),
            }
        } else {
            return;
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

fn work<M: Machine>(shared: &Arc<Shared<M>>) {
    let mut next = wait(shared, false);
    while let Some(job) = next {
        let op = job.op;
        let last = sys::last(perform(shared, &job));
        let mut state = shared.lock();
        if state.accept(op, &last) {
            if state.is_stopped() {
                shared.ended.notify_all();
            } else {
                state.machine.handle(shared.clock.now(), Input::Reply { op, reply: last });
                state.drain(&shared.clock);
                if state.take_wake() {
                    shared.wake.wake();
                }
            }
        }
        next = state.next();
        call(shared, &mut state, 0);
        drop(state);
        drop(job);
        if next.is_none() {
            next = wait(shared, true);
        }
    }
    shared.lock().workers -= 1;
}

/// Waits for an op; `None` ends the thread. A thread that just started was called already.
fn wait<M: Machine>(shared: &Arc<Shared<M>>, was_busy: bool) -> Option<Job> {
    let mut state = shared.lock();
    if was_busy {
        if let Some(job) = state.next() {
            return Some(job);
        }
        if state.idle >= KEEP_IDLE || state.is_stopped() {
            return None;
        }
        state.idle += 1;
    }
    loop {
        if state.is_stopped() {
            return None;
        }
        if state.calls > 0 {
            state.calls -= 1;
            if let Some(job) = state.next() {
                call(shared, &mut state, 0);
                return Some(job);
            }
            state.idle += 1;
        }
        state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Executes one op on this thread.
fn perform<M: Machine>(shared: &Arc<Shared<M>>, job: &Job) -> Result<Outcome, IoFault> {
    let mut partial = |reply: Reply| bring(shared, job, reply);
    job.cancel.check()?;
    match &job.what {
        Op::Http(request) => shared.http.run(request, &mut partial, &job.cancel),
        Op::Secret(op) => Ok((shared.handlers.secret)(op.clone())),
        Op::Host(call) => {
            let mut update = |output| partial(Reply::Update(output));
            Ok((shared.handlers.host)(call.clone(), &mut update, &job.cancel))
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
            if state.take_wake() {
                shared.wake.wake();
            }
        }
        let Some(quick) = state.next_quick() else { break };
        call(shared, &mut state, 0);
        drop(state);
        let reply = sys::last(sys::run(&quick.what, &mut |_| {}, &quick.cancel));
        state = shared.lock();
        if state.accept(quick.op, &reply) && !state.is_stopped() {
            input = Some(Input::Reply { op: quick.op, reply });
        }
    }
    call(shared, &mut state, 0);
}
