//! What is said to a proxy: requests that name the whole URL for plain HTTP, `CONNECT` for anything encrypted.

use std::io::{self, ErrorKind};

use tau_core::fault::{FaultKind, IoFault};

use super::proxy::Proxy;

/// Longest answer of a proxy to `CONNECT`.
const MOST_HEAD: usize = 16 << 10;

/// What a proxy for plain HTTP needs.
#[derive(Clone)]
pub struct Forward {
    /// Scheme and authority of the target.
    pub origin: String,
    /// Value of `Proxy-Authorization`.
    pub authorization: Option<String>,
}

impl std::fmt::Debug for Forward {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forward").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl Forward {
    /// The bytes with which a request begins, in the form for the proxy; `None` = they hold no whole first line.
    #[must_use]
    pub fn rewrite(&self, output: &[u8]) -> Option<Vec<u8>> {
        let path = output.iter().position(|c| *c == b' ')? + 1;
        let line = output.windows(2).position(|pair| pair == b"\r\n")? + 2;
        let mut head = Vec::with_capacity(output.len() + self.origin.len() + 128);
        head.extend_from_slice(output.get(..path)?);
        head.extend_from_slice(self.origin.as_bytes());
        head.extend_from_slice(output.get(path..line)?);
        if let Some(value) = &self.authorization {
            head.extend_from_slice(format!("proxy-authorization: {value}\r\n").as_bytes());
        }
        head.extend_from_slice(output.get(line..)?);
        Some(head)
    }
}

/// Asks a proxy for a tunnel.
#[derive(Debug)]
pub struct Tunnel<'a> {
    proxy: &'a Proxy,
    place: String,
    answer: Vec<u8>,
}

impl<'a> Tunnel<'a> {
    /// A tunnel to a host.
    #[must_use]
    pub fn new(proxy: &'a Proxy, host: &str, port: u16) -> Self {
        let place = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        Self { proxy, place, answer: Vec::new() }
    }

    /// What to send.
    #[must_use]
    pub fn request(&self) -> String {
        let authorization = self.proxy.authorization();
        let authorization =
            authorization.map(|value| format!("Proxy-Authorization: {value}\r\n")).unwrap_or_default();
        format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{authorization}\r\n", place = self.place)
    }

    /// Takes a piece of the answer; no bytes = the connection was closed. `true` = the tunnel stands. Whatever follows
    /// the head belongs to the tunnel already: it must not be read before.
    ///
    /// # Errors
    /// Why there is no tunnel.
    pub fn arrived(&mut self, piece: &[u8]) -> Result<bool, IoFault> {
        if piece.is_empty() {
            return Err(self.refused(&format!("it closed the connection when asked for {}", self.place)));
        }
        let known = self.answer.len().saturating_sub(3);
        self.answer.extend_from_slice(piece);
        let news = self.answer.get(known..).unwrap_or_default();
        if news.windows(4).any(|end| end == b"\r\n\r\n") {
            return match status(&self.answer) {
                Some(200..=299) => Ok(true),
                Some(407) => {
                    Err(self.refused("it wants a user and password: http://user:password@host:port"))
                }
                Some(other) => {
                    Err(self.refused(&format!("it answered {other} when asked for {}", self.place)))
                }
                None => Err(self.refused("its answer is not HTTP")),
            };
        }
        if self.answer.len() > MOST_HEAD { Err(self.refused("its answer is not HTTP")) } else { Ok(false) }
    }

    /// For an error while waiting for the answer.
    #[must_use]
    pub fn broken(&mut self, error: io::Error) -> io::Error {
        match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => match self.arrived(b"") {
                Err(fault) => io::Error::other(fault),
                Ok(_) => error,
            },
            _ => error,
        }
    }

    fn refused(&self, why: &str) -> IoFault {
        IoFault::new(FaultKind::Proxy, format!("proxy {}: {why}", self.proxy))
    }
}

fn status(head: &[u8]) -> Option<u16> {
    let line = head.split(|c| *c == b'\r').next().unwrap_or_default();
    std::str::from_utf8(line)
        .ok()
        .filter(|line| line.starts_with("HTTP/1."))
        .and_then(|line| line.split(' ').nth(1))
        .and_then(|status| status.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::proxy::select;

    fn outcome(pieces: &[&str]) -> Result<bool, String> {
        let proxy = select("https://a.com", Some("http://u:secret@h:1"), &|_| None).unwrap().unwrap();
        let mut tunnel = Tunnel::new(&proxy, "a.com", 443);
        let mut stands = false;
        for piece in pieces {
            stands = tunnel.arrived(piece.as_bytes()).map_err(|fault| {
                assert!(fault.kind == FaultKind::Proxy && !fault.detail.contains("secret"), "{fault}");
                fault.detail
            })?;
        }
        Ok(stands)
    }

    #[test]
    fn a_tunnel_stands_or_says_why_not() {
        let long = "x".repeat(MOST_HEAD + 1);
        for (pieces, expected) in [
            (&["HTTP/1.1 200 OK\r\n\r\n"][..], Ok(true)),
            (&["HTTP/1.0 200", " OK\r\n\r", "\n"], Ok(true)),
            (&["HTTP/1.1 200 OK\r\n"], Ok(false)),
            (&["HTTP/1.1 407 No\r\n\r\n"], Err("user and password")),
            (&["HTTP/1.1 502 Bad\r\n\r\n"], Err("answered 502 when asked for a.com:443")),
            (&["SSH-2.0\r\n\r\n"], Err("not HTTP")),
            (&[&long], Err("not HTTP")),
            (&["HTTP/1.1 200", ""], Err("closed the connection")),
        ] {
            match (outcome(pieces), expected) {
                (Ok(got), Ok(expected)) => assert_eq!(got, expected, "{pieces:?}"),
                (Err(got), Err(expected)) => assert!(got.contains(expected), "{got}"),
                other => panic!("{other:?} for {pieces:?}"),
            }
        }
    }

    #[test]
    fn a_forwarded_request_names_the_whole_url() {
        let forward = Forward { origin: "http://a.com".into(), authorization: Some("Basic x".into()) };
        let told = forward.rewrite(b"GET /p HTTP/1.1\r\nhost: a.com\r\n\r\n").unwrap();
        let expected = "GET http://a.com/p HTTP/1.1\r\nproxy-authorization: Basic x\r\nhost: a.com\r\n\r\n";
        assert_eq!(String::from_utf8(told).unwrap(), expected);
        assert!(forward.rewrite(b"GET /p").is_none());
    }
}
