//! Runs one tool call against the real operating system, on the blocking backend's functions.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tau_core::input::Reply;
use tau_core::now::{Mono, Now, Wall};
use tau_core::tools::{
    BuiltinOptions, Runner, Slot, ToolCx, ToolEnv, ToolInput, ToolRequest, ToolStep, builtin,
};
use tau_io_std::sys::clock::Clock;
use tau_io_std::sys::{self, CancelToken};

use crate::tool_driver::Finished;

/// Runs a built-in tool to its end; the user aborts after `abort_after` ms.
///
/// # Panics
/// When the tool does not exist, or waits for nothing.
pub fn run(name: &str, args: &Value, env: ToolEnv, abort_after: Option<u64>) -> Finished {
    let tool = builtin(name, BuiltinOptions::default()).unwrap_or_else(|| panic!("no tool {name}"));
    let Runner::Machine(build) = tool.run else { panic!("{name} is no machine") };
    let args = tool.prepare.map_or_else(|| args.clone(), |prepare| prepare(args.clone()));
    let mut machine = build(Arc::new(args));
    let (env, clock) = (Arc::new(env), Clock::start());
    let (sender, inbox) = mpsc::sync_channel::<(Slot, Reply)>(64);
    let mut tokens: BTreeMap<Slot, Arc<CancelToken>> = BTreeMap::new();
    let (mut next_slot, mut updates) = (0, Vec::new());
    let started = clock.mono();
    let (mut deadline, mut abort) = (None::<Mono>, abort_after.map(|ms| started.plus(ms)));
    let mut input = ToolInput::Begin;
    loop {
        let mut requests = Vec::new();
        let now = Now { mono: clock.mono(), wall: Wall(0) };
        let step = machine.step(&mut ToolCx::new(now, &env, &mut next_slot, &mut requests), input);
        for request in requests {
            match request {
                ToolRequest::Start(slot, _, op) => {
                    let token = Arc::new(CancelToken::new());
                    tokens.insert(slot, token.clone());
                    let sender = sender.clone();
                    thread::spawn(move || {
                        let mut partial = |reply| drop(sender.send((slot, reply)));
                        let last = sys::last(sys::run(&op, &mut partial, &token));
                        drop(sender.send((slot, last)));
                    });
                }
                ToolRequest::Cancel(slot) => tokens[&slot].cancel(),
                ToolRequest::Update(output) => updates.push((clock.mono().since(started), output)),
                ToolRequest::Deadline(at) => deadline = at,
            }
        }
        if let ToolStep::Done(output) = step {
            return Finished { output, updates, ms: clock.mono().since(started) };
        }
        let next = [deadline, abort].into_iter().flatten().min();
        let wait = next.map_or(Duration::from_secs(60), |at| clock.until(at));
        input = match inbox.recv_timeout(wait) {
            Ok((slot, reply)) => ToolInput::Reply(slot, reply),
            Err(_) if abort.is_some_and(|at| clock.mono() >= at) => {
                abort = None;
                ToolInput::Cancel
            }
            Err(_) if deadline.is_some_and(|at| clock.mono() >= at) => {
                deadline = None;
                ToolInput::Tick
            }
            Err(_) if next.is_none() => panic!("{name} waits for nothing"),
            Err(_) => ToolInput::Tick,
        };
    }
}
