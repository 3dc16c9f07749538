//! `ls`: the entries of one folder (spec 50 §6.3).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::listing::Listing;
use super::place::Candidates;
use super::script::{Next, Script, Scripted};
use super::{ToolEnv, ToolMachine, ToolOutput, args};
use crate::fault::{FaultKind, IoFault};
use crate::json::Value;
use crate::op::{EntryKind, FsOp, Op, Outcome};

/// Entries shown unless `limit` says otherwise.
const LIMIT: u64 = 500;

/// Starts a call.
pub(super) fn machine(args: Arc<Value>) -> Box<dyn ToolMachine> {
    Box::new(Scripted::new(Ls { args, path: None }))
}

struct Ls {
    args: Arc<Value>,
    path: Option<Candidates>,
}

impl Script for Ls {
    fn begin(&mut self, env: &ToolEnv) -> Next {
        match Candidates::to_read(env, args::text(&self.args, "path").unwrap_or_default()) {
            Ok(path) => self.path.insert(path),
            Err(why) => return Next::fail(format!("Cannot list the folder: {why}")),
        };
        self.ask()
    }

    fn resume(&mut self, _: &ToolEnv, result: Result<Outcome, IoFault>) -> Next {
        match result {
            Ok(Outcome::Entries(entries)) => Next::Done(listing(entries, args::limit(&self.args, LIMIT))),
            Ok(_) => {
                Next::fail(format!("Cannot list {}: the backend gave an unexpected answer.", self.current()))
            }
            Err(fault) if self.path.as_mut().is_some_and(|path| path.advance(&fault)) => self.ask(),
            Err(fault) => Next::fail(match fault.kind {
                FaultKind::NotFound => format!("Path not found: {}", self.current()),
                FaultKind::NotDir => format!("Not a folder: {}. Use read for files.", self.current()),
                _ => format!("Cannot list {}: {fault}.", self.current()),
            }),
        }
    }
}

impl Ls {
    fn current(&self) -> String {
        self.path.as_ref().map(|path| path.current().into()).unwrap_or_default()
    }

    fn ask(&self) -> Next {
        Next::ask(Op::Fs(FsOp::ReadDir { path: self.current() }))
    }
}

/// Blanks and punctuation in the order in which collation puts them, before digits and letters.
const PUNCTUATION: &str = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";

/// What names are sorted by: lower case, punctuation first.
fn sort_key(name: &str) -> Vec<u32> {
    let rank = |c: char| match PUNCTUATION.find(c) {
        Some(place) => place as u32,
        None => PUNCTUATION.len() as u32 + u32::from(c),
    };
    name.chars().flat_map(char::to_lowercase).map(rank).collect()
}

/// Sorted, ties by byte; broken links are left out.
fn listing(entries: Vec<(String, EntryKind)>, limit: u64) -> ToolOutput {
    let mut names: Vec<(Vec<u32>, String)> = entries
        .into_iter()
        .filter_map(|(name, kind)| {
            let key = sort_key(&name);
            match kind {
                EntryKind::Dir => Some((key, name + "/")),
                EntryKind::File | EntryKind::Other => Some((key, name)),
                EntryKind::Broken => None,
            }
        })
        .collect();
    crate::order::sort(&mut names, Ord::cmp);
    let limit_hit = (names.len() as u64 > limit).then_some(limit);
    let shown = names.len().min(usize::try_from(limit).unwrap_or(usize::MAX));
    let text: Vec<&str> = names.iter().take(shown).map(|(_, name)| name.as_str()).collect();
    Listing {
        text: text.join("\n"),
        nothing: "(the folder is empty)",
        noun: "entries",
        limit_key: "entryLimitReached",
        limit_hit,
        clipped: None,
    }
    .into_output()
}
