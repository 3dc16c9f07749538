//! The clock: monotonic since the start of the backend, wall time at each call.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tau_core::now::{Mono, Now, Wall};

/// Gives the time that inputs carry.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// Starts at 0 ms.
    #[must_use]
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Now {
        Now { mono: self.mono(), wall: wall() }
    }

    /// Milliseconds since the start.
    #[must_use]
    pub fn mono(&self) -> Mono {
        Mono(u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// Time left until `deadline`, rounded up so that the deadline has passed afterwards; zero when it has already.
    #[must_use]
    pub fn until(&self, deadline: Mono) -> Duration {
        let due = Duration::from_millis(deadline.0);
        due.saturating_sub(self.start.elapsed())
    }
}

/// Wall-clock time.
#[must_use]
pub fn wall() -> Wall {
    let ms = |d: Duration| i64::try_from(d.as_millis()).unwrap_or(i64::MAX);
    Wall(match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => ms(after),
        Err(before) => -ms(before.duration()),
    })
}
