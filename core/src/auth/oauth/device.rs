//! Codes typed on another device: what is shown, and how often the service is asked (RFC 8628, spec 40 §2.3).

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use super::form::web_address;
use super::script::{Go, Notice, Response, Tape, fail};
use crate::json::Value;

pub(super) const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

const LEAST_MS: i64 = 1000;
const DEFAULT_MS: i64 = 5000;
const SLOWER_MS: i64 = 5000;

/// When to ask next. Times are ms.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    interval: i64,
    deadline: Option<i64>,
    slowed: bool,
}

impl Pace {
    /// As the service wishes, in seconds.
    #[must_use]
    pub fn new(now: i64, interval: Option<f64>, expires: Option<f64>) -> Self {
        let deadline = expires.map(|seconds| now.saturating_add(ms(seconds)));
        let interval = interval.map_or(DEFAULT_MS, |seconds| ms(seconds).max(LEAST_MS));
        Self { interval, deadline, slowed: false }
    }

    /// Whether the code counts no more.
    #[must_use]
    pub fn is_over(&self, now: i64) -> bool {
        self.deadline.is_some_and(|deadline| now >= deadline)
    }

    /// How long to wait now; not beyond the end of the code.
    #[must_use]
    pub fn wait(&self, now: i64) -> u64 {
        let left = self.deadline.map_or(i64::MAX, |deadline| deadline.saturating_sub(now));
        u64::try_from(self.interval.min(left)).unwrap_or_default()
    }

    /// The service wants to be asked less often, perhaps this often (seconds).
    pub fn slow_down(&mut self, interval: Option<f64>) {
        self.slowed = true;
        self.interval = match interval.filter(|seconds| *seconds > 0.0) {
            Some(seconds) => ms(seconds).max(LEAST_MS),
            None => self.interval.saturating_add(SLOWER_MS),
        };
    }

    /// Whether it wanted that: a code that ran out then hints at a clock that is wrong.
    #[must_use]
    pub const fn was_slowed(&self) -> bool {
        self.slowed
    }
}

fn ms(seconds: f64) -> i64 {
    (seconds * 1000.0) as i64
}

/// What the service says when asked.
pub(super) enum Poll<T> {
    Complete(T),
    Pending,
    SlowDown(Option<f64>),
}

/// Asks until there is an answer or the code has run out.
pub(super) fn poll<'a, T>(
    tape: &mut Tape<'a>,
    mut pace: Pace,
    wait_first: bool,
    ask: &mut dyn FnMut(&mut Tape<'a>) -> Go<Poll<T>>,
) -> Go<T> {
    if wait_first {
        tape.wait(pace.wait(tape.now))?;
    }
    while !pace.is_over(tape.now) {
        match ask(tape)? {
            Poll::Complete(value) => return Ok(value),
            Poll::Pending => {}
            Poll::SlowDown(interval) => pace.slow_down(interval),
        }
        tape.wait(pace.wait(tape.now))?;
    }
    fail(if pace.was_slowed() {
        "the code ran out before it was confirmed; look whether the clock of this machine is right, and try again"
    } else {
        "the code ran out before it was confirmed; try again"
    })
}

/// What one answer of a token endpoint means.
pub(super) fn read(response: &Response<'_>) -> Go<Poll<Value>> {
    match response.error_code().as_deref() {
        Some("authorization_pending") => Ok(Poll::Pending),
        Some("slow_down") => Ok(Poll::SlowDown(response.json().get("interval").and_then(Value::as_f64))),
        Some("access_denied" | "authorization_denied") => fail("the sign-in was denied"),
        Some("expired_token") => fail("the code has expired; try again"),
        Some(_) => fail(format!("signing in failed: {}", response.told())),
        None => response.good("signing in").map(Poll::Complete),
    }
}

/// A code to show.
pub(super) struct Code {
    pub(super) device: String,
    pub(super) user: String,
    pub(super) address: String,
    pub(super) interval: Option<f64>,
    pub(super) expires: Option<f64>,
}

/// What kinds of addresses a service may send people to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Addresses {
    /// Any of the web; one that holds the code already is better.
    Web,
    /// Only encrypted ones.
    Encrypted,
    /// One that holds the code must be there.
    Complete,
}

impl Code {
    pub(super) fn read(answer: &Value, addresses: Addresses) -> Go<Self> {
        let text = |key: &str| answer.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let number = |key: &str| answer.get(key).and_then(Value::as_f64).filter(|number| *number > 0.0);
        let (Some(device), Some(user), Some(plain)) =
            (text("device_code"), text("user_code"), text("verification_uri"))
        else {
            return fail(
                "Invalid answer of the service: device_code, user_code or verification_uri is missing",
            );
        };
        let complete = text("verification_uri_complete");
        if addresses == Addresses::Complete && complete.is_none() {
            return fail("Invalid answer of the service: verification_uri_complete is missing");
        }
        for address in [Some(plain), complete].into_iter().flatten() {
            let good = web_address(address)
                .is_some_and(|address| addresses != Addresses::Encrypted || address.starts_with("https://"));
            if !good {
                return fail("Untrusted address in the answer of the service (verification_uri)");
            }
        }
        Ok(Self {
            device: device.to_owned(),
            user: user.to_owned(),
            address: complete.unwrap_or(plain).trim().to_owned(),
            interval: number("interval"),
            expires: number("expires_in"),
        })
    }

    /// Shows it, and tells how often to ask.
    pub(super) fn show(&self, tape: &mut Tape<'_>) -> Go<Pace> {
        let pace = Pace::new(tape.now, self.interval, self.expires);
        tape.tell(Notice::DeviceCode {
            code: self.user.clone(),
            address: self.address.clone(),
            interval: self.interval,
            expires: self.expires,
        })?;
        Ok(pace)
    }
}
