//! Ops on their way: ids, owners, lanes, cancellation, and the rule that what was said is written before what
//! follows from it starts (D20).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use super::Output;
use crate::event::Event;
use crate::fault::IoFault;
use crate::ids::OpId;
use crate::input::Reply;
use crate::op::{AppendOp, Lane, Op};
use crate::tools::Slot;

/// What the embedding program was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// May the call at this place run?
    Before(usize),
    /// What of its result?
    After(usize),
    /// What follows a turn?
    Finish,
    /// What of the next request?
    Request,
    /// What is it made of?
    Context,
}

/// Who asked for an op.
#[derive(Clone, Debug)]
pub(super) enum Owner {
    /// The request of the model.
    Request,
    /// The request for a summary.
    Summary,
    /// The call at this place of the batch.
    Call(usize, Slot),
    /// A question to the embedding program.
    Hook(Asked),
    /// The user, for the own shell.
    Shell,
    /// The session; what was to be written.
    Append(AppendOp),
}

/// All ops that have not brought their last reply, and the outputs that wait to be polled.
#[derive(Debug, Default)]
pub(super) struct Ops {
    next: u64,
    open: BTreeMap<OpId, Entry>,
    lanes: BTreeMap<Lane, LaneState>,
    /// Appends that are not acknowledged; everything else waits for them.
    appends: usize,
    held: VecDeque<(OpId, Lane, Op)>,
    /// Appends that were behind one that failed: a line never gets into the file before those above it.
    behind: Vec<AppendOp>,
    /// Last replies of ops that were cancelled before they started.
    undone: VecDeque<OpId>,
    out: VecDeque<Output>,
}

#[derive(Debug)]
struct Entry {
    /// `None` = nobody wants the replies any more.
    owner: Option<Owner>,
    lane: Lane,
    started: bool,
    cancelled: bool,
}

#[derive(Debug, Default)]
struct LaneState {
    busy: Option<OpId>,
    /// The call that keeps a `Path` lane until it is done.
    holder: Option<usize>,
    queue: VecDeque<(OpId, Op)>,
}

impl Ops {
    /// None, with ids that were not used yet.
    pub(super) fn successor(&self) -> Self {
        Self { next: self.next, ..Self::default() }
    }

    /// Asks for an op.
    pub(super) fn start(&mut self, owner: Owner, lane: Lane, op: Op) -> OpId {
        let id = OpId(self.next);
        self.next += 1;
        self.appends += usize::from(matches!(owner, Owner::Append(_)));
        let entry = Entry { owner: Some(owner), lane: lane.clone(), started: false, cancelled: false };
        self.open.insert(id, entry);
        if self.appends > 0 && !matches!(op, Op::Append(_)) {
            self.held.push_back((id, lane, op));
        } else {
            self.enter(id, lane, op);
        }
        id
    }

    /// Puts an op into its lane and starts it when it is its turn.
    fn enter(&mut self, id: OpId, lane: Lane, op: Op) {
        if lane == Lane::Free {
            self.go(id, op);
            return;
        }
        self.lanes.entry(lane.clone()).or_default().queue.push_back((id, op));
        self.advance(&lane);
    }

    fn go(&mut self, id: OpId, op: Op) {
        if let Some(entry) = self.open.get_mut(&id) {
            entry.started = true;
            self.out.push_back(Output::Start { op: id, what: op });
        }
    }

    /// Starts the next op of a lane that is free.
    fn advance(&mut self, lane: &Lane) {
        let Some(state) = self.lanes.get_mut(lane) else { return };
        if state.busy.is_some() {
            return;
        }
        let holder = state.holder;
        let call_of = |id: &OpId| match self.open.get(id).and_then(|e| e.owner.as_ref()) {
            Some(Owner::Call(index, _)) => Some(*index),
            _ => None,
        };
        let may = |id: &OpId| holder.is_none() || call_of(id) == holder;
        let Some(at) = state.queue.iter().position(|(id, _)| may(id)) else {
            if state.queue.is_empty() && holder.is_none() {
                self.lanes.remove(lane);
            }
            return;
        };
        let Some((id, op)) = state.queue.remove(at) else { return };
        state.busy = Some(id);
        if matches!(lane, Lane::Path(_)) {
            state.holder = call_of(&id);
        }
        self.go(id, op);
    }

    /// A call is done: its lanes are free again and what it still runs is cancelled.
    pub(super) fn release_call(&mut self, index: usize) {
        let own = |e: &Entry| matches!(e.owner, Some(Owner::Call(call, _)) if call == index);
        let left: Vec<OpId> = self.open.iter().filter(|(_, e)| own(e)).map(|(id, _)| *id).collect();
        for id in left {
            self.cancel(id);
            self.disown(id);
        }
        let held: Vec<Lane> = self
            .lanes
            .iter()
            .filter(|(_, s)| s.holder == Some(index))
            .map(|(lane, _)| lane.clone())
            .collect();
        for lane in held {
            if let Some(state) = self.lanes.get_mut(&lane) {
                state.holder = None;
            }
            self.advance(&lane);
        }
    }

    /// Cancels an op. It still brings one last reply.
    pub(super) fn cancel(&mut self, id: OpId) {
        let Some(entry) = self.open.get_mut(&id) else { return };
        if core::mem::replace(&mut entry.cancelled, true) {
            return;
        }
        if entry.started {
            self.out.push_back(Output::Cancel { op: id });
            return;
        }
        let lane = entry.lane.clone();
        self.held.retain(|(held, _, _)| *held != id);
        if let Some(state) = self.lanes.get_mut(&lane) {
            state.queue.retain(|(queued, _)| *queued != id);
        }
        self.undone.push_back(id);
    }

    /// Cancels all questions to the embedding program.
    pub(super) fn cancel_hooks(&mut self) {
        let is_hook = |entry: &Entry| matches!(entry.owner, Some(Owner::Hook(_)));
        let asked: Vec<OpId> = self.open.iter().filter(|(_, e)| is_hook(e)).map(|(id, _)| *id).collect();
        asked.into_iter().for_each(|id| self.cancel(id));
    }

    /// Nobody wants the replies of this op any more.
    pub(super) fn disown(&mut self, id: OpId) {
        if let Some(entry) = self.open.get_mut(&id) {
            entry.owner = None;
        }
    }

    /// Who gets a reply. Takes note when it is the last one.
    pub(super) fn owner_of(&mut self, id: OpId, reply: &Reply) -> Option<Owner> {
        if !reply.is_last() {
            return self.open.get(&id)?.owner.clone();
        }
        let entry = self.open.remove(&id)?;
        if let Some(state) = self.lanes.get_mut(&entry.lane)
            && state.busy == Some(id)
        {
            state.busy = None;
        }
        if matches!((&entry.owner, reply), (Some(Owner::Append(_)), Reply::Failed(_))) {
            self.drop_appends();
        }
        if entry.lane != Lane::Free {
            self.advance(&entry.lane);
        }
        if matches!(entry.owner, Some(Owner::Append(_))) {
            self.appends = self.appends.saturating_sub(1);
            while self.appends == 0
                && let Some((id, lane, op)) = self.held.pop_front()
            {
                self.enter(id, lane, op);
            }
        }
        entry.owner
    }

    /// Takes back the appends that did not start yet.
    fn drop_appends(&mut self) {
        let Some(state) = self.lanes.get_mut(&Lane::Session) else { return };
        for (id, op) in core::mem::take(&mut state.queue) {
            self.open.remove(&id);
            self.appends = self.appends.saturating_sub(1);
            if let Op::Append(op) = op {
                self.behind.push(op);
            }
        }
    }

    /// What was to be written after the append that failed, in order.
    pub(super) fn take_behind(&mut self) -> Vec<AppendOp> {
        core::mem::take(&mut self.behind)
    }

    /// The next op that ended before it started, with its last reply.
    pub(super) fn next_undone(&mut self) -> Option<(OpId, Reply)> {
        Some((self.undone.pop_front()?, Reply::Failed(IoFault::cancelled())))
    }

    /// Shows an event, after everything that was asked for before.
    pub(super) fn event(&mut self, event: Event) {
        self.out.push_back(Output::Event(event));
    }

    /// The next output. While an append is open no event goes out: what a surface has seen is stored. Ops that may
    /// start (the append itself) and cancels go out meanwhile.
    pub(super) fn next_output(&mut self) -> Option<Output> {
        if self.appends == 0 {
            return self.out.pop_front();
        }
        let at = self.out.iter().position(|output| !matches!(output, Output::Event(_)))?;
        self.out.remove(at)
    }

    /// Whether no op is under way and no output waits.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.out.is_empty() && self.undone.is_empty()
    }

    /// As [`is_idle`](Self::is_idle), but commands of the user's shell may run; replies that nobody wants do not
    /// count.
    pub(super) fn is_settled(&self) -> bool {
        let is_beside = |entry: &Entry| matches!(entry.owner, None | Some(Owner::Shell));
        self.open.values().all(is_beside) && self.out.is_empty() && self.undone.is_empty()
    }

    /// Whether an append is not acknowledged.
    pub(super) const fn is_writing(&self) -> bool {
        self.appends > 0
    }

    /// Ops that have not brought their last reply.
    pub(super) fn open_count(&self) -> usize {
        self.open.len()
    }
}
