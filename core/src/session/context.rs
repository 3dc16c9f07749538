//! What the model sees: the entries of the active branch after the last compaction, as messages (spec 60 §1.9).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::entry::{ContextEdit, EntryBody, EntryKind, ModelRef};
use super::tree::{Slot, Tree};
use crate::message::{Block, BranchSummary, CompactionSummary, Content, Message};
use crate::model::ThinkingLevel;
use crate::now::Wall;

/// A selected entry and how many messages it contributes (0–2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selected {
    /// The entry.
    pub slot: Slot,
    /// Number of its messages in [`Context::messages`].
    pub messages: u8,
}

/// The context of one leaf.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Messages in order, not yet converted for a model.
    pub messages: Vec<Arc<Message>>,
    /// The entries they come from, in order; also entries that contribute nothing.
    pub entries: Vec<Selected>,
    /// Name of the thinking level of the branch; `None` = the branch sets none.
    pub thinking_level: Option<Box<str>>,
    /// Model of the branch.
    pub model: Option<ModelRef>,
    /// Whether there is a context edit among the entries.
    pub edited: bool,
}

impl Context {
    /// Builds the context of `leaf` (`None` = before the first entry).
    #[must_use]
    pub fn build(tree: &Tree, leaf: Option<Slot>) -> Self {
        let path = tree.path(leaf);
        let selection = select(tree, &path);
        let edits = edits(tree, &selection);
        let settings = Settings::of(tree, &path);
        let mut context = Self {
            thinking_level: settings.thinking.map(Into::into),
            model: settings.model,
            edited: selection.iter().any(|slot| kind(tree, *slot) == Some(EntryKind::ContextEdit)),
            entries: Vec::with_capacity(selection.len()),
            messages: Vec::with_capacity(selection.len()),
        };
        for (index, slot) in selection.into_iter().enumerate() {
            let edit = edits.get(tree.id(slot)).copied();
            let before = context.messages.len();
            contribute(tree, slot, index == 0, edit, &mut context.messages);
            let messages = u8::try_from(context.messages.len() - before).unwrap_or(u8::MAX);
            context.entries.push(Selected { slot, messages });
        }
        context
    }

    /// Takes in an entry that was appended below the leaf. `false` when the context must be built anew.
    pub fn extend(&mut self, tree: &Tree, slot: Slot) -> bool {
        let Some(body) = tree.node(slot).and_then(|node| node.body()) else { return false };
        match body {
            EntryBody::Compaction(_) | EntryBody::ContextEdit(_) => return false,
            EntryBody::ModelChange(model) => self.model = Some((**model).clone()),
            EntryBody::ThinkingLevelChange(level) => self.thinking_level = Some(level.clone()),
            EntryBody::Message(message) => {
                if let Some(model) = model_of(message) {
                    self.model = Some(model);
                }
            }
            _ => {}
        }
        let before = self.messages.len();
        contribute(tree, slot, false, None, &mut self.messages);
        let messages = u8::try_from(self.messages.len() - before).unwrap_or(u8::MAX);
        self.entries.push(Selected { slot, messages });
        true
    }

    /// The thinking level, when the branch sets one that is known.
    #[must_use]
    pub fn thinking(&self) -> Option<ThinkingLevel> {
        ThinkingLevel::parse(self.thinking_level.as_deref()?)
    }
}

/// The selected entries of a path, in context order: compaction first, then what it keeps, then what follows.
#[must_use]
pub fn select(tree: &Tree, path: &[Slot]) -> Vec<Slot> {
    let last = path.iter().rposition(|slot| kind(tree, *slot) == Some(EntryKind::Compaction));
    let Some((at, compaction)) = last.and_then(|at| Some((at, *path.get(at)?))) else {
        return path.to_vec();
    };
    let first_kept = match tree.node(compaction).and_then(|node| node.body()) {
        Some(EntryBody::Compaction(compaction)) => compaction.first_kept.as_deref(),
        _ => None,
    };
    let (before, after) = path.split_at(at);
    let kept = first_kept.and_then(|id| before.iter().position(|slot| tree.id(*slot) == id));
    let kept = kept.and_then(|start| before.get(start..)).unwrap_or_default();
    let mut selection = Vec::with_capacity(kept.len() + after.len());
    selection.push(compaction);
    selection.extend(kept.iter().copied().filter(|slot| kind(tree, *slot) != Some(EntryKind::System)));
    selection.extend(after.iter().skip(1));
    selection
}

/// The last edit per target among the selected entries; an edit that was summarised away has no effect.
pub(crate) fn edits<'a>(tree: &'a Tree, selection: &[Slot]) -> BTreeMap<&'a str, &'a ContextEdit> {
    let bodies = selection.iter().filter_map(|slot| tree.node(*slot)?.body());
    bodies
        .filter_map(|body| match body {
            EntryBody::ContextEdit(edit) => Some((edit.target_id.as_str(), &**edit)),
            _ => None,
        })
        .collect()
}

fn kind(tree: &Tree, slot: Slot) -> Option<EntryKind> {
    tree.node(slot).map(|node| node.kind())
}

/// Model and thinking level of a whole path.
#[derive(Debug, Default)]
pub(super) struct Settings<'a> {
    thinking: Option<&'a str>,
    model: Option<ModelRef>,
    /// An entry that must be read before the model is known.
    pub(super) unread: Option<Slot>,
}

impl<'a> Settings<'a> {
    pub(super) fn of(tree: &'a Tree, path: &[Slot]) -> Self {
        let mut settings = Self::default();
        let mut model_known = false;
        for slot in path.iter().rev().copied() {
            let Some(node) = tree.node(slot) else { continue };
            match (node.body(), node.kind()) {
                (Some(EntryBody::ModelChange(model)), _) if !model_known => {
                    settings.model = Some((**model).clone());
                    model_known = true;
                }
                (Some(EntryBody::Message(message)), _) if !model_known => {
                    settings.model = model_of(message);
                    model_known = settings.model.is_some();
                }
                (None, EntryKind::Assistant) if !model_known => {
                    settings.unread = Some(slot);
                    model_known = true;
                }
                (Some(EntryBody::ThinkingLevelChange(level)), _) if settings.thinking.is_none() => {
                    settings.thinking = Some(level);
                }
                _ => {}
            }
            if model_known && settings.thinking.is_some() {
                break;
            }
        }
        settings
    }
}

/// Protocol of models that stand for others; a reply has it only when no other model was found to answer.
const VIRTUAL: &str = "pi-virtual";

/// The model that answered.
pub(super) fn model_of(message: &Message) -> Option<ModelRef> {
    let reply = message.as_assistant().filter(|reply| reply.api != VIRTUAL)?;
    Some(ModelRef { provider: reply.provider.clone(), model_id: reply.model.clone() })
}

/// Appends the messages of one selected entry. A compaction says something only when it is the `first` entry.
pub(crate) fn contribute(
    tree: &Tree,
    slot: Slot,
    first: bool,
    edit: Option<&ContextEdit>,
    out: &mut Vec<Arc<Message>>,
) {
    let Some(node) = tree.node(slot) else { return };
    let replacement = match edit {
        Some(ContextEdit { replacement: None, .. }) => return,
        Some(ContextEdit { replacement: Some(content), .. }) => Some(content),
        None => None,
    };
    let timestamp = node.time().unwrap_or(Wall(0)).0;
    match node.body() {
        Some(EntryBody::Message(message)) => out.push(match replacement {
            Some(content) => edited(message, content),
            None => message.clone(),
        }),
        Some(EntryBody::CustomMessage(message)) => {
            let mut message = (**message).clone();
            message.timestamp = timestamp;
            if let Some(content) = replacement {
                message.content = content.clone();
            }
            out.push(Arc::new(Message::Custom(message)));
        }
        Some(EntryBody::BranchSummary(entry)) if !entry.summary.is_empty() => {
            let (summary, from_id) = (entry.summary.clone(), entry.from_id.clone());
            out.push(Arc::new(Message::BranchSummary(BranchSummary { summary, from_id, timestamp })));
        }
        // An older compaction inside the kept range says nothing that the newer one does not.
        Some(EntryBody::Compaction(entry)) if first => {
            out.extend(entry.system_message.clone());
            let (summary, tokens_before) = (entry.summary.clone(), entry.tokens_before);
            out.push(Arc::new(Message::CompactionSummary(CompactionSummary {
                summary,
                tokens_before,
                timestamp,
            })));
        }
        _ => {}
    }
}

/// The message with other content; roles that cannot be edited stay as they are.
fn edited(message: &Arc<Message>, content: &Content) -> Arc<Message> {
    let blocks = |content: &Content| -> Vec<Block> {
        match content {
            Content::Text(text) => alloc::vec![Block::text(text.clone())],
            Content::Blocks(blocks) => blocks.clone(),
        }
    };
    Arc::new(match &**message {
        Message::User(m) => {
            let mut m = m.clone();
            m.content = content.clone();
            Message::User(m)
        }
        Message::Custom(m) => {
            let mut m = m.clone();
            m.content = content.clone();
            Message::Custom(m)
        }
        Message::Assistant(m) => {
            let mut m = m.clone();
            m.content = blocks(content);
            Message::Assistant(m)
        }
        Message::ToolResult(m) => {
            let mut m = m.clone();
            m.content = blocks(content);
            Message::ToolResult(m)
        }
        _ => return message.clone(),
    })
}
