//! Blocking functions behind the ops, shared by all backends.

pub mod append;
pub mod atomic;
pub mod browser;
pub mod callback;
pub mod cancel;
pub mod claim;
pub mod clock;
pub mod env;
pub mod fault;
pub mod fs;
pub mod ignore_rules;
pub mod image;
#[cfg(feature = "inflate")]
pub mod inflate;
pub mod leftover;
mod lines;
pub mod lock;
pub mod mutex;
pub mod net;
pub mod process;
pub mod proxy;
pub mod random;
pub mod search;
pub mod session;
pub mod tls;
pub mod tree;
pub mod tunnel;
pub mod update;
mod utf16;
pub mod wake;
pub mod walk;

pub use cancel::CancelToken;

use tau_core::fault::{FaultKind, IoFault};
use tau_core::input::Reply;
use tau_core::op::{Op, Outcome};

/// Executes an op of files, search or processes on the calling thread. Partial replies (output of processes) go
/// to `partial` as they come; the result is the last reply.
///
/// # Errors
/// The fault of the op; `Invalid` for ops that need more than the operating system (HTTP, credentials, host tools).
pub fn run(op: &Op, partial: &mut dyn FnMut(Reply), cancel: &CancelToken) -> Result<Outcome, IoFault> {
    cancel.check()?;
    match op {
        Op::Fs(op) => fs::run(op, cancel),
        Op::Search(spec) => search::search(spec, cancel),
        Op::Walk(spec) => walk::walk(spec, cancel),
        Op::Proc(spec) => process::run(spec, partial, cancel).map(Outcome::Exit),
        Op::Append(op) => append::append(op),
        Op::Http(_) | Op::Secret(_) | Op::Host(_) | Op::Hook(_) => {
            Err(IoFault::new(FaultKind::Invalid, "this op is not one of files, search or processes"))
        }
    }
}

/// The last reply of an op.
#[must_use]
pub fn last(result: Result<Outcome, IoFault>) -> Reply {
    result.map_or_else(Reply::Failed, Reply::Done)
}
