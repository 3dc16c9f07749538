//! A program that believes a person sits in front of it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::process::{Command, Stdio};
use std::thread;

use crate::program::Run;

/// Runs a command with a terminal for input and errors, on which someone types `typed`. What the terminal shows is
/// given as standard error.
///
/// # Panics
/// When there is no terminal to be had, or the program cannot be started.
#[must_use]
pub fn run(command: Command, typed: &str) -> Run {
    start(command, typed, false)
}

/// As [`run`], with the terminal for standard output, too: everything is given as standard error.
///
/// # Panics
/// As [`run`].
#[must_use]
pub fn run_wholly(command: Command, typed: &str) -> Run {
    start(command, typed, true)
}

#[allow(unsafe_code)]
fn start(mut command: Command, typed: &str, wholly: bool) -> Run {
    let (mut ours, mut theirs) = (0, 0);
    // SAFETY: both numbers are live variables; null stands for the usual name, modes and size.
    let made = unsafe {
        let null = std::ptr::null_mut();
        libc::openpty(&raw mut ours, &raw mut theirs, null, null.cast(), null.cast())
    };
    assert_eq!(made, 0, "no terminal: {}", std::io::Error::last_os_error());
    // SAFETY: both descriptors were just made and belong to nobody else.
    let (mut ours, theirs) = unsafe { (File::from_raw_fd(ours), File::from_raw_fd(theirs)) };
    let input = theirs.try_clone().unwrap_or_else(|e| panic!("terminal: {e}"));
    let stdout = if wholly {
        Stdio::from(theirs.try_clone().unwrap_or_else(|e| panic!("terminal: {e}")))
    } else {
        Stdio::piped()
    };
    command.stdin(Stdio::from(input)).stdout(stdout).stderr(Stdio::from(theirs));
    let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    // Its descriptors close with it, so that the end can be read.
    drop(command);
    let mut reader = ours.try_clone().unwrap_or_else(|e| panic!("terminal: {e}"));
    let shown = thread::spawn(move || {
        let mut bytes = Vec::new();
        // The last reader of a terminal is told with an error.
        let _ = reader.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let _ = ours.write_all(typed.as_bytes());
    let mut out = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        let _ = stdout.read_to_string(&mut out);
    }
    let code = child.wait().ok().and_then(|status| status.code());
    drop(ours);
    Run { code, out, err: shown.join().unwrap_or_default() }
}
