//! Whether a failed run is tried again, and when: the session layer's policy `pi` (spec 10 §5, D17).
//!
//! Tables of words are in [`mod@classify`], the layer below (one request) in [`request`]. Tools are never run again.

pub mod classify;
pub mod request;

use alloc::format;
use alloc::string::String;

use crate::message::{AssistantMessage, StopReason};
use crate::overflow::is_overflow;
use crate::provider::advice::words;
use crate::settings::Retry;
use classify::{Class, classify};

/// What to do after a failed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Wait, then continue without the failed reply.
    Again {
        /// Number of this retry, from 1.
        attempt: u64,
        /// Wait in milliseconds.
        delay_ms: u64,
    },
    /// The failure stays: it is final, retries are off, or none is left.
    Over,
    /// The service asks for a longer wait than allowed.
    TooLong(DelayTooLong),
}

/// Decides after a run whose last reply is `reply`; `made` retries were made since the last good reply.
///
/// `window` is the context window of the model that answered (an overflow is not retried). `asked_ms` is the wait
/// that the service asked for in its headers, unless the request layer refused it already: then our own schedule
/// holds. The wait is the larger of both (D28).
#[must_use]
pub fn decide(
    settings: &Retry,
    made: u64,
    reply: &AssistantMessage,
    window: Option<u64>,
    asked_ms: Option<f64>,
) -> Decision {
    if !settings.enabled || made >= settings.max_retries || !is_retryable(reply, window) {
        return Decision::Over;
    }
    let attempt = made.saturating_add(1);
    #[allow(clippy::cast_precision_loss)]
    let (base, cap) = (settings.base_delay_ms as f64, settings.max_agent_delay_ms as f64);
    let asked = asked_ms.unwrap_or_default();
    if asked > cap {
        return Decision::TooLong(DelayTooLong::new(asked, cap));
    }
    Decision::Again { attempt, delay_ms: ceil(backoff_ms(base, attempt, cap).max(asked)) }
}

/// Whether a run that ended with this reply is worth another try: failed, not by overflow, and transient by its words.
#[must_use]
pub fn is_retryable(reply: &AssistantMessage, window: Option<u64>) -> bool {
    is_transient(reply) && !is_overflow(reply, window)
}

/// Whether a reply failed with the words of a transient failure.
#[must_use]
pub fn is_transient(reply: &AssistantMessage) -> bool {
    reply.stop_reason == StopReason::Error
        && words(reply).is_some_and(|text| classify(text) == Class::Transient)
}

/// `min(base · 2^(attempt − 1), cap)` in milliseconds, `attempt` from 1.
#[must_use]
pub fn backoff_ms(base_ms: f64, attempt: u64, cap_ms: f64) -> f64 {
    // No f64 survives more doublings than this without reaching any cap.
    const DOUBLINGS: u64 = 2100;
    let mut delay = base_ms.max(0.0);
    for _ in 1..attempt.min(DOUBLINGS) {
        if delay >= cap_ms {
            break;
        }
        delay *= 2.0;
    }
    delay.min(cap_ms)
}

/// A service asked for a longer wait than we allow: a failure, neither a long wait nor an early retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayTooLong {
    /// Seconds asked for, rounded up.
    pub asked_s: u64,
    /// Seconds allowed, rounded up.
    pub allowed_s: u64,
}

impl DelayTooLong {
    fn new(asked_ms: f64, allowed_ms: f64) -> Self {
        Self { asked_s: ceil(asked_ms / 1000.0), allowed_s: ceil(allowed_ms / 1000.0) }
    }

    /// The text of the failure around the service's own words. Contains `retry delay`, which the session layer takes
    /// as transient.
    #[must_use]
    pub fn message(&self, said: &str) -> String {
        let Self { asked_s, allowed_s } = self;
        format!("The service asks for a retry delay of {asked_s} s, the limit is {allowed_s} s: {said}")
    }
}

/// Rounds up; what no whole number holds saturates.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
pub(crate) fn ceil(number: f64) -> u64 {
    let whole = number as u64;
    whole.saturating_add(u64::from((whole as f64) < number))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Retry =
        Retry { enabled: true, max_retries: 3, base_delay_ms: 2000, max_agent_delay_ms: 60_000 };

    fn failed(text: &str) -> AssistantMessage {
        AssistantMessage {
            stop_reason: StopReason::Error,
            error_message: Some(text.into()),
            ..AssistantMessage::default()
        }
    }

    #[test]
    fn three_retries_after_2_4_and_8_seconds() {
        let reply = failed("503 busy");
        let decisions: alloc::vec::Vec<_> =
            (0..4).map(|made| decide(&SETTINGS, made, &reply, None, None)).collect();
        let again = |attempt, delay_ms| Decision::Again { attempt, delay_ms };
        assert_eq!(decisions, [again(1, 2000), again(2, 4000), again(3, 8000), Decision::Over]);
        assert_eq!(decide(&Retry { enabled: false, ..SETTINGS }, 0, &reply, None, None), Decision::Over);
        for text in ["401 no", "429 insufficient_quota", "503 prompt is too long"] {
            assert_eq!(decide(&SETTINGS, 0, &failed(text), None, None), Decision::Over, "{text}");
        }
    }

    #[test]
    fn the_wait_of_the_service_counts() {
        let reply = failed("429");
        let asked = |ms| decide(&SETTINGS, 0, &reply, None, Some(ms));
        assert_eq!(asked(100.0), Decision::Again { attempt: 1, delay_ms: 2000 });
        assert_eq!(asked(30_000.5), Decision::Again { attempt: 1, delay_ms: 30_001 });
        assert_eq!(asked(60_000.0), Decision::Again { attempt: 1, delay_ms: 60_000 });
        let too_long = DelayTooLong { asked_s: 61, allowed_s: 60 };
        assert_eq!(asked(60_001.0), Decision::TooLong(too_long));
        let text = too_long.message("429 later");
        assert!(text.contains("61 s") && text.contains("60 s") && text.contains("429 later"));
        assert_eq!(classify(&text), Class::Transient);
        assert_eq!(classify(&too_long.message("insufficient_quota")), Class::Quota);
    }

    #[test]
    fn extreme_settings_stay_finite() {
        assert_eq!(backoff_ms(0.0, u64::MAX, 60.0), 0.0);
        assert_eq!(backoff_ms(f64::MIN_POSITIVE, u64::MAX, 60.0), 60.0);
        assert_eq!(backoff_ms(-1.0, 3, 60.0), 0.0);
        assert_eq!(backoff_ms(5.0, 0, 60.0), 5.0);
        let largest = Retry {
            max_retries: u64::MAX,
            base_delay_ms: u64::MAX,
            max_agent_delay_ms: u64::MAX,
            ..SETTINGS
        };
        let decision = decide(&largest, u64::MAX - 1, &failed("503"), None, Some(f64::INFINITY));
        assert!(matches!(decision, Decision::TooLong(DelayTooLong { asked_s: u64::MAX, .. })));
        let decision = decide(&largest, u64::MAX - 1, &failed("503"), None, None);
        assert_eq!(decision, Decision::Again { attempt: u64::MAX, delay_ms: u64::MAX });
    }
}
