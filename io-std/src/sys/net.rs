//! What exchanges over the network share in all backends: the addresses of a host, and what went wrong, in words.
//! Every text names the host and nothing that may be secret.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use tau_core::fault::{FaultKind, IoFault};
use tau_core::op::{HttpRequest, host_of};

use super::fault;

/// The addresses of a host. May block on a name server. `shown` is the host for faults; a name that is unknown is a
/// fault `Dns` for a target (`Connect`), and one of the given kind for anything else.
///
/// # Errors
/// When nobody knows the name.
pub fn resolve(host: &str, port: u16, shown: &str, kind: FaultKind) -> Result<Vec<SocketAddr>, IoFault> {
    // The local host needs no look-up (RFC 6761).
    if host == "localhost" || host.ends_with(".localhost") {
        let local: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        return Ok(local.map(|ip| SocketAddr::new(ip, port)).to_vec());
    }
    let kind = if kind == FaultKind::Connect { FaultKind::Dns } else { kind };
    let unknown =
        |why: &str| IoFault::new(kind, format!("{shown}: the host name could not be resolved{why}"));
    match (host, port).to_socket_addrs() {
        Ok(addresses) => {
            let addresses: Vec<_> = addresses.collect();
            if addresses.is_empty() { Err(unknown("")) } else { Ok(addresses) }
        }
        Err(e) => Err(unknown(&format!(" ({})", fault::text(&e)))),
    }
}

/// None of the addresses took a connection; `last` = why the last one did not.
#[must_use]
pub fn unreachable(shown: &str, kind: FaultKind, last: Option<&io::Error>) -> IoFault {
    let why = last.map_or_else(|| "no address".to_owned(), fault::text);
    IoFault::new(kind, format!("{shown}: could not connect ({why})"))
}

/// What is wrong with a URL that leads nowhere.
#[must_use]
pub fn invalid_url(url: &str) -> IoFault {
    IoFault::new(FaultKind::Invalid, format!("{}: this is not a valid URL", host_of(url)))
}

/// A URL or a header that cannot be sent. The header is named; its value may be a secret.
#[must_use]
pub fn invalid_request(request: &HttpRequest) -> IoFault {
    let is_mark = |c: u8| b"!#$%&'*+-.^_`|~".contains(&c);
    let is_name = |name: &str| name.bytes().all(|c| c.is_ascii_alphanumeric() || is_mark(c));
    let is_value = |value: &str| value.bytes().all(|c| c >= b' ' && c != 0x7f || c == b'\t');
    let bad =
        request.headers.iter().find(|(name, value)| name.is_empty() || !is_name(name) || !is_value(value));
    let what = match bad {
        Some((name, value)) if is_value(value) => format!("{name:?} is no name of a header"),
        Some((name, _)) => format!("the header {name} holds a line end or another control character"),
        None => "the URL or a header holds characters that HTTP does not allow".to_owned(),
    };
    IoFault::new(FaultKind::Invalid, format!("{}: {what}", host_of(&request.url)))
}

/// What came is not HTTP.
#[must_use]
pub fn not_http(url: &str, why: &str) -> IoFault {
    IoFault::new(FaultKind::Other, format!("{}: the answer is not valid HTTP ({why})", host_of(url)))
}

/// The head of an answer does not end.
#[must_use]
pub fn large_head(url: &str) -> IoFault {
    IoFault::new(FaultKind::Other, format!("{}: the head of the answer is too large", host_of(url)))
}

/// A line between the chunks of a body does not end.
#[must_use]
pub fn large_line(url: &str) -> IoFault {
    not_http(url, "a line of it is too long")
}

/// A body in a coding that was not asked for.
#[must_use]
pub fn unknown_coding(url: &str, name: &str) -> IoFault {
    let text = "the answer is compressed in a way that was not asked for";
    IoFault::new(FaultKind::Other, format!("{}: {text} ({name})", host_of(url)))
}

/// The connection ended too early.
#[must_use]
pub fn cut_short(url: &str) -> IoFault {
    let text = "the connection was closed before the answer was complete";
    IoFault::new(FaultKind::Reset, format!("{}: {text}", host_of(url)))
}

/// The limit for the head ran out.
#[must_use]
pub fn no_answer(url: &str, limit: Duration) -> IoFault {
    let text = format!("{}: no answer within {} s", host_of(url), limit.as_secs_f64());
    IoFault::new(FaultKind::TimedOut, text)
}

/// The limit between two pieces of the body ran out.
#[must_use]
pub fn stopped(url: &str, limit: Duration) -> IoFault {
    let text = format!("{}: the answer stopped; nothing arrived for {} s", host_of(url), limit.as_secs_f64());
    IoFault::new(FaultKind::TimedOut, text)
}

/// The fault inside an error, or one for what the operating system said.
#[must_use]
pub fn broken(error: &io::Error, url: &str) -> IoFault {
    if let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref::<IoFault>()) {
        return inner.clone();
    }
    match error.kind() {
        ErrorKind::UnexpectedEof
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe => cut_short(url),
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            IoFault::new(FaultKind::TimedOut, format!("{}: nothing arrived in time", host_of(url)))
        }
        _ => IoFault::new(fault::kind(error), format!("{}: {}", host_of(url), fault::text(error))),
    }
}
