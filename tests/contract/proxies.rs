//! Ways through a proxy: encrypted ones, those that misbehave, those that the environment names.

use std::time::{Duration, Instant};

use tau_core::fault::FaultKind;
use tau_core::op::HttpRequest;

use crate::backend::{Backend, on_each_backend};
use crate::http::{exchange, extra_authority, failure, gzip, request};
use crate::server::{CLOSED, Client, Server};

fn through(url: &str, proxy: impl Into<String>) -> HttpRequest {
    HttpRequest { proxy: Some(proxy.into()), ..request(url) }
}

/// Answers requests for a target with what was sent, compressed, and in chunks.
fn echo(client: &mut Client) {
    while let Some(request) = client.request() {
        let packed = gzip(&request.body);
        client.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-encoding: gzip\r\n\r\n");
        for piece in packed.chunks(5000) {
            client.send([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
        }
        client.send("0\r\n\r\n");
    }
}

on_each_backend!(encrypted_proxies);
fn encrypted_proxies(b: &Backend) {
    b.alone("proxies::with_encrypted_proxy", &[extra_authority()]);
}

on_each_backend!(
    #[ignore = "run by `encrypted_proxies` with its environment"]
    with_encrypted_proxy
);
fn with_encrypted_proxy(b: &Backend) {
    let proxy = Server::tls("good", |mut client, _| {
        let request = client.request().unwrap();
        assert_eq!(request.line, "CONNECT localhost:81 HTTP/1.1");
        assert_eq!(request.headers["proxy-authorization"], "Basic dTpzZWNyZXQ=");
        client.send("HTTP/1.1 200 Connection established\r\nx-proxy: yes\r\n\r\n");
        echo(&mut client.secure("good"));
    });
    let place = format!("https://u:secret@localhost:{}", proxy.port);
    // What leaves is far more than the layers hold at once, and so is what comes.
    let mut noise = 1u32;
    let large: Vec<u8> = (0..8_000_000)
        .map(|_| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            noise.to_be_bytes()[0]
        })
        .collect();
    for body in [b"small".to_vec(), large, Vec::new(), b"again".to_vec()] {
        let asked = HttpRequest { body: body.clone().into(), ..through("https://localhost:81/v1", &place) };
        let answer = exchange(b, asked);
        assert_eq!((answer.status, answer.end), (200, Ok(())));
        assert!(answer.body == body, "{} of {} bytes", answer.body.len(), body.len());
    }
    assert_eq!(proxy.connections(), 1, "the tunnel is used again");

    // Requests that are not encrypted themselves name the whole URL.
    let proxy = Server::tls("good", |mut client, _| {
        while let Some(request) = client.request() {
            assert_eq!(request.line, "POST http://model.example.test/v1 HTTP/1.1");
            assert_eq!(request.headers["proxy-authorization"], "Basic dTpzZWNyZXQ=");
            client.answer("200 OK", "through");
        }
    });
    for _ in 0..2 {
        let place = format!("https://u:secret@localhost:{}", proxy.port);
        let answer = exchange(b, through("http://model.example.test/v1", place));
        assert_eq!((answer.body.as_slice(), answer.end), (b"through".as_slice(), Ok(())));
    }
    assert_eq!(proxy.connections(), 1);

    // Each handshake is checked on its own.
    let opens = |certificate: &'static str| {
        Server::tls("good", move |mut client, _| {
            client.request();
            client.send("HTTP/1.1 200 Go\r\n\r\n");
            echo(&mut client.secure(certificate));
        })
    };
    let (good, expired) = (opens("good"), opens("expired"));
    let outer = Server::tls("expired", |mut client, _| client.drain());
    for (url, proxy, word) in [
        ("https://localhost/", format!("https://localhost:{}", outer.port), "expired"),
        (
            "https://localhost/",
            format!("https://127.0.0.1:{}", good.port),
            "https://127.0.0.1: its certificate is for",
        ),
        (
            "https://localhost/",
            format!("https://localhost:{}", expired.port),
            "https://localhost: its certificate has expired",
        ),
        (
            "https://other.test/",
            format!("https://localhost:{}", good.port),
            "https://other.test: its certificate is for",
        ),
    ] {
        let fault = failure(b, through(url, proxy));
        assert!(fault.kind == FaultKind::Tls && fault.detail.contains(word), "{fault}");
    }
    // Somebody who speaks no TLS.
    let plain = Server::new(|mut client, _| {
        client.send("HTTP/1.1 400 Bad\r\n\r\n");
        client.drain();
    });
    let fault = failure(b, through("https://localhost/", format!("https://localhost:{}", plain.port)));
    assert_eq!(fault.kind, FaultKind::Tls, "{fault}");
    let refusing = Server::tls("good", |mut client, _| {
        client.request();
        client.answer("407 Who", "");
    });
    let place = format!("https://u:secret@localhost:{}", refusing.port);
    let fault = failure(b, through("https://localhost/", place));
    assert!(fault.kind == FaultKind::Proxy && fault.detail.contains("https://localhost:"), "{fault}");
}

on_each_backend!(proxies_that_misbehave_are_named_without_their_password);
fn proxies_that_misbehave_are_named_without_their_password(b: &Backend) {
    for (answer, word) in [
        ("HTTP/1.1 200", "closed the connection"),
        ("HTTP/1.1 200 OK\r\nx: y\r\n", "closed the connection"),
        ("", "closed the connection"),
        ("<html><body>Log in first</body></html>\r\n\r\n", "not HTTP"),
        ("\0\u{1}\u{2}\r\n\r\n", "not HTTP"),
        ("HTTP/1.1 407 Who\r\nproxy-authenticate: Basic realm=x\r\n\r\n", "user and password"),
        ("HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/html\r\n\r\n<html>secret</html>", "502"),
        ("HTTP/1.1 302 Elsewhere\r\nlocation: http://login.test/\r\n\r\n", "302"),
        ("HTTP/1.1 99 Odd\r\n\r\n", "99"),
    ] {
        let proxy = Server::new(move |mut client, _| {
            client.request();
            for byte in answer.bytes().take(20) {
                client.send([byte]);
            }
            client.send(&answer[answer.len().min(20)..]);
        });
        let place = format!("http://user:secret@127.0.0.1:{}", proxy.port);
        let fault = failure(b, through("https://model.example.test/", place));
        assert_eq!(fault.kind, FaultKind::Proxy, "{fault} for {answer:?}");
        let named = fault.detail.contains(&format!("http://127.0.0.1:{}", proxy.port));
        assert!(named && fault.detail.contains(word), "{fault} for {answer:?}");
    }
    // One that never ends its head, and one that says nothing.
    let endless = Server::new(|mut client, _| {
        client.request();
        while client.sends("HTTP/1.1 200 OK\r\nx: y\r\n") {}
    });
    let place = format!("http://user:secret@127.0.0.1:{}", endless.port);
    assert_eq!(failure(b, through("https://model.example.test/", place)).kind, FaultKind::Proxy);
    let silent = Server::new(|mut client, _| client.drain());
    let place = format!("http://user:secret@127.0.0.1:{}", silent.port);
    let asked = HttpRequest { head_timeout_ms: Some(200), ..through("https://model.example.test/", place) };
    let start = Instant::now();
    assert_eq!(failure(b, asked).kind, FaultKind::TimedOut);
    assert!(start.elapsed() < Duration::from_secs(5));
}

on_each_backend!(proxies_that_do_not_exist_are_named_without_their_password);
fn proxies_that_do_not_exist_are_named_without_their_password(b: &Backend) {
    let closed = CLOSED;
    for (place, word) in [
        (
            format!("http://user:secret@localhost:{closed}"),
            format!("proxy http://localhost:{closed}: could not connect"),
        ),
        (
            "http://user:secret@proxy.invalid:8080".into(),
            "proxy http://proxy.invalid:8080: the host name".into(),
        ),
        ("http://user:secret@".into(), "makes no sense".into()),
        ("http://user:secret@host:notaport".into(), "makes no sense".into()),
        ("socks5://user:secret@host:1".into(), "socks5".into()),
        ("http://user:secret@[::1".into(), "makes no sense".into()),
    ] {
        for target in ["https://model.example.test/", "http://model.example.test/"] {
            let fault = failure(b, through(target, place.clone()));
            assert_eq!(fault.kind, FaultKind::Proxy, "{fault}");
            assert!(fault.detail.contains(&word), "{fault} for {place}");
        }
    }
}

on_each_backend!(answers_of_a_plain_proxy_are_answers);
/// There is no telling them from those of the server.
fn answers_of_a_plain_proxy_are_answers(b: &Backend) {
    let proxy = Server::new(|mut client, _| {
        while client.request().is_some() {
            client.answer("407 Who", "<html>who are you?</html>");
        }
    });
    let answer = exchange(b, through("http://a.test/", format!("http://127.0.0.1:{}", proxy.port)));
    assert_eq!((answer.status, answer.end), (407, Ok(())));
    assert!(answer.body.starts_with(b"<html>"));
}

on_each_backend!(the_environment_names_proxies_and_exceptions);
fn the_environment_names_proxies_and_exceptions(b: &Backend) {
    let proxy = Server::new(|mut client, _| {
        while client.request().is_some() {
            client.answer("200 OK", "proxy");
        }
    });
    let place = format!("http://127.0.0.1:{}", proxy.port);
    for (name, exceptions, expected) in [
        ("HTTP_PROXY", "", "proxy"),
        ("http_proxy", "other.test", "proxy"),
        ("ALL_PROXY", "127.0.0.1:1", "proxy"),
        ("http_proxy", "127.0.0.1", "direct"),
        ("all_proxy", "x.test, 127.0.0.1", "direct"),
        ("HTTPS_PROXY", "", "direct"),
    ] {
        let env = [(name, place.as_str()), ("NO_PROXY", exceptions), ("TAU_TEST_EXPECTED", expected)];
        b.alone("proxies::by_environment", &env);
    }
}

on_each_backend!(
    #[ignore = "run by `the_environment_names_proxies_and_exceptions` with its environment"]
    by_environment
);
fn by_environment(b: &Backend) {
    let direct = Server::new(|mut client, _| {
        while client.request().is_some() {
            client.answer("200 OK", "direct");
        }
    });
    let answer = exchange(b, request(direct.url("/")));
    answer.end.unwrap();
    assert_eq!(String::from_utf8_lossy(&answer.body), std::env::var("TAU_TEST_EXPECTED").unwrap());
}
