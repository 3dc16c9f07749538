//! From stored messages to what one model may be sent, without touching what is stored.
//!
//! Order of the passes (spec 10 §4.3, spec 30 §1.1): [`to_llm`] turns host messages into the public roles, [`transform`]
//! adapts the history to the target model, repair is the last pass that makes every request sendable (D19), [`fold`]
//! replays system messages into one prompt and one tool list.
//!
//! A history grows at its end, turn by turn. [`Public`] (first pass) and [`History`] (the others; one per encoder) keep
//! what they made, so that a request converts only what is new; what has to be read again finds the messages it
//! rewrote in a [`Memo`]. A message that needs no change keeps its `Arc`.

mod call_id;
mod fold;
mod history;
mod memo;
mod prefix;
mod public;
mod repair;
mod to_llm;
mod transform;

pub use call_id::{sanitize_id, short_hash, wire_id};
pub use fold::{Fold, ToolChanges, fold, tool_changes, tool_name};
pub use history::{History, prepare};
pub use memo::Memo;
pub(crate) use prefix::common;
pub use public::Public;
pub use to_llm::to_llm;
pub use transform::{AGAIN, IdRule, Target, transform};

/// Stands for images of a user when the model takes none.
pub const IMAGE_OMITTED: &str = "[image left out: this model does not take images]";
/// Stands for images in a tool result when the model takes none.
pub const TOOL_IMAGE_OMITTED: &str = "[image in the tool result left out: this model does not take images]";
/// Stands for images while the setting that blocks them is on.
pub const IMAGE_BLOCKED: &str = "[image left out: images are switched off in the settings]";
/// Text of a tool result that has images only.
pub const SEE_IMAGE: &str = "(the result is the attached image)";
/// Text of a tool result without any text.
pub const NO_TOOL_OUTPUT: &str = "(no output)";
/// Stands before a conversation that begins with a reply, which services refuse.
pub const BEGINNING: &str = "(what was said before is not shown)";
/// Answer to a call that has no recorded result (D25).
pub const NO_RESULT: &str = "No result was recorded: the call was interrupted and its outcome is unknown.";
