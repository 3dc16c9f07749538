//! Too much and too fast, and cancels at every step.

use std::fs;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tau_core::fault::FaultKind;
use tau_core::input::Reply;
use tau_core::op::{HttpRequest, Op};

use crate::backend::{Backend, on_each_backend};
use crate::http::{CHUNKED, exchange, extra_authority, failure, request};
use crate::server::{Client, Server};

/// Says one thing first, and then another without end.
fn flood(first: Vec<u8>, then: &[u8]) -> Server {
    let piece = then.repeat((64 << 10) / then.len());
    Server::new(move |mut client: Client, _| {
        client.request();
        client.send(&first);
        while client.sends(&piece) {}
    })
}

on_each_backend!(floods_hold_nothing_up);
/// What never lets up is limited and cancelled like anything else, and others get their turn.
fn floods_hold_nothing_up(b: &Backend) {
    let early = flood(Vec::new(), b"HTTP/1.1 102 Processing\r\n\r\n");
    let fault = failure(b, HttpRequest { head_timeout_ms: Some(300), ..request(early.url("/")) });
    assert_eq!(fault.kind, FaultKind::TimedOut);
    // Blocks of a compressed body that hold nothing.
    let head = CHUNKED.replace("transfer", "content-encoding: deflate\r\ntransfer");
    let empty = flood([head.as_bytes(), b"2\r\n\x78\x9c\r\n"].concat(), b"5\r\n\0\0\0\xff\xff\r\n");
    let body = flood(CHUNKED.as_bytes().to_vec(), b"a\r\n0123456789\r\n");
    let quiet = Server::new(|mut client, _| {
        while client.request().is_some() {
            client.answer("200 OK", "x");
        }
    });
    for server in [&early, &empty, &body] {
        let running = b.start(Op::Http(request(server.url("/"))));
        thread::sleep(Duration::from_millis(100));
        let start = Instant::now();
        exchange(b, request(quiet.url("/"))).end.unwrap();
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        let start = Instant::now();
        running.cancel();
        let fault = running.finish().1.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Cancelled, "{fault}");
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }
}

on_each_backend!(who_reads_slowly_slows_the_server_down);
fn who_reads_slowly_slows_the_server_down(b: &Backend) {
    b.alone("pressure::three_hundred_megabytes", &[]);
}

on_each_backend!(
    #[ignore = "run by `who_reads_slowly_slows_the_server_down` in a process of its own"]
    three_hundred_megabytes
);
fn three_hundred_megabytes(b: &Backend) {
    let server = Server::new(|mut client, _| {
        client.request();
        client.send("HTTP/1.1 200 OK\r\ncontent-length: 300000000\r\n\r\n");
        let piece = vec![0; 1_000_000];
        for _ in 0..300 {
            client.send(&piece);
        }
    });
    let running = b.start_slowly(Op::Http(request(server.url("/"))));
    thread::sleep(Duration::from_millis(500));
    let mut total = 0;
    loop {
        match running.next() {
            Reply::Head { .. } => {}
            Reply::Chunk { bytes, .. } => total += bytes.len(),
            last => break assert!(last.is_last(), "{last:?}"),
        }
    }
    assert_eq!(total, 300_000_000);
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 24_000, "{peak} kB");
}

/// A server that does something with each connection, and tells when it was closed.
fn until_closed(server: fn(&mut Client), certificate: Option<&str>) -> (Server, Receiver<Duration>) {
    let (gone, closed) = channel();
    let gone = Mutex::new(gone);
    let serve = move |mut client: Client, _: usize| {
        server(&mut client);
        let start = Instant::now();
        client.drain();
        let _ = gone.lock().unwrap().send(start.elapsed());
    };
    let server = match certificate {
        Some(certificate) => Server::tls(certificate, serve),
        None => Server::new(serve),
    };
    (server, closed)
}

fn cancelled(b: &Backend, what: &str, asked: HttpRequest, closed: &Receiver<Duration>) {
    let running = b.start(Op::Http(asked));
    thread::sleep(Duration::from_millis(60));
    let start = Instant::now();
    running.cancel();
    let (_, last) = running.finish();
    assert_eq!(last.unwrap_err().kind, FaultKind::Cancelled, "{what}");
    assert!(start.elapsed() < Duration::from_secs(2), "{what}: {:?}", start.elapsed());
    assert!(closed.recv_timeout(Duration::from_secs(10)).is_ok(), "{what}: the connection is closed");
}

on_each_backend!(cancels_close_the_connection_at_every_step);
fn cancels_close_the_connection_at_every_step(b: &Backend) {
    b.alone("pressure::at_every_step", &[extra_authority()]);
}

on_each_backend!(
    #[ignore = "run by `cancels_close_the_connection_at_every_step` with its environment"]
    at_every_step
);
fn at_every_step(b: &Backend) {
    let through = |url: &str, proxy: String| HttpRequest { proxy: Some(proxy), ..request(url) };
    let https = "https://model.example.test/";

    let (server, closed) = until_closed(|_| {}, None);
    cancelled(b, "head", request(server.url("/")), &closed);
    let large = HttpRequest { body: Arc::new(vec![b'x'; 64 << 20]), ..request(server.url("/")) };
    let (server, closed) = until_closed(|_| thread::sleep(Duration::from_millis(300)), None);
    cancelled(b, "sending", HttpRequest { url: server.url("/"), ..large }, &closed);
    let (server, closed) = until_closed(
        |client| {
            client.request();
            client.send(format!("{CHUNKED}5\r\nhello\r\n"));
        },
        None,
    );
    cancelled(b, "body", request(server.url("/")), &closed);

    // A handshake that nobody answers.
    let (server, closed) = until_closed(|_| {}, None);
    cancelled(b, "handshake", request(format!("https://localhost:{}/", server.port)), &closed);
    let (proxy, closed) = until_closed(|_| {}, None);
    cancelled(
        b,
        "plain proxy",
        through("http://a.test/", format!("http://127.0.0.1:{}", proxy.port)),
        &closed,
    );
    cancelled(b, "CONNECT", through(https, format!("http://127.0.0.1:{}", proxy.port)), &closed);
    cancelled(
        b,
        "handshake with the proxy",
        through(https, format!("https://localhost:{}", proxy.port)),
        &closed,
    );
    let (proxy, closed) = until_closed(
        |client| {
            client.request();
            client.send("HTTP/1.1 200 Go");
        },
        None,
    );
    cancelled(b, "half an answer", through(https, format!("http://127.0.0.1:{}", proxy.port)), &closed);
    let opens: fn(&mut Client) = |client| {
        client.request();
        client.send("HTTP/1.1 200 Go\r\n\r\n");
    };
    let (proxy, closed) = until_closed(opens, None);
    cancelled(
        b,
        "handshake in the tunnel",
        through(https, format!("http://127.0.0.1:{}", proxy.port)),
        &closed,
    );
    let (proxy, closed) = until_closed(opens, Some("good"));
    cancelled(
        b,
        "handshake in a handshake",
        through(https, format!("https://localhost:{}", proxy.port)),
        &closed,
    );
}
