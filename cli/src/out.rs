//! Standard output: large writes, and a quiet end when the reader went away.

use std::io::Write as _;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Writes past this many buffered bytes even when more is to come.
const FLUSH_AT: usize = 64 * 1024;

/// Buffered standard output. Once the reader is gone, everything is dropped.
#[derive(Debug, Default)]
pub struct Out {
    buffer: String,
    closed: bool,
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
        if self.buffer.len() >= FLUSH_AT {
            self.flush();
        }
    }

    /// Writes what is buffered.
    pub fn flush(&mut self) {
        let mut rest = self.buffer.as_bytes();
        while !rest.is_empty() && !self.closed {
            match rustix::io::write(std::io::stdout(), rest) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => wait_until_writable(),
                Err(_) => self.closed = true,
            }
        }
        self.buffer.clear();
    }
}

/// Someone shares the descriptor and made it non-blocking.
fn wait_until_writable() {
    let stdout = std::io::stdout();
    let _ = poll(&mut [PollFd::new(&stdout, PollFlags::OUT)], None);
}

/// Writes one line to standard error; nobody is told when that fails.
pub fn note(text: &str) {
    let line = format!("tau: {text}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}
