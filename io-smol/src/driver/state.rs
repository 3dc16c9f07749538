//! What the driver's lock protects: the machine, its sink, and what the driver's task is told to do.

use std::collections::{BTreeMap, VecDeque};
use std::mem::take;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use tau_core::fault::IoFault;
use tau_core::hub::Output;
use tau_core::ids::OpId;
use tau_core::input::{Command, Input, Reply};
use tau_core::op::{FsOp, Op};
use tau_io_std::machine::{Append, Machine, Sink, SinkFlow};
use tau_io_std::sys::clock::Clock;
use tau_io_std::sys::{self, CancelToken};

use super::watch::Watchers;

/// An op on its way to the driver's task.
pub(super) struct Job {
    pub(super) op: OpId,
    pub(super) what: Op,
    pub(super) cancel: CancelToken,
    /// Set by whoever comes first: the thread that carries out what blocks, or a cancel that answers in its place.
    pub(super) begun: Arc<AtomicBool>,
}

/// An op that has not given its last reply.
struct Open {
    cancel: CancelToken,
    end: End,
    /// It is done even when the driver is stopped.
    changes_files: bool,
}

/// Who answers an op that is cancelled.
enum End {
    /// The driver, which drops its future.
    Here,
    /// The driver as well, until a thread has begun.
    HereUntil(Arc<AtomicBool>),
    /// The op itself.
    There,
}

impl Open {
    /// Cancels; whether the op then gives no answer itself.
    fn cancel(&self) -> bool {
        self.cancel.cancel();
        match &self.end {
            End::Here => true,
            End::HereUntil(begun) => !begun.swap(true, Ordering::SeqCst),
            End::There => false,
        }
    }
}

pub(super) struct State<M> {
    pub(super) machine: M,
    sink: Sink<M>,
    /// Stores lines in place of a file.
    append: Option<Append>,
    open: BTreeMap<OpId, Open>,
    /// What the task is to hand to the machine, to start, and to drop.
    pub(super) inputs: VecDeque<Input>,
    pub(super) starts: VecDeque<Job>,
    pub(super) drops: Vec<OpId>,
    /// Wakes the task.
    pub(super) task: Option<Waker>,
    /// A thread waits for the machine.
    pub(super) waiting: bool,
    wake: bool,
    /// Tasks that wait until the machine is idle or settled.
    pub(super) watchers: Watchers,
    /// The machine was settled when it was looked at last.
    settled: bool,
    stopped: bool,
}

impl<M: Machine> State<M> {
    pub(super) fn new(machine: M, sink: Sink<M>, append: Option<Append>) -> Self {
        Self {
            machine,
            sink,
            append,
            open: BTreeMap::new(),
            inputs: VecDeque::new(),
            starts: VecDeque::new(),
            drops: Vec::new(),
            task: None,
            waiting: false,
            wake: false,
            watchers: Watchers::default(),
            settled: true,
            stopped: false,
        }
    }

    /// One input, then everything that follows from it.
    pub(super) fn feed(&mut self, clock: &Clock, input: Input) {
        if !self.stopped {
            self.machine.handle(clock.now(), input);
            self.drain(clock);
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
            } else if !take(&mut shown) {
                break;
            } else {
                let flow = self.sink.drained();
                inputs.extend(self.follow(flow));
            }
        }
        let settled = self.machine.is_settled();
        let newly_settled = !std::mem::replace(&mut self.settled, settled) && settled;
        if newly_settled || self.machine.is_idle() {
            self.wake |= take(&mut self.waiting);
            self.watchers.call();
        }
    }

    /// Carries out one output; gives the input that answers it at once.
    fn carry_out(&mut self, output: Output) -> Option<Input> {
        match output {
            Output::Start { op, what } => {
                if let (Op::Append(lines), Some(append)) = (&what, &self.append) {
                    let reply = sys::last(append(lines));
                    return Some(Input::Reply { op, reply });
                }
                let cancel = CancelToken::new();
                let begun = Arc::default();
                let end = match what {
                    Op::Http(_) => End::Here,
                    Op::Proc(_) => End::There,
                    _ => End::HereUntil(Arc::clone(&begun)),
                };
                let changes_files = changes_files(&what);
                self.open.insert(op, Open { cancel: cancel.clone(), end, changes_files });
                self.starts.push_back(Job { op, what, cancel, begun });
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

    /// An op that did not begin, or that is dropped, is answered here.
    fn cancel(&mut self, op: OpId) -> Option<Input> {
        let answered_here = self.open.get(&op)?.cancel();
        let waits = self.starts.iter().any(|job| job.op == op);
        if !waits && !answered_here {
            return None;
        }
        self.starts.retain(|job| job.op != op);
        self.drops.extend((!waits).then_some(op));
        self.open.remove(&op);
        Some(Input::Reply { op, reply: Reply::Failed(IoFault::cancelled()) })
    }

    /// Whether a reply is still wanted; the last one closes its op.
    pub(super) fn accept(&mut self, op: OpId, reply: &Reply) -> bool {
        if reply.is_last() { self.open.remove(&op).is_some() } else { self.open.contains_key(&op) }
    }

    /// Cancels everything and takes no more. What changes a file and did not begin yet is still done: a session
    /// loses no entry.
    pub(super) fn stop(&mut self) {
        self.stopped = true;
        self.watchers.call();
        self.inputs.clear();
        let Self { open, starts, drops, .. } = self;
        starts.retain(|job| {
            let kept = changes_files(&job.what);
            if !kept {
                open.remove(&job.op);
            }
            kept
        });
        open.retain(|op, state| {
            let kept = state.changes_files || !state.cancel();
            drops.extend((!kept).then_some(*op));
            kept
        });
    }

    pub(super) const fn is_stopped(&self) -> bool {
        self.stopped
    }

    pub(super) fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether the driver has nothing more to do at all.
    pub(super) fn is_over(&self) -> bool {
        self.stopped && self.open.is_empty()
    }

    /// Whether the task has something to do.
    pub(super) fn has_news(&self) -> bool {
        !self.inputs.is_empty() || !self.starts.is_empty() || !self.drops.is_empty() || self.is_over()
    }

    /// Whether the waiting thread is to be woken now.
    pub(super) const fn take_wake(&mut self) -> bool {
        std::mem::replace(&mut self.wake, false)
    }
}

const fn changes_files(op: &Op) -> bool {
    matches!(op, Op::Append(_) | Op::Fs(FsOp::Write { .. } | FsOp::MkdirAll { .. }))
}
