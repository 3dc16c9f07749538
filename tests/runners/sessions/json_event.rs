//! In-process event → line of JSON mode and RPC.

use std::sync::Arc;

use serde_json::{Value, json};
use tau_core::event::{Event, MessageUpdate};
use tau_core::json::Writer;
use tau_core::message::{AssistantMessage, Block, Message, Text, ToolCall};
use tau_tests::compare::same;

pub fn write(_: &Value, case: &Value) -> Result<(), String> {
    let mut w = Writer::new();
    let got = match event(&case["input"]) {
        Some(event) if event.write(&mut w) => serde_json::from_str(w.as_str()).map_err(|e| e.to_string())?,
        _ => json!({"$error": true}),
    };
    same(&case["expected"], &got)
}

/// The event of the core; `None` = our events cannot say it.
fn event(input: &Value) -> Option<Event> {
    Some(match input["type"].as_str()? {
        "agent_start" => Event::AgentStart,
        "agent_end" => Event::AgentEnd {
            messages: input["messages"].as_array()?.iter().map(message).collect::<Option<_>>()?,
            will_retry: input["willRetry"].as_bool()?,
        },
        "queue_update" => {
            Event::QueueUpdate { steering: texts(&input["steering"]), follow_up: texts(&input["followUp"]) }
        }
        "message_update" => {
            let message = message(&input["message"])?;
            let reply = message.as_assistant()?;
            let update = update(reply, &input["assistantMessageEvent"])?;
            Event::MessageUpdate { usage: reply.usage, update }
        }
        _ => return None,
    })
}

fn update(reply: &AssistantMessage, input: &Value) -> Option<MessageUpdate> {
    let kind = input["type"].as_str()?;
    let index = usize::try_from(input["contentIndex"].as_u64()?).ok()?;
    let delta = || input["delta"].as_str().unwrap_or_default().to_owned();
    let content = || Text::from(input["content"].as_str().unwrap_or_default());
    Some(match kind {
        "text_start" => MessageUpdate::TextStart { index },
        "text_delta" => MessageUpdate::TextDelta { index, delta: delta() },
        "text_end" => MessageUpdate::TextEnd { index, content: content() },
        "thinking_start" => MessageUpdate::ThinkingStart { index },
        "thinking_delta" => MessageUpdate::ThinkingDelta { index, delta: delta() },
        "thinking_end" => MessageUpdate::ThinkingEnd { index, content: content() },
        "toolcall_start" => {
            let call = call(reply, index)?;
            MessageUpdate::ToolCallStart { index, id: call.id.clone(), name: call.name.clone() }
        }
        "toolcall_delta" => MessageUpdate::ToolCallDelta { index, delta: delta() },
        "toolcall_end" => MessageUpdate::ToolCallEnd { index, call: call(reply, index)?.clone() },
        _ => return None,
    })
}

fn call(reply: &AssistantMessage, index: usize) -> Option<&ToolCall> {
    match reply.content.get(index)? {
        Block::ToolCall(call) => Some(call),
        _ => None,
    }
}

fn message(value: &Value) -> Option<Arc<Message>> {
    Message::from_value(value).map(Arc::new)
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().cloned().unwrap_or_default();
    list.iter().map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
}
