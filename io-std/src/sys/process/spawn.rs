//! Starting a child: null input, one or two pipes, a session of its own.

use std::io::{self, ErrorKind, pipe};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tau_core::fault::{FaultKind, IoFault};
use tau_core::op::{ProcSpec, Stream};

use crate::sys::fault;

/// Capacity of the output pipe.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 256 << 10;

/// How the output is piped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// One pipe for both streams.
    Merged,
    /// A pipe each.
    Separate,
}

/// A running child and the pipes to read.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) pipes: Vec<(Stream, OwnedFd)>,
}

pub(super) fn spawn(spec: &ProcSpec, output: Output) -> Result<Started, IoFault> {
    let Some((program, args)) = spec.argv.split_first() else {
        return Err(IoFault::new(FaultKind::Invalid, "no program to start"));
    };
    let mut command = Command::new(program);
    command.args(args).current_dir(&spec.cwd).stdin(Stdio::null());
    for (name, value) in &spec.env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let pipes = connect(&mut command, output).map_err(fault::at(program))?;
    own_session(&mut command);
    match command.spawn() {
        Ok(child) => Ok(Started { child, pipes }),
        Err(e) => Err(why(&e, program, &spec.cwd)),
    }
}

/// The write ends live in the command and are closed with it.
fn connect(command: &mut Command, output: Output) -> io::Result<Vec<(Stream, OwnedFd)>> {
    let (reader, writer) = pipe()?;
    widen(&reader);
    let mut pipes = vec![(Stream::Stdout, reader.into())];
    match output {
        Output::Merged => command.stderr(writer.try_clone()?),
        Output::Separate => {
            let (reader, writer) = pipe()?;
            pipes.push((Stream::Stderr, reader.into()));
            command.stderr(writer)
        }
    };
    command.stdout(writer);
    Ok(pipes)
}

/// A child that prints a lot should not have to wait for each of our reads.
fn widen(pipe: &impl AsFd) {
    // More than the system allows this user is refused, and the pipe stays as it is.
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_BYTES);
    #[cfg(not(target_os = "linux"))]
    let _ = pipe;
}

/// A session of its own: no terminal to ask on, and one group to kill.
#[allow(unsafe_code)]
fn own_session(command: &mut Command) {
    // SAFETY: the closure runs between fork and exec and makes one system call, which is async-signal-safe; it
    // neither allocates nor touches memory of other threads.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            Ok(())
        });
    }
}

fn why(error: &io::Error, program: &str, cwd: &str) -> IoFault {
    if !Path::new(cwd).is_dir() {
        let text = format!("cannot start {program}: the working directory {cwd} does not exist");
        return IoFault::new(FaultKind::NotFound, text);
    }
    match error.kind() {
        ErrorKind::NotFound => {
            IoFault::new(FaultKind::NotFound, format!("cannot start {program}: no such program"))
        }
        _ => IoFault::new(fault::kind(error), format!("cannot start {program}: {}", fault::text(error))),
    }
}
