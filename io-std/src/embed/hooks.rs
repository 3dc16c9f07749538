//! Hooks of the embedding program, and which of them are switched on.

use std::sync::Arc;

use tau_core::agent::{HookCall, HookReply, HookSet, ResultChange, ToolVerdict, TurnChange, TurnDecision};
use tau_core::json::Value;
use tau_core::message::{Message, ToolCall};
use tau_core::tools::ToolOutput;

use super::guarded;
use crate::sys::CancelToken;

type Before = Box<dyn Fn(&ToolCall, &Value, &CancelToken) -> ToolVerdict + Send + Sync>;
type After = Box<dyn Fn(&ToolCall, &ToolOutput, &CancelToken) -> ResultChange + Send + Sync>;
type Finish = Box<dyn Fn(&Message, &[Arc<Message>]) -> Option<TurnDecision> + Send + Sync>;
type Request = Box<dyn Fn() -> TurnChange + Send + Sync>;
type Context = Box<dyn Fn(Vec<Arc<Message>>) -> Vec<Arc<Message>> + Send + Sync>;

#[derive(Default)]
pub(super) struct Hooks {
    pub(super) before: Option<Before>,
    pub(super) after: Option<After>,
    pub(super) finish: Option<Finish>,
    pub(super) request: Option<Request>,
    pub(super) context: Option<Context>,
}

impl Hooks {
    pub(super) const fn set(&self) -> HookSet {
        HookSet {
            before_tool_call: self.before.is_some(),
            after_tool_call: self.after.is_some(),
            finish_turn: self.finish.is_some(),
            prepare_next_turn: false,
            prepare_request: self.request.is_some(),
            transform_context: self.context.is_some(),
        }
    }

    /// What is not switched on changes nothing.
    pub(super) fn answer(&self, call: HookCall, cancel: &CancelToken) -> HookReply {
        let neutral = call.neutral();
        match (call, self) {
            (HookCall::BeforeToolCall { index, call, args }, Self { before: Some(hook), .. }) => {
                let verdict = guarded("the hook before a tool call", || hook(&call, &args, cancel));
                HookReply::BeforeToolCall { index, verdict: verdict.unwrap_or_else(ToolVerdict::Failed) }
            }
            (HookCall::AfterToolCall { index, call, output }, Self { after: Some(hook), .. }) => {
                let change = guarded("the hook after a tool call", || hook(&call, &output, cancel));
                HookReply::AfterToolCall { index, change }
            }
            (HookCall::FinishTurn { message, results }, Self { finish: Some(hook), .. }) => {
                let decision = guarded("the hook at the end of a turn", || hook(&message, &results));
                decision.map_or_else(HookReply::Failed, HookReply::FinishTurn)
            }
            (HookCall::PrepareRequest, Self { request: Some(hook), .. }) => {
                let change = guarded("the hook before a request", hook);
                change.map_or_else(HookReply::Failed, HookReply::PrepareRequest)
            }
            (HookCall::TransformContext { messages }, Self { context: Some(hook), .. }) => {
                let messages = guarded("the hook of the context", || hook(messages));
                messages.map_or_else(HookReply::Failed, HookReply::TransformContext)
            }
            _ => neutral,
        }
    }
}
