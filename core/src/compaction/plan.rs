//! What a compaction summarises and what it keeps (spec 10 §7.4).

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::cut::{self, Part};
use super::files::FileOps;
use super::measure::{kind, projected};
use crate::convert::fold;
use crate::message::{Message, SystemMessage, Text};
use crate::session::context::Selected;
use crate::session::tree::{Slot, Tree};
use crate::session::{Context, EntryBody, EntryKind};
use crate::settings::CompactionSettings;
use crate::tokens::{Estimator, message_tokens};

/// A compaction about to be made. Messages are shared with the history, never copied.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Id of the first entry that stays.
    pub first_kept: String,
    /// Complete turns to summarise.
    pub history: Vec<Arc<Message>>,
    /// First half of the turn that the cut divides; empty when it divides none.
    pub prefix: Vec<Arc<Message>>,
    /// Whether the cut divides a turn.
    pub is_split_turn: bool,
    /// Size of the context now, tokens.
    pub tokens_before: u64,
    /// Summary of the compaction before this one.
    pub previous_summary: Option<Text>,
    /// Files of the summarised part and of the previous summary.
    pub files: FileOps,
    /// Prompt and tools as they stand: what all system messages together say.
    pub system: Option<SystemMessage>,
    /// The settings it was made with.
    pub settings: CompactionSettings,
}

/// Why there is nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPlan {
    /// Nothing was said since the last compaction.
    AlreadyCompacted,
    /// All of the conversation fits into what is kept.
    NothingToSummarize,
}

/// Plans a compaction of the current branch; `context` is that of the tree's leaf.
///
/// Must not be asked while calls of a batch are open ([`has_open_calls`]); even then the calls would be kept.
///
/// # Errors
/// [`NoPlan`] when nothing would be summarised.
pub fn plan(
    tree: &Tree,
    context: &Context,
    settings: CompactionSettings,
    estimator: &mut Estimator,
) -> Result<Plan, NoPlan> {
    if tree.leaf().and_then(|leaf| kind(tree, leaf)) == Some(EntryKind::Compaction) {
        return Err(NoPlan::AlreadyCompacted);
    }
    let previous = Previous::of(tree, context);
    let range = Range::of(tree, context, previous.as_ref());
    let cut = range.cut(tree, settings.keep_recent_tokens);
    let history = range.messages(0, cut.turn_start.unwrap_or(cut.first_kept));
    let prefix = cut.turn_start.map_or_else(Vec::new, |start| range.messages(start, cut.first_kept));
    let first_kept = range.entries.get(cut.first_kept).map(|entry| tree.id(entry.slot).into());
    let Some(first_kept) = first_kept.filter(|_| !history.is_empty() || !prefix.is_empty()) else {
        return Err(NoPlan::NothingToSummarize);
    };
    let mut files = previous.as_ref().map(Previous::files).unwrap_or_default();
    history.iter().chain(&prefix).for_each(|message| files.add_message(message));
    Ok(Plan {
        first_kept,
        history,
        prefix,
        is_split_turn: cut.turn_start.is_some(),
        tokens_before: projected(tree, context, estimator).tokens,
        previous_summary: previous.map(|previous| previous.entry.summary.clone()),
        files,
        system: fold(&context.messages).message(),
        settings,
    })
}

/// Whether the last reply asked for tools whose results are not all there: no moment to compact (bug 64).
#[must_use]
pub fn has_open_calls(messages: &[Arc<Message>]) -> bool {
    let mut answered = BTreeSet::new();
    for message in messages.iter().rev() {
        match &**message {
            Message::ToolResult(result) => {
                answered.insert(result.tool_call_id.as_str());
            }
            Message::Assistant(reply) => {
                let is_open = reply.tool_calls().any(|call| !answered.contains(call.id.as_str()));
                return is_open && !reply.stop_reason.is_failure();
            }
            Message::User(_) => return false,
            _ => {}
        }
    }
    false
}

/// The compaction that the context begins with.
struct Previous<'a> {
    entry: &'a crate::session::entry::Compaction,
    messages: usize,
}

impl<'a> Previous<'a> {
    fn of(tree: &'a Tree, context: &Context) -> Option<Self> {
        let first = context.entries.first().filter(|first| first.messages > 0)?;
        match tree.node(first.slot)?.body()? {
            EntryBody::Compaction(entry) => Some(Self { entry, messages: usize::from(first.messages) }),
            _ => None,
        }
    }

    /// The files of its summary; what a host supplied has a shape of its own.
    fn files(&self) -> FileOps {
        let mut files = FileOps::default();
        if self.entry.from_hook != Some(true) {
            files.add_details(self.entry.details.as_ref());
        }
        files
    }
}

/// The entries that may be summarised: all but the previous compaction, so also what that one kept.
struct Range<'a> {
    entries: &'a [Selected],
    messages: &'a [Arc<Message>],
    /// Where the messages of each entry begin; one more than entries.
    starts: Vec<usize>,
    parts: Vec<Part>,
}

impl<'a> Range<'a> {
    fn of(tree: &Tree, context: &'a Context, previous: Option<&Previous<'_>>) -> Self {
        let entries = context.entries.get(usize::from(previous.is_some())..).unwrap_or_default();
        let skipped = previous.map_or(0, |previous| previous.messages);
        let messages = context.messages.get(skipped..).unwrap_or_default();
        let (mut starts, mut parts) = (Vec::new(), Vec::new());
        starts.reserve_exact(entries.len() + 1);
        parts.reserve_exact(entries.len());
        let mut at = 0;
        for entry in entries {
            starts.push(at);
            let first = messages.get(at).filter(|_| entry.messages > 0);
            let kind = kind(tree, entry.slot).unwrap_or(EntryKind::Unknown);
            parts.push(Part::of(kind, first.map(|message| &**message)));
            at += usize::from(entry.messages);
        }
        starts.push(at);
        Self { entries, messages, starts, parts }
    }

    fn slice(&self, from: usize, to: usize) -> &'a [Arc<Message>] {
        let place = |entry: usize| self.starts.get(entry).copied().unwrap_or(self.messages.len());
        self.messages.get(place(from)..place(to)).unwrap_or_default()
    }

    fn cut(&self, tree: &Tree, keep: u64) -> cut::Cut {
        let tokens = |entry| self.slice(entry, entry + 1).iter().map(|message| message_tokens(message)).sum();
        let choice = cut::choose(&self.parts, keep, tokens);
        let failed = choice.reached && self.is_failed_attempt(tree, choice.cut + 1);
        cut::settle(&self.parts, choice.cut + usize::from(failed))
    }

    /// Whether everything from `from` on is the trace of a reply that was taken out of the context. The message before
    /// it, too large to be kept, can be summarised then (spec 10 §7.4 step 6).
    fn is_failed_attempt(&self, tree: &Tree, from: usize) -> bool {
        let (Some(parts), Some(entries)) = (self.parts.get(from..), self.entries.get(from..)) else {
            return false;
        };
        if parts.iter().any(|part| part.is_seen()) {
            return false;
        }
        let has_omitted = entries.iter().any(|entry| kind(tree, entry.slot) == Some(EntryKind::Assistant));
        has_omitted && !self.replaces_older(tree, entries)
    }

    /// Whether an edit among `entries` gives new content to an entry outside of them.
    fn replaces_older(&self, tree: &Tree, entries: &[Selected]) -> bool {
        let slots: BTreeSet<Slot> = entries.iter().map(|entry| entry.slot).collect();
        entries.iter().any(|entry| match tree.node(entry.slot).and_then(|node| node.body()) {
            Some(EntryBody::ContextEdit(edit)) if edit.replacement.is_some() => {
                !tree.find(&edit.target_id).is_some_and(|target| slots.contains(&target))
            }
            _ => false,
        })
    }

    /// The messages of a part of the range, without system messages, which are replayed instead.
    fn messages(&self, from: usize, to: usize) -> Vec<Arc<Message>> {
        let messages = self.slice(from, to).iter();
        messages.filter(|message| !matches!(***message, Message::System(_))).cloned().collect()
    }
}
