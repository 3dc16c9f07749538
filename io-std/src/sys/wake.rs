//! A descriptor that one thread waits on and any other makes readable.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, write};

/// Counts as signalled from [`wake`](Self::wake) until [`clear`](Self::clear).
#[derive(Debug)]
pub struct Wake {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl Wake {
    /// Makes one.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn new() -> std::io::Result<Self> {
        let (reader, writer) = pipe()?;
        Ok(Self { reader, writer })
    }

    /// Signals. Safe in a signal handler.
    pub fn wake(&self) {
        // A full pipe is signalled already.
        while write(&self.writer, &[1]) == Err(Errno::INTR) {}
    }

    /// Forgets earlier signals.
    pub fn clear(&self) {
        let mut buffer = [0u8; 64];
        while let Ok(n) = read(&self.reader, &mut buffer) {
            if n < buffer.len() {
                break;
            }
        }
    }

    /// Waits until signalled, at most for `limit`. An interrupting signal ends the wait too.
    pub fn wait(&self, limit: Option<Duration>) {
        let limit = limit.map(timespec);
        let _ = poll(&mut [PollFd::new(&self.reader, PollFlags::IN)], limit.as_ref());
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

#[cfg(target_os = "linux")]
fn pipe() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    use rustix::pipe::{PipeFlags, pipe_with};
    pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)
}

#[cfg(not(target_os = "linux"))]
fn pipe() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    use rustix::fs::{OFlags, fcntl_setfl};
    use rustix::io::{FdFlags, fcntl_setfd};
    let (reader, writer) = rustix::pipe::pipe()?;
    for fd in [&reader, &writer] {
        fcntl_setfd(fd, FdFlags::CLOEXEC)?;
        fcntl_setfl(fd, OFlags::NONBLOCK)?;
    }
    Ok((reader, writer))
}

/// A duration in the form that `poll` takes.
pub(crate) fn timespec(limit: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    }
}
