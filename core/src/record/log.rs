//! The lines of a log, as they are written.

use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::mem;

use super::boot::{SessionSource, write_boot, write_env};
use super::digest::{Groups, is_piece};
use super::{Recorder, command, reply};
use crate::auth::sha256::{hex, sha256};
use crate::hub::{Boot, Output};
use crate::ids::OpId;
use crate::input::{Command, Input, Reply};
use crate::json::Writer;
use crate::now::Now;
use crate::op::{Outcome, Stream};
use crate::text::redact::Secrets;
use crate::tools::ToolEnv;

/// Version of the format.
pub const FORMAT: u64 = 1;

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
    /// What followed from the last input: outputs, pieces of a stream in a row together.
    groups: Groups,
    /// Everything that followed from the last input was polled.
    drained: bool,
    /// Something but pieces of a stream came out since the last line.
    weighty: bool,
    /// Secrets that were given to the machine.
    secrets: Secrets,
    line: String,
    scratch: String,
}

impl Log {
    /// A log that begins with a machine about to be made of `boot`.
    #[must_use]
    pub fn begin(program: &str, now: Now, boot: &Boot, places: Places) -> Self {
        let mut log = Self {
            places,
            groups: Groups::default(),
            drained: false,
            weighty: false,
            secrets: Secrets::default(),
            line: String::new(),
            scratch: String::new(),
        };
        log.boot(now, boot, |w| {
            w.field_u64("tau", FORMAT);
            w.field_str("program", program);
        });
        log
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
        let groups = mem::take(&mut self.groups);
        let urgent = mem::take(&mut self.weighty);
        self.write(
            urgent,
            |w| {
                w.key("out");
                w.begin_array();
                for group in groups.all() {
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

    /// An input comes: not everything may have been polled.
    fn interrupted(&mut self) {
        if !mem::take(&mut self.drained) {
            self.outputs(false);
        }
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
        self.interrupted();
        self.boot(now, boot, |_| {});
    }

    fn input(&mut self, now: Now, input: &Input) {
        self.interrupted();
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
        self.interrupted();
        let head = |w: &mut Writer| {
            time(now, w);
            w.field_bool("beside", true);
        };
        self.write(false, head, |w| command::write(command, w));
    }

    fn env(&mut self, env: &ToolEnv) {
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
        self.weighty |= !is_piece(output);
        self.groups.add(output, &mut self.scratch);
    }

    fn drained(&mut self) {
        self.drained = true;
        self.outputs(true);
    }
}
