//! The reply of the model, from its first event to the failure path (spec 10 §2.6, §2.9).

use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::machine::{Agent, Out};
use super::run::{Step, Task, Waiting};
use crate::event::{Event, MessageUpdate};
use crate::message::{AssistantMessage, Block, Message, StopReason};
use crate::now::Now;
use crate::provider::StreamEvent;

impl Agent {
    /// Takes one event of the stream; `partial` is the reply so far. Gives the event to show, if any.
    pub fn on_update(&mut self, event: StreamEvent, partial: &AssistantMessage) -> Option<Event> {
        let run = self.run.as_mut().filter(|run| run.waiting == Waiting::Reply)?;
        if event == StreamEvent::Start {
            if core::mem::replace(&mut run.started, true) {
                return None;
            }
            // What the first bytes told besides is not part of the beginning: `partial` may be ahead of the event.
            let head = AssistantMessage {
                content: Vec::new(),
                stop_reason: StopReason::Pending,
                error_message: None,
                api: partial.api.clone(),
                provider: partial.provider.clone(),
                model: partial.model.clone(),
                timestamp: partial.timestamp,
                ..AssistantMessage::default()
            };
            return Some(Event::MessageStart(Arc::new(Message::Assistant(head))));
        }
        if !run.started {
            return None;
        }
        let mut update = message_update(event, partial)?;
        match &mut update {
            // The id of a call may still be on its way when it begins.
            MessageUpdate::ToolCallStart { id, .. } if id.is_empty() => {}
            MessageUpdate::ToolCallStart { index, id, .. } => {
                *id = run.call_ids.name(*index, id, &mut self.taken_ids, &self.context);
            }
            MessageUpdate::ToolCallEnd { index, call } => {
                call.id = run.call_ids.name(*index, &call.id, &mut self.taken_ids, &self.context);
            }
            _ => {}
        }
        Some(Event::MessageUpdate { usage: partial.usage, update })
    }

    /// Takes the final reply.
    pub fn on_reply(&mut self, mut message: AssistantMessage) {
        let Some(run) = self.run.as_mut().filter(|run| run.waiting == Waiting::Reply) else { return };
        message.thinking_level = Some(self.thinking);
        for (index, block) in message.content.iter_mut().enumerate() {
            if let Block::ToolCall(call) = block {
                call.id = run.call_ids.name(index, &call.id, &mut self.taken_ids, &self.context);
            }
        }
        if message.stop_reason == StopReason::Pending {
            // A stream function that gives no reason has failed (spec 30 §1.3 rule 7).
            message.stop_reason = StopReason::Error;
            message.error_message.get_or_insert_with(|| "The reply ended without a stop reason.".to_string());
        }
        let message = Arc::new(Message::Assistant(message));
        run.waiting = Waiting::Nothing;
        if !run.started {
            run.push(Step::MessageStart(message.clone()));
        }
        run.push(Step::MessageEnd(message.clone()));
        run.reply = Some(message);
        run.task(Task::AssistantDone);
    }

    /// Something that must not fail failed: the run ends with a failed reply (spec 10 §2.9).
    pub fn fail(&mut self, text: &str, now: Now) {
        let Some(run) = &mut self.run else { return };
        let message = Arc::new(Message::Assistant(AssistantMessage {
            content: alloc::vec![Block::text("")],
            api: self.model.api.clone(),
            provider: self.model.provider.clone(),
            model: self.model.id.clone(),
            stop_reason: if run.aborted { StopReason::Aborted } else { StopReason::Error },
            error_message: Some(text.into()),
            timestamp: now.wall.0,
            ..AssistantMessage::default()
        }));
        run.agenda.clear();
        run.waiting = Waiting::Nothing;
        run.batch = None;
        run.new_messages.clear();
        run.message(message.clone());
        run.push(Step::TurnEnd(message.clone(), Vec::new()));
        // `agent_end` names the failure only; `end` takes what is in `new_messages` when the step is made.
        run.push(Step::Out(Out::Event(Event::AgentEnd {
            messages: alloc::vec![message],
            will_retry: false,
        })));
    }
}

/// The event of a surface for an event of the stream; texts come from the reply so far.
fn message_update(event: StreamEvent, partial: &AssistantMessage) -> Option<MessageUpdate> {
    Some(match event {
        StreamEvent::TextStart { index } => MessageUpdate::TextStart { index },
        StreamEvent::TextDelta { index, delta } => MessageUpdate::TextDelta { index, delta },
        StreamEvent::TextEnd { index } => match partial.content.get(index)? {
            Block::Text(block) => MessageUpdate::TextEnd { index, content: block.text.clone() },
            _ => return None,
        },
        StreamEvent::ThinkingStart { index } => MessageUpdate::ThinkingStart { index },
        StreamEvent::ThinkingDelta { index, delta } => MessageUpdate::ThinkingDelta { index, delta },
        StreamEvent::ThinkingEnd { index } => match partial.content.get(index)? {
            Block::Thinking(block) => MessageUpdate::ThinkingEnd { index, content: block.thinking.clone() },
            _ => return None,
        },
        StreamEvent::ToolCallStart { index } => match partial.content.get(index)? {
            Block::ToolCall(call) => {
                MessageUpdate::ToolCallStart { index, id: call.id.clone(), name: call.name.clone() }
            }
            _ => return None,
        },
        StreamEvent::ToolCallDelta { index, delta } => MessageUpdate::ToolCallDelta { index, delta },
        StreamEvent::ToolCallEnd { index } => match partial.content.get(index)? {
            Block::ToolCall(call) => MessageUpdate::ToolCallEnd { index, call: call.clone() },
            _ => return None,
        },
        StreamEvent::Start | StreamEvent::Done | StreamEvent::Error => return None,
    })
}
