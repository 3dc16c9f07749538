//! Builds the growing reply of a decoder and reports each step.
//!
//! The [`Assembler`] owns the only copy of what arrived: a delta is appended in place and copied once more into its
//! event. Blocks are numbered by the order in which they start, never by the provider's own index (spec 30 §1.3).
//! A reply ends once, as done or as failed; what arrived before a failure stays.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::StreamEvent;
use crate::json::{Map, PartialArgs, Value};
use crate::message::{AssistantMessage, Block, StopReason, TextBlock, ThinkingBlock};
use crate::model::Model;

/// Growing reply of one request.
#[derive(Debug)]
pub struct Assembler {
    message: AssistantMessage,
    /// One entry per content block.
    blocks: Vec<BlockState>,
    /// The text or thinking that grows, see [`Assembler::current`]; true = thinking.
    current: Option<(usize, bool)>,
    started: bool,
    ended: bool,
}

/// What is known about a block besides its content.
#[derive(Debug, Default)]
struct BlockState {
    closed: bool,
    /// Argument text of a tool call, until it is complete.
    arguments: PartialArgs,
}

impl Assembler {
    /// An empty reply of `model`, requested at `now_ms`.
    #[must_use]
    pub fn new(model: &Model, now_ms: i64) -> Self {
        let message = AssistantMessage {
            api: model.api.clone(),
            provider: model.provider.clone(),
            model: model.id.clone(),
            timestamp: now_ms,
            ..AssistantMessage::default()
        };
        Self { message, blocks: Vec::new(), current: None, started: false, ended: false }
    }

    /// The reply so far.
    #[must_use]
    pub const fn message(&self) -> &AssistantMessage {
        &self.message
    }

    /// For ids, usage and reasons. Content changes go through [`Self::open`], [`Self::push`] and [`Self::block`].
    pub const fn message_mut(&mut self) -> &mut AssistantMessage {
        &mut self.message
    }

    /// Whether the terminal event was reported.
    #[must_use]
    pub const fn ended(&self) -> bool {
        self.ended
    }

    /// Reports the start, once.
    pub fn start(&mut self, out: &mut Vec<StreamEvent>) {
        if !self.started && !self.ended {
            self.started = true;
            out.push(StreamEvent::Start);
        }
    }

    /// Starts a block and returns its index. What `block` already holds counts as its beginning.
    pub fn open(&mut self, block: Block, out: &mut Vec<StreamEvent>) -> usize {
        let index = self.message.content.len();
        out.push(match &block {
            Block::Thinking(_) => StreamEvent::ThinkingStart { index },
            Block::ToolCall(_) => StreamEvent::ToolCallStart { index },
            _ => StreamEvent::TextStart { index },
        });
        self.message.content.push(block);
        self.blocks.push(BlockState::default());
        index
    }

    /// Index of the block that grows, for protocols whose pieces do not name their block: another kind of piece ends it.
    pub fn current(&mut self, thinking: bool, out: &mut Vec<StreamEvent>) -> usize {
        if let Some((index, kind)) = self.current
            && kind == thinking
        {
            return index;
        }
        self.close_current(out);
        let block = if thinking {
            Block::Thinking(ThinkingBlock::default())
        } else {
            Block::Text(TextBlock::default())
        };
        let index = self.open(block, out);
        self.current = Some((index, thinking));
        index
    }

    /// Completes the block of [`Self::current`], if there is one.
    pub fn close_current(&mut self, out: &mut Vec<StreamEvent>) {
        if let Some((index, _)) = self.current.take() {
            self.close(index, out);
        }
    }

    /// The block at `index`, to fill in ids, names and signatures.
    pub fn block(&mut self, index: usize) -> Option<&mut Block> {
        self.message.content.get_mut(index)
    }

    /// Appends to an open block: text, thinking or the raw arguments of a call. A closed or unknown block ignores it.
    pub fn push(&mut self, index: usize, delta: Cow<'_, str>, out: &mut Vec<StreamEvent>) {
        let (Some(block), Some(state)) = (self.message.content.get_mut(index), self.blocks.get_mut(index))
        else {
            return;
        };
        if state.closed || self.ended {
            return;
        }
        let event = match block {
            Block::Text(text) => {
                text.text.push_str(&delta);
                StreamEvent::TextDelta { index, delta: delta.into_owned() }
            }
            Block::Thinking(thinking) => {
                thinking.thinking.push_str(&delta);
                StreamEvent::ThinkingDelta { index, delta: delta.into_owned() }
            }
            Block::ToolCall(_) => {
                state.arguments.push(&delta);
                StreamEvent::ToolCallDelta { index, delta: delta.into_owned() }
            }
            Block::Image(_) | Block::Other(_) => return,
        };
        out.push(event);
    }

    /// Argument text that came with the start of a call: it counts, but nobody is told.
    pub fn preload(&mut self, index: usize, text: &str) {
        if let Some(state) = self.blocks.get_mut(index).filter(|state| !state.closed) {
            state.arguments.push(text);
        }
    }

    /// The complete argument text of an open call: a missing tail is reported when `out` is there. Returns whether the
    /// text continues what was streamed; if not, it replaces that.
    pub fn complete(&mut self, index: usize, text: &str, out: Option<&mut Vec<StreamEvent>>) -> bool {
        let Some(state) = self.blocks.get_mut(index).filter(|state| !state.closed) else { return true };
        let tail = state.arguments.replace(text);
        if let (Some(tail), Some(out)) = (tail.filter(|tail| !tail.is_empty()), out)
            && !self.ended
        {
            out.push(StreamEvent::ToolCallDelta { index, delta: tail.into() });
        }
        tail.is_some()
    }

    /// Raw argument text of the call at `index`.
    #[must_use]
    pub fn raw_arguments(&self, index: usize) -> &str {
        self.blocks.get(index).map_or("", |state| state.arguments.raw())
    }

    /// Completes a block, once. The arguments of a call become an object: parsed from the text, or kept as they were
    /// given when no text came (D53), or `{}` with an error when the text is no object (D27).
    pub fn close(&mut self, index: usize, out: &mut Vec<StreamEvent>) {
        let (Some(block), Some(state)) = (self.message.content.get_mut(index), self.blocks.get_mut(index))
        else {
            return;
        };
        if state.closed || self.ended {
            return;
        }
        state.closed = true;
        out.push(match block {
            Block::Thinking(thinking) => {
                thinking.thinking.shrink();
                StreamEvent::ThinkingEnd { index }
            }
            Block::ToolCall(call) => {
                if !state.arguments.raw().trim().is_empty() {
                    match state.arguments.finish() {
                        Ok(value) => call.arguments = Arc::new(value),
                        Err(why) => {
                            call.arguments = Arc::new(Value::Object(Map::new()));
                            call.arguments_error = Some(why.text);
                        }
                    }
                }
                StreamEvent::ToolCallEnd { index }
            }
            Block::Text(text) => {
                text.text.shrink();
                StreamEvent::TextEnd { index }
            }
            Block::Image(_) | Block::Other(_) => StreamEvent::TextEnd { index },
        });
    }

    /// Completes all blocks that are still open, in content order.
    pub fn close_all(&mut self, out: &mut Vec<StreamEvent>) {
        for index in 0..self.blocks.len() {
            self.close(index, out);
        }
    }

    /// Ends the reply well. `Pending`, `Error` and `Aborted` are no good ends and become a failure.
    pub fn done(&mut self, reason: StopReason, out: &mut Vec<StreamEvent>) {
        if self.ended {
            return;
        }
        if reason == StopReason::Pending || reason.is_failure() {
            return self.fail(StopReason::Error, "the stream ended without a stop reason".into(), out);
        }
        self.start(out);
        self.close_all(out);
        self.ended = true;
        self.message.stop_reason = reason;
        out.push(StreamEvent::Done);
    }

    /// Ends the reply badly: open blocks stay open, arguments of open calls show what was readable.
    pub fn fail(&mut self, reason: StopReason, text: String, out: &mut Vec<StreamEvent>) {
        if self.ended {
            return;
        }
        for (block, state) in self.message.content.iter_mut().zip(&mut self.blocks) {
            if let (Block::ToolCall(call), false) = (block, state.closed)
                && !state.arguments.raw().is_empty()
            {
                call.arguments = Arc::new(core::mem::take(&mut state.arguments).snapshot());
            }
        }
        self.ended = true;
        self.message.stop_reason = if reason == StopReason::Aborted { reason } else { StopReason::Error };
        self.message.error_message = Some(text);
        out.push(StreamEvent::Error);
    }

    /// The reply, leaving an empty one behind.
    pub fn take(&mut self) -> AssistantMessage {
        self.blocks = Vec::new();
        core::mem::take(&mut self.message)
    }

    /// Best-effort arguments of the call at `index` while it streams.
    #[must_use]
    pub fn partial_arguments(&mut self, index: usize) -> Option<Value> {
        let Block::ToolCall(call) = self.message.content.get(index)? else { return None };
        let state = self.blocks.get_mut(index)?;
        if state.arguments.raw().is_empty() {
            return Some((*call.arguments).clone());
        }
        Some(state.arguments.snapshot())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ToolCall;
    use alloc::vec;

    fn text(out: &mut Vec<StreamEvent>, a: &mut Assembler) -> usize {
        a.open(Block::Text(TextBlock::default()), out)
    }

    #[test]
    fn one_terminal_event_and_nothing_after_it() {
        let (mut a, mut out) = (Assembler::new(&Model::default(), 5), Vec::new());
        a.start(&mut out);
        let index = text(&mut out, &mut a);
        a.push(index, "hi".into(), &mut out);
        a.done(StopReason::Stop, &mut out);
        a.push(index, "late".into(), &mut out);
        a.fail(StopReason::Error, "late".into(), &mut out);
        assert_eq!(
            out,
            vec![
                StreamEvent::Start,
                StreamEvent::TextStart { index: 0 },
                StreamEvent::TextDelta { index: 0, delta: "hi".into() },
                StreamEvent::TextEnd { index: 0 },
                StreamEvent::Done,
            ]
        );
        assert_eq!(a.message().stop_reason, StopReason::Stop);
        assert_eq!(a.take().content, vec![Block::text("hi")]);
    }

    #[test]
    fn pending_is_never_terminal() {
        let (mut a, mut out) = (Assembler::new(&Model::default(), 5), Vec::new());
        a.done(StopReason::Pending, &mut out);
        assert_eq!(out, vec![StreamEvent::Error]);
        assert!(a.message().error_message.is_some());
        assert_eq!(a.message().stop_reason, StopReason::Error);
    }

    #[test]
    fn arguments_given_as_an_object_stay_when_no_text_follows() {
        let (mut a, mut out) = (Assembler::new(&Model::default(), 5), Vec::new());
        let given = Arc::new(serde_json::json!({"path": "a"}));
        let call = ToolCall { arguments: given.clone(), ..ToolCall::default() };
        let first = a.open(Block::ToolCall(call.clone()), &mut out);
        let second = a.open(Block::ToolCall(call), &mut out);
        a.push(second, "{\"path\":3".into(), &mut out);
        a.close(first, &mut out);
        a.close(second, &mut out);
        let calls: Vec<_> = a.message().tool_calls().collect();
        assert_eq!(calls[0].arguments, given);
        assert!(calls[1].arguments.as_object().unwrap().is_empty());
        assert!(calls[1].arguments_error.as_ref().unwrap().contains("{\"path\":3"));
    }
}
