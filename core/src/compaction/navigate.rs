//! Moving the leaf to another entry of the tree, with or without a summary of what is left (spec 10 §7.9).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::branch::{Left, collect};
use crate::entropy::Entropy;
use crate::fault::Fault;
use crate::message::{Content, Message};
use crate::now::Wall;
use crate::session::entry::BranchSummaryEntry;
use crate::session::tree::{Slot, Tree};
use crate::session::{AppendPlan, EntryBody, EntryKind, Session};

/// A way to another entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The entry that was asked for.
    pub target: String,
    /// The new leaf; `None` = before the first entry.
    pub leaf: Option<String>,
    /// Text for the editor: what the user wrote there, to be said anew.
    pub editor_text: Option<String>,
    /// What is left.
    pub left: Left,
    /// The old leaf.
    pub from_id: Option<String>,
}

/// The way from the current leaf to an entry; `None` when that is the leaf. To a message of the user or a host one goes
/// by going before it and taking its text along.
///
/// # Errors
/// `unknown_entry`; `not_read` when the entry was left in the file.
pub fn step_to(tree: &Tree, target_id: &str) -> Result<Option<Step>, Fault> {
    let unknown = || Fault::new("unknown_entry", format!("There is no entry {target_id} in this session."));
    let target = tree.find(target_id).ok_or_else(unknown)?;
    if tree.leaf() == Some(target) {
        return Ok(None);
    }
    let id = |slot: Slot| String::from(tree.id(slot));
    let editor_text = text_of(tree, target)?;
    let leaf = if editor_text.is_some() { tree.parent(target) } else { Some(target) };
    Ok(Some(Step {
        target: id(target),
        leaf: leaf.map(id),
        editor_text,
        left: collect(tree, tree.leaf(), target),
        from_id: tree.leaf().map(id),
    }))
}

/// The text of a message of the user or a host.
fn text_of(tree: &Tree, slot: Slot) -> Result<Option<String>, Fault> {
    let Some(node) = tree.node(slot) else { return Ok(None) };
    if !matches!(node.kind(), EntryKind::User | EntryKind::CustomMessage) {
        return Ok(None);
    }
    let text = |content: &Content| Some(content.texts().collect());
    match node.body() {
        Some(EntryBody::CustomMessage(message)) => Ok(text(&message.content)),
        Some(EntryBody::Message(message)) => Ok(match &**message {
            Message::User(user) => text(&user.content),
            _ => None,
        }),
        _ => Err(Fault::new("not_read", "That entry has not been read yet; open the session anew.")),
    }
}

/// Goes: moves the leaf, appends the summary below it and the label, which names the summary or else the target.
///
/// # Errors
/// `not_read` (the leaf stays), `session_full`.
pub fn go(
    session: &mut Session,
    step: &Step,
    summary: Option<BranchSummaryEntry>,
    label: Option<&str>,
    now: Wall,
    rng: &mut Entropy,
) -> Result<Vec<AppendPlan>, Fault> {
    session.branch(step.leaf.as_deref())?;
    let mut appended = Vec::new();
    let mut labelled = step.target.clone();
    if let Some(summary) = summary {
        let plan = session.append(EntryBody::BranchSummary(Box::new(summary)), now, rng)?;
        labelled = plan.id.as_str().into();
        appended.push(plan);
    }
    if let Some(label) = label.filter(|label| !label.trim().is_empty()) {
        let entry = session.label_entry(&labelled, Some(label))?;
        appended.push(session.append(entry, now, rng)?);
    }
    Ok(appended)
}
