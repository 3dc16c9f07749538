//! Runs one tool call against a world that answers ops, in virtual time.

#![allow(clippy::expect_used)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use tau_core::fault::IoFault;
use tau_core::input::Reply;
use tau_core::now::{Mono, Now, Wall};
use tau_core::op::Op;
use tau_core::tools::{
    BuiltinOptions, Runner, Slot, ToolCx, ToolEnv, ToolInput, ToolOutput, ToolRequest, ToolStep, builtin,
};

/// Answers ops. Replies come with the milliseconds after which they arrive.
pub trait World {
    /// The replies to a new op.
    fn start(&mut self, op: &Op) -> Vec<(u64, Reply)>;

    /// The replies to an op that is cancelled; what it had not yet said is dropped.
    fn cancel(&mut self, _op: &Op) -> Vec<(u64, Reply)> {
        vec![(0, Reply::Failed(IoFault::cancelled()))]
    }
}

impl<F: FnMut(&Op) -> Reply> World for F {
    fn start(&mut self, op: &Op) -> Vec<(u64, Reply)> {
        vec![(0, self(op))]
    }
}

/// What a call did.
#[derive(Debug)]
pub struct Finished {
    /// Its result.
    pub output: ToolOutput,
    /// Intermediate results with the time at which they came, ms.
    pub updates: Vec<(u64, ToolOutput)>,
    /// Duration, ms.
    pub ms: u64,
}

/// Runs a built-in tool with prepared arguments to its end; the user aborts after `abort_after` ms.
///
/// # Panics
/// When the tool does not exist, or waits for nothing.
pub fn run(
    name: &str,
    args: &Value,
    env: ToolEnv,
    world: &mut dyn World,
    abort_after: Option<u64>,
) -> Finished {
    let tool = builtin(name, BuiltinOptions::default()).unwrap_or_else(|| panic!("no tool {name}"));
    let Runner::Machine(build) = tool.run else { panic!("{name} is no machine") };
    let args = tool.prepare.map_or_else(|| args.clone(), |prepare| prepare(args.clone()));
    let mut machine = build(Arc::new(args));
    let env = Arc::new(env);
    let (mut next_slot, mut updates, mut time) = (0, Vec::new(), 0);
    let mut ops: BTreeMap<Slot, Op> = BTreeMap::new();
    let mut queue: Vec<(u64, Slot, VecDeque<Reply>)> = Vec::new();
    let (mut deadline, mut abort) = (None::<u64>, abort_after);
    let mut input = ToolInput::Begin;
    loop {
        let now = Now { mono: Mono(time), wall: Wall(0) };
        let mut requests = Vec::new();
        let step = machine.step(&mut ToolCx::new(now, &env, &mut next_slot, &mut requests), input);
        for request in requests {
            match request {
                ToolRequest::Start(slot, _, op) => {
                    schedule(&mut queue, time, slot, world.start(&op));
                    ops.insert(slot, op);
                }
                ToolRequest::Cancel(slot) => {
                    queue.retain(|(_, owner, _)| *owner != slot);
                    schedule(&mut queue, time, slot, world.cancel(&ops[&slot]));
                }
                ToolRequest::Update(output) => updates.push((time, output)),
                ToolRequest::Deadline(at) => deadline = at.map(|at| at.0),
            }
        }
        if let ToolStep::Done(output) = step {
            return Finished { output, updates, ms: time };
        }
        let next_reply = queue.iter().map(|(at, ..)| *at).min();
        let next = [next_reply, deadline, abort].into_iter().flatten().min();
        time = time.max(next.unwrap_or_else(|| panic!("{name} waits for nothing")));
        input = if abort.is_some_and(|at| at <= time) {
            abort = None;
            ToolInput::Cancel
        } else if next_reply.is_some_and(|at| at <= time) {
            let at = queue.iter().position(|(at, ..)| *at <= time).unwrap_or_default();
            let (_, slot, replies) = &mut queue[at];
            let (slot, reply) = (*slot, replies.pop_front().expect("scheduled with a reply"));
            if replies.is_empty() {
                queue.remove(at);
            }
            ToolInput::Reply(slot, reply)
        } else {
            deadline = None;
            ToolInput::Tick
        };
    }
}

fn schedule(queue: &mut Vec<(u64, Slot, VecDeque<Reply>)>, now: u64, slot: Slot, replies: Vec<(u64, Reply)>) {
    queue.extend(replies.into_iter().map(|(after, reply)| (now + after, slot, VecDeque::from([reply]))));
    queue.sort_by_key(|(at, ..)| *at);
}

/// The text of a result: its text blocks.
#[must_use]
pub fn text_of(output: &ToolOutput) -> String {
    output.content.iter().filter_map(|block| block.as_text()).collect()
}
