//! Requests for summaries and what is accepted as one (spec 10 §7.5, D12, D13).

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::plan::Plan;
use super::prompts;
use super::serialize::conversation;
use crate::fault::Fault;
use crate::message::{AssistantMessage, Block, Message, StopReason, SystemMessage, Text, Usage};
use crate::model::{Model, ThinkingLevel};
use crate::provider::{CacheRetention, RequestOptions};

/// What a summary is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryKind {
    /// Complete turns.
    History,
    /// The first half of a turn.
    TurnPrefix,
    /// A branch that is being left.
    Branch,
}

/// One request to the model: a system prompt, one user message, no tools.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryRequest {
    /// What it summarises.
    pub kind: SummaryKind,
    /// The text of the user message.
    pub prompt: Text,
    /// Output cap, tokens; `None` = the model's own.
    pub max_tokens: Option<u64>,
    /// How much to think; `None` = not at all.
    pub reasoning: Option<ThinkingLevel>,
}

impl SummaryRequest {
    /// The messages to send.
    #[must_use]
    pub fn messages(&self, now_ms: i64) -> Vec<Arc<Message>> {
        let system =
            SystemMessage { content: prompts::SYSTEM.into(), timestamp: now_ms, ..SystemMessage::default() };
        let user = Message::user(self.prompt.clone(), Vec::new(), now_ms);
        alloc::vec![Arc::new(Message::System(system)), Arc::new(user)]
    }

    /// The options to send it with: those of the conversation (limits, headers, budgets), but nothing is cached and
    /// `session_id`, a fresh one for each request, keeps it away from the conversation's own cache entry.
    #[must_use]
    pub fn options(&self, conversation: &RequestOptions, session_id: String) -> RequestOptions {
        RequestOptions {
            max_tokens: self.max_tokens,
            cache: CacheRetention::None,
            session_id: Some(session_id),
            tool_choice: None,
            ..conversation.at(self.reasoning.unwrap_or_default())
        }
    }
}

/// Who summarises, and what a person asked for.
#[derive(Clone, Copy, Debug)]
pub struct Summarizer<'a> {
    /// The model.
    pub model: &'a Model,
    /// The level of the conversation.
    pub thinking: ThinkingLevel,
    /// Instructions of a manual compaction.
    pub focus: Option<&'a str>,
}

impl<'a> Summarizer<'a> {
    pub(super) fn request(
        &self,
        kind: SummaryKind,
        prompt: String,
        max_tokens: Option<u64>,
    ) -> SummaryRequest {
        let thinks = self.model.reasoning && self.thinking != ThinkingLevel::Off;
        let reasoning = thinks.then_some(self.thinking);
        SummaryRequest { kind, prompt: prompt.into(), max_tokens, reasoning }
    }

    pub(super) fn focus(&self) -> Option<&'a str> {
        self.focus.filter(|focus| !focus.trim().is_empty())
    }

    /// The smaller one of a share of the reserve and the model's ceiling; `None` where that leaves no room.
    fn cap(&self, share: u64) -> Option<u64> {
        let ceiling = if self.model.max_tokens == 0 { u64::MAX } else { self.model.max_tokens };
        Some(share.min(ceiling)).filter(|cap| *cap > 0)
    }
}

/// The requests of a plan, to be sent one after the other; a failure of the first ends it.
#[must_use]
pub fn requests(plan: &Plan, by: &Summarizer<'_>) -> Vec<SummaryRequest> {
    let reserve = plan.settings.reserve_tokens;
    let mut requests = Vec::new();
    if asks_history(plan) {
        let cap = by.cap(four_fifths(reserve));
        requests.push(by.request(SummaryKind::History, history_prompt(plan, by.focus()), cap));
    }
    if asks_prefix(plan) {
        // What a person asked for concerns the history; without one this is the only place for it.
        let focus = by.focus().filter(|_| !asks_history(plan));
        let mut prompt = conversation_prompt(&plan.prefix);
        prompt.push_str(prompts::TURN_PREFIX);
        push_focus(focus, &mut prompt);
        requests.push(by.request(SummaryKind::TurnPrefix, prompt, by.cap(reserve / 2)));
    }
    requests
}

const fn asks_prefix(plan: &Plan) -> bool {
    plan.is_split_turn && !plan.prefix.is_empty()
}

const fn asks_history(plan: &Plan) -> bool {
    !plan.history.is_empty() || !asks_prefix(plan)
}

/// ⌊0.8·n⌋ without overflow.
const fn four_fifths(n: u64) -> u64 {
    n / 5 * 4 + n % 5 * 4 / 5
}

fn history_prompt(plan: &Plan, focus: Option<&str>) -> String {
    let mut prompt = conversation_prompt(&plan.history);
    let previous = plan.previous_summary.as_ref().filter(|summary| !summary.is_empty());
    if let Some(previous) = previous {
        tagged("previous-summary", previous, &mut prompt);
    }
    let task = if previous.is_some() { prompts::UPDATE } else { prompts::FIRST };
    for piece in [task, prompts::SECTIONS, prompts::CONTEXT_SECTION, prompts::CLOSING] {
        prompt.push_str(piece);
    }
    push_focus(focus, &mut prompt);
    prompt
}

pub(super) fn conversation_prompt(messages: &[Arc<Message>]) -> String {
    let mut prompt = String::new();
    tagged("conversation", &conversation(messages), &mut prompt);
    prompt
}

fn tagged(tag: &str, text: &str, out: &mut String) {
    for piece in ["<", tag, ">\n", text, "\n</", tag, ">\n\n"] {
        out.push_str(piece);
    }
}

pub(super) fn push_focus(focus: Option<&str>, out: &mut String) {
    if let Some(focus) = focus {
        out.push_str(prompts::FOCUS);
        out.push_str(focus);
    }
}

/// The summary in a reply; to be called after each request, before the next one is sent.
///
/// # Errors
/// `summary_failed` with the provider's words, `summary_cancelled`, `summary_incomplete`, `summary_tool_call`,
/// `summary_empty`: nothing may be stored.
pub fn check_reply(reply: &AssistantMessage) -> Result<String, Fault> {
    match reply.stop_reason {
        StopReason::Error => {
            let said = reply.error_message.as_deref().unwrap_or("the provider gave no reason");
            return Err(Fault::new("summary_failed", format!("The summary request failed: {said}")));
        }
        StopReason::Aborted => {
            return Err(Fault::new("summary_cancelled", "The summary was cancelled; nothing has changed."));
        }
        StopReason::Length | StopReason::Pending | StopReason::Deferred => {
            return Err(Fault::new(
                "summary_incomplete",
                "The summary was cut off before its end; the conversation stays as it was. \
                 A larger compaction.reserveTokens gives it more room.",
            ));
        }
        StopReason::Stop | StopReason::ToolUse => {}
    }
    if reply.tool_calls().next().is_some() {
        return Err(Fault::new(
            "summary_tool_call",
            "The model called a tool instead of writing a summary; the conversation stays as it was.",
        ));
    }
    let texts: Vec<&str> = reply.content.iter().filter_map(Block::as_text).collect();
    let summary = texts.join("\n");
    if summary.trim().is_empty() {
        return Err(Fault::new(
            "summary_empty",
            "The model answered with an empty summary; the conversation stays as it was.",
        ));
    }
    Ok(summary)
}

/// Summaries of all requests of a plan as one text, without file lists.
pub(super) fn join(plan: &Plan, replies: &[AssistantMessage]) -> Result<String, Fault> {
    let mut replies = replies.iter().map(check_reply);
    let mut next = || {
        let missing = || Fault::new("summary_incomplete", "A part of the summary was never requested.");
        replies.next().unwrap_or_else(|| Err(missing()))
    };
    if !asks_prefix(plan) {
        return next();
    }
    let mut summary = if asks_history(plan) {
        next()?
    } else {
        let previous = plan.previous_summary.as_deref().filter(|summary| !summary.is_empty());
        previous.unwrap_or(prompts::NO_HISTORY).into()
    };
    summary.push_str(prompts::JOIN);
    summary.push_str(&next()?);
    Ok(summary)
}

/// What the requests cost together.
pub(super) fn spent(replies: &[AssistantMessage]) -> Option<Usage> {
    let (first, more) = replies.split_first()?;
    let mut sum = more.iter().fold(first.usage, |sum, reply| sum.plus(&reply.usage));
    if !more.is_empty() {
        // A sum is the provider's own word only if every part is.
        let all = replies.iter().all(|reply| reply.usage.cost.total_from_provider == Some(true));
        sum.cost.total_from_provider = Some(all);
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_fifths_are_rounded_down() {
        for n in [0, 1, 4, 5, 6, 9, 16384, 16385] {
            assert_eq!(four_fifths(n), n * 4 / 5);
        }
        assert_eq!(four_fifths(u64::MAX), (u128::from(u64::MAX) * 4 / 5) as u64);
    }
}
