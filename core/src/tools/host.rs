//! A tool of the embedding program: one op, its updates and its result.

use super::{Slot, ToolCx, ToolInput, ToolMachine, ToolOutput, ToolStep};
use crate::fault::FaultKind;
use crate::input::Reply;
use crate::op::{HostCall, Op, Outcome};

/// Waits for the embedding program.
#[derive(Debug)]
pub struct HostTool {
    call: Option<HostCall>,
    slot: Option<Slot>,
}

impl HostTool {
    /// A call to be made.
    #[must_use]
    pub const fn new(call: HostCall) -> Self {
        Self { call: Some(call), slot: None }
    }
}

impl ToolMachine for HostTool {
    fn step(&mut self, cx: &mut ToolCx<'_>, input: ToolInput) -> ToolStep {
        match input {
            ToolInput::Begin => {
                if let Some(call) = self.call.take() {
                    self.slot = Some(cx.start(Op::Host(call)));
                }
            }
            ToolInput::Reply(_, Reply::Update(output)) => cx.update(output),
            ToolInput::Reply(_, Reply::Done(Outcome::Host(output))) => return ToolStep::Done(output),
            ToolInput::Reply(_, Reply::Failed(fault)) => {
                let text = match fault.kind {
                    FaultKind::Cancelled => "The call was aborted.".into(),
                    _ => fault.detail,
                };
                return ToolStep::Done(ToolOutput::error(text));
            }
            ToolInput::Reply(_, Reply::Done(_)) => {
                return ToolStep::Done(ToolOutput::error("The host answered the call with something else."));
            }
            ToolInput::Cancel => {
                if let Some(slot) = self.slot {
                    cx.cancel(slot);
                }
            }
            ToolInput::Reply(..) | ToolInput::Tick => {}
        }
        ToolStep::Wait
    }
}
