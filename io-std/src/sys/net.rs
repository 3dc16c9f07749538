//! What exchanges over the network share in all backends: the addresses of a host, and what went wrong, in words.
//! Every text names the host and nothing that may be secret.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use tau_core::fault::{FaultKind, IoFault};
use tau_core::op::{Headers, HttpRequest, host_of};

use super::fault;

/// How long an address may take before the next one is tried beside it (RFC 8305).
pub const NEXT_ADDRESS: Duration = Duration::from_millis(250);

/// How long a connection may take until it stands, with its proxy and its handshakes.
pub const CONNECT_LIMIT: Duration = Duration::from_secs(20);

/// Addresses that took no connection, and why.
pub type Failed = Vec<(SocketAddr, io::Error)>;

/// The addresses of a host, in the order in which to try them. May block on a name server. `shown` is the host for faults; a name that is unknown is a
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
            if addresses.is_empty() { Err(unknown("")) } else { Ok(in_turn(addresses)) }
        }
        Err(e) => Err(unknown(&format!(" ({})", fault::text(&e)))),
    }
}

/// The families in turn, beginning with that of the first address (RFC 8305 §4).
fn in_turn(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (own, other): (Vec<_>, Vec<_>) = addresses.into_iter().partition(|at| at.is_ipv6() == first);
    let (mut own, mut other) = (own.into_iter(), other.into_iter());
    let mut sorted = Vec::new();
    loop {
        let pair = [own.next(), other.next()];
        if pair == [None, None] {
            return sorted;
        }
        sorted.extend(pair.into_iter().flatten());
    }
}

/// The headers that are sent: all but a question before the body, which leaves at once in any case. Few servers answer
/// it, and who waits for them waits in vain.
pub fn sent(headers: &Headers) -> impl Iterator<Item = (&str, &str)> {
    let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    headers.filter(|(name, _)| !name.eq_ignore_ascii_case("expect"))
}

/// None of the addresses took a connection. Where the reasons differ, each address is told with its own.
#[must_use]
pub fn unreachable(shown: &str, kind: FaultKind, failed: &Failed) -> IoFault {
    let mut reasons = failed.iter().map(|(address, e)| (address.ip(), fault::text(e)));
    let why = match reasons.next() {
        None => "no address".to_owned(),
        Some((_, first)) if reasons.all(|(_, other)| other == first) => first,
        Some(_) => {
            let each = failed.iter().map(|(address, e)| format!("{}: {}", address.ip(), fault::text(e)));
            each.collect::<Vec<_>>().join("; ")
        }
    };
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

/// [`CONNECT_LIMIT`] ran out.
#[must_use]
pub fn no_connection(url: &str) -> IoFault {
    let text = format!("{}: no connection within {} s", host_of(url), CONNECT_LIMIT.as_secs());
    IoFault::new(FaultKind::TimedOut, text)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn families_take_turns() {
        let [a, b, c, d] = ["[::1]:1", "[::2]:1", "1.1.1.1:1", "2.2.2.2:1"].map(address);
        assert_eq!(in_turn(vec![a, b, c, d]), [a, c, b, d]);
        assert_eq!(in_turn(vec![c, d, a]), [c, a, d]);
        assert_eq!(in_turn(vec![a, b]), [a, b]);
        assert!(in_turn(Vec::new()).is_empty());
    }

    #[test]
    fn reasons_are_told_once_where_they_are_the_same() {
        let refused = |at: &str| (address(at), ErrorKind::ConnectionRefused.into());
        let unreachable_host = |at: &str| (address(at), ErrorKind::HostUnreachable.into());
        let (one, other) = ("1.1.1.1:1", "[::1]:1");
        for (failed, expected) in [
            (vec![], "h: could not connect (no address)"),
            (vec![refused(one)], "h: could not connect (connection refused)"),
            (vec![refused(one), refused(other)], "h: could not connect (connection refused)"),
            (
                vec![refused(one), unreachable_host(other)],
                "h: could not connect (1.1.1.1: connection refused; ::1: host unreachable)",
            ),
        ] {
            assert_eq!(unreachable("h", FaultKind::Connect, &failed).detail, expected);
        }
    }
}
