//! From accepted summaries to the entry that changes the context (spec 10 §7.5–§7.7).
//!
//! The context itself is rebuilt by the session when the entry is appended; the raw history stays in the file.

use alloc::boxed::Box;
use alloc::sync::Arc;

use super::plan::Plan;
use super::summary::{join, spent};
use crate::fault::Fault;
use crate::message::{AssistantMessage, Message, SystemMessage};
use crate::now::Wall;
use crate::session::entry::Compaction;
use crate::session::{Context, EntryBody};
use crate::tokens::Estimator;

/// The entry of a compaction; `replies` are the final replies to the plan's requests, in order.
///
/// # Errors
/// See [`check_reply`](super::check_reply). Nothing may be stored then.
pub fn finish(plan: &Plan, replies: &[AssistantMessage], now: Wall) -> Result<EntryBody, Fault> {
    let mut summary = join(plan, replies)?;
    let lists = plan.files.lists();
    lists.append_to(&mut summary);
    let system = plan.system.clone().map(|system| SystemMessage { timestamp: now.0, ..system });
    Ok(EntryBody::Compaction(Box::new(Compaction {
        summary: summary.into(),
        first_kept: Some(plan.first_kept.clone()),
        tokens_before: plan.tokens_before,
        details: Some(lists.details()),
        usage: spent(replies),
        from_hook: Some(false),
        system_message: system.map(|system| Arc::new(Message::System(system))),
    })))
}

/// Estimated size of the context after the entry was appended, tokens: no usage is known for it yet.
pub fn tokens_after(context: &Context, estimator: &mut Estimator) -> u64 {
    estimator.tokens_from(&context.messages, 0)
}
