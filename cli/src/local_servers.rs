//! Looks for model servers on this machine.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use tau_core::model::local::{self, Kind, Server};
use tau_io_std::sys::env;

/// All of them together may take this long.
const LIMIT: Duration = Duration::from_millis(150);

/// A list of models may be this large.
const MOST_BYTES: usize = 1 << 20;

/// Names other places to look at, for tests and unusual ports: `ollama=11434,vllm=8001`.
const PLACES: &str = "TAU_LOCAL_SERVERS";

/// The servers that answer, in the order of [`local::KINDS`]. Takes 150 ms at most; nothing leaves the machine, no
/// proxy is asked.
#[must_use]
pub fn find() -> Vec<Server> {
    let deadline = Instant::now() + LIMIT;
    let places = local::places(env::var(PLACES).as_deref());
    let asked: Vec<_> =
        places.into_iter().map(|(kind, port)| thread::spawn(move || ask(kind, port, deadline))).collect();
    asked.into_iter().filter_map(|thread| thread.join().ok()?).collect()
}

fn ask(kind: Kind, port: u16, deadline: Instant) -> Option<Server> {
    let left = || Some(deadline.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, left()?).ok()?;
    stream.set_write_timeout(left()).ok()?;
    // HTTP/1.0: the body comes in one piece and ends with the connection.
    let question =
        format!("GET /v1/models HTTP/1.0\r\nhost: 127.0.0.1:{port}\r\naccept: application/json\r\n\r\n");
    stream.write_all(question.as_bytes()).ok()?;
    let (mut answer, mut piece) = (Vec::new(), [0; 8192]);
    let body = loop {
        stream.set_read_timeout(Some(left()?)).ok()?;
        let count = stream.read(&mut piece).ok()?;
        answer.extend_from_slice(piece.get(..count)?);
        if let Some(body) = body(&answer, count == 0) {
            break body;
        }
        if count == 0 || answer.len() > MOST_BYTES {
            return None;
        }
    };
    let models = local::models(&body);
    (!models.is_empty()).then_some(Server { kind, port, models })
}

/// The body of a good answer, once all of it is there.
fn body(answer: &[u8], ended: bool) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let (status, fields) = head.split_once("\r\n").unwrap_or((head, ""));
    if status.split(' ').nth(1) != Some("200") {
        return None;
    }
    let field = |wanted: &str| {
        let mut fields = fields.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim())
    };
    // Some answer in pieces although they must not.
    if field("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        return unchunked(body);
    }
    match field("content-length").and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => body.as_bytes().get(..length).map(<[u8]>::to_vec),
        None => ended.then(|| body.as_bytes().to_vec()),
    }
}

/// The pieces together, if the last one is there.
fn unchunked(mut rest: &str) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let (size, after) = rest.split_once("\r\n")?;
        let size = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
        if size == 0 {
            return Some(whole);
        }
        whole.extend_from_slice(after.as_bytes().get(..size)?);
        rest = after.get(size..)?.strip_prefix("\r\n")?;
    }
}

/// What was found, for people: names, addresses and some models.
#[must_use]
pub fn told(servers: &[Server]) -> String {
    let one = |server: &Server| {
        let ids: Vec<&str> = server.ids().take(3).collect();
        let more = if server.models.len() > ids.len() { " …" } else { "" };
        format!("{} at 127.0.0.1:{} ({}{more})", server.kind.name, server.port, ids.join(", "))
    };
    servers.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        let rows = [
            ("HTTP/1.0 200 OK\r\n\r\n{}", true, Some("{}")),
            ("HTTP/1.0 200 OK\r\n\r\n{}", false, None),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}rest", false, Some("{}")),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", true, None),
            (
                "HTTP/1.1 200\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n1;x=y\r\n}\r\n0\r\n\r\n",
                false,
                Some("{}"),
            ),
            ("HTTP/1.1 200\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{\r\n", true, None),
            ("HTTP/1.1 404 Not Found\r\n\r\n{}", true, None),
            ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n{}", true, Some("{}")),
            ("nonsense", true, None),
        ];
        for (answer, ended, wanted) in rows {
            assert_eq!(body(answer.as_bytes(), ended).as_deref(), wanted.map(str::as_bytes), "{answer:?}");
        }
    }
}
