//! A conversation that waits for the world without being a hand-made state machine: the script is run from its
//! beginning with all answers so far, and stops at the first question that has none.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Hosts, form, refresh};
use crate::json::{Value, parse, to_string};
use crate::op::HttpRequest;

/// A single request may take this long, ms.
const REQUEST_LIMIT_MS: u64 = 30_000;

/// Most characters of a foreign text inside a message.
const MOST_TOLD: usize = 300;

/// What a script wants.
#[derive(Clone, Debug)]
pub enum Ask {
    /// An exchange; [`Answer::Http`] or [`Answer::NoAnswer`].
    Http(HttpRequest),
    /// Milliseconds to wait; [`Answer::Done`].
    Wait(u64),
}

/// What it is told.
#[derive(Clone)]
pub enum Answer {
    /// A whole response.
    Http {
        /// Status code.
        status: u16,
        /// The body.
        body: Vec<u8>,
    },
    /// The exchange failed; why, without secrets.
    NoAnswer(String),
    /// What was asked for has been done.
    Done,
}

/// Where a script stands.
#[derive(Clone)]
pub enum Step {
    /// It needs this.
    Ask(Ask),
    /// It has ended: the credential to store.
    Done(Value),
    /// It has failed; for people, holds no secret.
    Failed(String),
}

/// One conversation.
pub struct Script {
    job: Job,
    hosts: Hosts,
    answers: Vec<(i64, Answer)>,
    began: i64,
}

enum Job {
    Refresh { provider: String, entry: Value },
}

impl Script {
    /// A new token for a stored sign-in.
    #[must_use]
    pub fn refresh(provider: &str, entry: &Value, hosts: Hosts, now: i64) -> Self {
        let job = Job::Refresh { provider: provider.to_owned(), entry: entry.clone() };
        Self { job, hosts, answers: Vec::new(), began: now }
    }

    /// The first step.
    #[must_use]
    pub fn begin(&self) -> Step {
        self.run()
    }

    /// The step after an answer, which came at `now`, ms since 1970.
    #[must_use]
    pub fn answer(&mut self, now: i64, answer: Answer) -> Step {
        self.answers.push((now, answer));
        self.run()
    }

    fn run(&self) -> Step {
        let mut tape = Tape { answers: &self.answers, now: self.began, hosts: &self.hosts };
        let ended = match &self.job {
            Job::Refresh { provider, entry } => refresh::refresh(&mut tape, provider, entry),
        };
        match ended {
            Ok(entry) => Step::Done(entry),
            Err(Stop::Ask(ask)) => Step::Ask(*ask),
            Err(Stop::Failed(text)) => Step::Failed(self.without_secrets(text)),
        }
    }

    /// A service may repeat in its text what it was sent.
    fn without_secrets(&self, mut text: String) -> String {
        let Job::Refresh { entry, .. } = &self.job;
        for secret in ["access", "refresh"].into_iter().filter_map(|key| entry.get(key)?.as_str()) {
            if secret.len() >= 6 {
                text = text.replace(secret, "***");
            }
        }
        text
    }
}

/// Why a script does not go on.
pub(super) enum Stop {
    Ask(Box<Ask>),
    Failed(String),
}

pub(super) type Go<T> = Result<T, Stop>;

pub(super) fn fail<T>(text: impl Into<String>) -> Go<T> {
    Err(Stop::Failed(text.into()))
}

/// The answers, read from the first on.
pub(super) struct Tape<'a> {
    answers: &'a [(i64, Answer)],
    /// When the last answer came.
    pub(super) now: i64,
    pub(super) hosts: &'a Hosts,
}

/// A response.
pub(super) struct Response<'a> {
    pub(super) status: u16,
    body: &'a [u8],
}

impl<'a> Tape<'a> {
    fn ask(&mut self, ask: Ask) -> Go<&'a Answer> {
        let Some(((now, answer), rest)) = self.answers.split_first() else {
            return Err(Stop::Ask(Box::new(ask)));
        };
        self.answers = rest;
        self.now = *now;
        Ok(answer)
    }

    pub(super) fn wait(&mut self, ms: u64) -> Go<()> {
        self.ask(Ask::Wait(ms)).map(|_| ())
    }

    /// One exchange.
    pub(super) fn http(&mut self, request: Send<'_>) -> Go<Response<'a>> {
        match self.try_http(request)? {
            Ok(response) => Ok(response),
            Err(why) => fail(why),
        }
    }

    /// One exchange, whose failure is not the end.
    pub(super) fn try_http(&mut self, request: Send<'_>) -> Go<Result<Response<'a>, String>> {
        match self.ask(Ask::Http(request.into_request()))? {
            Answer::Http { status, body } => Ok(Ok(Response { status: *status, body })),
            Answer::NoAnswer(why) => Ok(Err(why.clone())),
            Answer::Done => fail("the exchange was not made"),
        }
    }
}

impl Response<'_> {
    pub(super) const fn is_good(&self) -> bool {
        matches!(self.status, 200..=299)
    }

    /// The body as JSON; `Null` when it is none.
    pub(super) fn json(&self) -> Value {
        core::str::from_utf8(self.body).ok().and_then(|text| parse(text).ok()).unwrap_or_default()
    }

    /// The answer of a request that worked.
    pub(super) fn good(&self, what: &str) -> Go<Value> {
        if !self.is_good() {
            return fail(format!("{what} failed: {}", self.told()));
        }
        match self.json() {
            Value::Object(fields) => Ok(Value::Object(fields)),
            _ => fail(format!("{what} failed: Invalid answer, it is no JSON object")),
        }
    }

    /// Status and what the service says, for a message.
    pub(super) fn told(&self) -> String {
        let body = self.json();
        let mut parts = Vec::new();
        let mut add = |value: Option<&Value>| {
            if let Some(text) = value.and_then(Value::as_str) {
                parts.push(text.to_owned());
            }
        };
        let error = body.get("error");
        add(error);
        add(error.and_then(|error| error.get("code")));
        add(error.and_then(|error| error.get("message")));
        for key in ["error_description", "detail", "message"] {
            add(body.get(key));
        }
        if parts.is_empty() && !body.is_object() {
            parts.push(String::from_utf8_lossy(self.body).trim().to_owned());
        }
        let text: String = parts.join(": ").chars().take(MOST_TOLD).collect();
        if text.is_empty() {
            format!("status {}", self.status)
        } else {
            format!("status {}: {text}", self.status)
        }
    }
}

/// A request in the making.
pub(super) struct Send<'a> {
    method: &'static str,
    url: &'a str,
    headers: Vec<(&'a str, String)>,
    body: String,
}

impl<'a> Send<'a> {
    pub(super) const fn get(url: &'a str) -> Self {
        Self { method: "GET", url, headers: Vec::new(), body: String::new() }
    }

    pub(super) fn form(url: &'a str, pairs: &[(&str, &str)]) -> Self {
        let headers = alloc::vec![("content-type", "application/x-www-form-urlencoded".to_string())];
        Self { method: "POST", url, headers, body: form::encode(pairs) }
    }

    pub(super) fn json(url: &'a str, body: &Value) -> Self {
        let headers = alloc::vec![("content-type", "application/json".to_string())];
        Self { method: "POST", url, headers, body: to_string(body) }
    }

    pub(super) fn accept_json(self) -> Self {
        self.header("accept", "application/json")
    }

    pub(super) fn bearer(self, token: &str) -> Self {
        self.header("authorization", format!("Bearer {token}"))
    }

    pub(super) fn header(mut self, name: &'a str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn into_request(self) -> HttpRequest {
        HttpRequest {
            method: self.method,
            url: self.url.to_owned(),
            headers: self.headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            body: Arc::new(self.body.into_bytes()),
            head_timeout_ms: Some(REQUEST_LIMIT_MS),
            idle_timeout_ms: Some(REQUEST_LIMIT_MS),
            proxy: None,
        }
    }
}
