//! SIGINT, SIGTERM and SIGHUP: the first one is noted and wakes the main thread, which ends the run in order.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Once};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::low_level::{emulate_default_handler, register};
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

/// While it lives, signals that end the program wait: what is under way is paid for already, such as a token that can be
/// used once. Where somebody listens to them, they are looked at in order anyway.
pub struct Patience(());

/// How many such things are under way.
static PATIENT: AtomicU8 = AtomicU8::new(0);
/// The signal that came meanwhile.
static WAITING: AtomicU8 = AtomicU8::new(0);
/// Whether somebody listens.
static LISTENING: AtomicBool = AtomicBool::new(false);

impl Patience {
    /// Begins to wait.
    #[must_use]
    pub fn begin() -> Self {
        static ONCE: Once = Once::new();
        if !LISTENING.load(Ordering::SeqCst) {
            ONCE.call_once(|| ALL.into_iter().for_each(|(signal, number)| be_patient(signal, number)));
        }
        PATIENT.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        if PATIENT.fetch_sub(1, Ordering::SeqCst) == 1 && !LISTENING.load(Ordering::SeqCst) {
            let number = WAITING.swap(0, Ordering::SeqCst);
            if let Some((signal, _)) = ALL.into_iter().find(|(_, own)| *own == number) {
                let _ = emulate_default_handler(signal);
            }
        }
    }
}

fn be_patient(signal: i32, number: u8) {
    // SAFETY: the handler reads and writes atomic numbers, or ends the program as if there were none.
    #[allow(unsafe_code)]
    let _ = unsafe {
        register(signal, move || {
            if PATIENT.load(Ordering::SeqCst) > 0 {
                WAITING.store(number, Ordering::SeqCst);
            } else if !LISTENING.load(Ordering::SeqCst) {
                let _ = emulate_default_handler(signal);
            }
        })
    };
}

/// Signals that end the program, and their numbers.
const ALL: [(i32, u8); 3] = [(SIGINT, 2), (SIGTERM, 15), (SIGHUP, 1)];

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
        LISTENING.store(true, Ordering::SeqCst);
        for (signal, number) in ALL {
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
