//! Commands that the user runs in the own shell (`!`, `!!`, RPC `bash`): spec 10 §8.5, spec 50 §10.4.
//!
//! They run beside everything else, several at once. Each leaves a [`BashExecution`] record, which the model sees with
//! the next prompt unless it is excluded.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::fault::{Fault, FaultKind, IoFault};
use crate::ids::OpId;
use crate::input::Reply;
use crate::message::{BashExecution, Message};
use crate::now::Wall;
use crate::op::{Outcome, ProcExit, ProcSpec};
use crate::text::user_shell::UserShellOutput;
use crate::tools::shell_env::without_session;
use crate::tools::{ToolEnv, bash};

/// A typed line that is a command for the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShellLine<'a> {
    /// The command.
    pub command: &'a str,
    /// Not for the model.
    pub excluded: bool,
}

impl<'a> ShellLine<'a> {
    /// Reads `!command` and `!!command`. `None` = an ordinary message; a mark without command is one, too.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix('!')?;
        let (rest, excluded) = rest.strip_prefix('!').map_or((rest, false), |rest| (rest, true));
        let command = rest.trim();
        (!command.is_empty()).then_some(Self { command, excluded })
    }
}

/// The commands under way.
#[derive(Debug, Default)]
pub struct Shells {
    running: Vec<Running>,
}

#[derive(Debug)]
struct Running {
    /// Chosen by the surface.
    id: u64,
    op: OpId,
    command: String,
    excluded: bool,
    output: UserShellOutput,
    cancelled: bool,
}

/// What a reply means.
#[derive(Debug)]
pub struct Heard {
    /// The command.
    pub id: u64,
    /// Clean text to show, may be empty.
    pub delta: String,
    /// How it ended, when it did: its record, or why it could not run.
    pub end: Option<Result<Arc<Message>, Fault>>,
}

/// The process of a command: as the `bash` tool runs it, but no variable tells it about the session.
///
/// # Errors
/// `no_shell`.
pub fn process(env: &ToolEnv, command: &str) -> Result<ProcSpec, Fault> {
    let spec = bash::process(env, command).map_err(|why| Fault::new("no_shell", why))?;
    Ok(ProcSpec { env: without_session(&env.command_env), ..spec })
}

impl Shells {
    /// A command was started.
    pub fn begin(&mut self, op: OpId, id: u64, command: String, excluded: bool) {
        let output = UserShellOutput::new();
        self.running.push(Running { id, op, command, excluded, output, cancelled: false });
    }

    /// Takes a reply. `None` when nothing follows from it.
    pub fn on_reply(&mut self, op: OpId, reply: &Reply, env: &ToolEnv, now: Wall) -> Option<Heard> {
        let at = self.running.iter().position(|running| running.op == op)?;
        if let Reply::Chunk { bytes, .. } = reply {
            let running = self.running.get_mut(at)?;
            let delta = running.output.push(bytes);
            return (!delta.is_empty()).then_some(Heard { id: running.id, delta, end: None });
        }
        if !reply.is_last() {
            return None;
        }
        let mut running = self.running.remove(at);
        let (id, delta) = (running.id, running.output.finish());
        let exit = match reply {
            Reply::Done(Outcome::Exit(exit)) => Ok(exit.clone()),
            // Cancelled before it began.
            Reply::Failed(fault) if fault.kind == FaultKind::Cancelled && running.cancelled => {
                Ok(ProcExit { killed: true, ..ProcExit::default() })
            }
            Reply::Failed(fault) => Err(fault.clone()),
            _ => Err(IoFault::new(FaultKind::Other, "the backend gave an unexpected answer")),
        };
        let end = exit
            .map(|exit| Arc::new(Message::Bash(running.record(exit, now))))
            .map_err(|fault| Fault::new("shell_start", bash::cannot_start(env, &fault)));
        Some(Heard { id, delta, end: Some(end) })
    }

    /// Ends all commands; the ops to cancel.
    pub fn abort(&mut self) -> Vec<OpId> {
        let left = self.running.iter_mut().filter(|running| !running.cancelled);
        left.map(|running| {
            running.cancelled = true;
            running.op
        })
        .collect()
    }
}

impl Running {
    fn record(self, exit: ProcExit, now: Wall) -> BashExecution {
        let end = self.output.tail();
        // It may have ended by itself just before the cancel came.
        let cancelled = self.cancelled && exit.killed;
        BashExecution {
            command: self.command,
            output: end.tail.content.into(),
            exit_code: exit.code.filter(|_| !cancelled).map(i64::from),
            cancelled,
            truncated: end.truncated,
            full_output_path: exit.spill,
            exclude_from_context: self.excluded,
            timestamp: now.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_for_the_shell() {
        for (text, wanted) in [
            ("!ls", Some(("ls", false))),
            ("!!  ls -l \n", Some(("ls -l", true))),
            ("! !x", Some(("!x", false))),
            ("!!!x", Some(("!x", true))),
            ("!", None),
            ("!! ", None),
            (" !ls", None),
            ("ls", None),
        ] {
            let line = ShellLine::parse(text).map(|line| (line.command, line.excluded));
            assert_eq!(line, wanted, "{text:?}");
        }
    }
}
