//! Credentials that clouds hand out: what must be read and asked for before a request can be made.
//!
//! A [`Source`] says where they come from. [`step`] is run from its beginning with all answers so far, and either asks for
//! one more thing, or is done. What it gives is good for a while ([`Fetched::expires`]); the caller keeps it that long.

mod anthropic;
mod aws;
mod google;
mod ini;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::oauth::WINDOW_MS;
use crate::json::Value;
use crate::now::Wall;
use crate::op::{Credential, Headers, HttpRequest, host_of};
use crate::provider::error::{clean, excerpt, service_words};

pub(super) use google::DEFAULT_FILE as GOOGLE_DEFAULT_FILE;

/// A single request may take this long, ms: the services are near, or not there at all.
const REQUEST_LIMIT_MS: u64 = 5_000;
/// All of it may take this long, ms.
pub const LIMIT_MS: u64 = 15_000;

/// Where credentials come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A profile of the files of AWS.
    AwsProfile(String),
    /// The endpoint that a container is told of.
    AwsContainer,
    /// A token of the cluster, given to AWS for keys.
    AwsWebIdentity,
    /// A file of Google Cloud: a service account, or what gcloud left.
    GoogleFile(String),
    /// A token of an identity provider, given to Anthropic for another one.
    AnthropicFederation,
}

/// What is known at the start.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// Variables; those of the credential first.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The home folder.
    pub home: &'a str,
    /// Address of the model.
    pub base_url: &'a str,
    /// The time of the start.
    pub now: Wall,
}

/// What is wanted.
#[derive(Clone)]
pub enum Ask {
    /// The text of a file; [`Answer::Text`] or [`Answer::Missing`].
    Read(String),
    /// The output of a shell command; [`Answer::Text`] or [`Answer::Missing`].
    Run(String),
    /// An exchange; [`Answer::Http`] or [`Answer::Missing`].
    Http(HttpRequest),
    /// The signature of a text, RS256; [`Answer::Bytes`] or [`Answer::Missing`].
    Sign {
        /// The private key, as a PEM file holds it.
        key: String,
        /// What is signed.
        text: String,
    },
}

/// What it is told.
#[derive(Clone)]
pub enum Answer {
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A whole response.
    Http {
        /// Status code.
        status: u16,
        /// The body.
        body: Vec<u8>,
    },
    /// There is none; why, without secrets.
    Missing(String),
}

/// What it comes to.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Fetched {
    /// The credential; what it does not have stays as it was.
    pub credential: Credential,
    /// When it runs out, Unix ms; `None` = it is to be looked up again for each request.
    pub expires: Option<i64>,
}

impl Fetched {
    /// Whether it still counts.
    #[must_use]
    pub fn is_fresh(&self, now: Wall) -> bool {
        self.expires.is_some_and(|expires| now.0.saturating_add(WINDOW_MS) < expires)
    }
}

impl Fetched {
    /// Completes a credential. What it has already, by the configuration, stays.
    pub fn complete(&self, credential: &mut Credential) {
        credential.aws = credential.aws.take().or_else(|| self.credential.aws.clone());
        for (name, value) in &self.credential.headers {
            if !credential.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)) {
                credential.headers.push((name.clone(), value.clone()));
            }
        }
        let has_region = credential.env.iter().any(|(name, _)| REGIONS.contains(&name.as_str()));
        let more =
            self.credential.env.iter().filter(|(name, _)| !has_region || !REGIONS.contains(&name.as_str()));
        credential.env.extend(more.cloned());
    }
}

/// Variables that name a region; either counts before that of a profile.
const REGIONS: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];

/// The next thing to do.
pub enum Step {
    /// Find this out, add the answer, and ask again.
    Ask(Box<Ask>),
    /// It is there.
    Done(Fetched),
    /// There is none; why and what to do, without secrets.
    Failed(String),
}

/// Goes on with the answers so far.
#[must_use]
pub fn step(source: &Source, place: Place<'_>, answers: &[Answer]) -> Step {
    let mut tape = Tape { place, answers: answers.iter() };
    let fetched = match source {
        Source::AwsProfile(name) => aws::profile(&mut tape, name),
        Source::AwsContainer => aws::container(&mut tape),
        Source::AwsWebIdentity => aws::web_identity(&mut tape),
        Source::GoogleFile(path) => google::file(&mut tape, path),
        Source::AnthropicFederation => anthropic::federation(&mut tape),
    };
    match fetched {
        Ok(fetched) => Step::Done(fetched),
        Err(Halt::Ask(ask)) => Step::Ask(ask),
        Err(Halt::Failed(why)) => Step::Failed(why),
    }
}

enum Halt {
    Ask(Box<Ask>),
    Failed(String),
}

type Go<T> = Result<T, Halt>;

fn fail<T>(why: impl Into<String>) -> Go<T> {
    Err(Halt::Failed(why.into()))
}

struct Tape<'a> {
    place: Place<'a>,
    answers: core::slice::Iter<'a, Answer>,
}

impl<'a> Tape<'a> {
    fn ask(&mut self, ask: impl FnOnce() -> Ask) -> Go<&'a Answer> {
        self.answers.next().ok_or_else(|| Halt::Ask(Box::new(ask())))
    }

    /// A variable that is not blank.
    fn variable(&self, name: &str) -> Option<String> {
        (self.place.env)(name).filter(|value| !value.trim().is_empty())
    }

    /// A file that need not be there.
    fn read_if(&mut self, path: &str) -> Go<Option<&'a str>> {
        match self.ask(|| Ask::Read(path.into()))? {
            Answer::Text(text) => Ok(Some(text)),
            _ => Ok(None),
        }
    }

    fn read(&mut self, path: &str, what: &str) -> Go<&'a str> {
        match self.ask(|| Ask::Read(path.into()))? {
            Answer::Text(text) => Ok(text),
            Answer::Missing(why) => fail(format!("{what} cannot be read: {why}")),
            _ => fail(format!("{what} cannot be read: {path}")),
        }
    }

    fn run(&mut self, command: &str, what: &str) -> Go<&'a str> {
        match self.ask(|| Ask::Run(command.into()))? {
            Answer::Text(text) => Ok(text),
            _ => fail(format!("{what} failed or printed nothing")),
        }
    }

    fn sign(&mut self, key: &str, text: &str, what: &str) -> Go<&'a [u8]> {
        match self.ask(|| Ask::Sign { key: key.into(), text: text.into() })? {
            Answer::Bytes(bytes) => Ok(bytes),
            Answer::Missing(why) => fail(format!("the private key of {what} cannot be used: {why}")),
            _ => fail(format!("the private key of {what} cannot be used")),
        }
    }

    /// The body of a good answer.
    fn http(&mut self, request: HttpRequest) -> Go<String> {
        let host = host_of(&request.url);
        match self.ask(|| Ask::Http(request))? {
            Answer::Http { status: 200..=299, body } => Ok(String::from_utf8_lossy(body).into_owned()),
            Answer::Http { status, body } => {
                let body = String::from_utf8_lossy(body);
                fail(format!("{host} answered {status}: {}", refusal(&body)))
            }
            Answer::Missing(why) => fail(format!("{host} did not answer: {}", clean(why))),
            _ => fail(format!("{host} did not answer")),
        }
    }
}

/// The words of a refusal, in JSON or in the XML of AWS.
fn refusal(body: &str) -> String {
    let json: Option<Value> = serde_json::from_str(body).ok();
    let described = |value: &Value| {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        text("error_description").or_else(|| text("error")).map(ToString::to_string)
    };
    let said = json.as_ref().and_then(|value| described(value).or_else(|| service_words(value)));
    let said = said.or_else(|| aws::element(body, "Message").map(ToString::to_string));
    excerpt(said.as_deref().unwrap_or(body))
}

fn request(method: &'static str, url: String, headers: &[(&str, &str)], body: String) -> HttpRequest {
    let headers: Headers =
        headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    HttpRequest {
        method,
        url,
        headers,
        body: Arc::new(body.into_bytes()),
        head_timeout_ms: Some(REQUEST_LIMIT_MS),
        idle_timeout_ms: Some(REQUEST_LIMIT_MS),
        proxy: None,
    }
}

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const JSON: (&str, &str) = ("content-type", "application/json");

/// Secrets go over encrypted connections, or stay on this machine.
fn is_safe(url: &str) -> bool {
    let origin = host_of(url);
    let Some((scheme, host)) = origin.split_once("://") else { return false };
    let name = if host.starts_with('[') {
        host.split_inclusive(']').next().unwrap_or_default()
    } else {
        host.split(':').next().unwrap_or_default()
    };
    let here = name == "localhost" || name == "[::1]" || is_loopback(name);
    scheme == "https" || (scheme == "http" && here)
}

fn is_loopback(name: &str) -> bool {
    let mut parts = name.split('.');
    parts.next() == Some("127")
        && name.split('.').count() == 4
        && parts.all(|part| part.parse::<u8>().is_ok())
}

/// A member that is a text with something in it.
fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}

/// The bearer token of an answer of a token endpoint, and when it runs out.
fn granted(body: &str, now: Wall, host: &str) -> Go<(String, i64)> {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    let Some(token) = text(&value, "access_token") else {
        return fail(format!("{host} answered without an access token"));
    };
    let seconds = value.get("expires_in").and_then(Value::as_f64).unwrap_or(3600.0);
    Ok((token.to_string(), now.0.saturating_add((seconds * 1000.0) as i64)))
}

/// A credential that is a bearer token.
fn bearer(token: &str, expires: i64) -> Fetched {
    let headers = alloc::vec![("authorization".to_string(), Some(format!("Bearer {token}")))];
    Fetched { credential: Credential { headers, ..Credential::default() }, expires: Some(expires) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Asks until it is done, and notes what was asked for.
    pub(super) fn run(
        source: &Source,
        env: &[(&str, &str)],
        answer: &dyn Fn(&Ask) -> Answer,
    ) -> (Result<Fetched, String>, Vec<Ask>) {
        let lookup = |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, v)| v.to_string());
        let (mut answers, mut asked) = (Vec::new(), Vec::new());
        loop {
            let place = Place { env: &lookup, home: "/home/u", base_url: "", now: Wall(1_000_000) };
            match step(source, place, &answers) {
                Step::Done(fetched) => return (Ok(fetched), asked),
                Step::Failed(why) => return (Err(why), asked),
                Step::Ask(ask) => {
                    answers.push(answer(&ask));
                    asked.push(*ask);
                    assert!(asked.len() < 20);
                }
            }
        }
    }

    #[test]
    fn secrets_do_not_travel_in_the_open() {
        for (url, safe) in [
            ("https://h/x", true),
            ("http://127.0.0.1:8080/x", true),
            ("http://localhost/x", true),
            ("http://[::1]:1/x", true),
            ("http://h/x", false),
            ("http://127.0.0.1.evil.example/x", false),
            ("http://127.evil.com.x/", false),
            ("http://localhost@evil.example/x", false),
            ("ftp://localhost/x", false),
            ("localhost", false),
        ] {
            assert_eq!(is_safe(url), safe, "{url}");
        }
    }

    #[test]
    fn what_is_configured_stays() {
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        let header = |value: &str| ("Authorization".to_string(), Some(value.to_string()));
        let mut fetched = bearer("t", 1);
        fetched.credential.env = alloc::vec![pair("AWS_REGION", "of-profile")];
        let mut credential = Credential::default();
        fetched.complete(&mut credential);
        assert_eq!(credential.headers, bearer("t", 1).credential.headers);
        assert_eq!(credential.env, [pair("AWS_REGION", "of-profile")]);
        let env = alloc::vec![pair("AWS_DEFAULT_REGION", "chosen")];
        let mut credential = Credential { headers: alloc::vec![header("own")], env, ..Credential::default() };
        let before = credential.clone();
        fetched.complete(&mut credential);
        assert_eq!(credential, before);
    }

    #[test]
    fn what_runs_out_soon_is_fetched_again() {
        let fetched = |expires| Fetched { expires, ..Fetched::default() };
        assert!(!fetched(None).is_fresh(Wall(0)));
        assert!(fetched(Some(300_001)).is_fresh(Wall(0)));
        assert!(!fetched(Some(300_000)).is_fresh(Wall(0)));
    }
}
