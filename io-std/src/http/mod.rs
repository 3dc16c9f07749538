//! HTTP: ureq's protocol and connection pool over sockets of our own, so that a request can be cancelled at once and
//! what arrived is delivered at once.
//!
//! Every status is an answer, with its body; redirects are not followed; compressed bodies arrive decoded. Connections
//! are kept and used again. Header values never appear in faults.

mod call;
mod conn;
mod connect;
mod race;
mod wire;

use std::io::{self, ErrorKind, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tau_core::fault::{FaultKind, IoFault};
use tau_core::input::Reply;
use tau_core::op::{HttpRequest, Outcome, Stream, host_of};
use ureq::{Agent, Body, SendBody};

use crate::sys::inflate::{ACCEPTED, Coding, Inflate};
use crate::sys::{CancelToken, net};
use call::Call;
use connect::{Connect, NoNames};

/// Largest piece of a body delivered at once.
const CHUNK_BYTES: usize = 64 << 10;
/// How long an unused connection is kept.
const IDLE_AGE: Duration = Duration::from_secs(90);

/// Sends requests. Costs nothing until the first one.
#[derive(Debug, Default)]
pub struct Client {
    /// A pool of connections for each proxy setting, so that a changed setting is not undone by a kept connection.
    agents: Mutex<Vec<(Option<String>, Agent)>>,
}

impl Client {
    /// A client without connections.
    #[must_use]
    pub const fn new() -> Self {
        Self { agents: Mutex::new(Vec::new()) }
    }

    fn agent(&self, proxy: Option<&String>) -> Agent {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, agent)) = agents.iter().find(|(setting, _)| setting.as_ref() == proxy) {
            return agent.clone();
        }
        let agent = agent();
        agents.push((proxy.cloned(), agent.clone()));
        agent
    }

    /// One exchange on the calling thread: the head and the pieces of the body go to `partial` as they come.
    ///
    /// # Errors
    /// `Dns`, `Connect`, `Tls`, `Proxy`, `Reset`, `TimedOut`, `Cancelled`, `Invalid` (URL or header), `Other` (the
    /// answer is not HTTP); each names the host.
    pub fn run(
        &self,
        request: &HttpRequest,
        partial: &mut dyn FnMut(Reply),
        cancel: &CancelToken,
    ) -> Result<Outcome, IoFault> {
        let call = Arc::new(Call::new(request, cancel));
        let hook = Arc::clone(&call);
        let _hook = cancel.on_cancel(move || hook.shut());
        let result = self.exchange(request, &call, partial);
        // Whatever broke after a cancel broke because of it.
        cancel.check()?;
        result
    }

    fn exchange(
        &self,
        request: &HttpRequest,
        call: &Arc<Call>,
        partial: &mut dyn FnMut(Reply),
    ) -> Result<Outcome, IoFault> {
        let response = match self.send(request, call) {
            // A kept connection that the server closed meanwhile says nothing about the server.
            Err(_) if call.is_stale() && !call.cancel.is_cancelled() => {
                call.renew();
                self.send(request, call)
            }
            other => other,
        };
        let response = response.map_err(|e| explain(e, request))?;
        let (head, body) = response.into_parts();
        let coding = head.headers.get("content-encoding").map_or("", |value| value.to_str().unwrap_or("?"));
        let coding = Coding::parse(coding).map_err(|name| net::unknown_coding(&request.url, name))?;
        let headers = head.headers.iter().map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        partial(Reply::Head { status: head.status.as_u16(), headers: headers.collect() });
        match coding {
            None => stream(body.into_reader(), request, call, partial),
            Some(coding) => {
                let decoded = Inflate::new(body.into_reader(), coding, host_of(&request.url));
                stream(decoded, request, call, partial)
            }
        }
    }

    fn send(
        &self,
        request: &HttpRequest,
        call: &Arc<Call>,
    ) -> Result<ureq::http::Response<Body>, ureq::Error> {
        let mut builder = ureq::http::Request::builder().method(request.method).uri(&request.url);
        for (name, value) in net::sent(&request.headers) {
            builder = builder.header(name, value);
        }
        if !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept-encoding")) {
            builder = builder.header("accept-encoding", ACCEPTED);
        }
        let agent = self.agent(request.proxy.as_ref());
        let body = request.body.as_slice();
        let _current = Call::enter(call);
        if body.is_empty() && matches!(request.method, "GET" | "HEAD" | "DELETE" | "OPTIONS") {
            agent.run(builder.body(SendBody::none())?)
        } else {
            agent.run(builder.body(body)?)
        }
    }
}

fn agent() -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .user_agent(concat!("tau/", env!("CARGO_PKG_VERSION")))
        .accept("*/*")
        .accept_encoding("")
        .input_buffer_size(CHUNK_BYTES)
        .output_buffer_size(CHUNK_BYTES)
        // What does not fit into the buffer is refused there: ureq would count what follows the head as well.
        .max_response_header_size(CHUNK_BYTES)
        .max_idle_connections(8)
        .max_idle_connections_per_host(4)
        .max_idle_age(IDLE_AGE)
        .build();
    Agent::with_parts(config, Connect, NoNames)
}

/// Delivers the body: waits for a piece, takes what else has arrived, hands it over.
fn stream(
    mut reader: impl Read,
    request: &HttpRequest,
    call: &Arc<Call>,
    partial: &mut dyn FnMut(Reply),
) -> Result<Outcome, IoFault> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let _current = Call::enter(call);
    call.begin_body();
    loop {
        let (len, end) =
            gather(&mut reader, &mut buffer, call).map_err(|e| explain(ureq::Error::Io(e), request))?;
        if len > 0 {
            let bytes = buffer.get(..len).unwrap_or_default().to_vec();
            partial(Reply::Chunk { stream: Stream::Body, bytes });
        }
        match end {
            End::Open => {}
            End::Body => return Ok(Outcome::BodyEnd),
            End::Broken(e) => return Err(explain(ureq::Error::Io(e), request)),
        }
    }
}

enum End {
    Open,
    Body,
    Broken(io::Error),
}

/// At least one byte, and then what needs no waiting: small pieces of the transfer coding become one.
fn gather(reader: &mut impl Read, buffer: &mut [u8], call: &Call) -> io::Result<(usize, End)> {
    let mut len = reader.read(buffer)?;
    if len == 0 {
        return Ok((0, End::Body));
    }
    call.set_drain_only(true);
    let mut end = End::Open;
    while let Some(room) = buffer.get_mut(len..).filter(|room| !room.is_empty()) {
        match reader.read(room) {
            Ok(0) => end = End::Body,
            Ok(n) => {
                len += n;
                continue;
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => end = End::Broken(e),
        }
        break;
    }
    call.set_drain_only(false);
    Ok((len, end))
}

/// A fault that names the host and no secret.
fn explain(error: ureq::Error, request: &HttpRequest) -> IoFault {
    let url = &request.url;
    let fault = |kind, what: &str| IoFault::new(kind, format!("{}: {what}", host_of(url)));
    match error {
        ureq::Error::Io(e) => match e.downcast::<ureq::Error>() {
            Ok(inner) => explain(inner, request),
            Err(e) => net::broken(&e, url),
        },
        ureq::Error::Protocol(why) => net::not_http(url, &why.to_string()),
        ureq::Error::LargeResponseHeader(..) => net::large_head(url),
        ureq::Error::BadUri(_) => net::invalid_url(url),
        ureq::Error::Http(_) => net::invalid_request(request),
        ureq::Error::Timeout(_) => fault(FaultKind::TimedOut, "nothing arrived in time"),
        ureq::Error::HostNotFound => fault(FaultKind::Dns, "the host name could not be resolved"),
        ureq::Error::ConnectionFailed => fault(FaultKind::Connect, "could not connect"),
        ureq::Error::BodyStalled => net::cut_short(url),
        other => fault(FaultKind::Other, &other.to_string()),
    }
}
