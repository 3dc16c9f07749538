//! Standard output: large writes, and a quiet end when the reader went away.

use std::io::Write as _;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use tau_io_std::sys::fault;

use crate::signals;

/// Writes past this many buffered bytes even when more is to come.
const FLUSH_AT: usize = 64 * 1024;

/// A pipe that can be written to takes this many bytes without blocking.
const PIECE: usize = 4096;

/// A buffer that one large record made larger than this is given back.
const KEPT: usize = 4 * FLUSH_AT;

/// After a signal a reader may pause this long.
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// How often a writer that is stuck looks whether to go on waiting.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Buffered standard output. Once the reader is gone, everything is dropped.
#[derive(Debug, Default)]
pub struct Out {
    buffer: String,
    closed: bool,
    /// Why nothing can be written any more, if that is not the reader's doing.
    trouble: Option<Errno>,
}

impl Out {
    /// The buffer, to append to. Call [`Out::settle`] afterwards.
    pub const fn buffer(&mut self) -> &mut String {
        &mut self.buffer
    }

    /// Whether the reader went away.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Writes if much is buffered.
    pub fn settle(&mut self) {
        if self.is_full() {
            self.flush();
        }
    }

    /// Writes what is buffered. A reader may take its time, but after a signal it may pause for a moment only, and
    /// after a second one not at all.
    pub fn flush(&mut self) {
        self.flush_unless(&|stuck| match signals::count() {
            0 => false,
            1 => stuck >= LAST_PAUSE,
            _ => true,
        });
    }

    /// As [`flush`](Self::flush), but while the reader takes nothing, `give_up` is asked from time to time (with the
    /// time since it took something); then the rest is dropped, and so is everything later.
    pub fn flush_unless(&mut self, give_up: &dyn Fn(Duration) -> bool) {
        let mut rest = self.buffer.as_bytes();
        let mut stuck: Option<Instant> = None;
        while !rest.is_empty() && !self.closed {
            if !is_writable() {
                let since = *stuck.get_or_insert_with(Instant::now);
                self.closed = give_up(since.elapsed());
                continue;
            }
            stuck = None;
            let piece = rest.get(..takes(rest.len())).unwrap_or(rest);
            match rustix::io::write(std::io::stdout(), piece) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => {
                    self.closed = true;
                    self.trouble = Some(error).filter(|error| *error != Errno::PIPE);
                }
            }
        }
        self.empty();
    }

    /// Whether something could not be written, a full disk for one; tells why on standard error. A reader that went
    /// away is no trouble.
    #[must_use]
    pub fn complain(&self) -> bool {
        if let Some(error) = self.trouble {
            note(&format!("standard output cannot be written: {}", fault::text(&error.into())));
        }
        self.trouble.is_some()
    }

    fn empty(&mut self) {
        self.buffer.clear();
        if self.buffer.capacity() > KEPT {
            self.buffer = String::new();
        }
    }

    /// Whether so much is buffered that it should be written although more is to come.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.buffer.len() >= FLUSH_AT
    }
}

/// How much standard output, which can be written to, takes without blocking: an empty pipe takes what it holds.
#[cfg(target_os = "linux")]
fn takes(wanted: usize) -> usize {
    let stdout = std::io::stdout();
    if wanted <= PIECE || !rustix::io::ioctl_fionread(&stdout).is_ok_and(|unread| unread == 0) {
        return PIECE;
    }
    rustix::pipe::fcntl_getpipe_size(&stdout).unwrap_or(PIECE)
}

/// How much standard output, which can be written to, takes without blocking.
#[cfg(not(target_os = "linux"))]
const fn takes(_: usize) -> usize {
    PIECE
}

/// Waits a moment for the reader. Also true when it went away: writing tells.
fn is_writable() -> bool {
    let stdout = std::io::stdout();
    poll(&mut [PollFd::new(&stdout, PollFlags::OUT)], Some(&LOOK)).is_ok_and(|ready| ready > 0)
}

/// Writes one line to standard error, harmless for terminals; nobody is told when that fails.
pub fn note(text: &str) {
    let line = format!("tau: {}\n", crate::visible::harmless(text));
    let _ = std::io::stderr().write_all(line.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_large_record_took_is_given_back() {
        let mut out = Out { closed: true, ..Out::default() };
        for (length, is_kept) in [(FLUSH_AT, true), (100 * FLUSH_AT, false), (0, true)] {
            out.buffer().push_str(&"x".repeat(length));
            let before = out.buffer().capacity();
            out.flush();
            assert_eq!((out.buffer().len(), out.buffer().capacity() == before), (0, is_kept), "{length}");
            out.buffer().push_str(&"x".repeat(length));
            out.flush_unless(&|_| true);
            assert!(out.buffer().capacity() <= KEPT, "{length}");
        }
    }
}
