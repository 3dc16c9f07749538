//! SIGINT, SIGTERM and SIGHUP: the first one is noted and wakes the main thread, which ends the run in order.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level::pipe};

/// Signals that came and were not looked at yet.
#[derive(Default)]
pub struct Signals {
    last: Arc<AtomicUsize>,
}

impl Signals {
    /// Begins to listen. Each signal writes a byte into `waker`.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn listen(&self, waker: &OwnedFd) -> io::Result<()> {
        for (signal, number) in [(SIGINT, 2), (SIGTERM, 15), (SIGHUP, 1)] {
            // The note is made before the waiting thread is woken.
            flag::register_usize(signal, Arc::clone(&self.last), number)?;
            pipe::register(signal, waker.try_clone()?)?;
        }
        Ok(())
    }

    /// Whether a signal waits to be looked at.
    #[must_use]
    pub fn pending(&self) -> bool {
        self.last.load(Ordering::SeqCst) > 0
    }

    /// The number of a signal that came since the last look.
    #[must_use]
    pub fn take(&self) -> Option<u8> {
        u8::try_from(self.last.swap(0, Ordering::SeqCst)).ok().filter(|number| *number > 0)
    }
}
