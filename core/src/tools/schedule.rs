//! Running tool machines: each call's ops, deadline and steps.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Slot, ToolCx, ToolEnv, ToolInput, ToolMachine, ToolRequest, ToolStep};
use crate::ids::OpId;
use crate::now::{Mono, Now};

/// The running calls of one batch, by their place in it.
#[derive(Default)]
pub struct Bench {
    calls: BTreeMap<usize, Running>,
}

struct Running {
    machine: Box<dyn ToolMachine>,
    next_slot: u32,
    ops: BTreeMap<Slot, OpId>,
    deadline: Option<Mono>,
    cancelled: bool,
}

impl core::fmt::Debug for Bench {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries(self.calls.keys()).finish()
    }
}

impl Bench {
    /// Adds a call; step it with [`ToolInput::Begin`].
    pub fn add(&mut self, index: usize, machine: Box<dyn ToolMachine>) {
        let running =
            Running { machine, next_slot: 0, ops: BTreeMap::new(), deadline: None, cancelled: false };
        self.calls.insert(index, running);
    }

    /// Lets a call handle one input. Its wishes are appended to `requests`; starts must be answered with
    /// [`Bench::started`]. `None` when there is no such call.
    pub fn step(
        &mut self,
        index: usize,
        input: ToolInput,
        now: Now,
        env: &Arc<ToolEnv>,
        requests: &mut Vec<ToolRequest>,
    ) -> Option<ToolStep> {
        let running = self.calls.get_mut(&index)?;
        if let ToolInput::Reply(slot, reply) = &input
            && reply.is_last()
        {
            running.ops.remove(slot);
        }
        let mut cx = ToolCx::new(now, env, &mut running.next_slot, requests);
        let step = running.machine.step(&mut cx, input);
        if matches!(step, ToolStep::Done(_)) {
            self.calls.remove(&index);
        }
        Some(step)
    }

    /// Notes the op behind a slot.
    pub fn started(&mut self, index: usize, slot: Slot, op: OpId) {
        if let Some(running) = self.calls.get_mut(&index) {
            running.ops.insert(slot, op);
        }
    }

    /// The op behind a slot.
    #[must_use]
    pub fn op(&self, index: usize, slot: Slot) -> Option<OpId> {
        self.calls.get(&index)?.ops.get(&slot).copied()
    }

    /// Sets or drops the deadline of a call.
    pub fn set_deadline(&mut self, index: usize, at: Option<Mono>) {
        if let Some(running) = self.calls.get_mut(&index) {
            running.deadline = at;
        }
    }

    /// Calls whose deadline is reached; each is told once.
    pub fn take_due(&mut self, now: Mono) -> Vec<usize> {
        let due = |r: &Running| r.deadline.is_some_and(|at| at <= now);
        let indexes: Vec<usize> = self.calls.iter().filter(|(_, r)| due(r)).map(|(i, _)| *i).collect();
        for index in &indexes {
            self.set_deadline(*index, None);
        }
        indexes
    }

    /// The next deadline.
    #[must_use]
    pub fn deadline(&self) -> Option<Mono> {
        self.calls.values().filter_map(|r| r.deadline).min()
    }

    /// Calls that were not told of the abort yet; they count as told.
    pub fn take_uncancelled(&mut self) -> Vec<usize> {
        let running = self.calls.iter_mut().filter(|(_, r)| !r.cancelled);
        running
            .map(|(index, r)| {
                r.cancelled = true;
                *index
            })
            .collect()
    }
}
