//! Tools that ask for one op at a time: a list of steps, wrapped into a [`ToolMachine`].

use alloc::string::String;

use super::{Slot, ToolCx, ToolEnv, ToolInput, ToolMachine, ToolOutput, ToolStep};
use crate::fault::IoFault;
use crate::input::Reply;
use crate::json::{Map, Value};
use crate::op::{Lane, Op, Outcome};

/// What a script wants after a step.
pub(super) enum Next {
    /// One op; its result comes to [`Script::resume`].
    Ask(Lane, Op),
    /// The end.
    Done(ToolOutput),
}

impl Next {
    /// Ends with an error for the model.
    pub(super) fn fail(text: impl Into<String>) -> Self {
        Self::Done(ToolOutput::error(text))
    }

    /// Asks for an op that needs no order.
    pub(super) const fn ask(op: Op) -> Self {
        Self::Ask(Lane::Free, op)
    }
}

/// The steps of a tool. Cancelling, slots and late replies are handled by [`Scripted`].
pub(super) trait Script: Send {
    /// The first step.
    fn begin(&mut self, env: &ToolEnv) -> Next;
    /// The op that was asked for ended.
    fn resume(&mut self, env: &ToolEnv, result: Result<Outcome, IoFault>) -> Next;
}

/// Text of a call that the user aborted; nothing is rolled back (spec 50 §1.6).
pub(super) const ABORTED: &str = "The call was aborted.";

/// Runs a [`Script`].
pub(super) struct Scripted<S> {
    script: S,
    waiting: Option<Slot>,
    cancelled: bool,
}

impl<S> Scripted<S> {
    pub(super) const fn new(script: S) -> Self {
        Self { script, waiting: None, cancelled: false }
    }
}

impl<S: Script> ToolMachine for Scripted<S> {
    fn step(&mut self, cx: &mut ToolCx<'_>, input: ToolInput) -> ToolStep {
        let env = cx.env.clone();
        let next = match input {
            ToolInput::Begin => self.script.begin(&env),
            ToolInput::Reply(slot, reply) if self.waiting == Some(slot) => {
                let result = match reply {
                    Reply::Done(outcome) => Ok(outcome),
                    Reply::Failed(fault) => Err(fault),
                    _ => return ToolStep::Wait,
                };
                self.waiting = None;
                if self.cancelled {
                    return ToolStep::Done(ToolOutput::error(ABORTED));
                }
                self.script.resume(&env, result)
            }
            ToolInput::Cancel => {
                self.cancelled = true;
                return match self.waiting {
                    Some(slot) => {
                        cx.cancel(slot);
                        ToolStep::Wait
                    }
                    None => ToolStep::Done(ToolOutput::error(ABORTED)),
                };
            }
            ToolInput::Reply(..) | ToolInput::Tick => return ToolStep::Wait,
        };
        match next {
            Next::Done(output) => ToolStep::Done(output),
            Next::Ask(lane, op) => {
                self.waiting = Some(cx.start_in(lane, op));
                ToolStep::Wait
            }
        }
    }
}

/// Details with entries in order; `None` when there are none.
pub(super) fn details(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Option<Value> {
    let map: Map<_, _> = entries.into_iter().map(|(k, v)| (k.into(), v)).collect();
    (!map.is_empty()).then_some(Value::Object(map))
}
