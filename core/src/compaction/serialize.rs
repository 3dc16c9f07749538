//! A conversation as plain text for a model that summarises it (spec 10 §7.5).
//!
//! Thinking, images and system messages are left out, results of tools are cut: they are what makes conversations
//! long, and the reply after them says what mattered.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt::Write as _;

use crate::convert::{Memo, to_llm};
use crate::json::{Value, Writer};
use crate::message::{AssistantMessage, Block, Message, ToolResultMessage, UserMessage};
use crate::text::utf16::{head, utf16_len};

/// How much of a tool result is shown, in UTF-16 units.
const RESULT_UNITS: usize = 2000;

/// The messages as text: labelled parts with a blank line between them, empty ones left out.
#[must_use]
pub fn conversation(messages: &[Arc<Message>]) -> String {
    let mut text = String::new();
    for message in to_llm(messages, &mut Memo::default()) {
        match &*message {
            Message::User(user) => write_user(user, &mut text),
            Message::Assistant(reply) => write_reply(reply, &mut text),
            Message::ToolResult(result) => write_result(result, &mut text),
            _ => {}
        }
    }
    text
}

/// Starts a part.
fn start(label: &str, out: &mut String) {
    if !out.is_empty() {
        out.push_str("\n\n");
    }
    out.push_str(label);
    out.push(' ');
}

fn write_user(user: &UserMessage, out: &mut String) {
    if user.content.texts().all(str::is_empty) {
        return;
    }
    start("[User]:", out);
    out.extend(user.content.texts());
}

fn write_reply(reply: &AssistantMessage, out: &mut String) {
    for (at, text) in reply.content.iter().filter_map(Block::as_text).enumerate() {
        if at == 0 {
            start("[Assistant]:", out);
        } else {
            out.push('\n');
        }
        out.push_str(text);
    }
    for (at, call) in reply.tool_calls().enumerate() {
        if at == 0 {
            start("[Assistant tool calls]:", out);
        } else {
            out.push_str("; ");
        }
        out.push_str(&call.name);
        write_arguments(&call.arguments, out);
    }
}

/// `(name=json, name=json)`.
fn write_arguments(arguments: &Value, out: &mut String) {
    out.push('(');
    for (at, (name, value)) in arguments.as_object().into_iter().flatten().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        out.push_str(name);
        out.push('=');
        let mut w = Writer::new();
        w.value(value);
        out.push_str(w.as_str());
    }
    out.push(')');
}

fn write_result(result: &ToolResultMessage, out: &mut String) {
    let texts = || result.content.iter().filter_map(Block::as_text);
    let units: usize = texts().map(utf16_len).sum();
    if units == 0 {
        return;
    }
    start("[Tool result]:", out);
    let mut room = RESULT_UNITS;
    for text in texts() {
        let shown = head(text, room);
        out.push_str(shown);
        if shown.len() < text.len() {
            break;
        }
        room = room.saturating_sub(utf16_len(shown));
    }
    if let Some(more @ 1..) = units.checked_sub(RESULT_UNITS) {
        let _ = write!(out, "\n\n[{more} more characters left out]");
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;

    fn result(texts: &[&str]) -> Vec<Arc<Message>> {
        let content = texts.iter().map(|text| Block::text(*text)).collect();
        alloc::vec![Arc::new(Message::ToolResult(ToolResultMessage { content, ..Default::default() }))]
    }

    #[test]
    fn a_cut_result_of_several_blocks_is_the_start_of_all_of_them() {
        let (a, b) = ("a".repeat(1999), "😀b");
        let text = conversation(&result(&[&a, b]));
        assert_eq!(text, "[Tool result]: ".to_string() + &a + "\n\n[2 more characters left out]");
        let text = conversation(&result(&[&a, "b", "", "c"]));
        assert_eq!(text, "[Tool result]: ".to_string() + &a + "b\n\n[1 more characters left out]");
    }
}
