//! A conversation that waits for the world without being a hand-made state machine: the script is run from its
//! beginning with all answers so far, and stops at the first question that has none.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Hosts, SignIn, form, refresh, sign_in};
use crate::json::{Value, parse, to_string};
use crate::op::{Headers, HttpRequest};

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
    /// Something to ask a person; [`Answer::Text`].
    Prompt(Prompt),
    /// Something to tell a person; [`Answer::Done`].
    Tell(Notice),
    /// Listen for a browser that comes back; [`Answer::Port`].
    Listen(Loopback),
    /// Wait for the browser, if something listens, and for what a person pastes, if that is asked for; whichever
    /// comes first: [`Answer::Query`] or [`Answer::Text`].
    Back {
        /// What to ask for meanwhile.
        prompt: Option<Prompt>,
        /// Whether a browser may come.
        listening: bool,
    },
    /// Answer the waiting browser with this status; [`Answer::Done`].
    Show(u16),
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// A line of text; may be empty.
    Text {
        /// The question.
        message: &'static str,
        /// What an answer looks like.
        placeholder: &'static str,
    },
    /// One of several; the answer is its id.
    Select {
        /// The question.
        message: &'static str,
        /// Ids and what they mean.
        ways: &'static [(&'static str, &'static str)],
    },
    /// The code of a browser that is on another machine.
    Code {
        /// What its address begins with.
        placeholder: String,
    },
}

/// Something a person should know.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// An address to open.
    Address(String),
    /// A code to type at an address.
    DeviceCode {
        /// The code.
        code: String,
        /// Where.
        address: String,
        /// How often the service is asked, seconds.
        interval: Option<f64>,
        /// How long it counts, seconds.
        expires: Option<f64>,
    },
    /// What is going on.
    Progress(String),
}

/// Where to listen on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loopback {
    /// The port; 0 = any.
    pub port: u16,
    /// The only path that counts.
    pub path: String,
    /// What the query must hold as `state`.
    pub state: Option<String>,
}

/// What it is told.
#[derive(Clone)]
pub enum Answer {
    /// A whole response.
    Http {
        /// Status code.
        status: u16,
        /// Response headers.
        headers: Headers,
        /// The body.
        body: Vec<u8>,
    },
    /// The exchange failed; why, without secrets.
    NoAnswer(String),
    /// What a person wrote.
    Text(String),
    /// The port that is listened at; `None` when it is taken.
    Port(Option<u16>),
    /// The query the browser brought.
    Query(Vec<(String, String)>),
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
    SignIn(SignIn),
}

impl Script {
    /// A new token for a stored sign-in.
    #[must_use]
    pub fn refresh(provider: &str, entry: &Value, hosts: Hosts, now: i64) -> Self {
        let job = Job::Refresh { provider: provider.to_owned(), entry: entry.clone() };
        Self { job, hosts, answers: Vec::new(), began: now }
    }

    /// A sign-in.
    #[must_use]
    pub const fn sign_in(wish: SignIn, hosts: Hosts, now: i64) -> Self {
        Self { job: Job::SignIn(wish), hosts, answers: Vec::new(), began: now }
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
            Job::SignIn(wish) => sign_in::sign_in(&mut tape, wish),
        };
        match ended {
            Ok(entry) => Step::Done(entry),
            Err(Stop::Ask(ask)) => Step::Ask(*ask),
            Err(Stop::Failed(text)) => Step::Failed(self.without_secrets(text)),
        }
    }

    /// A service may repeat in its text what it was sent.
    fn without_secrets(&self, mut text: String) -> String {
        let entry = match &self.job {
            Job::Refresh { entry, .. } => entry,
            Job::SignIn(wish) => return text.replace(&wish.random.verifier, "***"),
        };
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

/// What came back from a browser.
pub(super) enum Returned<'a> {
    Query(&'a [(String, String)]),
    Text(&'a str),
}

/// A response.
pub(super) struct Response<'a> {
    pub(super) status: u16,
    headers: &'a [(String, String)],
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

    pub(super) fn tell(&mut self, notice: Notice) -> Go<()> {
        self.ask(Ask::Tell(notice)).map(|_| ())
    }

    pub(super) fn show(&mut self, status: u16) -> Go<()> {
        self.ask(Ask::Show(status)).map(|_| ())
    }

    pub(super) fn prompt(&mut self, prompt: Prompt) -> Go<&'a str> {
        match self.ask(Ask::Prompt(prompt))? {
            Answer::Text(text) => Ok(text),
            Answer::NoAnswer(why) => fail(why.as_str()),
            _ => fail("nobody answered"),
        }
    }

    pub(super) fn listen(&mut self, at: Loopback) -> Go<Option<u16>> {
        match self.ask(Ask::Listen(at))? {
            Answer::Port(port) => Ok(*port),
            _ => Ok(None),
        }
    }

    pub(super) fn back(&mut self, prompt: Option<Prompt>, listening: bool) -> Go<Returned<'a>> {
        match self.ask(Ask::Back { prompt, listening })? {
            Answer::Query(pairs) => Ok(Returned::Query(pairs)),
            Answer::Text(text) => Ok(Returned::Text(text)),
            Answer::NoAnswer(why) => fail(why.as_str()),
            _ => fail("nothing came back from the browser"),
        }
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
            Answer::Http { status, headers, body } => Ok(Ok(Response { status: *status, headers, body })),
            Answer::NoAnswer(why) => Ok(Err(why.clone())),
            _ => fail("the exchange was not made"),
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

    /// The error code of the service, by either custom.
    pub(super) fn error_code(&self) -> Option<String> {
        let body = self.json();
        let error = body.get("error")?;
        error.as_str().or_else(|| error.get("code")?.as_str()).map(ToOwned::to_owned)
    }

    /// A header by its name in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
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
