//! HTTP: streaming, cancellation, limits, broken servers, proxies, trust.

use std::io::Write;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tau_core::fault::{FaultKind, IoFault};
use tau_core::input::Reply;
use tau_core::op::{Headers, HttpRequest, Op, Outcome};

use crate::backend::{Backend, on_each_backend};
use crate::server::{CLOSED, Client, Server};

pub fn request(url: impl Into<String>) -> HttpRequest {
    HttpRequest {
        method: "POST",
        url: url.into(),
        headers: vec![("authorization".into(), "Bearer secret-1234".into())],
        body: Arc::new(b"{}".to_vec()),
        head_timeout_ms: Some(20_000),
        idle_timeout_ms: Some(20_000),
        proxy: None,
    }
}

/// What came of a request.
pub struct Answer {
    pub status: u16,
    pub headers: Headers,
    pub body: Vec<u8>,
    pub end: Result<(), IoFault>,
    pub pieces: usize,
}

pub fn exchange(b: &Backend, request: HttpRequest) -> Answer {
    let (partial, last) = b.start(Op::Http(request)).finish();
    let mut answer = Answer {
        status: 0,
        headers: Vec::new(),
        body: Vec::new(),
        end: last.map(|outcome| assert!(matches!(outcome, Outcome::BodyEnd))),
        pieces: 0,
    };
    for reply in partial {
        match reply {
            Reply::Head { status, headers } => (answer.status, answer.headers) = (status, headers),
            Reply::Chunk { bytes, .. } => {
                answer.body.extend(bytes);
                answer.pieces += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    answer
}

pub fn failure(b: &Backend, request: HttpRequest) -> IoFault {
    let fault = exchange(b, request).end.unwrap_err();
    assert!(!fault.detail.contains("secret"), "{fault}");
    fault
}

pub fn once(bytes: &'static [u8]) -> Server {
    Server::new(move |mut client: Client, _| {
        client.request();
        client.send(bytes);
    })
}

/// Head of an answer in chunks.
pub const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

on_each_backend!(pieces_are_delivered_as_they_come);
fn pieces_are_delivered_as_they_come(b: &Backend) {
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let server = Server::new(move |mut client, _| {
        client.request();
        client.send(CHUNKED);
        for _ in 0..3 {
            // A chunk, and the beginning of the head of the next one.
            client.send("5\r\nhello\r\n");
            wait.lock().unwrap().recv().unwrap();
        }
        client.send("0\r\n\r\n");
    });
    let running = b.start(Op::Http(request(server.url("/"))));
    assert!(matches!(running.next(), Reply::Head { status: 200, .. }));
    for _ in 0..3 {
        assert!(matches!(running.next(), Reply::Chunk { bytes, .. } if bytes == b"hello"));
        assert!(running.within(Duration::from_millis(20)).is_none());
        go.send(()).unwrap();
    }
    assert!(matches!(running.next(), Reply::Done(Outcome::BodyEnd)));
}

on_each_backend!(many_small_chunks_become_few_pieces);
fn many_small_chunks_become_few_pieces(b: &Backend) {
    let server = Server::new(|mut client, _| {
        client.request();
        let chunks = "a\r\n0123456789\r\n".repeat(20_000);
        client.send(format!("{CHUNKED}{chunks}0\r\n\r\n"));
    });
    let answer = exchange(b, request(server.url("/")));
    assert_eq!(answer.body.len(), 200_000);
    assert!(answer.pieces < 200, "{}", answer.pieces);
    answer.end.unwrap();
}

on_each_backend!(every_status_is_an_answer);
fn every_status_is_an_answer(b: &Backend) {
    let server = Server::new(|mut client, _| {
        while let Some(request) = client.request() {
            assert_eq!(request.headers["authorization"], "Bearer secret-1234");
            assert_eq!(request.headers["accept-encoding"], "gzip, deflate");
            assert_eq!(request.body, b"{}");
            let status = request.line.split(' ').nth(1).unwrap().trim_start_matches('/').to_owned();
            client.send(format!(
                "HTTP/1.1 {status} X\r\nlocation: /200\r\nretry-after: 7\r\ncontent-length: 4\r\n\r\nbody"
            ));
        }
    });
    for status in [200, 201, 302, 307, 400, 401, 404, 429, 500, 503, 529] {
        let answer = exchange(b, request(server.url(&format!("/{status}"))));
        assert_eq!((answer.status, answer.body.as_slice()), (status, b"body".as_slice()));
        assert!(answer.headers.contains(&("retry-after".into(), "7".into())));
        answer.end.unwrap();
    }
    assert_eq!(server.connections(), 1, "the connection is used again");
    assert_eq!(b.threads(), 1, "one thread runs one request after another");
}

pub fn gzip(text: &[u8]) -> Vec<u8> {
    use flate2::{Compression, write::GzEncoder};
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

on_each_backend!(compressed_answers_arrive_decoded);
fn compressed_answers_arrive_decoded(b: &Backend) {
    let server = Server::new(|mut client, _| {
        while let Some(request) = client.request() {
            let text =
                if request.line.contains("large") { "0123456789".repeat(100_000) } else { "small".into() };
            let body = gzip(text.as_bytes());
            let status = if request.line.contains("refused") { "401 No" } else { "200 OK" };
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            client.send([head.as_bytes(), &body].concat());
        }
    });
    for (path, status, len) in
        [("/small", 200, 5), ("/large", 200, 1_000_000), ("/refused", 401, 5), ("/small", 200, 5)]
    {
        let answer = exchange(b, request(server.url(path)));
        answer.end.unwrap();
        assert_eq!((answer.status, answer.body.len()), (status, len), "{path}");
    }
    assert_eq!(server.connections(), 1, "the connection is used again");
}

on_each_backend!(compressed_pieces_are_delivered_as_they_come);
fn compressed_pieces_are_delivered_as_they_come(b: &Backend) {
    use flate2::{Compression, write::ZlibEncoder};
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let server = Server::new(move |mut client, _| {
        client.request();
        client.send("HTTP/1.1 200 OK\r\ncontent-encoding: deflate\r\ntransfer-encoding: chunked\r\n\r\n");
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        for _ in 0..3 {
            encoder.write_all(b"data: hello\n\n").and_then(|()| encoder.flush()).unwrap();
            let piece = std::mem::take(encoder.get_mut());
            client.send([format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat());
            wait.lock().unwrap().recv().unwrap();
        }
        let piece = encoder.finish().unwrap();
        client.send([format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n0\r\n\r\n"].concat());
    });
    let running = b.start(Op::Http(request(server.url("/"))));
    assert!(matches!(running.next(), Reply::Head { status: 200, .. }));
    for _ in 0..3 {
        assert!(matches!(running.next(), Reply::Chunk { bytes, .. } if bytes == b"data: hello\n\n"));
        go.send(()).unwrap();
    }
    assert!(matches!(running.next(), Reply::Done(Outcome::BodyEnd)));
}

on_each_backend!(compression_that_is_wrong_is_a_fault);
fn compression_that_is_wrong_is_a_fault(b: &Backend) {
    let whole = gzip(b"hello, hello, hello");
    let serve = |coding: &'static str, body: Vec<u8>| {
        Server::new(move |mut client: Client, _| {
            client.request();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-encoding: {coding}\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            client.send([head.as_bytes(), &body].concat());
        })
    };
    for (coding, body, kind, part) in [
        ("br", whole.clone(), FaultKind::Other, "(br)"),
        ("gzip", b"<html></html>".to_vec(), FaultKind::Other, "damaged"),
        ("gzip", whole[..whole.len() - 4].to_vec(), FaultKind::Reset, "before the answer was complete"),
        ("gzip", gzip(&vec![0; 128 << 20]), FaultKind::TooBig, "without end"),
    ] {
        let server = serve(coding, body);
        let fault = failure(b, request(server.url("/")));
        assert!(fault.kind == kind && fault.detail.contains(part), "{coding}: {fault:?}");
        assert!(fault.detail.contains(&server.url("")), "{fault}");
    }
    // Who wants another coding gets what it asked for.
    let mut own = request(serve("identity", b"plain".to_vec()).url("/"));
    own.headers.push(("Accept-Encoding".into(), "identity".into()));
    let answer = exchange(b, own);
    answer.end.unwrap();
    assert_eq!(answer.body, b"plain");
}

on_each_backend!(kept_connections_that_died_are_replaced);
fn kept_connections_that_died_are_replaced(b: &Backend) {
    let server = Server::new(|mut client, _| {
        client.request();
        client.answer("200 OK", "x");
        // The second request is read, and answered by closing.
        client.request();
    });
    for _ in 0..3 {
        let answer = exchange(b, request(server.url("/")));
        answer.end.unwrap();
        assert_eq!(answer.body, b"x");
    }
    assert_eq!(server.connections(), 3);
}

on_each_backend!(broken_answers_are_faults);
fn broken_answers_are_faults(b: &Backend) {
    for (bytes, kind) in [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n123".as_slice(), FaultKind::Reset),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n", FaultKind::Reset),
        (b"HTTP/1.1 200 OK\r\n", FaultKind::Reset),
        (b"", FaultKind::Reset),
        (b"SSH-2.0-OpenSSH_9\r\n\r\n", FaultKind::Other),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nabc\r\n", FaultKind::Other),
    ] {
        let server = once(bytes);
        let fault = failure(b, request(server.url("/")));
        assert_eq!(fault.kind, kind, "{fault} for {:?}", String::from_utf8_lossy(bytes));
        assert!(fault.detail.contains("127.0.0.1"), "{fault}");
    }
    let answer = exchange(b, request(once(b"HTTP/1.0 200 OK\r\n\r\nuntil the end").url("/")));
    answer.end.unwrap();
    assert_eq!(answer.body, b"until the end");
}

on_each_backend!(unreachable_places_are_faults);
fn unreachable_places_are_faults(b: &Backend) {
    let closed = CLOSED;
    let kind = |url: &str| failure(b, request(url)).kind;
    assert_eq!(kind(&format!("http://127.0.0.1:{closed}/")), FaultKind::Connect);
    assert_eq!(kind(&format!("http://localhost:{closed}/")), FaultKind::Connect);
    assert_eq!(kind("http://host.invalid/"), FaultKind::Dns);
    for bad in ["nonsense", "http://", "ftp://x/", "http://a b/"] {
        assert!(matches!(kind(bad), FaultKind::Invalid | FaultKind::Other | FaultKind::Dns), "{bad}");
    }
    // What stands before the host is not told.
    let fault = failure(b, request(format!("http://user:secret@127.0.0.1:{closed}/secret?key=secret")));
    assert_eq!(fault.kind, FaultKind::Connect);
    let mut odd = request(format!("http://127.0.0.1:{closed}/"));
    odd.headers[0].1 = "secret\n".into();
    assert_eq!(failure(b, odd).kind, FaultKind::Invalid);
}

on_each_backend!(limits_of_time);
fn limits_of_time(b: &Backend) {
    let silent = Server::new(|mut client, _| while client.request().is_some() {});
    let start = Instant::now();
    let fault = failure(b, HttpRequest { head_timeout_ms: Some(150), ..request(silent.url("/")) });
    assert_eq!(fault.kind, FaultKind::TimedOut);
    let stalled = Server::new(|mut client, _| {
        client.request();
        client.send(format!("{CHUNKED}5\r\nhello\r\n"));
        client.request();
    });
    let answer = exchange(b, HttpRequest { idle_timeout_ms: Some(150), ..request(stalled.url("/")) });
    assert_eq!(answer.body, b"hello");
    assert_eq!(answer.end.unwrap_err().kind, FaultKind::TimedOut);
    assert!(start.elapsed() < Duration::from_secs(5));
}

fn cancel_soon(b: &Backend, request: HttpRequest, heads: usize) {
    let running = b.start(Op::Http(request));
    for _ in 0..heads {
        running.next();
    }
    std::thread::sleep(Duration::from_millis(30));
    let start = Instant::now();
    running.cancel();
    let fault = running.finish().1.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Cancelled);
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

on_each_backend!(cancels_are_prompt);
fn cancels_are_prompt(b: &Backend) {
    let silent = Server::new(|mut client, _| while client.request().is_some() {});
    let stalled = Server::new(|mut client, _| {
        client.request();
        client.send(format!("{CHUNKED}5\r\nhello\r\n"));
        client.request();
    });
    let deaf = Server::new(|client, _| {
        std::thread::sleep(Duration::from_secs(20));
        drop(client);
    });
    cancel_soon(b, request(silent.url("/")), 0);
    cancel_soon(b, request(stalled.url("/")), 2);
    // The server does not read: the request cannot be sent as a whole.
    let large = HttpRequest { body: Arc::new(vec![b'x'; 64 << 20]), ..request(deaf.url("/")) };
    cancel_soon(b, large, 0);
    // Nobody answers the handshake of TLS.
    let url = format!("https://localhost:{}/", deaf.port);
    cancel_soon(b, request(url), 0);
    // And the next request is none the worse.
    exchange(b, request(once(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").url("/"))).end.unwrap();
}

on_each_backend!(a_hanging_connect_is_left_behind);
fn a_hanging_connect_is_left_behind(b: &Backend) {
    // An address for documentation: nobody answers. Where the network says so at once, there is nothing to cancel.
    let running = b.start(Op::Http(request("http://192.0.2.1/")));
    if running.within(Duration::from_millis(200)).is_none() {
        let start = Instant::now();
        running.cancel();
        assert_eq!(running.finish().1.unwrap_err().kind, FaultKind::Cancelled);
        assert!(start.elapsed() < Duration::from_secs(2));
    }
}

on_each_backend!(large_bodies_both_ways);
fn large_bodies_both_ways(b: &Backend) {
    let server = Server::new(|mut client, _| {
        let body = client.request().unwrap().body;
        client.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()));
        client.send(&body);
    });
    let body: Vec<u8> = (0..30_000_000u32).map(|i| i as u8).collect();
    let answer = exchange(b, HttpRequest { body: Arc::new(body.clone()), ..request(server.url("/")) });
    answer.end.unwrap();
    assert!(answer.body == body);
}

fn proxied(url: &str, proxy: String) -> HttpRequest {
    HttpRequest { proxy: Some(proxy), ..request(url) }
}

on_each_backend!(plain_requests_through_a_proxy_name_the_whole_url);
fn plain_requests_through_a_proxy_name_the_whole_url(b: &Backend) {
    let proxy = Server::new(|mut client, _| {
        while let Some(request) = client.request() {
            assert_eq!(request.line, "POST http://model.example.test:81/v1/x?y=1 HTTP/1.1");
            assert_eq!(request.headers["host"], "model.example.test:81");
            assert_eq!(request.headers["proxy-authorization"], "Basic dTpwQA==");
            client.answer("200 OK", "through");
        }
    });
    for _ in 0..2 {
        let url = format!("http://u:p%40@127.0.0.1:{}", proxy.port);
        let answer = exchange(b, proxied("http://model.example.test:81/v1/x?y=1", url));
        answer.end.unwrap();
        assert_eq!(answer.body, b"through");
    }
    assert_eq!(proxy.connections(), 1);
}

on_each_backend!(proxies_that_refuse_are_named_without_their_password);
fn proxies_that_refuse_are_named_without_their_password(b: &Backend) {
    for (answer, word) in [("407 Auth", "password"), ("502 Bad", "502")] {
        let proxy = Server::new(move |mut client, _| {
            assert_eq!(client.request().unwrap().line, "CONNECT model.example.test:443 HTTP/1.1");
            client.answer(answer, "");
        });
        let url = format!("http://u:secret@127.0.0.1:{}", proxy.port);
        let fault = failure(b, proxied("https://model.example.test/v1", url));
        assert_eq!(fault.kind, FaultKind::Proxy);
        assert!(fault.detail.contains(word) && fault.detail.contains(&proxy.port.to_string()), "{fault}");
    }
    let closed = CLOSED;
    let url = format!("http://127.0.0.1:{closed}");
    assert_eq!(failure(b, proxied("http://model.example.test/", url)).kind, FaultKind::Proxy);
    assert_eq!(failure(b, proxied("http://a.test/", "socks5://x:1".into())).kind, FaultKind::Proxy);
}

fn secure(certificate: &str) -> Server {
    Server::tls(certificate, |mut client, _| {
        while client.request().is_some() {
            client.answer("200 OK", "secret tunnel");
        }
    })
}

on_each_backend!(unknown_authorities_are_refused);
fn unknown_authorities_are_refused(b: &Backend) {
    let fault = failure(b, request(format!("https://localhost:{}/", secure("good").port)));
    assert_eq!(fault.kind, FaultKind::Tls);
    assert!(fault.detail.contains("authority") && fault.detail.contains("localhost"), "{fault}");
}

/// What makes a process trust the authority of these tests.
pub const fn extra_authority() -> (&'static str, &'static str) {
    ("NODE_EXTRA_CA_CERTS", concat!(env!("CARGO_MANIFEST_DIR"), "/contract/certs/ca.pem"))
}

on_each_backend!(extra_authorities_are_trusted);
/// Bug 90.
fn extra_authorities_are_trusted(b: &Backend) {
    let ca = extra_authority().1;
    for variable in ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"] {
        b.alone("http::with_extra_authority", &[(variable, ca)]);
    }
}

on_each_backend!(useless_files_of_authorities_are_told);
/// A file of authorities that helps nobody is named.
fn useless_files_of_authorities_are_told(b: &Backend) {
    let cargo = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    for variable in ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"] {
        for (file, why) in [("/no/such/file.pem", "cannot be read"), (cargo, "holds no certificate")] {
            let expected = format!("{variable} names {file}, which {why}");
            b.alone("http::with_useless_authority", &[(variable, file), ("TAU_TEST_EXPECTED", &expected)]);
        }
    }
}

on_each_backend!(
    #[ignore = "run by `useless_files_of_authorities_are_told` with its environment"]
    with_useless_authority
);
fn with_useless_authority(b: &Backend) {
    let expected = std::env::var("TAU_TEST_EXPECTED").unwrap();
    let fault = failure(b, request(format!("https://localhost:{}/", secure("good").port)));
    assert!(fault.kind == FaultKind::Tls && fault.detail.contains(&expected), "no {expected:?} in {fault}");
}

on_each_backend!(
    #[ignore = "run by `extra_authorities_are_trusted` with its environment"]
    with_extra_authority
);
fn with_extra_authority(b: &Backend) {
    let good = secure("good");
    for _ in 0..2 {
        let answer = exchange(b, request(format!("https://localhost:{}/", good.port)));
        answer.end.unwrap();
        assert_eq!(answer.body, b"secret tunnel");
    }
    assert_eq!(good.connections(), 1);
    // Another connection goes on with the session of the first: no certificates, a round trip less.
    let single = Server::tls("good", |mut client, _| {
        client.request();
        client.send("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok");
    });
    for _ in 0..4 {
        exchange(b, request(format!("https://localhost:{}/", single.port))).end.unwrap();
    }
    assert_eq!((single.connections(), single.resumed()), (4, 3));
    let fault = failure(b, request(format!("https://127.0.0.1:{}/", good.port)));
    assert!(fault.kind == FaultKind::Tls && fault.detail.contains("another host"), "{fault}");
    let fault = failure(b, request(format!("https://localhost:{}/", secure("expired").port)));
    assert!(fault.kind == FaultKind::Tls && fault.detail.contains("expired"), "{fault}");
    let plain = once(b"HTTP/1.1 400 no TLS here\r\n\r\n");
    assert_eq!(failure(b, request(format!("https://localhost:{}/", plain.port))).kind, FaultKind::Tls);

    let place = format!("localhost:{}", good.port);
    let expected = format!("CONNECT {place} HTTP/1.1");
    let address = format!("127.0.0.1:{}", good.port);
    let proxy = Server::new(move |mut client, _| {
        assert_eq!(client.request().unwrap().line, expected);
        client.send("HTTP/1.1 200 Connection established\r\n\r\n");
        client.tunnel(&address);
    });
    let answer =
        exchange(b, proxied(&format!("https://{place}/"), format!("http://127.0.0.1:{}", proxy.port)));
    answer.end.unwrap();
    assert_eq!((answer.body.as_slice(), proxy.connections()), (b"secret tunnel".as_slice(), 1));
}
