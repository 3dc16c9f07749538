//! Questions to the embedding program, and what it answers (spec 10 §2.1, §2.9).

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::Hub;
use super::ops::{Asked, Owner};
use crate::agent::{HookCall, HookReply, ToolVerdict, TurnChange};
use crate::fault::{FaultKind, IoFault};
use crate::input::Reply;
use crate::op::{Lane, Op, Outcome};

impl Hub {
    /// Asks. In a run that was aborted nobody is waited for any more: nothing changes.
    pub(super) fn ask(&mut self, call: HookCall) {
        let now = self.now;
        if self.desk.agent().is_aborted() {
            return self.desk.agent_mut().on_hook(call.neutral(), now);
        }
        let asked = match &call {
            HookCall::BeforeToolCall { index, .. } => Asked::Before(*index),
            HookCall::AfterToolCall { index, .. } => Asked::After(*index),
            HookCall::FinishTurn { .. } => Asked::Finish,
            HookCall::PrepareRequest => Asked::Request,
            HookCall::TransformContext { .. } => Asked::Context,
            HookCall::PrepareNextTurn => return self.desk.agent_mut().on_hook(call.neutral(), now),
        };
        self.ops.start(Owner::Hook(asked), Lane::Free, Op::Hook(Box::new(call)));
    }

    /// Takes an answer.
    pub(super) fn hook_reply(&mut self, asked: Asked, reply: Reply) {
        let answer = match reply {
            Reply::Done(Outcome::Hook(answer)) if fits(asked, &answer) => *answer,
            Reply::Done(_) => {
                failed(asked, IoFault::new(FaultKind::Invalid, "the host answered something else"))
            }
            Reply::Failed(fault) => failed(asked, fault),
            Reply::Head { .. } | Reply::Chunk { .. } | Reply::Update(_) => return,
        };
        let now = self.now;
        match answer {
            HookReply::TransformContext(messages) => {
                self.context = Some(messages);
                self.request();
            }
            answer => self.desk.agent_mut().on_hook(answer, now),
        }
    }
}

/// Whether an answer belongs to a question.
const fn fits(asked: Asked, answer: &HookReply) -> bool {
    match (asked, answer) {
        (Asked::Before(asked), HookReply::BeforeToolCall { index, .. })
        | (Asked::After(asked), HookReply::AfterToolCall { index, .. }) => asked == *index,
        (Asked::Finish, HookReply::FinishTurn(_))
        | (Asked::Request, HookReply::PrepareRequest(_))
        | (Asked::Context, HookReply::TransformContext(_))
        | (_, HookReply::Failed(_)) => true,
        _ => false,
    }
}

/// What follows when there is no answer. A question that was cancelled belongs to a run that ends anyway.
fn failed(asked: Asked, fault: IoFault) -> HookReply {
    let cancelled = fault.kind == FaultKind::Cancelled;
    let text = fault.detail;
    match asked {
        Asked::Before(index) => HookReply::BeforeToolCall { index, verdict: ToolVerdict::Failed(text) },
        Asked::After(index) => HookReply::AfterToolCall { index, change: Err(text) },
        Asked::Finish if cancelled => HookReply::FinishTurn(None),
        Asked::Request if cancelled => HookReply::PrepareRequest(TurnChange::default()),
        // The request that follows is not made.
        Asked::Context if cancelled => HookReply::TransformContext(Vec::new()),
        Asked::Finish | Asked::Request | Asked::Context => HookReply::Failed(text),
    }
}
