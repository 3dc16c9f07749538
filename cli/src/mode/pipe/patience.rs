//! How long a write waits for a client that reads nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::signals::Signals;

/// After its last command a client may pause this long in reading.
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// For ever, unless the program is about to end.
pub struct Patience {
    signals: Arc<Signals>,
    ended: AtomicBool,
    leaving: AtomicBool,
}

impl Patience {
    /// A signal ends it.
    pub const fn new(signals: Arc<Signals>) -> Self {
        Self { signals, ended: AtomicBool::new(false), leaving: AtomicBool::new(false) }
    }

    /// The client will not send anything more.
    pub fn input_ended(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }

    /// The program ends because of a signal.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::SeqCst);
    }

    /// Whether a write that has been stuck for so long gives up.
    pub fn is_over(&self, stuck: Duration) -> bool {
        let hurry = self.signals.pending() || self.leaving.load(Ordering::SeqCst);
        hurry || (self.ended.load(Ordering::SeqCst) && stuck >= LAST_PAUSE)
    }
}
