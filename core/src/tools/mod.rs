//! **Bench**: tools as resumable planners. They ask for ops and compute; they never touch the world.

mod args;
pub(crate) mod bash;
pub mod diff;
mod edit;
pub mod edit_apply;
mod edit_args;
pub mod edit_match;
mod find;
pub mod fuzzy;
mod grep;
pub mod host;
pub mod image_rules;
mod line_select;
mod listing;
mod ls;
mod myers;
pub mod output;
mod place;
mod read;
mod registry;
pub mod schedule;
mod script;
pub mod selection;
pub mod shell_env;
mod texts;
mod write;

pub use edit_args::prepare as prepare_edit;
pub use line_select::{LineSelect, SNIFF_BYTES};
pub use registry::{BUILTIN_NAMES, BuiltinOptions, builtin, builtins};

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::input::Reply;
use crate::json::Value;
use crate::message::{Block, Usage};
use crate::now::{Mono, Now};
use crate::op::{ImageLimits, Lane, Op};

/// What a tool returned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// Text and images for the model.
    pub content: Vec<Block>,
    /// Facts for surfaces and the session file.
    pub details: Option<Value>,
    /// Facts for programs.
    pub structured: Option<Value>,
    /// Usage of models the tool called.
    pub usage: Option<Usage>,
    /// Whether the call failed.
    pub is_error: bool,
    /// Asks to end the run after this batch.
    pub terminate: Option<bool>,
}

impl ToolOutput {
    /// One text block.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: alloc::vec![Block::text(text.into())], ..Self::default() }
    }

    /// A failure: one text block, empty details (spec 50 §1.1).
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Self { details: Some(Value::Object(crate::json::Map::new())), is_error: true, ..Self::text(text) }
    }
}

/// Names one op inside one tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// What wakes a tool.
#[derive(Debug)]
pub enum ToolInput {
    /// Start. Comes once, first.
    Begin,
    /// An op of this tool answered.
    Reply(Slot, Reply),
    /// The deadline that the tool set was reached.
    Tick,
    /// The user aborted. The tool cancels its ops and ends once they answered.
    Cancel,
}

/// What a tool does next.
#[derive(Debug)]
pub enum ToolStep {
    /// Waits for replies of its ops or for its deadline.
    Wait,
    /// Finished; ops that still run are cancelled.
    Done(ToolOutput),
}

/// What a tool may ask for while it handles one input.
#[derive(Debug)]
pub struct ToolCx<'a> {
    /// The time.
    pub now: Now,
    /// Surroundings of the session.
    pub env: &'a Arc<ToolEnv>,
    next_slot: &'a mut u32,
    requests: &'a mut Vec<ToolRequest>,
}

/// A wish of a tool, in order.
#[derive(Debug)]
pub enum ToolRequest {
    /// Start an op.
    Start(Slot, Lane, Op),
    /// Cancel an op; it still answers once.
    Cancel(Slot),
    /// Show an intermediate result.
    Update(ToolOutput),
    /// Wake me at this time (replaces an earlier wish); `None` = no more.
    Deadline(Option<Mono>),
}

impl<'a> ToolCx<'a> {
    /// Built by the scheduler for one step. `next_slot` is kept per call.
    pub const fn new(
        now: Now,
        env: &'a Arc<ToolEnv>,
        next_slot: &'a mut u32,
        requests: &'a mut Vec<ToolRequest>,
    ) -> Self {
        Self { now, env, next_slot, requests }
    }

    /// Starts an op without order.
    pub fn start(&mut self, op: Op) -> Slot {
        self.start_in(Lane::Free, op)
    }

    /// Starts an op in a lane.
    pub fn start_in(&mut self, lane: Lane, op: Op) -> Slot {
        let slot = Slot(*self.next_slot);
        *self.next_slot += 1;
        self.requests.push(ToolRequest::Start(slot, lane, op));
        slot
    }

    /// Cancels an op.
    pub fn cancel(&mut self, slot: Slot) {
        self.requests.push(ToolRequest::Cancel(slot));
    }

    /// Shows an intermediate result.
    pub fn update(&mut self, output: ToolOutput) {
        self.requests.push(ToolRequest::Update(output));
    }

    /// Sets or drops the deadline.
    pub fn deadline(&mut self, at: Option<Mono>) {
        self.requests.push(ToolRequest::Deadline(at));
    }
}

/// A running call.
pub trait ToolMachine: Send {
    /// Handles one input.
    fn step(&mut self, cx: &mut ToolCx<'_>, input: ToolInput) -> ToolStep;
}

/// Surroundings of a session that tools need.
#[derive(Clone, Debug, Default)]
pub struct ToolEnv {
    /// Working directory, absolute.
    pub cwd: String,
    /// Home directory, for `~`.
    pub home: Option<String>,
    /// Shell and its arguments before the command, e.g. `["/bin/bash", "-c"]`; empty = none was found.
    pub shell: Vec<String>,
    /// Why there is no shell, or what is wrong with the configured one.
    pub shell_error: Option<String>,
    /// Text put before each command.
    pub command_prefix: Option<String>,
    /// Variables set (or removed) for commands.
    pub command_env: Vec<(String, Option<String>)>,
    /// Folder for complete outputs.
    pub output_dir: String,
    /// Limits for images.
    pub images: ImageLimits,
    /// The model, when it cannot see images.
    pub blind_model: Option<String>,
}

/// Whether calls of a tool may run beside others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExecutionMode {
    /// Beside others.
    #[default]
    Parallel,
    /// One at a time, and so the whole batch.
    Sequential,
}

/// A tool: what the model is told, and how a call is made.
#[derive(Clone)]
pub struct Tool {
    /// Name for the model.
    pub name: String,
    /// Name for people.
    pub label: String,
    /// Description for the model.
    pub description: String,
    /// One line for the tool list of the system prompt.
    pub prompt_snippet: Option<String>,
    /// Rules for the system prompt.
    pub prompt_rules: Vec<String>,
    /// JSON Schema of the arguments.
    pub parameters: Arc<Value>,
    /// How calls are batched.
    pub mode: ExecutionMode,
    /// Rewrites odd argument shapes before validation.
    pub prepare: Option<fn(Value) -> Value>,
    /// What runs a call.
    pub run: Runner,
}

/// What runs a call of a tool.
#[derive(Clone, Copy)]
pub enum Runner {
    /// A planner of the core, built from validated arguments.
    Machine(fn(Arc<Value>) -> Box<dyn ToolMachine>),
    /// The embedding program, through [`Op::Host`].
    Host,
}

impl core::fmt::Debug for Tool {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).finish_non_exhaustive()
    }
}
