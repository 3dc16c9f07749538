//! Connections that are kept between requests.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tau_core::op::{HttpRequest, host_of};

use super::connect::Conn;

/// How long an unused connection is kept.
const IDLE_AGE: Duration = Duration::from_secs(90);
/// Most unused connections, in all and to one place. One pool may serve thousands of agents.
const MOST: usize = 128;
const MOST_PER_PLACE: usize = 64;

/// Where a connection leads: the proxy setting belongs to it, so that a changed setting is not undone by a kept
/// connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    origin: String,
    proxy: Option<String>,
}

impl Place {
    pub(super) fn of(request: &HttpRequest) -> Self {
        Self { origin: host_of(&request.url), proxy: request.proxy.clone() }
    }
}

/// The connections, oldest first.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<Vec<(Place, Instant, Conn)>>);

impl Pool {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Place, Instant, Conn)>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let young = kept.iter().position(|(_, since, _)| since.elapsed() < IDLE_AGE).unwrap_or(kept.len());
        kept.drain(..young);
        kept
    }

    /// The connection to a place that was used last and is still good.
    pub(super) fn take(&self, place: &Place) -> Option<Conn> {
        let mut kept = self.lock();
        while let Some(at) = kept.iter().rposition(|(own, ..)| own == place) {
            let (.., conn) = kept.remove(at);
            if conn.wire.is_quiet() {
                return Some(conn);
            }
        }
        None
    }

    /// Keeps a connection; the one that was unused longest makes room.
    pub(super) fn keep(&self, place: Place, conn: Conn) {
        let mut kept = self.lock();
        let same = kept.iter().filter(|(own, ..)| *own == place).count();
        let oldest = if same >= MOST_PER_PLACE {
            kept.iter().position(|(own, ..)| *own == place)
        } else {
            (kept.len() >= MOST).then_some(0)
        };
        if let Some(at) = oldest {
            kept.remove(at);
        }
        kept.push((place, Instant::now(), conn));
    }
}
