//! A machine run again from a log. Nothing is done but to compare.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::boot::{read_boot, read_env};
use super::digest::{Digests, Groups, describe, is_piece};
use super::log::FORMAT;
use super::{command, reply};
use crate::auth::sha256::{hex, sha256};
use crate::hub::{Hub, Output};
use crate::ids::OpId;
use crate::input::{Input, Reply};
use crate::json::{Value, parse};
use crate::now::{Mono, Now, Wall};
use crate::op::Stream;

/// The first output that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Line of the log, from 1.
    pub line: u64,
    /// Number of the output since the beginning, from 1.
    pub output: u64,
    /// What it is now; `None` = nothing came out.
    pub now: Option<String>,
    /// The digest that the log has; `None` = nothing came out then.
    pub then: Option<String>,
}

impl core::fmt::Display for Difference {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "line {}, output {}: ", self.line, self.output)?;
        match (&self.now, &self.then) {
            (Some(now), Some(then)) => match then.split_once('*') {
                Some((_, count)) => {
                    write!(f, "one of {count} pieces from here on was another one; now the first is: {now}")
                }
                None => write!(f, "it was another one then; now it is: {now}"),
            },
            (Some(now), None) => write!(f, "there was none then; now there is: {now}"),
            (None, _) => f.write_str("there is none now"),
        }
    }
}

/// What a line led to.
#[derive(Debug)]
pub enum Step {
    /// These outputs came, as then.
    Same(VecDeque<Output>),
    /// Something is not as it was. Nothing can be said about what follows.
    Different(Box<Difference>),
}

/// Gives a body that is kept apart, by its name.
pub type FindBody = Box<dyn FnMut(&str) -> Option<Vec<u8>> + Send>;

/// A machine under replay.
pub struct Replay {
    find: Option<FindBody>,
    hub: Option<Hub>,
    now: Now,
    line: u64,
    outputs: u64,
    digests: Digests,
    /// Outputs of the last input are to come.
    open: bool,
    /// Bytes that are to come, and whose they are.
    wanted: Option<(OpId, Stream, usize)>,
}

/// Whether a record is about the surroundings of tools: no input.
fn is_env(record: &Value) -> bool {
    record.get("in").is_none() && record.get("env").is_some()
}

impl Default for Replay {
    fn default() -> Self {
        Self::new()
    }
}

impl Replay {
    /// Before the first line.
    #[must_use]
    pub fn new() -> Self {
        Self {
            find: None,
            hub: None,
            now: Now { mono: Mono(0), wall: Wall(0) },
            line: 0,
            outputs: 0,
            digests: Digests::default(),
            open: false,
            wanted: None,
        }
    }

    /// The machine as it was after what a log holds, see [`Hub::restore`].
    ///
    /// # Errors
    /// What is wrong with a record, or that something is not as it was.
    pub fn restore(mut self, mut log: &[u8]) -> Result<Hub, String> {
        while let Some((step, rest)) = self.record(log)? {
            if let Step::Different(difference) = step {
                return Err(difference.to_string());
            }
            log = rest;
        }
        if let Step::Different(difference) = self.end()? {
            return Err(difference.to_string());
        }
        self.into_hub().ok_or_else(|| "the record is empty".to_string())
    }

    /// Goes on with a machine that was restored from the lines before.
    #[must_use]
    pub fn going_on(self, hub: Hub) -> Self {
        Self { hub: Some(hub), ..self }
    }

    /// Tells where bodies are found that are kept apart.
    #[must_use]
    pub fn with_bodies(self, find: FindBody) -> Self {
        Self { find: Some(find), ..self }
    }

    /// The machine as it stands; `None` before the first line.
    #[must_use]
    pub const fn hub(&self) -> Option<&Hub> {
        self.hub.as_ref()
    }

    /// The machine, to go on with.
    #[must_use]
    pub fn into_hub(self) -> Option<Hub> {
        self.hub
    }

    /// Lines that were read.
    #[must_use]
    pub const fn lines(&self) -> u64 {
        self.line
    }

    /// Outputs that were the same.
    #[must_use]
    pub const fn outputs(&self) -> u64 {
        self.outputs
    }

    /// How many bytes stand behind the last line, before a line feed: to be given to [`bytes`](Self::bytes).
    #[must_use]
    pub fn wants(&self) -> Option<usize> {
        self.wanted.map(|(_, _, len)| len)
    }

    /// Takes the bytes behind a line.
    pub fn bytes(&mut self, bytes: &[u8]) {
        if let (Some((op, stream, _)), Some(hub)) = (self.wanted.take(), &mut self.hub) {
            let reply = Reply::Chunk { stream, bytes: bytes.to_vec() };
            hub.handle(self.now, Input::Reply { op, reply });
        }
    }

    /// Takes the next record of a log, with the bytes behind it; what is left of the log. `None` when nothing whole is
    /// left.
    ///
    /// # Errors
    /// What is wrong with the line.
    pub fn record<'a>(&mut self, log: &'a [u8]) -> Result<Option<(Step, &'a [u8])>, String> {
        let Some(end) = memchr::memchr(b'\n', log) else { return Ok(None) };
        let (line, rest) = log.split_at(end);
        let mut rest = rest.get(1..).unwrap_or_default();
        let line = core::str::from_utf8(line)
            .map_err(|_| format!("line {} of the log is not UTF-8", self.line + 1))?;
        let step = self.line(line)?;
        if let (Some(len), Step::Same(_)) = (self.wants(), &step) {
            let Some((bytes, behind)) = rest.split_at_checked(len) else { return Ok(None) };
            self.bytes(bytes);
            rest = behind.strip_prefix(b"\n").unwrap_or(behind);
        }
        Ok(Some((step, rest)))
    }

    /// Reads the next line. An input leads to nothing yet: what came of it is in the line after it.
    ///
    /// # Errors
    /// What is wrong with the line.
    pub fn line(&mut self, line: &str) -> Result<Step, String> {
        self.line += 1;
        let at = self.line;
        self.read(line).map_err(|why| format!("line {at} of the log: {why}"))
    }

    fn read(&mut self, line: &str) -> Result<Step, String> {
        let mut record = parse(line).map_err(|e| format!("it is not valid JSON: {e}"))?;
        let body = match record.get("body").and_then(Value::as_str) {
            Some(name) => Some(self.body(name)?),
            None => None,
        };
        if let Some(digests) = record.get("out").and_then(Value::as_array) {
            let more = record.get("more").and_then(Value::as_bool).unwrap_or_default();
            self.open = false;
            return self.compare(digests, more);
        }
        // The input before led to nothing; so it must now.
        let mut step = Step::Same(VecDeque::new());
        if !is_env(&record) && core::mem::take(&mut self.open) {
            step = self.compare(&[], false)?;
        }
        if let Step::Different(_) = step {
            return Ok(step);
        }
        self.open = match body {
            Some(bytes) if record.get("in").is_some() => {
                let op = record.get("op").and_then(Value::as_u64).ok_or("it names no op")?;
                self.time(&record)?;
                let stream = reply::stream(&record);
                self.started()?;
                self.wanted = Some((OpId(op), stream, bytes.len()));
                self.bytes(&bytes);
                true
            }
            Some(bytes) => {
                let text = core::str::from_utf8(&bytes).map_err(|_| "its body is no text")?;
                let fields = parse(text).map_err(|e| format!("its body is not valid JSON: {e}"))?;
                if let (Value::Object(record), Value::Object(fields)) = (&mut record, fields) {
                    record.extend(fields);
                }
                self.input(&record)?
            }
            None => self.input(&record)?,
        };
        Ok(step)
    }

    /// A body that is kept apart.
    fn body(&mut self, name: &str) -> Result<Vec<u8>, String> {
        let bytes = self.find.as_mut().and_then(|find| find(name));
        let bytes = bytes.ok_or_else(|| format!("the body {name} is kept apart and was not found"))?;
        if hex(&sha256(&bytes)) != name {
            return Err(format!("the body {name} was changed"));
        }
        Ok(bytes)
    }

    fn time(&mut self, record: &Value) -> Result<Now, String> {
        let mono = record.get("m").and_then(Value::as_u64).ok_or("it has no time")?;
        let wall = record.get("w").and_then(Value::as_i64).ok_or("it has no time")?;
        self.now = Now { mono: Mono(mono), wall: Wall(wall) };
        Ok(self.now)
    }

    /// The log ends: nothing may be left that comes out of the machine.
    ///
    /// # Errors
    /// When there was nothing in the log.
    pub fn end(&mut self) -> Result<Step, String> {
        match (self.hub.is_some(), core::mem::take(&mut self.open)) {
            (false, _) => Err("the log is empty".to_string()),
            (true, false) => Ok(Step::Same(VecDeque::new())),
            // What came of the last input may not have been written any more.
            (true, true) => {
                let mut left = VecDeque::new();
                if let Some(hub) = &mut self.hub {
                    left.extend(core::iter::from_fn(|| hub.poll()));
                }
                Ok(Step::Same(left))
            }
        }
    }

    /// Gives a record to the machine; whether something may follow from it.
    fn input(&mut self, record: &Value) -> Result<bool, String> {
        if let Some(env) = record.get("env").filter(|_| is_env(record)) {
            let env = read_env(env).ok_or("its surroundings of tools are incomplete")?;
            self.started()?.set_env(Arc::new(env));
            return Ok(self.open);
        }
        let number = |key: &str| record.get(key).and_then(Value::as_u64);
        let now = self.time(record)?;
        if let Some(boot) = record.get("boot") {
            let boot = read_boot(boot)?;
            match &mut self.hub {
                Some(hub) => hub.renew(boot, now),
                None => {
                    match number("tau") {
                        Some(FORMAT) => {}
                        Some(other) => return Err(format!("format {other} is not known to this version")),
                        None => return Err("this is no log of tau".to_string()),
                    }
                    self.hub = Some(Hub::new(boot, now));
                }
            }
            return Ok(true);
        }
        let kind = record.get("in").and_then(Value::as_str).ok_or("it names no input")?;
        let hub = self.started()?;
        if let (Some(op), "chunk") = (number("op"), kind) {
            let len = number("raw").and_then(|len| usize::try_from(len).ok()).ok_or("it has no length")?;
            self.wanted = Some((OpId(op), reply::stream(record), len));
        } else if let Some(op) = number("op") {
            let reply = reply::read(kind, record).ok_or_else(|| command::unknown(kind))?;
            hub.handle(now, Input::Reply { op: OpId(op), reply });
        } else if kind == "tick" {
            hub.handle(now, Input::Tick);
        } else {
            let command = command::read(kind, record).ok_or_else(|| command::unknown(kind))?;
            if record.get("beside").is_some() {
                // Its refusal was told to whoever gave it.
                let _ = hub.command(now, command);
            } else {
                hub.handle(now, Input::Command(command));
            }
        }
        Ok(true)
    }

    fn started(&mut self) -> Result<&mut Hub, String> {
        self.hub
            .as_mut()
            .ok_or_else(|| "the log does not begin with what the machine was made of".to_string())
    }

    /// Compares what comes out with the log. Unless `more` is said, nothing more may come.
    fn compare(&mut self, digests: &[Value], more: bool) -> Result<Step, String> {
        let hub = match &mut self.hub {
            Some(hub) => hub,
            None => return Err("outputs come before the first input".to_string()),
        };
        let mut same = VecDeque::new();
        for then in digests {
            let then = then.as_str().unwrap_or_default();
            let count = then.split_once('*').and_then(|(_, count)| count.parse().ok()).unwrap_or(1_u64);
            let mut group = Groups::default();
            let first = self.outputs + 1;
            let different = |now: Option<&Output>| {
                Step::Different(Box::new(Difference {
                    line: self.line,
                    output: first,
                    now: now.map(describe),
                    then: Some(then.to_string()),
                }))
            };
            for _ in 0..count {
                let Some(output) = hub.poll() else { return Ok(different(None)) };
                group.add(self.digests.of(&output), is_piece(&output));
                same.push_back(output);
            }
            if !group.all().iter().map(ToString::to_string).eq([then]) {
                let place = same.len().saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
                return Ok(different(same.get(place)));
            }
            self.outputs += count;
        }
        if !more && let Some(output) = hub.poll() {
            return Ok(Step::Different(Box::new(Difference {
                line: self.line,
                output: self.outputs + 1,
                now: Some(describe(&output)),
                then: None,
            })));
        }
        Ok(Step::Same(same))
    }
}
