//! **Loop**: one run at a time. It orders requests, tool batches and queued messages, and decides whether to go on.
//!
//! The machine moves only when it is polled, by one output at a time: what a surface does while it looks at an event
//! (steer, abort …) counts before the next step (spec 10 §1 contract 3, §2.4). It knows neither files nor protocols:
//! a request is answered by [`Agent::on_update`] and [`Agent::on_reply`], a call by [`Agent::on_tool_done`].

mod batch;
mod call_ids;
mod calls;
mod declare;
mod hooks;
mod machine;
mod queue;
mod reply;
mod run;

pub use declare::{Declared, ToolDelta, declaration};
pub use hooks::{HookCall, HookReply, HookSet, ResultChange, ToolVerdict, TurnChange, TurnDecision};
pub use machine::{Agent, AgentConfig, Out, Refusal};
pub use queue::Queue;
