//! The lines of a log, as they are written.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::mem;

use super::boot::{SessionSource, write_boot, write_env};
use super::digest::{Digest, digest};
use super::{Recorder, command, reply};
use crate::hub::{Boot, Output};
use crate::input::{Command, Input, Reply};
use crate::json::Writer;
use crate::now::Now;
use crate::op::Outcome;
use crate::text::redact::Secrets;
use crate::tools::ToolEnv;

/// Version of the format.
pub const FORMAT: u64 = 1;

/// Gives the bytes of a session file that a machine begins with; `None` when they cannot be read.
pub type ReadFile = Box<dyn FnMut(&str) -> Option<Vec<u8>> + Send>;

/// Takes whole lines. `urgent` ones should be out when the program dies.
pub type Sink = Box<dyn FnMut(&str, bool) + Send>;

/// Writes a log.
pub struct Log {
    sink: Sink,
    read: ReadFile,
    /// Digests of what followed from the last input.
    digests: Vec<Digest>,
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
            digests: Vec::new(),
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
        (self.sink)(&self.line, urgent);
    }

    /// What came out since the last line.
    fn outputs(&mut self, drained: bool) {
        if self.digests.is_empty() && drained {
            return;
        }
        let digests = mem::take(&mut self.digests);
        let urgent = mem::take(&mut self.weighty);
        let scratch = &mut self.scratch;
        let mut line = mem::take(&mut self.line);
        line.clear();
        let mut w = Writer::append_to(line);
        w.begin_object();
        w.key("out");
        w.begin_array();
        for digest in &digests {
            use core::fmt::Write as _;
            scratch.clear();
            let _ = write!(scratch, "{digest}");
            w.str(scratch);
        }
        w.end_array();
        if !drained {
            w.field_bool("more", true);
        }
        w.end_object();
        self.line = w.into_string();
        self.line.push('\n');
        (self.sink)(&self.line, urgent);
        self.digests = digests;
        self.digests.clear();
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
        let secrets = mem::take(&mut self.secrets);
        self.write(false, |w| {
            time(now, w);
            match input {
                Input::Command(command) => command::write(command, w),
                Input::Reply { op, reply } => {
                    w.field_u64("op", op.0);
                    reply::write(reply, &|bytes| secrets.hidden(bytes), w);
                }
                Input::Tick => w.field_str("in", "tick"),
            }
        });
        self.secrets = secrets;
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
        use crate::event::Event;
        self.weighty |= !matches!(output, Output::Event(Event::MessageUpdate { .. }));
        let digest = digest(output, &mut self.scratch);
        self.digests.push(digest);
    }

    fn drained(&mut self) {
        self.drained = true;
        self.outputs(true);
    }
}
