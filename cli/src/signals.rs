//! SIGINT, SIGTERM and SIGHUP: the first one is noted and wakes the main thread, which ends the run in order.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::low_level::register;
use tau_io_std::sys::wake::Wake;

/// A file that grows beyond the limit of the process is an error of its writing, not the end of the program. Programs
/// that are started do not take this over.
pub fn survive_limits() {
    // SAFETY: the handler does nothing.
    #[allow(unsafe_code)]
    let _ = unsafe { register(SIGXFSZ, || {}) };
}

/// Signals that ever came.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// How many signals came to this process since [`Signals::listen`].
#[must_use]
pub fn count() -> u32 {
    COUNT.load(Ordering::SeqCst)
}

/// Signals that came and were not looked at yet.
#[derive(Default)]
pub struct Signals {
    last: Arc<AtomicU8>,
}

impl Signals {
    /// Begins to listen. Each signal wakes `waker`.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn listen(&self, waker: &Arc<Wake>) -> io::Result<()> {
        for (signal, number) in [(SIGINT, 2), (SIGTERM, 15), (SIGHUP, 1)] {
            let (last, waker) = (Arc::clone(&self.last), Arc::clone(waker));
            // SAFETY: the handler stores two numbers and writes a byte to a pipe that never blocks, both of which are
            // async-signal-safe; it neither allocates nor locks nor panics.
            #[allow(unsafe_code)]
            unsafe {
                register(signal, move || {
                    COUNT.fetch_add(1, Ordering::SeqCst);
                    // The note is made before the waiting thread is woken.
                    last.store(number, Ordering::SeqCst);
                    waker.wake();
                })?;
            }
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
        Some(self.last.swap(0, Ordering::SeqCst)).filter(|number| *number > 0)
    }
}
