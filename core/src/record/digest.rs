//! What an output is, in twelve hex digits, and for people.
//!
//! A digest covers everything that must be the same in a second run: events as they are shown, effects with their
//! bytes. Header values of requests are left out, they hold secrets and what follows from them.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::hash::Hash;
use crate::event::{Event, MessageUpdate};
use crate::hub::Output;
use crate::json::Writer;
use crate::message::{Block, Content, Message, UserMessage};
use crate::op::{FsOp, Op, host_of};

/// A digest, printed as twelve hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(pub u64);

impl core::fmt::Display for Digest {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:012x}", self.0 & 0xffff_ffff_ffff)
    }
}

/// Outputs in a row that are told from others together: each by itself, but pieces of a stream with those beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// How many.
    pub count: u64,
    digest: Digest,
}

impl Group {
    /// A group with one more in it.
    #[must_use]
    pub(super) const fn with(group: Option<Self>, digest: Digest) -> Self {
        let Some(Self { count, digest: before }) = group else { return Self { count: 1, digest } };
        let mut hash = Hash::new(before.0);
        hash.number(digest.0);
        Self { count: count + 1, digest: Digest(hash.finish()) }
    }
}

impl core::fmt::Display for Group {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.count {
            1 => self.digest.fmt(f),
            count => write!(f, "{}*{count}", self.digest),
        }
    }
}

/// What followed from one input.
#[derive(Debug, Default)]
pub struct Groups {
    list: Vec<Group>,
    /// The last one takes more.
    open: bool,
}

impl Groups {
    /// Adds an output.
    pub fn add(&mut self, digest: Digest, is_piece: bool) {
        match self.list.last_mut().filter(|_| is_piece && self.open) {
            Some(group) => *group = Group::with(Some(*group), digest),
            None => self.list.push(Group::with(None, digest)),
        }
        self.open = is_piece;
    }

    /// Nothing followed.
    pub fn clear(&mut self) {
        self.list.clear();
        self.open = false;
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[Group] {
        &self.list
    }

    /// Whether nothing followed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// Whether an output is a piece of a stream.
#[must_use]
pub const fn is_piece(output: &Output) -> bool {
    matches!(output, Output::Event(Event::MessageUpdate { .. }))
}

/// Makes digests.
#[derive(Debug, Default)]
pub struct Digests {
    /// A buffer to write in.
    scratch: String,
    /// Digests of whole messages of the run: its later events hold the same ones again. A message that is kept here keeps its
    /// address.
    known: BTreeMap<usize, (Arc<Message>, u64)>,
}

impl Digests {
    /// The digest of an output.
    #[must_use]
    pub fn of(&mut self, output: &Output) -> Digest {
        let mut hash = Hash::new(0x7461_7500);
        match output {
            Output::Cancel { op } => {
                hash.number(1);
                hash.number(op.0);
            }
            Output::Start { op, what } => {
                hash.number(2);
                hash.number(op.0);
                of_op(what, &mut hash);
            }
            // By far the most.
            Output::Event(Event::MessageUpdate { usage, update }) => {
                of_update(usage.total_tokens, update, &mut hash);
            }
            Output::Event(event) => {
                hash.number(3);
                self.of_event(event, &mut hash);
            }
        }
        Digest(hash.finish())
    }

    fn of_event(&mut self, event: &Event, hash: &mut Hash) {
        hash.text(event.type_name());
        match event {
            Event::Error(fault) => {
                hash.text(fault.code);
                hash.text(&fault.message);
            }
            Event::ShellOutput { id, delta } => {
                hash.number(*id);
                hash.text(delta);
            }
            Event::ShellEnd { id, outcome } => {
                hash.number(*id);
                match outcome {
                    Ok(message) => self.written(hash, |w| message.write(w)),
                    Err(fault) => hash.text(&fault.message),
                }
            }
            // It may grow further.
            Event::MessageStart(message) => hash.number(self.of_message(message)),
            Event::MessageEnd(message) => self.known_message(message, hash),
            Event::TurnEnd { message, results } => {
                self.known_message(message, hash);
                results.iter().for_each(|result| self.known_message(result, hash));
            }
            Event::AgentEnd { messages, will_retry } => {
                messages.iter().for_each(|message| self.known_message(message, hash));
                self.known.clear();
                hash.number(u64::from(*will_retry));
            }
            _ => self.written(hash, |w| {
                event.write(w);
            }),
        }
    }

    fn known_message(&mut self, message: &Arc<Message>, hash: &mut Hash) {
        let address = Arc::as_ptr(message).addr();
        let known = self.known.get(&address).map(|(_, digest)| *digest);
        let digest = known.unwrap_or_else(|| {
            let digest = self.of_message(message);
            self.known.insert(address, (Arc::clone(message), digest));
            digest
        });
        hash.number(digest);
    }

    /// Everything of a message; what may be large is not written out for that.
    fn of_message(&mut self, message: &Message) -> u64 {
        let mut hash = Hash::new(message.timestamp().unsigned_abs());
        hash.text(message.role());
        match message {
            Message::User(UserMessage { content, .. }) => match content {
                Content::Text(text) => hash.text(text),
                Content::Blocks(blocks) => of_blocks(blocks, &mut hash),
            },
            Message::ToolResult(result) => {
                hash.text(&result.tool_call_id);
                hash.text(&result.tool_name);
                of_blocks(&result.content, &mut hash);
                hash.number(u64::from(result.is_error));
                hash.number(result.duration_ms.unwrap_or_default());
                for facts in [&result.details, &result.structured_content].into_iter().flatten() {
                    hash.text(&facts.to_string());
                }
            }
            Message::Assistant(reply) => {
                of_blocks(&reply.content, &mut hash);
                self.written(&mut hash, |w| reply.without_content().write(w));
            }
            _ => self.written(&mut hash, |w| message.write(w)),
        }
        hash.finish()
    }

    fn written(&mut self, hash: &mut Hash, write: impl FnOnce(&mut Writer)) {
        self.scratch.clear();
        let mut w = Writer::append_to(core::mem::take(&mut self.scratch));
        write(&mut w);
        self.scratch = w.into_string();
        hash.text(&self.scratch);
    }
}

fn of_blocks(blocks: &[Block], hash: &mut Hash) {
    for block in blocks {
        match block {
            Block::Text(block) => {
                hash.text(&block.text);
                hash.text(block.signature.as_deref().unwrap_or_default());
            }
            Block::Thinking(block) => {
                hash.text(&block.thinking);
                hash.text(block.signature.as_deref().unwrap_or_default());
                hash.number(u64::from(block.redacted));
            }
            Block::Image(block) => {
                hash.text(&block.data);
                hash.text(&block.mime_type);
            }
            Block::ToolCall(call) => {
                hash.text(&call.id);
                hash.text(&call.name);
                hash.text(&call.arguments.to_string());
            }
            Block::Other(value) => hash.text(&value.to_string()),
        }
    }
}

fn of_update(tokens: u64, update: &MessageUpdate, hash: &mut Hash) {
    let mut part = |kind: u64, index: usize, text: &str| {
        hash.pair((index as u64) << 8 | kind, tokens);
        hash.text(text);
    };
    match update {
        MessageUpdate::TextStart { index } => part(4, *index, ""),
        MessageUpdate::TextDelta { index, delta } => part(5, *index, delta),
        MessageUpdate::TextEnd { index, content } => part(6, *index, content),
        MessageUpdate::ThinkingStart { index } => part(7, *index, ""),
        MessageUpdate::ThinkingDelta { index, delta } => part(8, *index, delta),
        MessageUpdate::ThinkingEnd { index, content } => part(9, *index, content),
        MessageUpdate::ToolCallStart { index, id, name } => {
            part(10, *index, id);
            part(10, *index, name);
        }
        MessageUpdate::ToolCallDelta { index, delta } => part(11, *index, delta),
        MessageUpdate::ToolCallEnd { index, call } => {
            part(12, *index, &call.id);
            part(12, *index, &call.name);
            part(12, *index, &call.arguments.to_string());
        }
    }
}

fn of_op(op: &Op, hash: &mut Hash) {
    match op {
        Op::Http(request) => {
            hash.text(request.method);
            hash.text(&request.url);
            request.headers.iter().for_each(|(name, _)| hash.text(name));
            hash.bytes(&request.body);
        }
        Op::Append(append) => {
            hash.text(&append.path);
            hash.bytes(&append.bytes);
            hash.number(u64::from(append.create));
        }
        Op::Fs(FsOp::Write { path, bytes, how }) => {
            hash.text(path);
            hash.bytes(bytes);
            hash.text(&format!("{how:?}"));
        }
        Op::Fs(FsOp::FitImage { data, mime_type, .. }) => {
            hash.text(mime_type);
            hash.text(data);
        }
        Op::Host(call) => {
            hash.text(&call.tool);
            hash.text(&call.call_id);
            hash.text(&call.args.to_string());
        }
        Op::Hook(call) => hash.text(call.name()),
        Op::Fs(op) => hash.text(&format!("{op:?}")),
        Op::Search(spec) => hash.text(&format!("{spec:?}")),
        Op::Walk(spec) => hash.text(&format!("{spec:?}")),
        Op::Proc(spec) => hash.text(&format!("{spec:?}")),
        Op::Secret(op) => hash.text(&format!("{op:?}")),
    }
}

/// An output for people, in one line.
#[must_use]
pub fn describe(output: &Output) -> String {
    match output {
        Output::Cancel { op } => format!("cancel of op {}", op.0),
        Output::Start { op, what } => format!("start of op {}: {}", op.0, of_effect(what)),
        Output::Event(Event::MessageUpdate { update, .. }) => format!("event message_update {update:?}"),
        Output::Event(event) => {
            let mut w = Writer::new();
            if event.write(&mut w) {
                format!("event {}", w.into_string())
            } else {
                format!("event {}", event.type_name())
            }
        }
    }
}

fn of_effect(op: &Op) -> String {
    match op {
        Op::Http(request) => {
            format!("{} {}, {} bytes", request.method, host_of(&request.url), request.body.len())
        }
        Op::Append(append) => {
            format!("append to {}: {}", append.path, String::from_utf8_lossy(&append.bytes).trim_end())
        }
        Op::Fs(FsOp::Write { path, bytes, .. }) => format!("write {path}, {} bytes", bytes.len()),
        Op::Hook(call) => format!("hook {}", call.name()),
        Op::Host(call) => format!("host tool {} {}", call.tool, call.args),
        other => format!("{other:?}"),
    }
}
