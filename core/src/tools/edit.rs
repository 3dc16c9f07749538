//! `edit`: exact replacements in one file (spec 50 §4). Reading and writing back happen in the file's lane, so that
//! parallel edits of one file are applied one after another.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::edit_apply::{Applied, apply};
use super::edit_match::EditError;
use super::place::{self, Candidates};
use super::script::{Next, Script, Scripted, details};
use super::{ToolEnv, ToolMachine, ToolOutput, args};
use crate::fault::IoFault;
use crate::json::Value;
use crate::op::{EntryKind, FsOp, Lane, Op, Outcome, WriteHow};

/// Largest file that is edited, bytes.
const MAX_FILE: u64 = 512 << 20;

/// Starts a call.
pub(super) fn machine(args: Arc<Value>) -> Box<dyn ToolMachine> {
    Box::new(Scripted::new(EditCall {
        args,
        at: At::Key,
        path: Candidates::default(),
        lane: Lane::Keys,
        output: None,
    }))
}

struct EditCall {
    args: Arc<Value>,
    at: At,
    path: Candidates,
    lane: Lane,
    /// The result, told once the file is written.
    output: Option<ToolOutput>,
}

/// The op whose result comes next.
#[derive(Clone, Copy)]
enum At {
    /// `Stat`, for the key of the lane.
    Key,
    /// The content.
    Content,
    /// The new content was written.
    Written,
}

impl Script for EditCall {
    fn begin(&mut self, env: &ToolEnv) -> Next {
        if self.pairs().is_none_or(|pairs| pairs.is_empty()) {
            return Next::fail(EditError::NoEdits.message(self.given(), 0));
        }
        match Candidates::to_change(env, self.given()) {
            Ok(path) => self.path = path,
            Err(why) => return Next::fail(format!("Cannot edit {}: {why}", self.given())),
        }
        self.ask_key()
    }

    fn resume(&mut self, _: &ToolEnv, result: Result<Outcome, IoFault>) -> Next {
        match (self.at, result) {
            (At::Key, Ok(Outcome::Meta(meta))) => match meta.kind {
                EntryKind::Dir => self.fail("it is a folder"),
                EntryKind::Other => self.fail("it is a device, socket or pipe"),
                EntryKind::File | EntryKind::Broken => self.read(meta.real),
            },
            (At::Key, Err(fault)) if self.path.advance(&fault) => self.ask_key(),
            // Nothing is there yet; a call that waits in the lane before this one may create it.
            (At::Key, Err(fault)) if place::missing(&fault) => self.read(self.path.current().into()),
            (At::Content, Ok(Outcome::Bytes(file))) => self.change(file),
            (At::Written, Ok(_)) => Next::Done(self.output.take().unwrap_or_default()),
            (_, Err(fault)) => self.fail(&fault.detail),
            (At::Key | At::Content, Ok(_)) => self.fail("the backend gave an unexpected answer"),
        }
    }
}

impl EditCall {
    fn given(&self) -> &str {
        args::text(&self.args, "path").unwrap_or_default()
    }

    /// The edits; `None` when the argument is not a list of pairs.
    fn pairs(&self) -> Option<Vec<(&str, &str)>> {
        let edits = self.args.get("edits")?.as_array()?;
        edits.iter().map(|edit| Some((args::text(edit, "oldText")?, args::text(edit, "newText")?))).collect()
    }

    fn fail(&self, why: &str) -> Next {
        Next::fail(format!("Cannot edit {}: {why}.", self.given()))
    }

    fn ask_key(&self) -> Next {
        Next::Ask(Lane::Keys, Op::Fs(FsOp::Stat { path: self.path.current().into() }))
    }

    fn read(&mut self, key: String) -> Next {
        self.lane = Lane::Path(key);
        self.at = At::Content;
        Next::Ask(self.lane.clone(), Op::Fs(FsOp::Read { path: self.path.current().into(), limit: MAX_FILE }))
    }

    fn change(&mut self, file: Vec<u8>) -> Next {
        let invalid = core::str::from_utf8(&file).err().map(|error| error.valid_up_to());
        let pairs = self.pairs().unwrap_or_default();
        let (path, count) = (self.given(), pairs.len());
        match apply(file, &pairs, path) {
            Ok(Applied { bytes, diff }) => {
                let noun = if count == 1 { "replacement" } else { "replacements" };
                let facts = [("diff", Value::from(diff.display)), ("patch", Value::from(diff.patch))];
                let line = diff.first_changed_line.map(|line| ("firstChangedLine", Value::from(line)));
                self.output = Some(ToolOutput {
                    details: details(facts.into_iter().chain(line)),
                    ..ToolOutput::text(format!("Made {count} {noun} in {path}."))
                });
                self.at = At::Written;
                let (path, bytes) = (self.path.current().into(), Arc::new(bytes));
                Next::Ask(self.lane.clone(), Op::Fs(FsOp::Write { path, bytes, how: WriteHow::Through }))
            }
            Err(error) => {
                let mut text = error.message(path, count);
                if let (EditError::NotFound(_), Some(at)) = (&error, invalid) {
                    text.push_str(&format!(
                        " The file is not valid UTF-8 (first invalid byte at offset {at}), so only text before and \
                         after such bytes can be matched, and only exactly."
                    ));
                }
                Next::fail(text)
            }
        }
    }
}
