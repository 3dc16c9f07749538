//! Events and messages as the traces write them.

use serde_json::{Value, json};
use tau_core::compaction::prompts;
use tau_core::event::{Event, MessageUpdate};
use tau_core::message::{Block, Message};
use tau_core::tokens::utf16_len;

use super::script::text;

/// Characters of a text that recordings of the session layer show.
const SHORT: usize = 60;

/// Shows events. Knows the texts of the script: all others were written by the runtime.
#[derive(Default)]
pub struct Shower {
    known: Vec<String>,
    /// The session layer shows more of its messages.
    of_sessions: bool,
}

impl Shower {
    /// Shows what the session layer says.
    pub fn of_sessions() -> Self {
        Self { of_sessions: true, ..Self::default() }
    }

    /// Texts that are not ours.
    pub fn know(&mut self, texts: impl IntoIterator<Item = String>) {
        self.known.extend(texts);
    }

    /// What tools may say.
    pub fn know_tools(&mut self, specs: &[Value]) {
        for spec in specs {
            self.know(["result", "error"].iter().filter_map(|key| spec[*key].as_str()).map(str::to_owned));
            self.know([format!("{} ok", text(&spec["name"]))]);
        }
        self.know(["tool saw abort".to_owned()]);
    }

    /// An event.
    pub fn event(&self, event: &Event) -> Value {
        match event {
            Event::AgentStart => json!({"type": "agent_start"}),
            Event::TurnStart => json!({"type": "turn_start"}),
            Event::MessageStart(m) => json!({"type": "message_start", "message": self.message(m)}),
            Event::MessageEnd(m) => json!({"type": "message_end", "message": self.message(m)}),
            Event::MessageUpdate { update, .. } => {
                let mut shown = show_update(update);
                shown["type"] = "message_update".into();
                shown
            }
            Event::ToolStart { call_id, name, args } => {
                json!({"type": "tool_execution_start", "toolCallId": call_id, "toolName": name, "args": **args})
            }
            Event::ToolUpdate { call_id, partial, .. } => {
                json!({"type": "tool_execution_update", "toolCallId": call_id, "text": texts(&partial.content)})
            }
            Event::ToolEnd { call_id, name, result, duration_ms } => {
                let mut shown = json!({
                    "type": "tool_execution_end", "toolCallId": call_id, "toolName": name, "isError": result.is_error,
                    "text": self.runtime(texts(&result.content)), "hasDuration": duration_ms.is_some(),
                });
                if let Some(flag) = result.terminate {
                    shown["terminate"] = flag.into();
                }
                shown
            }
            Event::TurnEnd { message, results } => {
                let ids: Vec<&str> = results
                    .iter()
                    .map(|m| match &**m {
                        Message::ToolResult(m) => m.tool_call_id.as_str(),
                        _ => "?",
                    })
                    .collect();
                json!({"type": "turn_end", "stopReason": message.as_assistant().unwrap().stop_reason.name(), "toolResults": ids})
            }
            Event::AgentEnd { messages, will_retry } => {
                let roles: Vec<&str> = messages.iter().map(|m| m.role()).collect();
                let mut shown = json!({"type": "agent_end", "messages": roles});
                if self.of_sessions {
                    shown["willRetry"] = (*will_retry).into();
                }
                shown
            }
            other if self.of_sessions => self.session_event(other),
            other => panic!("unexpected event {other:?}"),
        }
    }

    fn session_event(&self, event: &Event) -> Value {
        let mut shown = json!({"type": event.type_name()});
        let mut put = |key: &str, value: Value| shown[key] = value;
        match event {
            Event::AgentSettled { aborted } => put("aborted", (*aborted).into()),
            Event::QueueUpdate { steering, follow_up } => {
                put("steering", json!(steering));
                put("followUp", json!(follow_up));
            }
            Event::CompactionStart(reason) => put("reason", reason.name().into()),
            Event::CompactionEnd { reason, result, aborted, will_retry, error } => {
                put("reason", reason.name().into());
                put("hasResult", result.is_some().into());
                put("aborted", (*aborted).into());
                put("willRetry", (*will_retry).into());
                put("hasErrorMessage", error.is_some().into());
                if let Some(result) = result {
                    put("tokensBefore", result.tokens_before.into());
                    // The fixed parts of a summary are longer or shorter than those of the recording.
                    let tokens = |text: &str| utf16_len(text).div_ceil(4);
                    let (ours, theirs) = (tokens(&result.summary), tokens(&self.summary(&result.summary)));
                    put("estimatedTokensAfter", (result.tokens_after - ours + theirs).into());
                }
            }
            Event::AutoRetryStart { attempt, max_attempts, delay_ms, error } => {
                put("attempt", (*attempt).into());
                put("maxAttempts", (*max_attempts).into());
                put("delayMs", (*delay_ms).into());
                put("errorMessage", error.as_str().into());
            }
            Event::AutoRetryEnd { success, attempt, final_error } => {
                put("success", (*success).into());
                put("attempt", (*attempt).into());
                if let Some(error) = final_error {
                    put("finalError", self.runtime(error.clone()).into());
                }
            }
            Event::EntryAppended(entry) => put("entryType", entry["type"].clone()),
            Event::SessionName(name) => put("name", json!(name)),
            Event::ThinkingLevel(level) => put("level", level.name().into()),
            other => panic!("unexpected event {other:?}"),
        }
        shown
    }

    /// Texts that neither the script nor its tools contain were written by the runtime. Recordings of the session layer
    /// show long results the same way.
    pub fn runtime(&self, text: String) -> String {
        let is_short = !self.of_sessions || text.len() <= SHORT;
        if text.is_empty() || is_short && self.known.contains(&text) { text } else { "<runtime>".into() }
    }

    /// The session layer shows the start of what people say.
    pub fn start(&self, text: String) -> String {
        if self.of_sessions { text.chars().take(SHORT).collect() } else { text }
    }

    /// The text of a message of a request, made from `source`.
    pub fn sent(&self, source: &Message, sent: &Message) -> String {
        match (source, sent) {
            (Message::CompactionSummary(_), _) => "<wrapped compaction summary>".into(),
            (_, Message::ToolResult(m)) if self.known.contains(&texts(&m.content)) => {
                self.start(texts(&m.content))
            }
            _ => self.text_of(sent),
        }
    }

    /// A summary whose fixed parts are those of the recording.
    pub fn summary(&self, text: &str) -> String {
        const JOIN: &str = "\n\n---\n\n**Turn Context (split turn):**\n\n";
        let Some((history, prefix)) = text.split_once(prompts::JOIN) else { return text.into() };
        let history = if history == prompts::NO_HISTORY { "No prior history." } else { history };
        format!("{history}{JOIN}{prefix}")
    }

    /// The text of a message.
    pub fn text_of(&self, message: &Message) -> String {
        match message {
            Message::ToolResult(m) => self.runtime(texts(&m.content)),
            Message::Assistant(m) => m
                .content
                .iter()
                .map(|block| match block {
                    Block::Text(b) => b.text.to_string(),
                    Block::Thinking(b) => format!("({})", b.thinking),
                    Block::ToolCall(c) => format!("{}()", c.name),
                    _ => String::new(),
                })
                .collect::<Vec<_>>()
                .join("|"),
            Message::User(m) => self.start(m.content.texts().collect()),
            _ => String::new(),
        }
    }

    /// A message.
    pub fn message(&self, message: &Message) -> Value {
        match message {
            Message::User(m) => json!({"role": "user", "text": self.start(m.content.texts().collect())}),
            Message::System(m) => {
                let mut shown = json!({"role": "system"});
                for (key, tools) in [("toolsAdded", &m.tools_added), ("toolsRemoved", &m.tools_removed)] {
                    let names = |tools: &Vec<Value>| tools.iter().map(|tool| tool["name"].clone()).collect();
                    let names = tools.as_ref().map(names);
                    if let Some(names) = names.or_else(|| self.of_sessions.then(|| json!([]))) {
                        shown[key] = names;
                    }
                }
                if self.of_sessions {
                    shown["sections"] = m.sections.iter().map(|(name, _)| name.as_str()).collect();
                }
                shown
            }
            Message::Assistant(m) => {
                let content: Vec<Value> = m.content.iter().map(show_block).collect();
                let mut shown =
                    json!({"role": "assistant", "stopReason": m.stop_reason.name(), "content": content});
                if let Some(error) = &m.error_message {
                    shown["errorMessage"] = error.as_str().into();
                }
                shown
            }
            Message::ToolResult(m) => json!({
                "role": "toolResult", "toolCallId": m.tool_call_id, "toolName": m.tool_name, "isError": m.is_error,
                "text": self.runtime(texts(&m.content)), "hasDuration": m.duration_ms.is_some(),
            }),
            Message::Custom(m) => {
                let said: String = m.content.texts().collect();
                json!({"role": "custom", "customType": m.custom_type, "text": said})
            }
            other => panic!("unexpected message {other:?}"),
        }
    }
}

/// Texts of blocks without anything between.
pub fn texts(blocks: &[Block]) -> String {
    blocks.iter().filter_map(Block::as_text).collect()
}

fn show_block(block: &Block) -> Value {
    match block {
        Block::Text(b) => json!({"type": "text", "text": b.text.as_str()}),
        Block::Thinking(b) => json!({"type": "thinking", "thinking": b.thinking.as_str()}),
        Block::ToolCall(c) => {
            json!({"type": "toolCall", "id": c.id, "name": c.name, "arguments": *c.arguments})
        }
        other => panic!("unexpected block {other:?}"),
    }
}

fn show_update(update: &MessageUpdate) -> Value {
    match update {
        MessageUpdate::TextStart { index } => json!({"event": "text_start", "contentIndex": index}),
        MessageUpdate::TextDelta { index, delta } => {
            json!({"event": "text_delta", "contentIndex": index, "delta": delta})
        }
        MessageUpdate::TextEnd { index, content } => {
            json!({"event": "text_end", "contentIndex": index, "content": content.as_str()})
        }
        MessageUpdate::ThinkingStart { index } => json!({"event": "thinking_start", "contentIndex": index}),
        MessageUpdate::ThinkingDelta { index, delta } => {
            json!({"event": "thinking_delta", "contentIndex": index, "delta": delta})
        }
        MessageUpdate::ThinkingEnd { index, content } => {
            json!({"event": "thinking_end", "contentIndex": index, "content": content.as_str()})
        }
        MessageUpdate::ToolCallStart { index, .. } => {
            json!({"event": "toolcall_start", "contentIndex": index})
        }
        MessageUpdate::ToolCallDelta { index, delta } => {
            json!({"event": "toolcall_delta", "contentIndex": index, "delta": delta})
        }
        MessageUpdate::ToolCallEnd { index, call } => json!({
            "event": "toolcall_end", "contentIndex": index,
            "toolCall": {"id": call.id, "name": call.name, "arguments": *call.arguments},
        }),
    }
}
