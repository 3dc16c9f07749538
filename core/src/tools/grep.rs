//! `grep`: lines of files below a folder (spec 50 §6.1). Searching is one op of the backend.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write as _;

use super::listing::Listing;
use super::place::Candidates;
use super::script::{Next, Script, Scripted};
use super::{ToolEnv, ToolMachine, ToolOutput, args};
use crate::fault::{FaultKind, IoFault};
use crate::json::Value;
use crate::op::{Hit, Op, Outcome, SearchSpec};

/// Matches shown unless `limit` says otherwise.
const LIMIT: u64 = 100;
/// Longest line shown, UTF-16 units.
const MAX_LINE: u32 = 500;
/// Follows a clipped line.
const CLIP_MARK: &str = " [clipped]";

/// Starts a call.
pub(super) fn machine(args: Arc<Value>) -> Box<dyn ToolMachine> {
    Box::new(Scripted::new(Grep { args, root: None }))
}

struct Grep {
    args: Arc<Value>,
    root: Option<Candidates>,
}

impl Script for Grep {
    fn begin(&mut self, env: &ToolEnv) -> Next {
        match Candidates::to_read(env, args::text(&self.args, "path").unwrap_or_default()) {
            Ok(root) => self.root.insert(root),
            Err(why) => return Next::fail(format!("Cannot search: {why}")),
        };
        self.ask()
    }

    fn resume(&mut self, _: &ToolEnv, result: Result<Outcome, IoFault>) -> Next {
        match result {
            Ok(Outcome::Hits { hits, more }) => {
                Next::Done(listing(&hits, more, args::limit(&self.args, LIMIT)))
            }
            Ok(_) => Next::fail(format!(
                "Cannot search {}: the backend gave an unexpected answer.",
                self.current()
            )),
            Err(fault) if self.root.as_mut().is_some_and(|root| root.advance(&fault)) => self.ask(),
            Err(fault) => Next::fail(match fault.kind {
                FaultKind::NotFound | FaultKind::NotDir => format!("Path not found: {}", self.current()),
                FaultKind::Invalid => format!("Invalid pattern or glob: {fault}"),
                _ => format!("Cannot search {}: {fault}.", self.current()),
            }),
        }
    }
}

impl Grep {
    fn current(&self) -> String {
        self.root.as_ref().map(|root| root.current().into()).unwrap_or_default()
    }

    fn ask(&self) -> Next {
        let context = args::number(&self.args, "context").map_or(0, args::whole);
        Next::ask(Op::Search(SearchSpec {
            root: self.current(),
            pattern: args::text(&self.args, "pattern").unwrap_or_default().into(),
            literal: args::flag(&self.args, "literal"),
            ignore_case: args::flag(&self.args, "ignoreCase"),
            glob: args::text(&self.args, "glob").map(Into::into),
            context: u32::try_from(context).unwrap_or(u32::MAX),
            limit: args::limit(&self.args, LIMIT),
            max_line: MAX_LINE,
        }))
    }
}

/// `path:n: text` for matches, `path-n- text` for context.
fn listing(hits: &[Hit], more: bool, limit: u64) -> ToolOutput {
    let lines: Vec<String> = hits.iter().map(line).collect();
    Listing {
        text: lines.join("\n"),
        nothing: "No line matches the pattern.",
        noun: "matches",
        limit_key: "matchLimitReached",
        limit_hit: more.then_some(limit),
        clipped: hits.iter().any(|hit| hit.clipped).then_some(MAX_LINE),
    }
    .into_output()
}

fn line(hit: &Hit) -> String {
    let mark = if hit.is_match { ':' } else { '-' };
    let mut out = String::with_capacity(hit.path.len() + hit.text.len() + 16);
    // Writing to a `String` cannot fail.
    let _ = write!(out, "{}{mark}{}{mark} {}", hit.path, hit.line, hit.text);
    if hit.clipped {
        out.push_str(CLIP_MARK);
    }
    out
}
