//! Connections that are kept: which are used again, and which never.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tau_core::input::Reply;
use tau_core::op::{HttpRequest, Op};

use crate::backend::{Backend, on_each_backend};
use crate::http::{CHUNKED, exchange, extra_authority, request};
use crate::server::{Client, Server};

/// An answer of so many bytes in all, and behind it one that nobody asked for.
fn with_more(size: usize) -> Vec<u8> {
    let head = |len: usize| format!("HTTP/1.1 200 OK\r\ncontent-length: {len:06}\r\n\r\n");
    let body = size - head(0).len();
    let poison = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison";
    [head(body).as_bytes(), &vec![b'x'; body], poison.as_bytes()].concat()
}

fn sizes() -> impl Iterator<Item = usize> {
    [512, 4096, 8192, 16384, 32768, 65536, 131_072].into_iter().flat_map(|size| [size - 1, size, size + 1])
}

/// What comes behind an answer can be noticed only if it is there before the next request leaves: `sent` tells when it is.
fn nothing_is_taken_for_the_next(b: &Backend, server: &Server, origin: &str, sent: &Receiver<()>) {
    for size in sizes() {
        let before = server.connections();
        let answer = exchange(b, request(format!("{origin}/{size}")));
        answer.end.unwrap();
        sent.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(answer.body.iter().all(|byte| *byte == b'x'), "{size}");
        let answer = exchange(b, request(format!("{origin}/clean")));
        answer.end.unwrap();
        assert_eq!(answer.body, b"clean", "{size}");
        assert_eq!(server.connections(), before + 1 + usize::from(before == 0), "{size}");
    }
}

/// Answers with more than an answer, and tells when all of it is on its way.
fn too_much() -> (impl Fn(Client, usize) + Send + Sync + 'static, Receiver<()>) {
    let (done, sent) = channel();
    let done = Mutex::new(done);
    let serve = move |mut client: Client, _| {
        while let Some(request) = client.request() {
            match request.line.split(['/', ' ']).find_map(|word| word.parse().ok()) {
                Some(size) if size > 1 => {
                    client.send(with_more(size));
                    let _ = done.lock().unwrap().send(());
                }
                _ => client.answer("200 OK", "clean"),
            }
        }
    };
    (serve, sent)
}

on_each_backend!(what_follows_an_answer_is_not_taken_for_the_next);
fn what_follows_an_answer_is_not_taken_for_the_next(b: &Backend) {
    let (serve, sent) = too_much();
    let server = Server::new(serve);
    nothing_is_taken_for_the_next(b, &server, &server.url(""), &sent);
}

on_each_backend!(what_follows_an_encrypted_answer_is_not_taken_for_the_next);
/// The layer of encryption may hold what the socket no longer does.
fn what_follows_an_encrypted_answer_is_not_taken_for_the_next(b: &Backend) {
    b.alone("pool::encrypted", &[extra_authority()]);
}

on_each_backend!(
    #[ignore = "run by `what_follows_an_encrypted_answer_is_not_taken_for_the_next` with its environment"]
    encrypted
);
fn encrypted(b: &Backend) {
    let (serve, sent) = too_much();
    let server = Server::tls("good", serve);
    nothing_is_taken_for_the_next(b, &server, &format!("https://localhost:{}", server.port), &sent);
    // Who closes without a word has said everything, where that is how a body ends.
    let abrupt = Server::tls("good", |mut client, _| {
        client.request();
        client.send("HTTP/1.1 200 OK\r\n\r\nuntil the end");
    });
    let answer = exchange(b, request(format!("https://localhost:{}/", abrupt.port)));
    assert_eq!((answer.body.as_slice(), answer.end), (b"until the end".as_slice(), Ok(())));
    // An answer before the end of the request is heard here as well.
    let refusing = Server::tls("good", |mut client, _| {
        client.head();
        client.send("HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: 9\r\n\r\ntoo large");
        thread::sleep(Duration::from_millis(100));
    });
    let url = format!("https://localhost:{}/", refusing.port);
    let answer = exchange(b, HttpRequest { body: vec![b'x'; 32 << 20].into(), ..request(url) });
    assert_eq!((answer.status, answer.body.as_slice()), (413, b"too large".as_slice()), "{:?}", answer.end);
}

on_each_backend!(connections_that_end_are_not_used_again);
fn connections_that_end_are_not_used_again(b: &Backend) {
    for (head, connections) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 1", 1),
        ("HTTP/1.1 200 OK\r\nConnection: Keep-Alive, Close\r\ncontent-length: 1", 3),
        ("HTTP/1.0 200 OK\r\ncontent-length: 1", 3),
        ("HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1", 1),
    ] {
        let server = Server::new(move |mut client, _| {
            while client.request().is_some() {
                client.send(format!("{head}\r\n\r\nx"));
            }
        });
        for _ in 0..3 {
            exchange(b, request(server.url("/"))).end.unwrap();
        }
        assert_eq!(server.connections(), connections, "{head}");
    }
}

on_each_backend!(bodies_that_were_left_are_not_used_again);
fn bodies_that_were_left_are_not_used_again(b: &Backend) {
    let (gone, left) = channel();
    let server = Server::new(move |mut client, number| {
        client.request();
        if number > 0 {
            return client.answer("200 OK", "new");
        }
        client.send(format!("{CHUNKED}5\r\nhello\r\n"));
        let _ = gone.send(client.request().is_none());
    });
    let running = b.start(Op::Http(request(server.url("/"))));
    assert!(matches!(running.next(), Reply::Head { .. }));
    assert!(matches!(running.next(), Reply::Chunk { .. }));
    running.cancel();
    running.finish().1.unwrap_err();
    assert!(left.recv_timeout(Duration::from_secs(5)).unwrap(), "the connection was closed");
    assert_eq!(exchange(b, request(server.url("/"))).body, b"new");
}

on_each_backend!(ways_are_kept_apart);
/// A connection through a proxy is not used without it, nor for another host.
fn ways_are_kept_apart(b: &Backend) {
    let server = |name: &'static str| {
        Server::new(move |mut client, _| {
            while client.request().is_some() {
                client.answer("200 OK", name);
            }
        })
    };
    let (direct, one, other) = (server("direct"), server("one"), server("other"));
    let proxy = |server: &Server| Some(format!("http://127.0.0.1:{}", server.port));
    for _ in 0..2 {
        for (setting, path, body) in [
            (None, "", "direct"),
            (proxy(&one), "", "one"),
            (proxy(&other), "", "other"),
            (proxy(&one), "/path", "one"),
        ] {
            let asked = HttpRequest { proxy: setting, ..request(direct.url(path)) };
            assert_eq!(exchange(b, asked).body, body.as_bytes());
        }
        let asked = HttpRequest { proxy: proxy(&one), ..request("http://model.example.test/") };
        assert_eq!(exchange(b, asked).body, b"one");
    }
    assert_eq!((direct.connections(), other.connections(), one.connections()), (1, 1, 2));
}

on_each_backend!(few_connections_are_kept);
fn few_connections_are_kept(b: &Backend) {
    let open = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&open);
    let server = Server::new(move |mut client, _| {
        count.fetch_add(1, Ordering::SeqCst);
        while client.request().is_some() {
            thread::sleep(Duration::from_millis(50));
            client.answer("200 OK", "x");
        }
        count.fetch_sub(1, Ordering::SeqCst);
    });
    let running: Vec<_> = (0..200).map(|_| b.start(Op::Http(request(server.url("/"))))).collect();
    for running in running {
        running.finish().1.unwrap();
    }
    let made = server.connections();
    thread::sleep(Duration::from_millis(300));
    let open = open.load(Ordering::SeqCst);
    assert!(open > 0 && open <= 64 && made > open, "{open} of {made}");
}

on_each_backend!(all_kept_connections_may_have_died);
/// Whatever is kept, a request is sent anew once at most, and then over a new connection.
fn all_kept_connections_may_have_died(b: &Backend) {
    let together = Arc::new(std::sync::Barrier::new(3));
    let server = Server::new(move |mut client, number| {
        client.request();
        if number < 3 {
            together.wait();
        }
        client.answer("200 OK", "x");
        // What comes then is read, and answered by closing.
        client.request();
    });
    let running: Vec<_> = (0..3).map(|_| b.start(Op::Http(request(server.url("/"))))).collect();
    for running in running {
        running.finish().1.unwrap();
    }
    for connections in 4..7 {
        let answer = exchange(b, request(server.url("/")));
        assert_eq!((answer.body.as_slice(), answer.end), (b"x".as_slice(), Ok(())));
        assert_eq!(server.connections(), connections);
    }
}
