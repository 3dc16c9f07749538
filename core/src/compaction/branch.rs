//! Summaries of branches that are left (spec 10 §7.9).

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::files::FileOps;
use super::prompts;
use super::summary::{Summarizer, SummaryKind, SummaryRequest, check_reply, conversation_prompt, push_focus};
use crate::fault::Fault;
use crate::message::{AssistantMessage, Message};
use crate::session::context::{contribute, edits};
use crate::session::entry::BranchSummaryEntry;
use crate::session::tree::{Slot, Tree};
use crate::session::{EntryBody, EntryKind};
use crate::tokens::message_tokens;

/// Window that is assumed when the model's is unknown, tokens.
const UNKNOWN_WINDOW: u64 = 128_000;

/// What is left when the leaf moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// The entries between the common ancestor and the old leaf, oldest first.
    pub entries: Vec<Slot>,
    /// The deepest entry that both branches share.
    pub ancestor: Option<Slot>,
}

/// The entries that are on the way to `leaf` but not on the way to `target`; compactions are no border.
#[must_use]
pub fn collect(tree: &Tree, leaf: Option<Slot>, target: Slot) -> Left {
    let (old, new) = (tree.path(leaf), tree.path(Some(target)));
    let shared = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    Left {
        ancestor: shared.checked_sub(1).and_then(|last| old.get(last).copied()),
        entries: old.into_iter().skip(shared).collect(),
    }
}

/// The part of a branch that is summarised.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BranchPlan {
    /// Its messages, oldest first; results of tools are left out.
    pub messages: Vec<Arc<Message>>,
    /// Their estimated size, tokens.
    pub tokens: u64,
    /// Files of its calls and of summaries on it.
    pub files: FileOps,
}

/// How many tokens of a branch fit into a summary request; `window` 0 = unknown.
#[must_use]
pub const fn branch_budget(window: u64, reserve: u64) -> u64 {
    let window = if window == 0 { UNKNOWN_WINDOW } else { window };
    if window > reserve {
        window - reserve
    } else {
        // A window smaller than the reserve must not become "no limit".
        window.div_ceil(2)
    }
}

/// Takes the newest messages of a branch, as many as fit into `budget` tokens (0 = all).
///
/// # Errors
/// `not_read` when the branch was left in the file: read the session with
/// [`Want::Everything`](crate::session::Want) first.
pub fn prepare_branch(tree: &Tree, entries: &[Slot], budget: u64) -> Result<BranchPlan, Fault> {
    let mut plan = BranchPlan::default();
    for node in entries.iter().filter_map(|slot| tree.node(*slot)) {
        match (node.body(), node.kind()) {
            (Some(EntryBody::BranchSummary(entry)), _) if entry.from_hook != Some(true) => {
                plan.files.add_details(entry.details.as_ref());
            }
            (None, kind) if is_shown(kind) => {
                return Err(Fault::new(
                    "not_read",
                    "That branch has not been read yet; open the session anew.",
                ));
            }
            _ => {}
        }
    }
    let edits = edits(tree, entries);
    let mut said = Vec::new();
    'entries: for slot in entries.iter().rev() {
        let Some(node) = tree.node(*slot).filter(|node| node.kind() != EntryKind::ToolResult) else {
            continue;
        };
        contribute(tree, *slot, true, edits.get(tree.id(*slot)).copied(), &mut said);
        if node.kind() == EntryKind::Compaction {
            // Its record of the prompt is no part of the conversation.
            said.retain(|message| !matches!(**message, Message::System(_)));
        }
        let is_summary = matches!(node.kind(), EntryKind::Compaction | EntryKind::BranchSummary);
        for message in said.drain(..) {
            if !plan.take(message, is_summary, budget) {
                break 'entries;
            }
        }
    }
    plan.messages.reverse();
    Ok(plan)
}

/// Whether a summary may show entries of a kind that can be in the file only.
fn is_shown(kind: EntryKind) -> bool {
    let is_summary = matches!(kind, EntryKind::Compaction | EntryKind::BranchSummary);
    (kind.is_message() && kind != EntryKind::ToolResult) || is_summary || kind == EntryKind::CustomMessage
}

impl BranchPlan {
    /// Takes an older message; `false` = it was the last one or did not fit.
    fn take(&mut self, message: Arc<Message>, is_summary: bool, budget: u64) -> bool {
        if let Message::Assistant(reply) = &*message {
            self.files.add_reply(reply);
        }
        let own = message_tokens(&message);
        let fits = budget == 0 || self.tokens.saturating_add(own) <= budget;
        // A summary says much about all that is left out: it may go over a budget that is not nearly used up.
        let squeezed = is_summary && self.tokens.saturating_mul(10) < budget.saturating_mul(9);
        if fits || squeezed {
            self.tokens = self.tokens.saturating_add(own);
            self.messages.push(message);
        }
        fits
    }

    /// The request; `None` when there is nothing to summarise. With `replace`, what the person asked for stands
    /// instead of our instructions.
    #[must_use]
    pub fn request(&self, by: &Summarizer<'_>, replace: bool) -> Option<SummaryRequest> {
        if self.messages.is_empty() {
            return None;
        }
        let mut prompt = conversation_prompt(&self.messages);
        match by.focus() {
            Some(own) if replace => prompt.push_str(own),
            focus => {
                for piece in [prompts::BRANCH, prompts::SECTIONS, prompts::CLOSING] {
                    prompt.push_str(piece);
                }
                push_focus(focus, &mut prompt);
            }
        }
        Some(by.request(SummaryKind::Branch, prompt, None))
    }

    /// The entry to append below the new leaf; `from_id` is the id of the old one (`None` = before the first entry),
    /// `reply` the answer to [`Self::request`], if there was one.
    ///
    /// # Errors
    /// See [`check_reply`]: the leaf must not move then.
    pub fn finish(
        &self,
        reply: Option<&AssistantMessage>,
        from_id: Option<&str>,
    ) -> Result<BranchSummaryEntry, Fault> {
        let from_id = from_id.unwrap_or("root").into();
        let entry = BranchSummaryEntry { from_id, from_hook: Some(false), ..BranchSummaryEntry::default() };
        let Some(reply) = reply else {
            return Ok(BranchSummaryEntry { summary: prompts::EMPTY_BRANCH.into(), ..entry });
        };
        let mut summary = String::from(prompts::BRANCH_PREAMBLE);
        summary.push_str(&check_reply(reply)?);
        let lists = self.files.lists();
        lists.append_to(&mut summary);
        Ok(BranchSummaryEntry {
            summary: summary.into(),
            details: Some(lists.details()),
            usage: Some(reply.usage),
            ..entry
        })
    }
}

#[cfg(test)]
mod tests {
    use super::branch_budget;

    #[test]
    fn budgets_are_never_unlimited() {
        assert_eq!(branch_budget(200_000, 16_384), 183_616);
        assert_eq!(branch_budget(0, 16_384), 111_616);
        assert_eq!((branch_budget(8_192, 16_384), branch_budget(1, 1)), (4_096, 1));
    }
}
