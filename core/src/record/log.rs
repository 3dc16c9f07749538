//! The lines of a log, as they are written.

use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::mem;

use super::boot::{SessionSource, write_boot, write_env};
use super::digest::{Groups, is_piece};
use super::{Recorder, command, reply};
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

/// Writes a log.
pub struct Log {
    sink: Sink,
    read: ReadFile,
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
    pub fn begin(program: &str, now: Now, boot: &Boot, sink: Sink, read: ReadFile) -> Self {
        let mut log = Self {
            sink,
            read,
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
        let file = session.path().filter(|_| session.is_stored()).and_then(|path| (self.read)(path));
        self.write(true, |w| {
            first(w);
            time(now, w);
            w.key("boot");
            write_boot(boot, file.as_deref().map_or(SessionSource::Memory, SessionSource::File), w);
        });
    }

    fn write(&mut self, urgent: bool, fields: impl FnOnce(&mut Writer)) {
        self.line.clear();
        let mut w = Writer::append_to(mem::take(&mut self.line));
        w.begin_object();
        fields(&mut w);
        w.end_object();
        self.line = w.into_string();
        self.line.push('\n');
        (self.sink)(self.line.as_bytes(), urgent);
    }

    /// What came out since the last line.
    fn outputs(&mut self, drained: bool) {
        if self.groups.is_empty() && drained {
            return;
        }
        let groups = mem::take(&mut self.groups);
        let urgent = mem::take(&mut self.weighty);
        self.write(urgent, |w| {
            w.key("out");
            w.begin_array();
            for group in groups.all() {
                w.str(&group.to_string());
            }
            w.end_array();
            if !drained {
                w.field_bool("more", true);
            }
        });
    }

    /// Bytes of a body or a pipe stand behind their line as they are: most of a log are these.
    fn chunk(&mut self, now: Now, op: OpId, stream: Stream, bytes: &[u8]) {
        let cleaned = self.secrets.hidden(bytes);
        let bytes = cleaned.as_deref().unwrap_or(bytes);
        self.write(false, |w| {
            time(now, w);
            w.field_u64("op", op.0);
            w.field_str("in", "chunk");
            match stream {
                Stream::Body => {}
                Stream::Stdout => w.field_str("of", "stdout"),
                Stream::Stderr => w.field_str("of", "stderr"),
            }
            w.field_u64("raw", bytes.len() as u64);
        });
        (self.sink)(bytes, false);
        (self.sink)(b"\n", false);
    }

    /// An input comes: not everything may have been polled.
    fn interrupted(&mut self) {
        if !mem::take(&mut self.drained) {
            self.outputs(false);
        }
    }
}

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
        self.write(false, |w| {
            time(now, w);
            match input {
                Input::Command(command) => command::write(command, w),
                Input::Reply { op, reply } => {
                    w.field_u64("op", op.0);
                    reply::write(reply, w);
                }
                Input::Tick => w.field_str("in", "tick"),
            }
        });
    }

    fn command(&mut self, now: Now, command: &Command) {
        self.interrupted();
        self.write(false, |w| {
            time(now, w);
            w.field_bool("beside", true);
            command::write(command, w);
        });
    }

    fn env(&mut self, env: &ToolEnv) {
        self.write(false, |w| {
            w.key("env");
            write_env(env, w);
        });
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
