//! The embedded model `demo/tour`: no network, no key, a short scripted run with real tool calls (decision D4).
//!
//! The encoder reads from the messages how far the tour is and writes the next reply itself; whoever sends the
//! request sees [`URL`] and gives its body back as the response.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::assemble::Assembler;
use super::strict::tool_name;
use super::{BodyEnd, Decoder, Encoder, ModelRequest, StreamEvent};
use crate::convert::fold;
use crate::fault::Fault;
use crate::json::{Value, Writer};
use crate::message::{AssistantMessage, Block, Message, StopReason, TextBlock, ToolCall, ToolResultMessage};
use crate::model::Model;
use crate::op::HttpRequest;

/// Name of the protocol.
pub const API: &str = "demo";

/// Address of the demo: not to be sent anywhere.
pub const URL: &str = "demo:tour";

const FILE: &str = "tau-tour.txt";
/// What the first command prints when the file is there already; then it is only read.
const EXISTS: &str = "tau-tour.txt is there already";

/// One step: a tool, what is said before, the arguments.
struct Step {
    tool: &'static str,
    say: &'static str,
    args: &'static str,
}

const STEPS: [Step; 4] = [
    Step {
        tool: "bash",
        say: "This is the demo: a script plays the model, but the tools are real. First I look around.",
        args: r#"{"command":"pwd; ls -A | head -n 20; test ! -e tau-tour.txt || echo 'tau-tour.txt is there already'"}"#,
    },
    Step {
        tool: "write",
        say: "Now I write a small file.",
        args: r#"{"path":"tau-tour.txt","content":"Tau was here.\nThis line will change.\n"}"#,
    },
    Step {
        tool: "edit",
        say: "I change one of its lines.",
        args: r#"{"path":"tau-tour.txt","edits":[{"oldText":"This line will change.","newText":"This line was edited."}]}"#,
    },
    Step { tool: "read", say: "And I check the result.", args: r#"{"path":"tau-tour.txt"}"# },
];

/// Writes the next reply of the tour.
#[derive(Debug, Default)]
pub struct Tour;

impl Encoder for Tour {
    fn encode(&mut self, request: &ModelRequest<'_>) -> Result<HttpRequest, Fault> {
        Ok(HttpRequest {
            method: "POST",
            url: URL.into(),
            headers: Vec::new(),
            body: Arc::new(reply(request.messages).into_bytes()),
            head_timeout_ms: None,
            idle_timeout_ms: None,
            proxy: None,
        })
    }

    fn decoder(&self, model: &Arc<Model>, now_ms: i64) -> Box<dyn Decoder> {
        Box::new(Playback { body: Vec::new(), assembler: Assembler::new(model, now_ms) })
    }
}

/// `{"say", "id"?, "tool"?, "args"?}`
fn reply(messages: &[Arc<Message>]) -> String {
    let since =
        messages.iter().rposition(|message| matches!(**message, Message::User(_))).unwrap_or_default();
    let results: Vec<&ToolResultMessage> = messages
        .iter()
        .skip(since)
        .filter_map(|message| match &**message {
            Message::ToolResult(result) => Some(result),
            _ => None,
        })
        .collect();
    let folded = fold(messages);
    let active = |name: &str| folded.tools.iter().any(|tool| tool_name(tool) == name);
    let says = |result: &&ToolResultMessage| {
        result.content.iter().filter_map(Block::as_text).any(|text| text.contains(EXISTS))
    };
    // Nothing is overwritten: without a look around, or when the file is there, it is not written.
    let may_write = active("bash") && !results.iter().any(says);
    let changes = |step: &&Step| matches!(step.tool, "write" | "edit");
    let mut steps = STEPS.iter().filter(|step| active(step.tool) && (may_write || !changes(step)));
    let mut w = Writer::new();
    w.begin_object();
    match steps.nth(results.len()) {
        Some(step) => {
            w.field_str("say", step.say);
            w.field_str("id", &format!("tour_{}_{}", since, results.len() + 1));
            w.field_str("tool", step.tool);
            w.field_str("args", step.args);
        }
        None => w.field_str("say", &farewell(&results)),
    }
    w.end_object();
    w.into_string()
}

fn farewell(results: &[&ToolResultMessage]) -> String {
    let failed = results.iter().filter(|result| result.is_error).count();
    let done = match (results.len(), failed) {
        (0, _) => "No tools are active, so there is nothing to show.".into(),
        (calls, 0) => format!(
            "{calls} tool calls ran in this folder; {FILE} shows what they did (delete it if you like)."
        ),
        (calls, failed) => format!("{calls} tool calls ran in this folder, {failed} of them failed."),
    };
    format!(
        "{done}\n\nThat was the demo; nothing left this machine. For real work choose a model: put ANTHROPIC_API_KEY or \
         OPENAI_API_KEY into the environment, or describe your own server in models.json. `tau --list-models` shows \
         what can be used."
    )
}

/// Gives a reply that the encoder wrote.
#[derive(Debug)]
struct Playback {
    body: Vec<u8>,
    assembler: Assembler,
}

impl Playback {
    fn play(&mut self, out: &mut Vec<StreamEvent>) {
        let reply: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let text = |key: &str| reply.get(key).and_then(Value::as_str);
        self.assembler.start(out);
        let at = self.assembler.open(Block::Text(TextBlock::default()), out);
        for piece in text("say").unwrap_or_default().split_inclusive(' ') {
            self.assembler.push(at, piece.into(), out);
        }
        let Some((name, args)) = text("tool").zip(text("args")) else {
            return self.assembler.done(StopReason::Stop, out);
        };
        let id = text("id").unwrap_or_default().into();
        let call = ToolCall { id, name: name.into(), ..ToolCall::default() };
        let at = self.assembler.open(Block::ToolCall(call), out);
        self.assembler.push(at, args.into(), out);
        self.assembler.done(StopReason::ToolUse, out);
    }
}

impl Decoder for Playback {
    fn on_bytes(&mut self, bytes: &[u8], _: &mut Vec<StreamEvent>) {
        self.body.extend_from_slice(bytes);
    }

    fn on_end(&mut self, end: BodyEnd, out: &mut Vec<StreamEvent>) {
        match end {
            BodyEnd::Complete => self.play(out),
            BodyEnd::Failed(fault) => self.assembler.fail(StopReason::Error, fault.detail, out),
            BodyEnd::Aborted => self.assembler.fail(StopReason::Aborted, super::error::ABORTED.into(), out),
        }
    }

    fn partial(&self) -> &AssistantMessage {
        self.assembler.message()
    }

    fn take(&mut self) -> AssistantMessage {
        self.assembler.take()
    }

    fn partial_arguments(&mut self, index: usize) -> Option<Value> {
        self.assembler.partial_arguments(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::SystemMessage;

    fn next(messages: &[Arc<Message>]) -> AssistantMessage {
        let mut playback =
            Playback { body: reply(messages).into_bytes(), assembler: Assembler::new(&Model::default(), 1) };
        playback.on_end(BodyEnd::Complete, &mut Vec::new());
        playback.take()
    }

    fn declared(names: &[&str]) -> Arc<Message> {
        let tools = names.iter().map(|name| serde_json::json!({"name": name})).collect();
        Arc::new(Message::System(SystemMessage { tools_added: Some(tools), ..SystemMessage::default() }))
    }

    fn play(names: &[&str], output: &str) -> Vec<String> {
        let mut messages = alloc::vec![declared(names), Arc::new(Message::user("go", Vec::new(), 1))];
        let mut tools = Vec::new();
        loop {
            let message = next(&messages);
            let Some(call) = message.tool_calls().next().cloned() else {
                assert!(message.content.iter().filter_map(Block::as_text).any(|t| t.contains("demo")));
                return tools;
            };
            tools.push(call.name.clone());
            messages.push(Arc::new(Message::Assistant(message)));
            messages.push(Arc::new(Message::ToolResult(ToolResultMessage {
                tool_call_id: call.id,
                tool_name: call.name,
                content: alloc::vec![Block::text(output)],
                ..ToolResultMessage::default()
            })));
        }
    }

    #[test]
    fn the_tour_uses_what_is_there_and_overwrites_nothing() {
        assert_eq!(play(&["read", "bash", "edit", "write"], "x"), ["bash", "write", "edit", "read"]);
        assert_eq!(play(&["read", "bash", "edit", "write"], EXISTS), ["bash", "read"]);
        assert_eq!(play(&["write"], "x"), [""; 0]);
    }
}
