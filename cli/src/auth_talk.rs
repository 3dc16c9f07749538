//! Holds the conversations of sign-ins with the world.

use std::thread;
use std::time::{Duration, Instant};

use crate::backend::Client;
use tau_core::auth::oauth::{self, Answer, Ask, Hosts, Script, Step};
use tau_core::input::Reply;
use tau_core::json::Value;
use tau_core::op::{HttpRequest, host_of};
use tau_io_std::sys::clock::wall;
use tau_io_std::sys::{CancelToken, env};

/// Most bytes of an answer; a list of models is the longest.
const MOST_BYTES: usize = 8 << 20;

/// Sends the requests of sign-ins.
pub struct Talk {
    client: Client,
    proxy: Option<String>,
}

impl Talk {
    /// Through the proxy of the settings, if there is one.
    #[must_use]
    pub const fn new(proxy: Option<String>) -> Self {
        Self { client: Client::new(), proxy }
    }

    /// A new token for a stored sign-in. Takes 15 s at most.
    ///
    /// # Errors
    /// Why there is none; names the provider, holds no secret.
    pub fn renew(&self, provider: &str, entry: &Value) -> Result<Value, String> {
        let deadline = Instant::now() + Duration::from_millis(oauth::REFRESH_LIMIT_MS);
        let mut script = Script::refresh(provider, entry, Hosts::new(&env::var), wall().0);
        let mut step = script.begin();
        let mut host = String::new();
        let refused = |host: &str, why: &str| refused(provider, host, why);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let answer = match step {
                Step::Done(entry) => return Ok(entry),
                Step::Failed(why) => return Err(refused(&host, &why)),
                Step::Ask(_) if left.is_zero() => {
                    return Err(refused(&host, "the service did not answer in time"));
                }
                Step::Ask(Ask::Wait(ms)) => {
                    thread::sleep(Duration::from_millis(ms).min(left));
                    Answer::Done
                }
                Step::Ask(Ask::Http(request)) => {
                    host = host_of(&request.url);
                    self.exchange(request, deadline)
                }
                Step::Ask(_) => return Err(refused(&host, "it needs a person")),
            };
            step = script.answer(wall().0, answer);
        }
    }

    /// One exchange, over before the deadline.
    #[must_use]
    pub fn exchange(&self, mut request: HttpRequest, deadline: Instant) -> Answer {
        let left = deadline.saturating_duration_since(Instant::now()).as_millis();
        let left = u64::try_from(left).unwrap_or(u64::MAX).max(1);
        let within = |limit: Option<u64>| Some(limit.map_or(left, |limit| limit.min(left)));
        request.head_timeout_ms = within(request.head_timeout_ms);
        request.idle_timeout_ms = within(request.idle_timeout_ms);
        request.proxy.clone_from(&self.proxy);
        let cancel = CancelToken::new();
        let (mut status, mut told, mut body) = (0, Vec::new(), Vec::new());
        let mut given_up = None;
        let mut take = |reply: Reply| {
            match reply {
                Reply::Head { status: code, headers } => (status, told) = (code, headers),
                Reply::Chunk { bytes, .. } => body.extend_from_slice(&bytes),
                _ => {}
            }
            if body.len() > MOST_BYTES {
                given_up = Some("the answer is too large");
            } else if Instant::now() > deadline {
                given_up = Some("the service did not answer in time");
            }
            if given_up.is_some() {
                cancel.cancel();
            }
        };
        let done = self.client.run(&request, &mut take, &cancel);
        match (done, given_up) {
            (_, Some(why)) => Answer::NoAnswer(format!("{}: {why}", host_of(&request.url))),
            (Ok(_), None) => Answer::Http { status, headers: told, body },
            (Err(fault), None) => Answer::NoAnswer(fault.detail),
        }
    }
}

fn refused(provider: &str, host: &str, why: &str) -> String {
    let at = if host.is_empty() || why.contains(host) { String::new() } else { format!(" at {host}") };
    format!(
        "The sign-in of {provider} could not be renewed{at}: {why}; what is stored is unchanged. Try again, or sign in \
         again with `tau auth login {provider}`"
    )
}
