//! Whether one request is sent again before its response is established (spec 10 §5.4, spec 30 §6).
//!
//! Goes by status and headers, never by words: a 429 for an exhausted quota is sent again here. Nothing is sent
//! again once a response has begun.

use super::{DelayTooLong, backoff_ms};
use crate::fault::{FaultKind, IoFault};
use crate::now::Wall;
use crate::op::Headers;
use crate::settings::ProviderRetry;
use crate::wire::http_head::{retry_after_ms, should_retry};

/// First computed wait, ms.
const BASE_MS: f64 = 500.0;
/// Longest computed wait, ms.
const CAP_MS: f64 = 8000.0;
/// Largest part of a computed wait that chance takes off.
const JITTER: f64 = 0.25;

/// How a request failed.
#[derive(Clone, Copy, Debug)]
pub enum Failure<'a> {
    /// The service answered with a status that is no success.
    Status {
        /// The status.
        status: u16,
        /// Headers of the response.
        headers: &'a Headers,
    },
    /// No response: the connection failed or took too long.
    Connection,
    /// Something that another try does not help: cancelled, a certificate, a request that cannot be made.
    Other,
}

impl From<&IoFault> for Failure<'_> {
    fn from(fault: &IoFault) -> Self {
        match fault.kind {
            FaultKind::Connect
            | FaultKind::Dns
            | FaultKind::Proxy
            | FaultKind::Reset
            | FaultKind::TimedOut
            | FaultKind::Other => Self::Connection,
            _ => Self::Other,
        }
    }
}

/// Limits of the retries of one request.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// How often the request may be sent again; 0 = never.
    pub max_retries: u64,
    /// Longest wait a service may ask for, ms; 0 = any.
    pub max_delay_ms: u64,
    /// Statuses that the caller deals with itself: never sent again, whatever the headers say.
    pub never: &'a [u16],
}

impl From<ProviderRetry> for Limits<'_> {
    fn from(settings: ProviderRetry) -> Self {
        Self {
            max_retries: settings.max_retries.unwrap_or_default(),
            max_delay_ms: settings.max_retry_delay_ms,
            never: &[],
        }
    }
}

/// What to do after a failed request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// Wait this many milliseconds, then send it again.
    Again(f64),
    /// Report the failure.
    Fail,
    /// Report that the service asks for a longer wait than allowed.
    TooLong(DelayTooLong),
}

/// Decides after a failure; `made` times the request was sent again already.
///
/// `unit` is a random number in `0..1` that spreads computed waits. The wait is the larger of the service's and our
/// own (D28); the limit concerns the service's only.
#[must_use]
pub fn decide(limits: &Limits<'_>, made: u64, failure: &Failure<'_>, now: Wall, unit: f64) -> Next {
    if made >= limits.max_retries || !is_retryable(limits, failure) {
        return Next::Fail;
    }
    let own = backoff_ms(BASE_MS, made.saturating_add(1), CAP_MS) * (1.0 - JITTER * unit);
    let asked = match failure {
        Failure::Status { headers, .. } => retry_after_ms(headers, now),
        Failure::Connection | Failure::Other => None,
    };
    #[allow(clippy::cast_precision_loss)]
    let most = limits.max_delay_ms as f64;
    match asked {
        Some(asked) if most > 0.0 && asked > most => Next::TooLong(DelayTooLong::new(asked, most)),
        Some(asked) => Next::Again(asked.max(own)),
        None => Next::Again(own),
    }
}

fn is_retryable(limits: &Limits<'_>, failure: &Failure<'_>) -> bool {
    match failure {
        Failure::Connection => true,
        Failure::Other => false,
        Failure::Status { status, .. } if limits.never.contains(status) => false,
        Failure::Status { status, headers } => {
            should_retry(headers).unwrap_or(matches!(status, 408 | 409 | 429 | 500..))
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn faults_of_the_world() {
        for (kind, sent_again) in [
            (FaultKind::Connect, true),
            (FaultKind::Dns, true),
            (FaultKind::Proxy, true),
            (FaultKind::Reset, true),
            (FaultKind::TimedOut, true),
            (FaultKind::Other, true),
            (FaultKind::Tls, false),
            (FaultKind::Cancelled, false),
            (FaultKind::Invalid, false),
            (FaultKind::TooBig, false),
        ] {
            let limits = Limits { max_retries: 1, max_delay_ms: 0, never: &[] };
            let fault = IoFault::new(kind, "x");
            let next = decide(&limits, 0, &Failure::from(&fault), Wall(0), 0.0);
            assert_eq!(next == Next::Again(500.0), sent_again, "{kind:?}");
        }
    }

    #[test]
    fn the_larger_wait_counts() {
        let limits = Limits { max_retries: 9, max_delay_ms: 60_000, never: &[] };
        let wait = |made, value: &str| {
            let headers = vec![("retry-after-ms".into(), value.into())];
            decide(&limits, made, &Failure::Status { status: 429, headers: &headers }, Wall(0), 0.0)
        };
        assert_eq!(wait(0, "0"), Next::Again(500.0));
        assert_eq!(wait(3, "900"), Next::Again(4000.0));
        assert_eq!(wait(3, "4000.5"), Next::Again(4000.5));
        assert_eq!(wait(8, "60000"), Next::Again(60_000.0));
        assert!(matches!(wait(0, "60001"), Next::TooLong(_)));
        assert_eq!(wait(9, "60001"), Next::Fail);
    }

    #[test]
    fn off_by_default() {
        let settings = ProviderRetry { timeout_ms: None, max_retries: None, max_retry_delay_ms: 60_000 };
        assert_eq!(decide(&settings.into(), 0, &Failure::Connection, Wall(0), 0.0), Next::Fail);
    }
}
