//! What leaves: the same bytes from each backend, whatever a caller asks for.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use tau_core::fault::FaultKind;
use tau_core::op::HttpRequest;

use crate::backend::{Backend, io_smol, io_std};
use crate::http::{exchange, request};

type Change = Box<dyn Fn(HttpRequest) -> HttpRequest + Sync>;

/// What a request looks like on the wire: first line, sorted headers, body; or the fault.
fn sent(
    backend: &Backend,
    change: &(dyn Fn(HttpRequest) -> HttpRequest + Sync),
) -> Result<Vec<String>, FaultKind> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, told) = channel();
    thread::spawn(move || {
        let Ok((mut socket, _)) = listener.accept() else { return };
        socket.set_read_timeout(Some(Duration::from_millis(120))).unwrap();
        let mut bytes = Vec::new();
        let mut piece = [0; 4096];
        while let Ok(len @ 1..) = socket.read(&mut piece) {
            bytes.extend_from_slice(&piece[..len]);
        }
        let _ = tell.send(bytes);
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    });
    let asked = change(request(format!("http://127.0.0.1:{port}/v1/x?y=%20z")));
    exchange(backend, asked).end.map_err(|fault| fault.kind)?;
    let bytes = told.recv_timeout(Duration::from_secs(20)).unwrap();
    let text = String::from_utf8_lossy(&bytes).replace(&port.to_string(), "PORT");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, "(no end of the head)"));
    let mut lines: Vec<String> = head.split("\r\n").map(str::to_owned).collect();
    lines[1..].iter_mut().for_each(|line| {
        let (name, value) = line.split_once(':').unwrap();
        *line = format!("{}:{value}", name.to_ascii_lowercase());
    });
    lines[1..].sort();
    lines.push(body.to_owned());
    Ok(lines)
}

#[test]
fn requests_leave_as_they_are_meant() {
    let with = |headers: &'static [(&'static str, &'static str)]| {
        move |mut request: HttpRequest| {
            request.headers.extend(headers.iter().map(|(name, value)| ((*name).into(), (*value).into())));
            request
        }
    };
    let method = |method: &'static str, body: &'static str| {
        move |request: HttpRequest| HttpRequest { method, body: body.as_bytes().to_vec().into(), ..request }
    };
    let cases: Vec<(&str, Change)> = vec![
        ("as usual", Box::new(with(&[]))),
        ("own names", Box::new(with(&[("User-Agent", "mine"), ("Accept", "text/event-stream")]))),
        ("own host", Box::new(with(&[("Host", "other.test")]))),
        ("own length", Box::new(with(&[("Content-Length", "2")]))),
        ("a length that lies", Box::new(with(&[("Content-Length", "1")]))),
        ("chunks", Box::new(with(&[("Transfer-Encoding", "chunked")]))),
        ("the end", Box::new(with(&[("Connection", "close")]))),
        ("a question", Box::new(with(&[("Expect", "100-continue")]))),
        ("the same twice", Box::new(with(&[("X-A", "1"), ("x-a", "2")]))),
        ("a value with letters of all kinds", Box::new(with(&[("X-A", "é😀")]))),
        ("an empty value", Box::new(with(&[("X-A", "")]))),
        ("an empty name", Box::new(with(&[("", "x")]))),
        ("a name with a space", Box::new(with(&[("x a", "x")]))),
        ("a value of two lines", Box::new(with(&[("x-a", "x\r\nx-b: y")]))),
        ("GET", Box::new(method("GET", ""))),
        ("GET with a body", Box::new(method("GET", "body"))),
        ("HEAD", Box::new(method("HEAD", ""))),
        ("DELETE", Box::new(method("DELETE", ""))),
        ("DELETE with a body", Box::new(method("DELETE", "body"))),
        ("POST without a body", Box::new(method("POST", ""))),
        ("PUT", Box::new(method("PUT", "body"))),
        ("PATCH", Box::new(method("PATCH", "body"))),
        ("OPTIONS", Box::new(method("OPTIONS", ""))),
        (
            "a name before the host",
            Box::new(|mut request: HttpRequest| {
                request.url = request.url.replace("http://", "http://u:p@");
                request.headers.clear();
                request
            }),
        ),
        (
            "a fragment",
            Box::new(|request: HttpRequest| HttpRequest { url: format!("{}#here", request.url), ..request }),
        ),
        (
            "no path",
            Box::new(|request: HttpRequest| HttpRequest { url: request.url.replace("/v1/x", ""), ..request }),
        ),
        (
            "letters of all kinds",
            Box::new(|request: HttpRequest| HttpRequest { url: format!("{}é", request.url), ..request }),
        ),
        (
            "many headers",
            Box::new(|mut request: HttpRequest| {
                request.headers.extend((0..100).map(|n| (format!("x-{n}"), "y".repeat(300))));
                request
            }),
        ),
        (
            "a long path",
            Box::new(|request: HttpRequest| HttpRequest {
                url: request.url.replace("/v1", &"/long".repeat(5000)),
                ..request
            }),
        ),
        (
            "a long header",
            Box::new(|mut request: HttpRequest| {
                request.headers.push(("x-long".into(), "y".repeat(40_000)));
                request
            }),
        ),
    ];
    let difference = |(name, change): &(&str, Change)| {
        let [one, other] = [io_std(), io_smol()].map(|backend| sent(&backend, change.as_ref()));
        (one != other).then(|| format!("{name}:\n{one:?}\n{other:?}"))
    };
    let differences: Vec<String> = thread::scope(|scope| {
        let running: Vec<_> = cases.iter().map(|case| scope.spawn(|| difference(case))).collect();
        running.into_iter().filter_map(|running| running.join().unwrap()).collect()
    });
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
