//! How large the context of a branch is, and which numbers can be trusted (spec 10 §7.1.2, §7.2).
//!
//! "Older than the last compaction" is decided by the order of entries, never by comparing times (D15).

use crate::message::{AssistantMessage, StopReason};
use crate::overflow::is_recoverable_length;
use crate::session::tree::{Slot, Tree};
use crate::session::{Context, EntryBody, EntryKind};
use crate::settings::CompactionSettings;
use crate::tokens::{ContextUsage, Estimator, last_usage};

/// Whether a context of `tokens` leaves less than the reserve free: `T > W − R`, strictly.
#[must_use]
pub const fn should_compact(tokens: u64, window: u64, settings: &CompactionSettings) -> bool {
    // With W < R everything is too large, even nothing at all.
    settings.enabled && (window < settings.reserve_tokens || tokens > window - settings.reserve_tokens)
}

/// The size of the context of the current leaf. The usage of a reply counts only when no compaction and no context
/// edit came after it: it speaks of another context otherwise.
pub fn projected(tree: &Tree, context: &Context, estimator: &mut Estimator) -> ContextUsage {
    let anchor = last_usage(&context.messages).and_then(|(message, _)| entry_of(context, message));
    if anchor.is_some_and(|slot| !newer(tree, slot, |kind| is_edit(kind) || is_compaction(kind))) {
        estimator.context_usage(&context.messages)
    } else {
        estimator.context_usage_untrusted(&context.messages)
    }
}

/// The size to hold against the window after the reply at `reply` ended (spec 10 §7.1.2 step 5); `None` when only
/// numbers from before the last compaction are known, which say nothing.
pub fn after_reply(tree: &Tree, context: &Context, reply: Slot, estimator: &mut Estimator) -> Option<u64> {
    if is_stale(tree, reply) {
        return None;
    }
    if context.edited {
        return Some(projected(tree, context, estimator).tokens);
    }
    if let Some(own) = own_usage(tree, reply) {
        return Some(own);
    }
    let usage = estimator.context_usage(&context.messages);
    let anchor = usage.last_usage.and_then(|message| entry_of(context, message));
    (!anchor.is_some_and(|slot| is_stale(tree, slot))).then_some(usage.tokens)
}

/// `U` of a reply that did not fail and has one.
fn own_usage(tree: &Tree, reply: Slot) -> Option<u64> {
    let Some(EntryBody::Message(message)) = tree.node(reply)?.body() else { return None };
    let reply = message.as_assistant().filter(|reply| reply.stop_reason != StopReason::Error)?;
    Some(reply.usage.context_tokens()).filter(|tokens| *tokens > 0)
}

/// Whether a compaction came after an entry of the current branch; its usage and its error are old news then.
#[must_use]
pub fn is_stale(tree: &Tree, slot: Slot) -> bool {
    newer(tree, slot, is_compaction)
}

/// Whether a context edit came after an entry of the current branch: what its usage counted is another context.
#[must_use]
pub fn is_edited_since(tree: &Tree, slot: Slot) -> bool {
    newer(tree, slot, is_edit)
}

/// Whether another compaction may help the reply at `slot`: it is a good one, none was made yet on its branch, or a good
/// reply came after the last one. Otherwise compactions and failures would take turns for ever (bug 63). A reply is good
/// when it ended by itself, or at the limit of a model that writes at most `max_tokens`.
#[must_use]
pub fn may_compact_again(tree: &Tree, slot: Slot, max_tokens: u64) -> bool {
    let mut next = Some(slot);
    // A cycle of parents ends with the number of entries.
    for _ in tree.nodes() {
        let Some(node) = next.and_then(|at| tree.node(at)) else { return true };
        match (node.kind(), node.body()) {
            (EntryKind::Compaction, _) => return false,
            (EntryKind::Assistant, Some(EntryBody::Message(message))) => {
                let is_good = |reply: &AssistantMessage| {
                    !reply.stop_reason.is_failure() && !is_recoverable_length(reply, max_tokens)
                };
                if message.as_assistant().is_some_and(is_good) {
                    return true;
                }
            }
            (EntryKind::Assistant, _) => return true,
            _ => {}
        }
        next = next.and_then(|at| tree.parent(at));
    }
    true
}

/// Whether an entry of some kind stands between an entry and the leaf; also when the entry is not on the branch.
fn newer(tree: &Tree, slot: Slot, wanted: impl Fn(EntryKind) -> bool) -> bool {
    let mut next = tree.leaf();
    // A cycle of parents ends with the number of entries.
    for _ in tree.nodes() {
        match next {
            Some(at) if at != slot => {
                if kind(tree, at).is_some_and(&wanted) {
                    return true;
                }
                next = tree.parent(at);
            }
            Some(_) => return false,
            None => return true,
        }
    }
    true
}

/// The entry that a message of the context comes from.
fn entry_of(context: &Context, message: usize) -> Option<Slot> {
    let mut end = context.messages.len();
    // The one we look for is nearly always near the end.
    for entry in context.entries.iter().rev() {
        end = end.checked_sub(usize::from(entry.messages))?;
        if end <= message {
            return Some(entry.slot);
        }
    }
    None
}

pub(super) fn kind(tree: &Tree, slot: Slot) -> Option<EntryKind> {
    tree.node(slot).map(|node| node.kind())
}

const fn is_compaction(kind: EntryKind) -> bool {
    matches!(kind, EntryKind::Compaction)
}

const fn is_edit(kind: EntryKind) -> bool {
    matches!(kind, EntryKind::ContextEdit)
}
