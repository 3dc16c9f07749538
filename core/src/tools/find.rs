//! `find`: names below a folder (spec 50 §6.2). Walking and matching are one op of the backend.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use super::listing::Listing;
use super::place::Candidates;
use super::script::{Next, Script, Scripted};
use super::{ToolEnv, ToolMachine, args};
use crate::fault::{FaultKind, IoFault};
use crate::json::Value;
use crate::op::{Op, Outcome, WalkSpec};

/// Results shown unless `limit` says otherwise.
const LIMIT: u64 = 1000;

/// Starts a call.
pub(super) fn machine(args: Arc<Value>) -> Box<dyn ToolMachine> {
    Box::new(Scripted::new(Find { args, root: None }))
}

struct Find {
    args: Arc<Value>,
    root: Option<Candidates>,
}

impl Script for Find {
    fn begin(&mut self, env: &ToolEnv) -> Next {
        match Candidates::to_read(env, args::text(&self.args, "path").unwrap_or_default()) {
            Ok(root) => self.root.insert(root),
            Err(why) => return Next::fail(format!("Cannot search the folder: {why}")),
        };
        self.ask()
    }

    fn resume(&mut self, _: &ToolEnv, result: Result<Outcome, IoFault>) -> Next {
        let limit = args::limit(&self.args, LIMIT);
        match result {
            Ok(Outcome::Paths { paths, more }) => Next::Done(
                Listing {
                    text: paths.join("\n"),
                    nothing: "No file or folder matches the pattern.",
                    noun: "results",
                    limit_key: "resultLimitReached",
                    limit_hit: more.then_some(limit),
                    clipped: None,
                }
                .into_output(),
            ),
            Ok(_) => Next::fail(format!(
                "Cannot search {}: the backend gave an unexpected answer.",
                self.current()
            )),
            Err(fault) if self.root.as_mut().is_some_and(|root| root.advance(&fault)) => self.ask(),
            Err(fault) => Next::fail(match fault.kind {
                FaultKind::NotFound => format!("Path not found: {}", self.current()),
                FaultKind::NotDir => {
                    format!("Not a folder: {}. find searches below a folder.", self.current())
                }
                FaultKind::Invalid => format!("Invalid glob: {fault}"),
                _ => format!("Cannot search {}: {fault}.", self.current()),
            }),
        }
    }
}

impl Find {
    fn current(&self) -> String {
        self.root.as_ref().map(|root| root.current().into()).unwrap_or_default()
    }

    fn ask(&self) -> Next {
        Next::ask(Op::Walk(WalkSpec {
            root: self.current(),
            pattern: args::text(&self.args, "pattern").unwrap_or_default().into(),
            limit: args::limit(&self.args, LIMIT),
        }))
    }
}
