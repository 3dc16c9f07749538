//! What an output is, in twelve hex digits, and for people.
//!
//! A digest covers everything that must be the same in a second run: events as they are shown, effects with their
//! bytes. Header values of requests are left out, they hold secrets and what follows from them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

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
    /// Adds an output. `scratch` is a buffer to write in.
    pub fn add(&mut self, output: &Output, scratch: &mut String) {
        let digest = digest(output, scratch);
        let piece = is_piece(output);
        match self.list.last_mut().filter(|_| piece && self.open) {
            Some(group) => {
                let mut hash = Hash(group.digest.0);
                hash.number(digest.0);
                *group = Group { count: group.count + 1, digest: hash.finish() };
            }
            None => self.list.push(Group { count: 1, digest }),
        }
        self.open = piece;
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

/// A hash for telling differences, not for keeping secrets. Long bytes go through four lanes side by side: one alone would
/// wait for each of its multiplications.
struct Hash(u64);

impl Hash {
    const K: u64 = 0x517c_c1b7_2722_0a95;

    const fn number(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(Self::K);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        let mut blocks = bytes.chunks_exact(32);
        if bytes.len() >= 32 {
            let mut lanes = [(); 4].map(|()| Self(self.0));
            for block in &mut blocks {
                for (lane, part) in lanes.iter_mut().zip(block.chunks_exact(8)) {
                    lane.number(part.try_into().map_or(0, u64::from_le_bytes));
                }
            }
            lanes.iter().for_each(|lane| self.number(lane.0));
        }
        let mut parts = blocks.remainder().chunks_exact(8);
        for part in &mut parts {
            self.number(part.try_into().map_or(0, u64::from_le_bytes));
        }
        let mut last = [0; 8];
        for (slot, byte) in last.iter_mut().zip(parts.remainder()) {
            *slot = *byte;
        }
        self.number(u64::from_le_bytes(last));
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// The upper half mixed into the lower one.
    const fn finish(self) -> Digest {
        Digest(self.0 ^ (self.0 >> 29))
    }
}

/// The digest of an output. `scratch` is a buffer to write in.
#[must_use]
pub fn digest(output: &Output, scratch: &mut String) -> Digest {
    let mut hash = Hash(0x7461_7500);
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
        Output::Event(event) => {
            hash.number(3);
            of_event(event, &mut hash, scratch);
        }
    }
    hash.finish()
}

fn of_event(event: &Event, hash: &mut Hash, scratch: &mut String) {
    hash.text(event.type_name());
    match event {
        Event::MessageUpdate { usage, update } => {
            hash.number(usage.total_tokens);
            of_update(update, hash);
        }
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
                Ok(message) => written(scratch, hash, |w| message.write(w)),
                Err(fault) => hash.text(&fault.message),
            }
        }
        Event::MessageStart(message) | Event::MessageEnd(message) => of_message(message, hash, scratch),
        Event::TurnEnd { message, results } => {
            of_message(message, hash, scratch);
            results.iter().for_each(|result| of_message(result, hash, scratch));
        }
        Event::AgentEnd { messages, will_retry } => {
            messages.iter().for_each(|message| of_message(message, hash, scratch));
            hash.number(u64::from(*will_retry));
        }
        _ => written(scratch, hash, |w| {
            event.write(w);
        }),
    }
}

/// Everything of a message; what may be large is not written out for that.
fn of_message(message: &Message, hash: &mut Hash, scratch: &mut String) {
    hash.text(message.role());
    hash.number(message.timestamp().unsigned_abs());
    match message {
        Message::User(UserMessage { content, .. }) => match content {
            Content::Text(text) => hash.text(text),
            Content::Blocks(blocks) => of_blocks(blocks, hash),
        },
        Message::ToolResult(result) => {
            hash.text(&result.tool_call_id);
            hash.text(&result.tool_name);
            of_blocks(&result.content, hash);
            hash.number(u64::from(result.is_error));
            hash.number(result.duration_ms.unwrap_or_default());
            for facts in [&result.details, &result.structured_content].into_iter().flatten() {
                hash.text(&facts.to_string());
            }
        }
        Message::Assistant(reply) => {
            of_blocks(&reply.content, hash);
            written(scratch, hash, |w| reply.without_content().write(w));
        }
        _ => written(scratch, hash, |w| message.write(w)),
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

fn written(scratch: &mut String, hash: &mut Hash, write: impl FnOnce(&mut Writer)) {
    scratch.clear();
    let mut w = Writer::append_to(core::mem::take(scratch));
    write(&mut w);
    *scratch = w.into_string();
    hash.text(scratch);
}

fn of_update(update: &MessageUpdate, hash: &mut Hash) {
    let mut part = |kind: u64, index: usize, text: &str| {
        hash.number(kind);
        hash.number(index as u64);
        hash.text(text);
    };
    match update {
        MessageUpdate::TextStart { index } => part(0, *index, ""),
        MessageUpdate::TextDelta { index, delta } => part(1, *index, delta),
        MessageUpdate::TextEnd { index, content } => part(2, *index, content),
        MessageUpdate::ThinkingStart { index } => part(3, *index, ""),
        MessageUpdate::ThinkingDelta { index, delta } => part(4, *index, delta),
        MessageUpdate::ThinkingEnd { index, content } => part(5, *index, content),
        MessageUpdate::ToolCallStart { index, id, name } => {
            part(6, *index, id);
            part(6, *index, name);
        }
        MessageUpdate::ToolCallDelta { index, delta } => part(7, *index, delta),
        MessageUpdate::ToolCallEnd { index, call } => {
            part(8, *index, &call.id);
            part(8, *index, &call.name);
            part(8, *index, &call.arguments.to_string());
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
