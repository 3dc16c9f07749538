//! HTTP: streaming, cancellation, limits, broken servers, proxies, trust.

use std::io::Write;
use std::net::TcpListener;
use std::process::Command;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tau_core::fault::{FaultKind, IoFault};
use tau_core::input::Reply;
use tau_core::op::{Headers, HttpRequest, Op, Outcome};

use crate::backend::{Backend, io_smol, io_std};
use crate::server::{Client, Server};

fn request(url: impl Into<String>) -> HttpRequest {
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

struct Answer {
    status: u16,
    headers: Headers,
    body: Vec<u8>,
    end: Result<(), IoFault>,
    pieces: usize,
}

fn exchange(b: &Backend, request: HttpRequest) -> Answer {
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

fn failure(b: &Backend, request: HttpRequest) -> IoFault {
    let fault = exchange(b, request).end.unwrap_err();
    assert!(!fault.detail.contains("secret"), "{fault}");
    fault
}

fn once(bytes: &'static [u8]) -> Server {
    Server::new(move |mut client: Client, _| {
        client.request();
        client.send(bytes);
    })
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

#[test]
fn pieces_are_delivered_as_they_come() {
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
    let b = io_std();
    let running = b.start(Op::Http(request(server.url("/"))));
    assert!(matches!(running.next(), Reply::Head { status: 200, .. }));
    for _ in 0..3 {
        assert!(matches!(running.next(), Reply::Chunk { bytes, .. } if bytes == b"hello"));
        assert!(running.within(Duration::from_millis(20)).is_none());
        go.send(()).unwrap();
    }
    assert!(matches!(running.next(), Reply::Done(Outcome::BodyEnd)));
}

#[test]
fn many_small_chunks_become_few_pieces() {
    let server = Server::new(|mut client, _| {
        client.request();
        let chunks = "a\r\n0123456789\r\n".repeat(20_000);
        client.send(format!("{CHUNKED}{chunks}0\r\n\r\n"));
    });
    let answer = exchange(&io_std(), request(server.url("/")));
    assert_eq!(answer.body.len(), 200_000);
    assert!(answer.pieces < 200, "{}", answer.pieces);
    answer.end.unwrap();
}

#[test]
fn every_status_is_an_answer() {
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
    let b = io_std();
    for status in [200, 201, 302, 307, 400, 401, 404, 429, 500, 503, 529] {
        let answer = exchange(&b, request(server.url(&format!("/{status}"))));
        assert_eq!((answer.status, answer.body.as_slice()), (status, b"body".as_slice()));
        assert!(answer.headers.contains(&("retry-after".into(), "7".into())));
        answer.end.unwrap();
    }
    assert_eq!(server.connections(), 1, "the connection is used again");
    assert_eq!(b.threads(), 1, "one thread runs one request after another");
}

fn gzip(text: &[u8]) -> Vec<u8> {
    use flate2::{Compression, write::GzEncoder};
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn compressed_answers_arrive_decoded() {
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
    let b = io_std();
    for (path, status, len) in
        [("/small", 200, 5), ("/large", 200, 1_000_000), ("/refused", 401, 5), ("/small", 200, 5)]
    {
        let answer = exchange(&b, request(server.url(path)));
        answer.end.unwrap();
        assert_eq!((answer.status, answer.body.len()), (status, len), "{path}");
    }
    assert_eq!(server.connections(), 1, "the connection is used again");
}

#[test]
fn compressed_pieces_are_delivered_as_they_come() {
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
    let b = io_std();
    let running = b.start(Op::Http(request(server.url("/"))));
    assert!(matches!(running.next(), Reply::Head { status: 200, .. }));
    for _ in 0..3 {
        assert!(matches!(running.next(), Reply::Chunk { bytes, .. } if bytes == b"data: hello\n\n"));
        go.send(()).unwrap();
    }
    assert!(matches!(running.next(), Reply::Done(Outcome::BodyEnd)));
}

#[test]
fn compression_that_is_wrong_is_a_fault() {
    let b = io_std();
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
        let fault = failure(&b, request(server.url("/")));
        assert!(fault.kind == kind && fault.detail.contains(part), "{coding}: {fault:?}");
        assert!(fault.detail.contains(&server.url("")), "{fault}");
    }
    // Who wants another coding gets what it asked for.
    let mut own = request(serve("identity", b"plain".to_vec()).url("/"));
    own.headers.push(("Accept-Encoding".into(), "identity".into()));
    let answer = exchange(&b, own);
    answer.end.unwrap();
    assert_eq!(answer.body, b"plain");
}

#[test]
fn kept_connections_that_died_are_replaced() {
    let server = Server::new(|mut client, _| {
        client.request();
        client.answer("200 OK", "x");
        // The second request is read, and answered by closing.
        client.request();
    });
    let b = io_std();
    for _ in 0..3 {
        let answer = exchange(&b, request(server.url("/")));
        answer.end.unwrap();
        assert_eq!(answer.body, b"x");
    }
    assert_eq!(server.connections(), 3);
}

#[test]
fn broken_answers_are_faults() {
    let b = io_std();
    for (bytes, kind) in [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n123".as_slice(), FaultKind::Reset),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n", FaultKind::Reset),
        (b"HTTP/1.1 200 OK\r\n", FaultKind::Reset),
        (b"", FaultKind::Reset),
        (b"SSH-2.0-OpenSSH_9\r\n\r\n", FaultKind::Other),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nabc\r\n", FaultKind::Other),
    ] {
        let server = once(bytes);
        let fault = failure(&b, request(server.url("/")));
        assert_eq!(fault.kind, kind, "{fault} for {:?}", String::from_utf8_lossy(bytes));
        assert!(fault.detail.contains("127.0.0.1"), "{fault}");
    }
    let answer = exchange(&b, request(once(b"HTTP/1.0 200 OK\r\n\r\nuntil the end").url("/")));
    answer.end.unwrap();
    assert_eq!(answer.body, b"until the end");
}

#[test]
fn unreachable_places_are_faults() {
    let b = io_std();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let kind = |url: &str| failure(&b, request(url)).kind;
    assert_eq!(kind(&format!("http://127.0.0.1:{closed}/")), FaultKind::Connect);
    assert_eq!(kind(&format!("http://localhost:{closed}/")), FaultKind::Connect);
    assert_eq!(kind("http://host.invalid/"), FaultKind::Dns);
    for bad in ["nonsense", "http://", "ftp://x/", "http://a b/"] {
        assert!(matches!(kind(bad), FaultKind::Invalid | FaultKind::Other | FaultKind::Dns), "{bad}");
    }
    let mut odd = request(format!("http://127.0.0.1:{closed}/"));
    odd.headers[0].1 = "secret\n".into();
    assert_eq!(failure(&b, odd).kind, FaultKind::Invalid);
}

#[test]
fn limits_of_time() {
    let b = io_std();
    let silent = Server::new(|mut client, _| while client.request().is_some() {});
    let start = Instant::now();
    let fault = failure(&b, HttpRequest { head_timeout_ms: Some(150), ..request(silent.url("/")) });
    assert_eq!(fault.kind, FaultKind::TimedOut);
    let stalled = Server::new(|mut client, _| {
        client.request();
        client.send(format!("{CHUNKED}5\r\nhello\r\n"));
        client.request();
    });
    let answer = exchange(&b, HttpRequest { idle_timeout_ms: Some(150), ..request(stalled.url("/")) });
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
    assert!(start.elapsed() < Duration::from_millis(100), "{:?}", start.elapsed());
}

#[test]
fn cancels_are_prompt() {
    let b = io_std();
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
    cancel_soon(&b, request(silent.url("/")), 0);
    cancel_soon(&b, request(stalled.url("/")), 2);
    // The server does not read: the request cannot be sent as a whole.
    let large = HttpRequest { body: Arc::new(vec![b'x'; 64 << 20]), ..request(deaf.url("/")) };
    cancel_soon(&b, large, 0);
    // Nobody answers the handshake of TLS.
    let url = format!("https://localhost:{}/", deaf.port);
    cancel_soon(&b, request(url), 0);
    // And the next request is none the worse.
    exchange(&b, request(once(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").url("/"))).end.unwrap();
}

#[test]
fn a_hanging_connect_is_left_behind() {
    let b = io_std();
    // An address for documentation: nobody answers. Where the network says so at once, there is nothing to cancel.
    let running = b.start(Op::Http(request("http://192.0.2.1/")));
    if running.within(Duration::from_millis(200)).is_none() {
        let start = Instant::now();
        running.cancel();
        assert_eq!(running.finish().1.unwrap_err().kind, FaultKind::Cancelled);
        assert!(start.elapsed() < Duration::from_millis(100));
    }
}

#[test]
fn large_bodies_both_ways() {
    let server = Server::new(|mut client, _| {
        let body = client.request().unwrap().body;
        client.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()));
        client.send(&body);
    });
    let body: Vec<u8> = (0..30_000_000u32).map(|i| i as u8).collect();
    let answer =
        exchange(&io_std(), HttpRequest { body: Arc::new(body.clone()), ..request(server.url("/")) });
    answer.end.unwrap();
    assert!(answer.body == body);
}

fn proxied(url: &str, proxy: String) -> HttpRequest {
    HttpRequest { proxy: Some(proxy), ..request(url) }
}

#[test]
fn plain_requests_through_a_proxy_name_the_whole_url() {
    let proxy = Server::new(|mut client, _| {
        while let Some(request) = client.request() {
            assert_eq!(request.line, "POST http://model.example.test:81/v1/x?y=1 HTTP/1.1");
            assert_eq!(request.headers["host"], "model.example.test:81");
            assert_eq!(request.headers["proxy-authorization"], "Basic dTpwQA==");
            client.answer("200 OK", "through");
        }
    });
    let b = io_std();
    for _ in 0..2 {
        let url = format!("http://u:p%40@127.0.0.1:{}", proxy.port);
        let answer = exchange(&b, proxied("http://model.example.test:81/v1/x?y=1", url));
        answer.end.unwrap();
        assert_eq!(answer.body, b"through");
    }
    assert_eq!(proxy.connections(), 1);
}

#[test]
fn proxies_that_refuse_are_named_without_their_password() {
    let b = io_std();
    for (answer, word) in [("407 Auth", "password"), ("502 Bad", "502")] {
        let proxy = Server::new(move |mut client, _| {
            assert_eq!(client.request().unwrap().line, "CONNECT model.example.test:443 HTTP/1.1");
            client.answer(answer, "");
        });
        let url = format!("http://u:secret@127.0.0.1:{}", proxy.port);
        let fault = failure(&b, proxied("https://model.example.test/v1", url));
        assert_eq!(fault.kind, FaultKind::Proxy);
        assert!(fault.detail.contains(word) && fault.detail.contains(&proxy.port.to_string()), "{fault}");
    }
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{closed}");
    assert_eq!(failure(&b, proxied("http://model.example.test/", url)).kind, FaultKind::Proxy);
    assert_eq!(failure(&b, proxied("http://a.test/", "socks5://x:1".into())).kind, FaultKind::Proxy);
}

/// Runs one ignored test of this program in a process with its own environment.
pub fn alone(test: &str, env: &[(&str, &str)]) {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program)
        .args(["--exact", test, "--ignored", "--nocapture"])
        .envs(env.iter().copied())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("1 passed"), "there is no ignored test {test}: {told}");
}

fn secure(certificate: &str) -> Server {
    Server::tls(certificate, |mut client, _| {
        while client.request().is_some() {
            client.answer("200 OK", "secret tunnel");
        }
    })
}

#[test]
fn unknown_authorities_are_refused() {
    let fault = failure(&io_std(), request(format!("https://localhost:{}/", secure("good").port)));
    assert_eq!(fault.kind, FaultKind::Tls);
    assert!(fault.detail.contains("authority") && fault.detail.contains("localhost"), "{fault}");
}

/// Bug 90.
#[test]
fn extra_authorities_are_trusted() {
    let ca = concat!(env!("CARGO_MANIFEST_DIR"), "/contract/certs/ca.pem");
    for variable in ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"] {
        alone("http::with_extra_authority", &[(variable, ca)]);
    }
}

/// A file of authorities that helps nobody is named.
#[test]
fn useless_files_of_authorities_are_told() {
    let cargo = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    for variable in ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"] {
        for (file, why) in [("/no/such/file.pem", "cannot be read"), (cargo, "holds no certificate")] {
            let expected = format!("{variable} names {file}, which {why}");
            alone("http::with_useless_authority", &[(variable, file), ("TAU_TEST_EXPECTED", &expected)]);
        }
    }
}

#[test]
#[ignore = "run by `useless_files_of_authorities_are_told` with its environment"]
fn with_useless_authority() {
    let expected = std::env::var("TAU_TEST_EXPECTED").unwrap();
    let fault = failure(&io_std(), request(format!("https://localhost:{}/", secure("good").port)));
    assert!(fault.kind == FaultKind::Tls && fault.detail.contains(&expected), "no {expected:?} in {fault}");
}

#[test]
#[ignore = "run by `extra_authorities_are_trusted` with its environment"]
fn with_extra_authority() {
    let b = io_std();
    let good = secure("good");
    for _ in 0..2 {
        let answer = exchange(&b, request(format!("https://localhost:{}/", good.port)));
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
        exchange(&b, request(format!("https://localhost:{}/", single.port))).end.unwrap();
    }
    assert_eq!((single.connections(), single.resumed()), (4, 3));
    let fault = failure(&b, request(format!("https://127.0.0.1:{}/", good.port)));
    assert!(fault.kind == FaultKind::Tls && fault.detail.contains("another host"), "{fault}");
    let fault = failure(&b, request(format!("https://localhost:{}/", secure("expired").port)));
    assert!(fault.kind == FaultKind::Tls && fault.detail.contains("expired"), "{fault}");
    let plain = once(b"HTTP/1.1 400 no TLS here\r\n\r\n");
    assert_eq!(failure(&b, request(format!("https://localhost:{}/", plain.port))).kind, FaultKind::Tls);

    let place = format!("localhost:{}", good.port);
    let expected = format!("CONNECT {place} HTTP/1.1");
    let address = format!("127.0.0.1:{}", good.port);
    let proxy = Server::new(move |mut client, _| {
        assert_eq!(client.request().unwrap().line, expected);
        client.send("HTTP/1.1 200 Connection established\r\n\r\n");
        client.tunnel(&address);
    });
    let answer =
        exchange(&b, proxied(&format!("https://{place}/"), format!("http://127.0.0.1:{}", proxy.port)));
    answer.end.unwrap();
    assert_eq!((answer.body.as_slice(), proxy.connections()), (b"secret tunnel".as_slice(), 1));
}

#[test]
fn the_async_backend_says_what_it_lacks() {
    let fault = io_smol().run(Op::Http(request("http://127.0.0.1:1/"))).unwrap_err();
    assert!(fault.detail.contains("not yet"), "{fault}");
}
