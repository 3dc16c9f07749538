//! What the engine's lock protects: the machine, its sink, and the ops that wait or run.

use std::collections::{BTreeMap, VecDeque};

use tau_core::fault::IoFault;
use tau_core::hub::Output;
use tau_core::ids::OpId;
use tau_core::input::{Command, Input, Reply};
use tau_core::now::Mono;
use tau_core::op::{FsOp, Op};

use crate::machine::{Append, Machine, Sink, SinkFlow};
use crate::sys::clock::Clock;
use crate::sys::{CancelToken, append};

/// An op on its way to a worker.
pub(super) struct Job {
    pub(super) op: OpId,
    pub(super) what: Op,
    pub(super) cancel: CancelToken,
}

pub(super) struct State<M: Machine> {
    pub(super) machine: M,
    sink: Sink<M>,
    append: Append,
    /// Ops that end by themselves in no time; any worker runs them between other things.
    quick: VecDeque<Job>,
    /// Ops that may take long; a worker each.
    long: VecDeque<Job>,
    /// Ops that have not given their last reply.
    open: BTreeMap<OpId, CancelToken>,
    /// Worker threads, and how many of them wait for work.
    pub(super) workers: usize,
    pub(super) idle: usize,
    /// Idle workers that were called and did not wake yet.
    pub(super) calls: usize,
    /// The deadline that the waiting thread knows of.
    armed: Option<Option<Mono>>,
    wake: bool,
    /// The machine was settled when it was looked at last.
    settled: bool,
    stopped: bool,
}

impl<M: Machine> State<M> {
    pub(super) fn new(machine: M, sink: Sink<M>, append: Option<Append>) -> Self {
        Self {
            machine,
            sink,
            append: append.unwrap_or_else(|| Box::new(append::append)),
            quick: VecDeque::new(),
            long: VecDeque::new(),
            open: BTreeMap::new(),
            workers: 0,
            idle: 0,
            calls: 0,
            armed: None,
            wake: false,
            settled: true,
            stopped: false,
        }
    }

    /// Carries out what the machine says until it says nothing more.
    pub(super) fn drain(&mut self, clock: &Clock) {
        let mut inputs = VecDeque::new();
        let mut shown = false;
        loop {
            while let Some(output) = self.machine.poll() {
                shown |= matches!(output, Output::Event(_));
                inputs.extend(self.carry_out(output));
            }
            if let Some(input) = inputs.pop_front() {
                self.machine.handle(clock.now(), input);
            } else if !std::mem::take(&mut shown) {
                break;
            } else {
                let flow = self.sink.drained();
                inputs.extend(self.follow(flow));
            }
        }
        let settled = self.machine.is_settled();
        let newly_settled = !std::mem::replace(&mut self.settled, settled) && settled;
        // The waiting thread has to know when nothing more comes, and when it would sleep too long.
        if let Some(known) = self.armed {
            let due = self.machine.poll_timeout();
            let earlier = due.is_some_and(|due| known.is_none_or(|known| due < known));
            if earlier || newly_settled || self.machine.is_idle() {
                self.armed = None;
                self.wake = true;
            }
        }
    }

    /// Carries out one output; gives the input that answers it at once.
    fn carry_out(&mut self, output: Output) -> Option<Input> {
        match output {
            // At once: the machine shows nothing more until the entry is written.
            Output::Start { op, what: Op::Append(append) } => {
                let reply = match (self.append)(&append) {
                    Ok(outcome) => Reply::Done(outcome),
                    Err(fault) => Reply::Failed(fault),
                };
                Some(Input::Reply { op, reply })
            }
            Output::Start { op, what } => {
                let cancel = CancelToken::new();
                self.open.insert(op, cancel.clone());
                let lane = if is_quick(&what) { &mut self.quick } else { &mut self.long };
                lane.push_back(Job { op, what, cancel });
                None
            }
            Output::Cancel { op } => self.cancel(op),
            Output::Event(event) => {
                let flow = self.sink.event(&event, &self.machine);
                self.follow(flow)
            }
        }
    }

    fn follow(&mut self, flow: SinkFlow) -> Option<Input> {
        match flow {
            SinkFlow::Go => None,
            SinkFlow::Wake => {
                self.wake = true;
                None
            }
            SinkFlow::Abort => Some(Input::Command(Command::Abort)),
        }
    }

    /// An op that did not begin, or whose thread cannot be woken, is answered here.
    fn cancel(&mut self, op: OpId) -> Option<Input> {
        let token = self.open.get(&op)?;
        token.cancel();
        let waits = |jobs: &VecDeque<Job>| jobs.iter().any(|job| job.op == op);
        if !token.is_detachable() && !waits(&self.quick) && !waits(&self.long) {
            return None;
        }
        self.quick.retain(|job| job.op != op);
        self.long.retain(|job| job.op != op);
        self.open.remove(&op);
        Some(Input::Reply { op, reply: Reply::Failed(IoFault::cancelled()) })
    }

    /// Whether a reply is still wanted; the last one closes its op.
    pub(super) fn accept(&mut self, op: OpId, reply: &Reply) -> bool {
        if reply.is_last() { self.open.remove(&op).is_some() } else { self.open.contains_key(&op) }
    }

    pub(super) fn next_quick(&mut self) -> Option<Job> {
        self.quick.pop_front()
    }

    pub(super) fn next(&mut self) -> Option<Job> {
        self.quick.pop_front().or_else(|| self.long.pop_front())
    }

    /// Takes back an op that nobody could run.
    pub(super) fn put_back(&mut self, job: Job) {
        let lane = if is_quick(&job.what) { &mut self.quick } else { &mut self.long };
        lane.push_front(job);
    }

    /// How many workers the waiting ops need: one for all the quick ones, one for each long one, which it takes
    /// after the quick ones.
    pub(super) fn demand(&self) -> usize {
        self.long.len().max(usize::from(!self.quick.is_empty()))
    }

    pub(super) fn stop(&mut self) {
        self.stopped = true;
        self.open.values().for_each(CancelToken::cancel);
        for job in self.quick.drain(..).chain(self.long.drain(..)) {
            self.open.remove(&job.op);
        }
        // Nobody waits for threads that nothing can wake.
        self.open.retain(|_, token| !token.is_detachable());
    }

    pub(super) const fn is_stopped(&self) -> bool {
        self.stopped
    }

    pub(super) fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The waiting thread is about to wait until this time.
    pub(super) fn arm(&mut self) -> Option<Mono> {
        let deadline = self.machine.poll_timeout();
        self.armed = Some(deadline);
        deadline
    }

    pub(super) const fn disarm(&mut self) {
        self.armed = None;
    }

    /// Whether the waiting thread is to be woken.
    pub(super) const fn wants_wake(&self) -> bool {
        self.wake
    }

    /// Whether the waiting thread is to be woken now.
    pub(super) const fn take_wake(&mut self) -> bool {
        core::mem::replace(&mut self.wake, false)
    }
}

/// Ops that need no thread of their own.
const fn is_quick(op: &Op) -> bool {
    match op {
        Op::Append(_) => true,
        Op::Fs(op) => !matches!(op, FsOp::ReadImage { .. } | FsOp::FitImage { .. }),
        Op::Http(_)
        | Op::Search(_)
        | Op::Walk(_)
        | Op::Proc(_)
        | Op::Secret(_)
        | Op::Host(_)
        | Op::Hook(_) => false,
    }
}
