//! Hosts with several addresses: some refuse, some say nothing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

use tau_core::fault::FaultKind;
use tau_core::op::{HttpRequest, Op};

use crate::backend::{Backend, on_each_backend};
use crate::http::{exchange, failure, request};
use crate::server::{CLOSED, Server};

/// Answers each connection once, with the family of its address.
fn serve(listener: TcpListener) {
    thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let _ = socket.read(&mut [0; 4096]);
            let family = if socket.local_addr().unwrap().is_ipv6() { 6 } else { 4 };
            let _ =
                write!(socket, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\n{family}");
        }
    });
}

/// A place that takes no more connections and does not say so: its queue is full.
struct Silent {
    _listener: TcpListener,
    _waiting: Vec<TcpStream>,
}

#[allow(unsafe_code, reason = "nothing safe makes the queue of a listener short")]
fn silent(place: &str) -> (Silent, u16) {
    let listener = TcpListener::bind(place).unwrap();
    let at = listener.local_addr().unwrap();
    // SAFETY: it is a listening socket of ours.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    let mut waiting = Vec::new();
    while let Ok(socket) = TcpStream::connect_timeout(&at, Duration::from_millis(300)) {
        waiting.push(socket);
        assert!(waiting.len() < 50, "a queue that is never full");
    }
    (Silent { _listener: listener, _waiting: waiting }, at.port())
}

/// Listens at the other family's address of the local host; `None` where there is no such family.
fn other(port: u16) -> Option<TcpListener> {
    TcpListener::bind(SocketAddr::new("::1".parse().unwrap(), port)).ok()
}

on_each_backend!(an_address_that_refuses_is_followed_by_the_next);
fn an_address_that_refuses_is_followed_by_the_next(b: &Backend) {
    let Some(listener) = other(0) else { return };
    let port = listener.local_addr().unwrap().port();
    serve(listener);
    let answer = exchange(b, request(format!("http://localhost:{port}/")));
    assert_eq!((answer.body.as_slice(), answer.end), (b"6".as_slice(), Ok(())));
}

on_each_backend!(an_address_that_is_silent_is_not_waited_for);
/// Also without any limit.
fn an_address_that_is_silent_is_not_waited_for(b: &Backend) {
    let (_silent, port) = silent("127.0.0.1:0");
    let Some(listener) = other(port) else { return };
    serve(listener);
    for head_timeout_ms in [Some(60_000), None] {
        let start = Instant::now();
        let asked = HttpRequest { head_timeout_ms, ..request(format!("http://localhost:{port}/")) };
        let answer = exchange(b, asked);
        assert_eq!((answer.body.as_slice(), answer.end), (b"6".as_slice(), Ok(())));
        assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    }
    // The same for a proxy.
    let proxied = HttpRequest {
        proxy: Some(format!("http://localhost:{port}")),
        ..request("http://model.example.test/")
    };
    let start = Instant::now();
    exchange(b, proxied).end.unwrap();
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
}

on_each_backend!(silence_everywhere_is_limited_and_cancelled);
fn silence_everywhere_is_limited_and_cancelled(b: &Backend) {
    let (_silent, port) = silent("127.0.0.1:0");
    let url = format!("http://127.0.0.1:{port}/");
    let start = Instant::now();
    let fault = failure(b, HttpRequest { head_timeout_ms: Some(300), ..request(&url) });
    assert_eq!(fault.kind, FaultKind::TimedOut);
    assert!(fault.detail.contains(&format!("127.0.0.1:{port}")), "{fault}");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    let running = b.start(Op::Http(HttpRequest { head_timeout_ms: None, ..request(url) }));
    assert!(running.within(Duration::from_millis(100)).is_none());
    let start = Instant::now();
    running.cancel();
    assert_eq!(running.finish().1.unwrap_err().kind, FaultKind::Cancelled);
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

on_each_backend!(a_connection_has_a_limit_of_its_own);
/// Also where the answer may take as long as it likes: neither an address, nor a handshake, nor a proxy is waited for
/// without end.
fn a_connection_has_a_limit_of_its_own(b: &Backend) {
    let (_silent, port) = silent("127.0.0.1:0");
    let accepting = Server::new(|mut client, _| client.drain());
    let plain = |url: String| HttpRequest { head_timeout_ms: None, ..request(url) };
    let asked = [
        plain(format!("http://127.0.0.1:{port}/")),
        plain(format!("https://localhost:{}/", accepting.port)),
        HttpRequest {
            proxy: Some(format!("http://user:secret@127.0.0.1:{}", accepting.port)),
            ..plain("https://model.example.test/".into())
        },
    ];
    let start = Instant::now();
    let running: Vec<_> = asked.into_iter().map(|asked| b.start(Op::Http(asked))).collect();
    for running in running {
        let fault = running.finish().1.unwrap_err();
        assert_eq!(fault.kind, FaultKind::TimedOut, "{fault}");
        assert!(fault.detail.contains("no connection within") && !fault.detail.contains("secret"), "{fault}");
    }
    let limit = tau_io_std::sys::net::CONNECT_LIMIT;
    assert!(start.elapsed() >= limit && start.elapsed() < limit + Duration::from_secs(15));
    // Once it stands, an answer may take longer.
    let answering = Server::new(move |mut client, _| {
        client.request();
        thread::sleep(limit + Duration::from_millis(500));
        client.answer("200 OK", "late");
    });
    assert_eq!(exchange(b, plain(answering.url("/"))).body, b"late");
}

on_each_backend!(cancelled_connects_leave_no_threads);
fn cancelled_connects_leave_no_threads(b: &Backend) {
    b.alone("dialing::many_cancelled_connects", &[]);
}

on_each_backend!(
    #[ignore = "run by `cancelled_connects_leave_no_threads` in a process of its own"]
    many_cancelled_connects
);
fn many_cancelled_connects(b: &Backend) {
    let count = |what: &str| std::fs::read_dir(format!("/proc/self/{what}")).unwrap().count();
    let (_silent, port) = silent("127.0.0.1:0");
    let asked = HttpRequest { head_timeout_ms: None, ..request(format!("http://127.0.0.1:{port}/")) };
    b.run(Op::Http(HttpRequest { head_timeout_ms: Some(50), ..asked.clone() })).unwrap_err();
    let before = (count("task"), count("fd"));
    for _ in 0..5 {
        let running: Vec<_> = (0..8).map(|_| b.start(Op::Http(asked.clone()))).collect();
        thread::sleep(Duration::from_millis(60));
        running.iter().for_each(crate::backend::Running::cancel);
        for running in running {
            assert_eq!(running.finish().1.unwrap_err().kind, FaultKind::Cancelled);
        }
    }
    for _ in 0..100 {
        if count("fd") <= before.1 && count("task") <= before.0 + 4 {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("{} threads and {} descriptors after {before:?}", count("task"), count("fd"));
}

on_each_backend!(all_that_failed_is_told);
/// One reason where it is the same for all addresses, else that of each address.
fn all_that_failed_is_told(b: &Backend) {
    let closed = CLOSED;
    let fault = failure(b, request(format!("http://localhost:{closed}/")));
    assert_eq!(fault.kind, FaultKind::Connect);
    assert!(fault.detail.contains(&format!("http://localhost:{closed}: could not connect")), "{fault}");
    assert!(fault.detail.contains("efused"), "{fault}");
}
