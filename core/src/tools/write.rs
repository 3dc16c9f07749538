//! `write`: creates or overwrites a file (spec 50 §3). Links are followed, modes kept, parents made.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::place::{self, Candidates};
use super::script::{Next, Script, Scripted};
use super::{ToolEnv, ToolMachine, ToolOutput, args};
use crate::fault::IoFault;
use crate::json::Value;
use crate::op::{EntryKind, FsOp, Lane, Op, Outcome, WriteHow};

/// Starts a call.
pub(super) fn machine(args: Arc<Value>) -> Box<dyn ToolMachine> {
    Box::new(Scripted::new(Write {
        args,
        at: At::Key,
        path: Candidates::default(),
        lane: Lane::Keys,
        bytes: Arc::default(),
    }))
}

struct Write {
    args: Arc<Value>,
    at: At,
    path: Candidates,
    lane: Lane,
    bytes: Arc<Vec<u8>>,
}

/// The op whose result comes next.
#[derive(Clone, Copy, PartialEq)]
enum At {
    /// `Stat`, for the key of the lane.
    Key,
    /// The write, parents not yet made.
    First,
    /// The parents.
    Parents,
    /// The write after the parents were made.
    Second,
}

impl Script for Write {
    fn begin(&mut self, env: &ToolEnv) -> Next {
        match Candidates::to_change(env, self.given()) {
            Ok(path) => self.path = path,
            Err(why) => return Next::fail(format!("Cannot write {}: {why}", self.given())),
        }
        self.ask_key()
    }

    fn resume(&mut self, _: &ToolEnv, result: Result<Outcome, IoFault>) -> Next {
        match (self.at, result) {
            (At::Key, Ok(Outcome::Meta(meta))) => match meta.kind {
                EntryKind::Dir => self.fail("a folder is there"),
                EntryKind::Other => self.fail("it is a device, socket or pipe"),
                EntryKind::File | EntryKind::Broken => self.enter(meta.real),
            },
            (At::Key, Err(fault)) if self.path.advance(&fault) => self.ask_key(),
            (At::Key, Err(fault)) if place::missing(&fault) => self.enter(self.path.current().into()),
            (At::First, Err(fault)) if place::missing(&fault) => {
                self.at = At::Parents;
                let path = place::parent(self.path.current());
                Next::Ask(self.lane.clone(), Op::Fs(FsOp::MkdirAll { path }))
            }
            (At::Parents, Ok(_)) => self.write(At::Second),
            (At::First | At::Second, Ok(_)) => {
                let size = self.bytes.len();
                Next::Done(ToolOutput::text(format!("Wrote {size} bytes to {}.", self.given())))
            }
            (_, Err(fault)) => self.fail(&fault.detail),
            (At::Key, Ok(_)) => self.fail("the backend gave an unexpected answer"),
        }
    }
}

impl Write {
    fn given(&self) -> &str {
        args::text(&self.args, "path").unwrap_or_default()
    }

    fn fail(&self, why: &str) -> Next {
        Next::fail(format!("Cannot write {}: {why}.", self.given()))
    }

    fn ask_key(&self) -> Next {
        Next::Ask(Lane::Keys, Op::Fs(FsOp::Stat { path: self.path.current().into() }))
    }

    fn enter(&mut self, key: String) -> Next {
        self.lane = Lane::Path(key);
        self.bytes = Arc::new(args::text(&self.args, "content").unwrap_or_default().as_bytes().to_vec());
        self.write(At::First)
    }

    fn write(&mut self, at: At) -> Next {
        self.at = at;
        let (path, bytes) = (self.path.current().into(), self.bytes.clone());
        Next::Ask(self.lane.clone(), Op::Fs(FsOp::Write { path, bytes, how: WriteHow::Through }))
    }
}
