//! Child processes under the contract of [`ProcSpec`] (bugs 51–61): no input, a session of their own, output
//! drained by byte, the whole group killed on cancel, no zombie left.
//!
//! Standard output and standard error of an op share one pipe, so that text arrives in the order in which it was
//! written; its chunks are marked [`Stream::Stdout`]. [`capture`] keeps them apart.

mod group;
mod pump;
mod spawn;
mod spill;

use std::time::{Duration, Instant};

use tau_core::fault::{FaultKind, IoFault};
use tau_core::input::Reply;
use tau_core::op::{ProcExit, ProcSpec, Stream};

use super::CancelToken;
use pump::{Limits, pump_blocking};

pub use group::kill_all;
pub use pump::Pump;
pub use spill::Spill;

/// Starts the process of an op, both streams in one pipe, for a backend that waits in its own way.
///
/// # Errors
/// As [`run`].
pub fn start(spec: &ProcSpec) -> Result<Pump, IoFault> {
    Pump::new(spawn::spawn(spec, spawn::Output::Merged)?, limits(spec, None))
}

/// Runs a process, hands its output over as it comes, and gives its end.
///
/// # Errors
/// When the process could not be started: `NotFound` for the program or the working directory, `Denied` …
pub fn run(
    spec: &ProcSpec,
    partial: &mut dyn FnMut(Reply),
    cancel: &CancelToken,
) -> Result<ProcExit, IoFault> {
    let pump = start(spec)?;
    let mut spill = spec.spill.clone().map(Spill::new);
    let mut exit = pump_blocking(pump, cancel, &mut |stream, bytes| {
        if let Some(spill) = &mut spill {
            spill.push(&bytes);
        }
        partial(Reply::Chunk { stream, bytes });
    })?;
    exit.spill = spill.and_then(Spill::finish);
    Ok(exit)
}

/// What a short command printed.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    /// How it ended.
    pub exit: ProcExit,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

/// Runs a short command and keeps what it prints, at most `limit` bytes of each stream; more of standard error is left out.
///
/// # Errors
/// As [`run`]; `TimedOut` when it did not end in time (its group is then killed), `TooBig` when it printed more to
/// standard output.
pub fn capture(
    spec: &ProcSpec,
    limit: usize,
    timeout: Option<Duration>,
    cancel: &CancelToken,
) -> Result<Captured, IoFault> {
    let program = spec.argv.first().map_or("", String::as_str);
    let child = spawn::spawn(spec, spawn::Output::Separate)?;
    let mut captured = Captured::default();
    let mut too_big = false;
    let deadline = timeout.map(|limit| Instant::now() + limit);
    let pump = Pump::new(child, limits(spec, deadline))?;
    captured.exit = pump_blocking(pump, cancel, &mut |stream, bytes| {
        let of_errors = stream == Stream::Stderr;
        let to = if of_errors { &mut captured.stderr } else { &mut captured.stdout };
        let room = limit.saturating_sub(to.len());
        too_big |= bytes.len() > room && !of_errors;
        to.extend_from_slice(bytes.get(..room).unwrap_or(&bytes));
    })?;
    cancel.check()?;
    if captured.exit.killed {
        return Err(IoFault::new(FaultKind::TimedOut, format!("{program}: did not end in time")));
    }
    if too_big {
        return Err(IoFault::new(FaultKind::TooBig, format!("{program}: printed more than {limit} bytes")));
    }
    Ok(captured)
}

fn limits(spec: &ProcSpec, deadline: Option<Instant>) -> Limits {
    Limits {
        idle: Duration::from_millis(spec.idle_after_exit_ms),
        most: Duration::from_millis(spec.max_after_exit_ms),
        deadline,
    }
}
