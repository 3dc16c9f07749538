//! The flight recorder (decisions D60, D61): the inputs of a machine as lines, and the machine run again from them.
//!
//! A log is JSON, one record a line, and bytes of bodies and pipes as they are. The first line is what the machine was made of; then each input with its time,
//! and after it a digest of every output that followed:
//!
//! ```text
//! {"tau":1,"program":"0.1.0","m":0,"w":1790000000000,"boot":{…}}
//! {"m":12,"w":1790000000012,"in":"prompt","text":"hello","images":[]}
//! {"out":["9f31c2d07b1e","…"]}                        (and "more":true when an input came before everything was polled)
//! {"m":57,"w":1790000000057,"op":3,"in":"chunk","raw":212}
//! data: …                                             (212 bytes as they came, then a line feed)
//! ```
//!
//! Small chunks of a reply that nothing but deltas followed from share a line, with the time of the last one.
//!
//! When it is asked for, large bodies are kept apart, once each: `"body":"…"` stands for the fields, or the bytes, that
//! have this SHA-256.
//!
//! Inputs decide everything: the same lines give the same outputs, so a log needs no network, no files and no clock.
//! Secrets are not in it: a credential is recorded by what it consists of, and what a service repeats of it is starred
//! out. The conversation, the files that were read and the output of commands are in it.

mod boot;
mod command;
mod digest;
mod hash;
mod log;
mod replay;
mod reply;
mod value;

pub use boot::{SessionSource, read_boot, write_boot};
pub use digest::{Digest, Digests, Group, Groups, describe, is_piece};
pub use log::{FORMAT, KeepBody, Log, Places, ReadFile, Sink};
pub use replay::{Difference, FindBody, Replay, Step};

use crate::hub::{Boot, Output};
use crate::input::{Command, Input};
use crate::now::Now;
use crate::tools::ToolEnv;

/// Sees what goes into a hub and what comes out, see [`Hub::record`](crate::hub::Hub::record).
pub trait Recorder: Send {
    /// Another session took the place of the one before.
    fn renewed(&mut self, now: Now, boot: &Boot);
    /// An input.
    fn input(&mut self, now: Now, input: &Input);
    /// A command that was given beside the inputs: its refusal is no event.
    fn command(&mut self, now: Now, command: &Command);
    /// The surroundings of tools changed.
    fn env(&mut self, env: &ToolEnv);
    /// An output that was polled.
    fn output(&mut self, output: &Output);
    /// Polling gave nothing more.
    fn drained(&mut self);
}
