//! The lines of a log, as they are written.

use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::mem;

use super::boot::{SessionSource, write_boot, write_env};
use super::digest::{Digest, Digests, Group, Groups, is_piece};
use super::{Recorder, command, reply};
use crate::auth::sha256::{hex, sha256};
use crate::event::{Event, MessageUpdate};
use crate::hub::{Boot, Output};
use crate::ids::OpId;
use crate::input::{Command, Input, Reply};
use crate::json::Writer;
use crate::now::{Mono, Now};
use crate::op::{Outcome, Stream};
use crate::text::redact::Secrets;
use crate::tools::ToolEnv;

/// Version of the format.
pub const FORMAT: u64 = 1;

/// A chunk of this many bytes is a record of its own.
const WRITTEN_BY_ITSELF: usize = 16 * 1024;

/// Chunks of this span of time may become one record, ms.
const HELD_MS: u64 = 1000;

/// Gives the bytes of a session file that a machine begins with; `None` when they cannot be read.
pub type ReadFile = Box<dyn FnMut(&str) -> Option<Vec<u8>> + Send>;

/// Takes whole records. `urgent` ones should be out when the program dies.
pub type Sink = Box<dyn FnMut(&[u8], bool) + Send>;

/// Takes a body by its name, the hex digits of its SHA-256, which may be there already; whether it is kept.
pub type KeepBody = Box<dyn FnMut(&str, &[u8]) -> bool + Send>;

/// What a log needs of the world.
pub struct Places {
    /// Where lines go.
    pub sink: Sink,
    /// Where session files come from.
    pub read: ReadFile,
    /// Bodies of this many bytes and more are kept apart, once each, and the log has their hash; `None` = all are in the log.
    pub apart: Option<(usize, KeepBody)>,
}

/// Writes a log.
pub struct Log {
    places: Places,
    /// Chunks that are not written yet, the last input among them.
    held: Option<Held>,
    /// What followed from the last input: outputs, pieces of a stream in a row together.
    groups: Groups,
    /// Everything that followed from the last input was polled.
    drained: bool,
    /// Something but pieces of a stream came out since the last line.
    weighty: bool,
    /// Secrets that were given to the machine.
    secrets: Secrets,
    line: String,
    digests: Digests,
}

impl Log {
    /// A log that begins with a machine about to be made of `boot`.
    #[must_use]
    pub fn begin(program: &str, now: Now, boot: &Boot, places: Places) -> Self {
        let mut log = Self {
            places,
            held: None,
            groups: Groups::default(),
            drained: false,
            weighty: false,
            secrets: Secrets::default(),
            line: String::new(),
            digests: Digests::default(),
        };
        log.boot(now, boot, |w| {
            w.field_u64("tau", FORMAT);
            w.field_str("program", program);
        });
        log
    }

    /// Writes what is held back. A log that ends here ends with the last input, whatever followed from it.
    pub fn flush(&mut self) {
        if self.drained {
            self.settle();
            self.drained = true;
        } else {
            self.release();
        }
        (self.places.sink)(&[], true);
    }

    fn boot(&mut self, now: Now, boot: &Boot, first: impl FnOnce(&mut Writer)) {
        let session = &boot.desk.session;
        let file = session.path().filter(|_| session.is_stored()).and_then(|path| (self.places.read)(path));
        let head = |w: &mut Writer| {
            first(w);
            time(now, w);
        };
        self.write(true, head, |w| {
            w.key("boot");
            write_boot(boot, file.as_deref().map_or(SessionSource::Memory, SessionSource::File), w);
        });
    }

    /// Writes a record: what tells it from others, and what it holds, which may be kept apart.
    fn write(&mut self, urgent: bool, head: impl FnOnce(&mut Writer), body: impl FnOnce(&mut Writer)) {
        self.line.clear();
        let mut w = Writer::append_to(mem::take(&mut self.line));
        w.begin_object();
        head(&mut w);
        let at = w.len();
        body(&mut w);
        w.end_object();
        self.line = w.into_string();
        // Behind the head stands a comma, and then the fields of the body.
        let fields = self.line.get(at + 1..).unwrap_or_default();
        if let Some((from, keep)) = &mut self.places.apart
            && fields.len() >= (*from).max(1)
        {
            let mut whole = String::with_capacity(fields.len() + 1);
            whole.push('{');
            whole.push_str(fields);
            let name = hex(&sha256(whole.as_bytes()));
            if keep(&name, whole.as_bytes()) {
                self.line.truncate(at);
                self.line.push_str(",\"body\":\"");
                self.line.push_str(&name);
                self.line.push_str("\"}");
            }
        }
        self.line.push('\n');
        (self.places.sink)(self.line.as_bytes(), urgent);
    }

    /// What came out since the last line.
    fn outputs(&mut self, drained: bool) {
        if self.groups.is_empty() && drained {
            return;
        }
        let mut groups = mem::take(&mut self.groups);
        let urgent = mem::take(&mut self.weighty);
        self.write_outputs(groups.all(), drained, urgent);
        groups.clear();
        self.groups = groups;
    }

    fn write_outputs(&mut self, groups: &[Group], drained: bool, urgent: bool) {
        self.write(
            urgent,
            |w| {
                w.key("out");
                w.begin_array();
                for group in groups {
                    w.str(&group.to_string());
                }
                w.end_array();
                if !drained {
                    w.field_bool("more", true);
                }
            },
            nothing,
        );
    }

    /// Bytes of a body or a pipe stand behind their line as they are: most of a log are these.
    fn chunk(&mut self, now: Now, op: OpId, stream: Stream, bytes: &[u8]) {
        let cleaned = self.secrets.hidden(bytes);
        let bytes = cleaned.as_deref().unwrap_or(bytes);
        let mut apart = None;
        if let Some((from, keep)) = &mut self.places.apart
            && bytes.len() >= *from
        {
            apart = Some(hex(&sha256(bytes))).filter(|name| keep(name, bytes));
        }
        self.write(
            false,
            |w| {
                time(now, w);
                w.field_u64("op", op.0);
                w.field_str("in", "chunk");
                match stream {
                    Stream::Body => {}
                    Stream::Stdout => w.field_str("of", "stdout"),
                    Stream::Stderr => w.field_str("of", "stderr"),
                }
                match &apart {
                    Some(name) => w.field_str("body", name),
                    None => w.field_u64("raw", bytes.len() as u64),
                }
            },
            nothing,
        );
        if apart.is_none() {
            (self.places.sink)(bytes, false);
            (self.places.sink)(b"\n", false);
        }
    }

    /// Holds a chunk back to write it with those beside it; whether it does.
    fn holds(&mut self, now: Now, op: OpId, stream: Stream, bytes: &[u8]) -> bool {
        if stream != Stream::Body || bytes.len() >= WRITTEN_BY_ITSELF {
            return false;
        }
        let drained = self.drained;
        match &mut self.held {
            Some(held) if drained && held.takes(now, op) => held.take(now, bytes),
            _ => {
                self.settle();
                self.held = Some(Held::new(now, op, bytes));
            }
        }
        self.drained = false;
        true
    }

    /// Something else comes: what was held back is written. Not everything of it may have been polled.
    fn settle(&mut self) {
        let drained = mem::take(&mut self.drained);
        self.release();
        if !drained {
            self.outputs(false);
        }
    }

    /// Writes what was held back, up to the last chunk: what followed from that one is yet to be written.
    fn release(&mut self) {
        if let Some((held, last)) = self.release_accepted()
            && !last.is_empty()
        {
            self.chunk(held.now, held.op, Stream::Body, &last);
        }
    }

    /// Writes what was held back but the last chunk, which is given back.
    fn release_accepted(&mut self) -> Option<(Held, Vec<u8>)> {
        let mut held = self.held.take()?;
        let last = held.bytes.split_off(held.accepted.min(held.bytes.len()));
        if !held.bytes.is_empty() {
            self.chunk(held.accepted_at, held.op, Stream::Body, &held.bytes);
            if let Some(group) = held.followed {
                self.write_outputs(&[group], true, false);
            }
        }
        Some((held, last))
    }

    /// Everything that followed from the last chunk is known.
    fn chunk_drained(&mut self) {
        let Some(held) = self.held.as_mut().filter(|held| held.accepted < held.bytes.len()) else { return };
        if held.accept() {
            self.groups.clear();
        } else if held.spoiled {
            self.release();
        } else if let Some((held, last)) = self.release_accepted() {
            let mut alone = Held::new(held.now, held.op, &last);
            alone.accept();
            self.held = Some(alone);
        }
    }
}

/// Small chunks of one body in a row that nothing but deltas followed from. They become one record: a decoder does not
/// depend on the split (D60). Other pieces and the tokens so far are told from the reply as it stands after the chunk.
struct Held {
    op: OpId,
    since: Mono,
    bytes: Vec<u8>,
    /// Time of the last chunk.
    now: Now,
    /// Bytes before the last chunk, and the time of the chunk before it.
    accepted: usize,
    accepted_at: Now,
    /// What followed from them.
    followed: Option<Group>,
    /// What followed from all.
    all: Option<Group>,
    /// Tokens so far, as all deltas tell them.
    tokens: Option<u64>,
    /// Something else followed from the last chunk.
    spoiled: bool,
}

impl Held {
    fn new(now: Now, op: OpId, bytes: &[u8]) -> Self {
        Self {
            op,
            since: now.mono,
            bytes: bytes.to_vec(),
            now,
            accepted: 0,
            accepted_at: now,
            followed: None,
            all: None,
            tokens: None,
            spoiled: false,
        }
    }

    /// Whether a chunk belongs to them.
    const fn takes(&self, now: Now, op: OpId) -> bool {
        self.op.0 == op.0
            && now.mono.0.saturating_sub(self.since.0) < HELD_MS
            && self.bytes.len() < WRITTEN_BY_ITSELF
    }

    fn take(&mut self, now: Now, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.now = now;
    }

    /// Something followed from the last chunk.
    fn follows(&mut self, output: &Output, digest: Digest) {
        use MessageUpdate::{TextDelta, ThinkingDelta, ToolCallDelta};
        match output {
            Output::Event(Event::MessageUpdate { usage, update })
                if matches!(update, TextDelta { .. } | ThinkingDelta { .. } | ToolCallDelta { .. })
                    && self.tokens.is_none_or(|tokens| tokens == usage.total_tokens) =>
            {
                self.tokens = Some(usage.total_tokens);
                self.all = Some(Group::with(self.all, digest));
            }
            _ => self.spoiled = true,
        }
    }

    /// What followed from the last chunk is known; whether it stays with those before it. One that nothing followed from
    /// does not: it may have told how many tokens there are.
    fn accept(&mut self) -> bool {
        let count = |group: Option<Group>| group.map_or(0, |group| group.count);
        let belongs = self.accepted == 0 || count(self.all) > count(self.followed);
        if self.spoiled || !belongs {
            return false;
        }
        self.accepted = self.bytes.len();
        self.accepted_at = self.now;
        self.followed = self.all;
        true
    }
}

/// No body.
const fn nothing(_: &mut Writer) {}

fn time(now: Now, w: &mut Writer) {
    w.field_u64("m", now.mono.0);
    w.field_i64("w", now.wall.0);
}

impl Recorder for Log {
    fn renewed(&mut self, now: Now, boot: &Boot) {
        self.settle();
        self.boot(now, boot, |_| {});
    }

    fn input(&mut self, now: Now, input: &Input) {
        if let Input::Reply { op, reply: Reply::Chunk { stream, bytes } } = input
            && self.holds(now, *op, *stream, bytes)
        {
            return;
        }
        self.settle();
        if let Input::Reply { reply: Reply::Done(Outcome::Secret(Ok(credential))), .. } = input {
            self.secrets = credential.into();
        }
        if let Input::Reply { op, reply: Reply::Chunk { stream, bytes } } = input {
            return self.chunk(now, *op, *stream, bytes);
        }
        let head = |w: &mut Writer| {
            time(now, w);
            if let Input::Reply { op, .. } = input {
                w.field_u64("op", op.0);
            }
        };
        self.write(false, head, |w| match input {
            Input::Command(command) => command::write(command, w),
            Input::Reply { reply, .. } => reply::write(reply, w),
            Input::Tick => w.field_str("in", "tick"),
        });
    }

    fn command(&mut self, now: Now, command: &Command) {
        self.settle();
        let head = |w: &mut Writer| {
            time(now, w);
            w.field_bool("beside", true);
        };
        self.write(false, head, |w| command::write(command, w));
    }

    fn env(&mut self, env: &ToolEnv) {
        self.release();
        self.write(
            false,
            |w| {
                w.key("env");
                write_env(env, w);
            },
            nothing,
        );
    }

    fn output(&mut self, output: &Output) {
        let (digest, is_piece) = (self.digests.of(output), is_piece(output));
        self.weighty |= !is_piece;
        self.groups.add(digest, is_piece);
        if let Some(held) = &mut self.held {
            held.follows(output, digest);
        }
    }

    fn drained(&mut self) {
        self.drained = true;
        self.chunk_drained();
        self.outputs(true);
    }
}
