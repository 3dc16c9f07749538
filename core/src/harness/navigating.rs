//! Moving to another entry of the tree, with or without a summary of the branch that is left (spec 10 §7.9).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::desk::{Cx, Desk, Want};
use super::summarizing::{Purpose, Stopped};
use crate::compaction::branch::BranchPlan;
use crate::compaction::{Step, Summarizer, branch_budget, go, prepare_branch, step_to};
use crate::entropy::Entropy;
use crate::fault::Fault;
use crate::message::AssistantMessage;
use crate::now::Wall;
use crate::session::{AppendPlan, Session};

/// How a branch that is left is summarised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummaryWish {
    /// What to look at, or the whole instructions.
    pub instructions: Option<String>,
    /// The instructions stand in the place of ours.
    pub replace: bool,
}

/// What going to another entry brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The leaf now.
    pub leaf: Option<String>,
    /// What the person wrote there, to be said anew.
    pub editor_text: Option<String>,
    /// The entry of the summary, if one was made.
    pub summary: Option<String>,
}

/// A branch about to be left.
#[derive(Debug)]
pub(super) struct Leaving {
    step: Step,
    /// `None` = without summary.
    plan: Option<BranchPlan>,
    label: Option<String>,
}

impl Leaving {
    /// Moves the leaf; the summary is stored below it.
    pub(super) fn go(
        &self,
        session: &mut Session,
        reply: Option<&AssistantMessage>,
        now: Wall,
        rng: &mut Entropy,
    ) -> Result<Vec<AppendPlan>, Fault> {
        let from = self.step.from_id.as_deref();
        let summary = self.plan.as_ref().map(|plan| plan.finish(reply, from)).transpose()?;
        go(session, &self.step, summary, self.label.as_deref(), now, rng)
    }
}

impl Desk {
    /// Goes to an entry; what came of it is in [`Desk::moved`] when the Desk is idle again.
    ///
    /// # Errors
    /// `busy`, `unknown_entry`, `not_read` (nothing changed; open the session with everything and try again).
    pub(super) fn navigate(
        &mut self,
        target: &str,
        wish: Option<SummaryWish>,
        label: Option<String>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Fault> {
        if !self.is_idle() {
            return Err(Fault::new("busy", "A run or a summary is under way; wait for its end or abort it."));
        }
        self.moved = None;
        let Some(step) = step_to(self.session.tree(), target)? else {
            let leaf = self.session.leaf_id().map(String::from);
            self.moved = Some(Ok(Moved { leaf, editor_text: None, summary: None }));
            return Ok(());
        };
        let mut requests = VecDeque::new();
        let plan = match wish.filter(|_| !step.left.entries.is_empty()) {
            None => None,
            Some(wish) => {
                let reserve = self.settings.branch_summary().reserve_tokens;
                let budget = branch_budget(self.agent.model().context_window, reserve);
                let plan = prepare_branch(self.session.tree(), &step.left.entries, budget)?;
                let by = Summarizer {
                    model: self.agent.model(),
                    thinking: self.agent.thinking(),
                    focus: wish.instructions.as_deref(),
                };
                requests.extend(plan.request(&by, wish.replace));
                Some(plan)
            }
        };
        // Whether the new branch can be read at all is found out before a summary is paid for.
        let before = self.session.leaf_id().map(String::from);
        self.session.branch(step.leaf.as_deref())?;
        self.session.branch(before.as_deref())?;
        self.begin_job(Purpose::Branch(Box::new(Leaving { step, plan, label })), requests, cx);
        Ok(())
    }

    /// The leaf went to `entry` (empty = before the first one), and that is stored.
    pub(super) fn branch_left(&mut self, leaving: &Leaving, entry: String, cx: &mut Cx<'_>) {
        let from =
            |id: &str| matches!(self.session.body(id), Some(crate::session::EntryBody::BranchSummary(_)));
        let leaf = Some(entry).filter(|id| !id.is_empty());
        // A label, if there is one, stands below the summary.
        let tree = self.session.tree();
        let slot = leaf.as_deref().and_then(|id| tree.find(id));
        let parent = slot.and_then(|slot| tree.parent_id(slot)).map(String::from);
        let summary = leaf.iter().chain(&parent).find(|id| leaving.plan.is_some() && from(id)).cloned();
        self.adopt_thinking(cx);
        self.moved = Some(Ok(Moved { leaf, editor_text: leaving.step.editor_text.clone(), summary }));
    }

    /// Nothing changed.
    pub(super) fn branch_kept(&mut self, why: &Stopped) {
        self.moved = Some(Err(match why {
            Stopped::Cancelled => Fault::new("cancelled", "The summary was cancelled; nothing has changed."),
            Stopped::Failed(fault) => fault.clone(),
        }));
    }

    /// The branch has a thinking level of its own.
    fn adopt_thinking(&mut self, cx: &mut Cx<'_>) {
        let Some(level) = self.session.context().thinking() else { return };
        let level = self.agent.model().clamp(level);
        if level != self.agent.thinking() {
            self.agent.set_thinking(level);
            cx.out.push(Want::Event(crate::event::Event::ThinkingLevel(level)));
        }
    }

    /// Labels an entry; nothing or blanks clear the label.
    ///
    /// # Errors
    /// `unknown_entry`.
    pub(super) fn set_label(
        &mut self,
        entry: &str,
        label: Option<&str>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Fault> {
        let body = self
            .session
            .label_entry(entry, label)
            .map_err(|fault| Fault::new(fault.code, format!("The label was not set: {}", fault.message)))?;
        self.announce(body, cx);
        Ok(())
    }
}
