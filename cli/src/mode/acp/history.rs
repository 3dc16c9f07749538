//! A stored conversation as updates, as if it took place now.

use std::collections::HashMap;

use tau_core::json::Value;
use tau_core::message::{AssistantMessage, Block, Content, Message};
use tau_core::session::{EntryBody, Session};

use super::calls::{self, CallView};
use super::client::Client;
use super::updates::text_content;
use crate::surroundings::Surroundings;

/// Tells the whole conversation of the current branch.
pub(super) fn tell(client: &Client, place: &Surroundings, session: &Session) {
    let tree = session.tree();
    let mut open: HashMap<&str, (&str, &Value)> = HashMap::new();
    let told = Teller { client, place, id: session.id() };
    for slot in tree.path(tree.leaf()) {
        let Some(EntryBody::Message(message)) = tree.node(slot).and_then(|node| node.body()) else {
            continue;
        };
        match &**message {
            Message::User(user) => told.user(&user.content),
            Message::Assistant(reply) => {
                told.reply(reply);
                open.extend(reply.tool_calls().map(|call| (&*call.id, (&*call.name, &*call.arguments))));
            }
            Message::ToolResult(result) => {
                let Some((name, args)) = open.remove(&*result.tool_call_id) else { continue };
                let view = CallView { name, args, place };
                let made = if result.is_error { Vec::new() } else { view.told(None) };
                told.update("tool_call_update", |w| {
                    w.field_str("toolCallId", &result.tool_call_id);
                    calls::ended(name, result.is_error, &result.content, &made, result.details.as_ref(), w);
                });
            }
            _ => {}
        }
    }
    // A call without a result did not come to its end.
    let mut left: Vec<&str> = open.into_keys().collect();
    tau_core::order::sort(&mut left, Ord::cmp);
    for id in left {
        told.update("tool_call_update", |w| {
            w.field_str("toolCallId", id);
            w.field_str("status", "failed");
        });
    }
    client.flush();
}

struct Teller<'a> {
    client: &'a Client,
    place: &'a Surroundings,
    id: &'a str,
}

impl Teller<'_> {
    fn update(&self, kind: &str, write: impl FnOnce(&mut tau_core::json::Writer)) {
        self.client.update(self.id, kind, write);
    }

    fn user(&self, content: &Content) {
        let text: String = content.texts().collect();
        if !text.is_empty() {
            self.update("user_message_chunk", |w| text_content(&text, w));
        }
        let Content::Blocks(blocks) = content else { return };
        for image in blocks.iter().filter(|block| matches!(block, Block::Image(_))) {
            if let Some(write) = calls::writer_of(image) {
                self.update("user_message_chunk", |w| {
                    w.key("content");
                    write(w);
                });
            }
        }
    }

    fn reply(&self, reply: &AssistantMessage) {
        for block in &reply.content {
            match block {
                Block::Text(text) if !text.text.is_empty() => {
                    self.update("agent_message_chunk", |w| text_content(&text.text, w));
                }
                Block::Thinking(thinking) if !thinking.thinking.is_empty() => {
                    self.update("agent_thought_chunk", |w| text_content(&thinking.thinking, w));
                }
                Block::ToolCall(call) => self.update("tool_call", |w| {
                    w.field_str("toolCallId", &call.id);
                    w.field_str("status", "pending");
                    CallView { name: &call.name, args: &call.arguments, place: self.place }.announce(w);
                }),
                _ => {}
            }
        }
    }
}
