//! Whether one request is sent again before its response is established (spec 10 §5.4, spec 30 §6).
//!
//! Goes by status and headers, never by words: a 429 for an exhausted quota is sent again here. ChatGPT's service is the
//! exception, see [`decide_codex`]. Nothing is sent again once a response has begun.

use super::classify::QUOTA;
use super::{DelayTooLong, backoff_ms};
use crate::fault::{FaultKind, IoFault};
use crate::now::Wall;
use crate::op::Headers;
use crate::provider::bedrock;
use crate::settings::ProviderRetry;
use crate::text::phrase::contains_any;
use crate::wire::http_head::{retry_after_ms, should_retry};

/// First computed wait, ms.
const BASE_MS: f64 = 500.0;
/// Longest computed wait, ms.
const CAP_MS: f64 = 8000.0;
/// Largest part of a computed wait that chance takes off.
const JITTER: f64 = 0.25;
/// First wait for ChatGPT's service, ms; each further one is twice as long.
const CODEX_BASE_MS: f64 = 1000.0;
/// Longest computed wait for it.
const CODEX_CAP_MS: f64 = 60_000.0;
/// Words of its failures that pass, whatever the status.
const CODEX_PASSING: &[&str] =
    &["rate~limit", "overloaded", "service~unavailable", "upstream~connect", "connection~refused"];
/// Words of a plan that is used up.
const CODEX_SPENT: &[&str] = &["usage~limit", "usage_not_included"];

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
    wait(limits, own, failure, now)
}

/// Decides for ChatGPT's service (spec 30 §6), by what it `said`: a plan that is used up is not asked again, words of a
/// passing failure count beside the status.
#[must_use]
pub fn decide_codex(limits: &Limits<'_>, made: u64, failure: &Failure<'_>, said: &str, now: Wall) -> Next {
    let spent = contains_any(said, CODEX_SPENT);
    let again = match failure {
        Failure::Connection => !spent,
        Failure::Other => false,
        Failure::Status { status: 429, .. } => !spent && !contains_any(said, QUOTA),
        Failure::Status { status, .. } => {
            matches!(status, 500 | 502 | 503 | 504) || (!spent && contains_any(said, CODEX_PASSING))
        }
    };
    if made >= limits.max_retries || !again {
        return Next::Fail;
    }
    wait(limits, backoff_ms(CODEX_BASE_MS, made.saturating_add(1), CODEX_CAP_MS), failure, now)
}

/// The wait before the next try: the larger of the service's and our own.
fn wait(limits: &Limits<'_>, own: f64, failure: &Failure<'_>, now: Wall) -> Next {
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
            let passing = || matches!(status, 408 | 409 | 429 | 500..) || is_throttled(headers);
            should_retry(headers).unwrap_or_else(passing)
        }
    }
}

/// Some services of AWS throttle with status 400 and name it in a header.
fn is_throttled(headers: &Headers) -> bool {
    let code = bedrock::failure::code_of(headers);
    code.is_some_and(|code| code.starts_with("Throttling") || code == "TooManyRequestsException")
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
    fn what_chatgpt_said_counts() {
        let limits = Limits { max_retries: 3, max_delay_ms: 60_000, never: &[] };
        let decide = |status, said: &str| {
            let failure = Failure::Status { status, headers: &vec![] };
            decide_codex(&limits, 0, &failure, said, Wall(0)) != Next::Fail
        };
        for (status, said, again) in [
            (429, "slow down", true),
            (429, r#"{"error":{"type":"usage_limit_reached"}}"#, false),
            (429, "insufficient_quota", false),
            (403, r#"{"error":{"code":"usage_not_included"}}"#, false),
            (500, "", true),
            (502, "", true),
            (503, "", true),
            (504, "", true),
            (501, "", false),
            (501, "Service Unavailable", true),
            (400, "overloaded", true),
            (400, "rate_limit", true),
            (400, "upstream connect error", true),
            (400, "connection refused", true),
            (400, "bad", false),
            (408, "", false),
        ] {
            assert_eq!(decide(status, said), again, "{status} {said}");
        }
        let lost = |said| decide_codex(&limits, 2, &Failure::Connection, said, Wall(0));
        assert_eq!(lost(""), Next::Again(4000.0));
        assert_eq!(lost("usage limit"), Next::Fail);
        let headers = vec![("retry-after".into(), "3".into())];
        let asked = |made| {
            decide_codex(&limits, made, &Failure::Status { status: 503, headers: &headers }, "", Wall(0))
        };
        assert_eq!([asked(0), asked(2), asked(3)], [Next::Again(3000.0), Next::Again(4000.0), Next::Fail]);
    }

    #[test]
    fn off_by_default() {
        let settings = ProviderRetry { timeout_ms: None, max_retries: None, max_retry_delay_ms: 60_000 };
        assert_eq!(decide(&settings.into(), 0, &Failure::Connection, Wall(0), 0.0), Next::Fail);
    }
}
