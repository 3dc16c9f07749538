//! The history as one target model may see it (spec 30 §2): images, thinking, signatures and call ids of other
//! models, failed replies, calls without results. Message by message, then the order of the list.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use hashbrown::{HashMap, HashSet};

use super::memo::{Memo, Pass};
use super::{IMAGE_OMITTED, NO_RESULT, TOOL_IMAGE_OMITTED, short_hash, wire_id};
use crate::message::{
    AssistantMessage, Block, Content, Message, TextBlock, ThinkingBlock, ToolCall, ToolResultMessage,
    UserMessage,
};

/// Makes an id of another model acceptable; gets the id and the reply it comes from.
pub type IdRule<'a> = &'a dyn Fn(&str, &AssistantMessage) -> String;

/// Stands between an id and how often a rule was asked before, see [`Target::max_id`].
pub const AGAIN: char = '\0';

/// How often a rule is asked for an id that is not taken.
const MOST_TRIES: u32 = 100;

/// The facts about a target that the history depends on.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// Provider id.
    pub provider: &'a str,
    /// Wire protocol.
    pub api: &'a str,
    /// Model id.
    pub model: &'a str,
    /// Whether it takes images.
    pub images: bool,
    /// Rule for call ids of other models; `None` keeps them.
    pub ids: Option<IdRule<'a>>,
    /// Longest id the protocol takes. Two ids that `ids` makes equal are told apart within it by a mark. 0: there is no
    /// room for one, the rule gets the id again with [`AGAIN`] and a number behind it.
    pub max_id: usize,
}

impl core::fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Target")
            .field("provider", &self.provider)
            .field("api", &self.api)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl Target<'_> {
    /// Whether this very model wrote the reply.
    fn wrote(&self, reply: &AssistantMessage) -> bool {
        reply.provider == self.provider && reply.api == self.api && reply.model == self.model
    }
}

/// The history adapted to `target`. Results are paired as the reference does: duplicates and results without a call
/// stay in; the pass after it (`repair`) takes them out. `now_ms` is stamped on made-up results.
#[must_use]
pub fn transform(
    messages: &[Arc<Message>],
    target: &Target<'_>,
    now_ms: i64,
    memo: &mut Memo,
) -> Vec<Arc<Message>> {
    memo.begin(target);
    let mut adapter = Adapter::default();
    let mut list = Pairing { out: Vec::with_capacity(messages.len()), now_ms, ..Pairing::default() };
    for source in messages {
        let adapted = adapter.adapt(source, target, memo);
        match &**source {
            Message::User(_) => {
                list.close(memo);
                list.out.extend(adapted);
            }
            Message::Assistant(_) => {
                list.close(memo);
                adapted.into_iter().for_each(|reply| list.open(reply));
            }
            Message::ToolResult(_) => adapted.into_iter().for_each(|result| list.answer(result)),
            Message::System(_) => list.system(source),
            _ => {}
        }
    }
    list.close(memo);
    memo.end();
    list.out
}

/// Adapts the messages of one list, one after the other.
#[derive(Debug, Default)]
pub(super) struct Adapter {
    ids: Ids,
}

impl Adapter {
    /// The message for `target`; `None` for what is not sent: failed replies, roles that are not public.
    pub(super) fn adapt(
        &mut self,
        source: &Arc<Message>,
        target: &Target<'_>,
        memo: &mut Memo,
    ) -> Option<Arc<Message>> {
        match &**source {
            Message::System(_) => Some(Arc::clone(source)),
            Message::User(_) => Some(seen_by(source, target, memo)),
            Message::Assistant(reply) => {
                // Also the calls of a failed reply count for what follows.
                let adapted = adapt_reply(source, reply, target, &mut self.ids, memo);
                (!reply.stop_reason.is_failure()).then_some(adapted)
            }
            Message::ToolResult(result) => Some(adapt_result(source, result, target, &self.ids, memo)),
            // The first conversion takes them out.
            Message::Bash(_)
            | Message::Custom(_)
            | Message::BranchSummary(_)
            | Message::CompactionSummary(_)
            | Message::Other(_) => None,
        }
    }
}

/// The output list and the reply whose calls are still open.
#[derive(Default)]
struct Pairing {
    out: Vec<Arc<Message>>,
    open: Option<Arc<Message>>,
    /// Results since then.
    answers: Vec<Arc<Message>>,
    held: Vec<Arc<Message>>,
    now_ms: i64,
}

impl Pairing {
    fn open(&mut self, message: Arc<Message>) {
        if message.as_assistant().is_some_and(|reply| reply.tool_calls().next().is_some()) {
            self.open = Some(Arc::clone(&message));
        }
        self.out.push(message);
    }

    fn answer(&mut self, message: Arc<Message>) {
        if self.open.is_some() {
            self.answers.push(Arc::clone(&message));
        }
        self.out.push(message);
    }

    fn system(&mut self, message: &Arc<Message>) {
        let list = if self.open.is_some() { &mut self.held } else { &mut self.out };
        list.push(Arc::clone(message));
    }

    /// Answers what is still open and lets the held system messages follow.
    fn close(&mut self, memo: &mut Memo) {
        if let Some(open) = self.open.take() {
            let calls = || open.as_assistant().into_iter().flat_map(AssistantMessage::tool_calls).enumerate();
            let answers = || {
                self.answers.iter().filter_map(|message| match &**message {
                    Message::ToolResult(result) => Some(result.tool_call_id.as_str()),
                    _ => None,
                })
            };
            // The usual case needs no set: every call has its answer, in order.
            if !answers().eq(calls().map(|(_, call)| call.id.as_str())) {
                let answered: HashSet<&str> = answers().collect();
                for (nth, call) in calls().filter(|(_, call)| !answered.contains(call.id.as_str())) {
                    self.out.push(answer_to(&open, nth, call, self.now_ms, memo));
                }
            }
        }
        self.answers.clear();
        self.out.append(&mut self.held);
    }
}

/// The made-up result of a call that has none.
pub(super) fn answer_to(
    reply: &Arc<Message>,
    nth: usize,
    call: &ToolCall,
    now_ms: i64,
    memo: &mut Memo,
) -> Arc<Message> {
    memo.rewrite(
        reply,
        Pass::Answer(nth),
        |_| true,
        || {
            Message::ToolResult(ToolResultMessage {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                content: alloc::vec![Block::text(NO_RESULT)],
                is_error: true,
                timestamp: now_ms,
                ..ToolResultMessage::default()
            })
        },
    )
}

/// Whether a result was made by [`answer_to`], now or when it was stored.
pub(super) fn is_made_up(result: &ToolResultMessage) -> bool {
    result.is_error && matches!(&*result.content, [Block::Text(block)] if block.text == *NO_RESULT)
}

fn seen_by(source: &Arc<Message>, target: &Target<'_>, memo: &mut Memo) -> Arc<Message> {
    if target.images {
        return Arc::clone(source);
    }
    match without_images(source, IMAGE_OMITTED, TOOL_IMAGE_OMITTED) {
        Some(make) => memo.rewrite(source, Pass::Adapt, |_| true, make),
        None => Arc::clone(source),
    }
}

/// A maker of the message without images, if it has any.
pub(super) fn without_images<'a>(
    message: &'a Message,
    user_note: &'static str,
    tool_note: &'static str,
) -> Option<impl FnOnce() -> Message + 'a> {
    let (blocks, note) = match message {
        Message::User(UserMessage { content: Content::Blocks(blocks), .. }) => (blocks, user_note),
        Message::ToolResult(result) => (&result.content, tool_note),
        _ => return None,
    };
    let any = blocks.iter().any(|block| matches!(block, Block::Image(_)));
    any.then_some(move || {
        let content = replace_images(blocks, note);
        match message {
            Message::ToolResult(result) => {
                Message::ToolResult(ToolResultMessage { content, ..result.clone() })
            }
            other => {
                let content = Content::Blocks(content);
                Message::User(UserMessage { content, timestamp: other.timestamp() })
            }
        }
    })
}

/// Each run of images becomes one note; a text equal to the note directly before belongs to the run.
fn replace_images(blocks: &[Block], note: &str) -> Vec<Block> {
    let mut out: Vec<Block> = Vec::with_capacity(blocks.len());
    for block in blocks {
        match block {
            Block::Image(_) if out.last().and_then(Block::as_text) == Some(note) => {}
            Block::Image(_) => out.push(Block::text(note)),
            other => out.push(other.clone()),
        }
    }
    out
}

fn adapt_result(
    source: &Arc<Message>,
    result: &ToolResultMessage,
    target: &Target<'_>,
    ids: &Ids,
    memo: &mut Memo,
) -> Arc<Message> {
    let id = ids.new_id(&result.tool_call_id);
    let Some(id) = id else { return seen_by(source, target, memo) };
    let fits = |made: &Message| matches!(made, Message::ToolResult(made) if made.tool_call_id == id);
    memo.rewrite(source, Pass::Adapt, fits, || {
        let content = if target.images {
            result.content.clone()
        } else {
            replace_images(&result.content, TOOL_IMAGE_OMITTED)
        };
        Message::ToolResult(ToolResultMessage { tool_call_id: id.into(), content, ..result.clone() })
    })
}

fn adapt_reply(
    source: &Arc<Message>,
    reply: &AssistantMessage,
    target: &Target<'_>,
    ids: &mut Ids,
    memo: &mut Memo,
) -> Arc<Message> {
    let own = target.wrote(reply);
    if !own && let Some(rule) = target.ids {
        for call in reply.tool_calls() {
            ids.learn(&call.id, |id| rule(id, reply), target.max_id);
        }
    }
    let kept = |block: &Block| match block {
        Block::Thinking(thinking) => own && is_worth_keeping(thinking),
        _ => true,
    };
    let untouched = |block: &Block| match block {
        Block::Text(text) => own || text.signature.is_none(),
        Block::ToolCall(call) => own || (call.thought_signature.is_none() && ids.new_id(&call.id).is_none()),
        other => kept(other),
    };
    if reply.content.iter().all(untouched) {
        return Arc::clone(source);
    }
    let adapted = |block: &Block| match block {
        Block::Text(text) if !own => Block::Text(TextBlock { text: text.text.clone(), signature: None }),
        Block::ToolCall(call) if !own => Block::ToolCall(ToolCall {
            id: ids.new_id(&call.id).map_or_else(|| call.id.clone(), String::from),
            thought_signature: None,
            ..call.clone()
        }),
        other => other.clone(),
    };
    let wanted_ids =
        || reply.tool_calls().map(|call| ids.new_id(&call.id).filter(|_| !own).unwrap_or(&call.id));
    let fits = |made: &Message| {
        made.as_assistant().is_some_and(|made| made.tool_calls().map(|c| c.id.as_str()).eq(wanted_ids()))
    };
    memo.rewrite(source, Pass::Adapt, fits, || {
        let content = reply.content.iter().filter(|block| kept(block)).map(adapted).collect();
        Message::Assistant(AssistantMessage { content, ..shell_of(reply) })
    })
}

/// Thinking of the same model: hidden or signed always, plain when it says something.
fn is_worth_keeping(thinking: &ThinkingBlock) -> bool {
    let signed = thinking.signature.as_ref().is_some_and(|signature| !signature.is_empty());
    thinking.redacted || signed || !thinking.thinking.trim().is_empty()
}

/// The reply without its content.
pub(super) fn shell_of(reply: &AssistantMessage) -> AssistantMessage {
    AssistantMessage {
        content: Vec::new(),
        api: reply.api.clone(),
        provider: reply.provider.clone(),
        model: reply.model.clone(),
        response_model: reply.response_model.clone(),
        response_id: reply.response_id.clone(),
        usage: reply.usage,
        stop_reason: reply.stop_reason,
        raw_stop_reason: reply.raw_stop_reason.clone(),
        error_message: reply.error_message.clone(),
        diagnostics: reply.diagnostics.clone(),
        provider_thinking_level: reply.provider_thinking_level.clone(),
        thinking_level: reply.thinking_level,
        deferred: reply.deferred.clone(),
        end_turn: reply.end_turn,
        timestamp: reply.timestamp,
        duration_ms: reply.duration_ms,
    }
}

/// Ids of other models seen so far, with what they became.
#[derive(Debug, Default)]
struct Ids {
    /// Only ids that change.
    new: HashMap<String, String>,
    /// Which id a new one stands for.
    taken: HashMap<String, String>,
}

impl Ids {
    fn learn(&mut self, id: &str, rule: impl Fn(&str) -> String, max: usize) {
        if self.new.contains_key(id) {
            return;
        }
        let mut new = rule(id);
        if wire_id(&new).is_empty() {
            // A call without a name of its own cannot be answered.
            new.insert_str(0, &format!("call_{}", short_hash(id)));
        }
        let is_taken = |new: &str| self.taken.get(new).is_some_and(|first| *first != id);
        if max == 0 {
            for again in 1..MOST_TRIES {
                if !is_taken(&new) {
                    break;
                }
                new = rule(&format!("{id}{AGAIN}{again}"));
            }
        } else if is_taken(&new) {
            let tag = short_hash(id);
            let tag: String = tag.chars().take(8).collect();
            let head: Cow<'_, str> = super::sanitize_id(&new, max.saturating_sub(tag.len() + 1));
            new = format!("{head}_{tag}");
        }
        self.taken.entry_ref(new.as_str()).or_insert_with(|| id.into());
        if new != id {
            self.new.insert(id.into(), new);
        }
    }

    fn new_id(&self, id: &str) -> Option<&str> {
        self.new.get(id).map(String::as_str)
    }
}
