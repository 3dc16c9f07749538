//! The only way in: commands of a surface, replies of the world, ticks.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::fault::IoFault;
use crate::harness::SummaryWish;
use crate::ids::OpId;
use crate::message::{Block, CustomMessage, Message};
use crate::model::{Model, ThinkingLevel};
use crate::op::{Headers, Outcome, Stream};
use crate::tools::ToolOutput;

/// One input of the hub.
#[derive(Clone, Debug)]
pub enum Input {
    /// Something a person or program wants.
    Command(Command),
    /// Something an op brought.
    Reply {
        /// The op.
        op: OpId,
        /// What it brought.
        reply: Reply,
    },
    /// A deadline was reached, or nothing in particular (harmless).
    Tick,
}

/// What an op brings: any number of partial replies, then exactly one last (`Done` or `Failed`).
#[derive(Clone, Debug)]
pub enum Reply {
    /// Status and headers of an HTTP response.
    Head {
        /// Status code.
        status: u16,
        /// Response headers.
        headers: Headers,
    },
    /// Bytes of a body or pipe.
    Chunk {
        /// Where they came from.
        stream: Stream,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Intermediate result of a host tool.
    Update(ToolOutput),
    /// Last: it went well.
    Done(Outcome),
    /// Last: it did not.
    Failed(IoFault),
}

impl Reply {
    /// Whether this is the last reply of its op.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        matches!(self, Self::Done(_) | Self::Failed(_))
    }
}

/// How queued messages are delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueMode {
    /// The oldest message, one turn each.
    #[default]
    OneAtATime,
    /// All messages before one turn.
    All,
}

impl QueueMode {
    /// Reads the name used in settings and RPC.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "one-at-a-time" => Some(Self::OneAtATime),
            "all" => Some(Self::All),
            _ => None,
        }
    }

    /// The name used in settings and RPC.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneAtATime => "one-at-a-time",
            Self::All => "all",
        }
    }
}

/// A message of a host, and where it goes (spec 10 §8.4).
#[derive(Clone, Debug)]
pub struct HostNote {
    /// The message.
    pub message: Box<CustomMessage>,
    /// Its place.
    pub deliver: Deliver,
    /// Whether it asks for an answer; `None` = only if a run is active.
    pub trigger: Option<bool>,
}

/// Where a message of a host goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deliver {
    /// Before the next request of the active run.
    #[default]
    Steer,
    /// When the active run would end.
    FollowUp,
    /// Behind the next prompt.
    NextTurn,
}

/// What a surface can ask for. A command that cannot be followed gives an error event and changes nothing.
#[derive(Clone, Debug)]
pub enum Command {
    /// Starts a run with a user message (text and images).
    Prompt {
        /// The text.
        text: String,
        /// Image blocks.
        images: Vec<Block>,
    },
    /// Starts a run from the context as it is.
    Continue,
    /// Queues a message for the next request.
    Steer {
        /// The text.
        text: String,
        /// Image blocks.
        images: Vec<Block>,
    },
    /// Queues a message for when the run would end.
    FollowUp {
        /// The text.
        text: String,
        /// Image blocks.
        images: Vec<Block>,
    },
    /// Drops queued messages.
    ClearQueues,
    /// Ends the run at once; what is done stays.
    Abort,
    /// Ends the run at the next turn boundary.
    GracefulStop,
    /// Changes the model for later requests.
    SetModel {
        /// The model.
        model: Arc<Model>,
        /// The level to go on with, clamped to the model; `None` = the current one.
        thinking: Option<ThinkingLevel>,
    },
    /// Changes the thinking level for later requests.
    SetThinking(ThinkingLevel),
    /// Changes how steering messages are delivered.
    SetSteeringMode(QueueMode),
    /// Changes how follow-up messages are delivered.
    SetFollowUpMode(QueueMode),
    /// Ends the wait before another try of a run that failed; nothing follows.
    AbortRetry,
    /// Gives up a compaction or branch summary that is being made; a run goes on without it.
    AbortCompaction,
    /// Compacts the context now; aborts a run first. What came of it: [`Desk::compacted`](crate::harness::Desk::compacted).
    Compact {
        /// What the summary is to look at.
        focus: Option<String>,
    },
    /// Goes to another entry of the tree. What came of it: [`Desk::moved`](crate::harness::Desk::moved).
    Navigate {
        /// The entry.
        target: String,
        /// Summarise the branch that is left.
        summary: Option<SummaryWish>,
        /// A label for the summary, or for the entry when there is none.
        label: Option<String>,
    },
    /// Labels an entry; `None` clears.
    SetLabel {
        /// The entry.
        entry: String,
        /// The label.
        label: Option<String>,
    },
    /// Switches compaction by itself on or off.
    SetAutoCompaction(bool),
    /// Switches retries of failed runs on or off.
    SetAutoRetry(bool),
    /// A message of a host.
    Host(HostNote),
    /// Runs a command in the user's shell, beside everything else; events tell its output and its end.
    Shell {
        /// Comes back in the events.
        id: u64,
        /// The command.
        command: String,
        /// Keep it from the model.
        excluded: bool,
    },
    /// Kills all commands of the user's shell.
    AbortShells,
    /// Appends a message that starts no run (a note of the host); during a run it waits for its end.
    Note(Arc<Message>),
    /// Sets the display name of the session.
    SetName(String),
    /// Ends everything: aborts, flushes, then `Event::Closed`.
    Shutdown,
}
