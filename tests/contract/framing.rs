//! Where an answer begins and ends: splits, informational answers, answers without a body, lengths that lie.

use std::io::Write;
use std::thread;
use std::time::Duration;

use tau_core::fault::FaultKind;
use tau_core::op::HttpRequest;

use crate::backend::{Backend, on_each_backend};
use crate::http::{CHUNKED, exchange, failure, gzip, request};
use crate::server::{Client, Server};

on_each_backend!(answers_may_be_cut_anywhere);
/// In two pieces, at every place, all over one connection.
fn answers_may_be_cut_anywhere(b: &Backend) {
    let text = b"data: {\"a\": \"b\"}\n\n";
    let packed = gzip(text);
    let chunks = |body: &[u8], size: usize, end: &str| {
        let mut out = Vec::new();
        for piece in body.chunks(size) {
            let _ = write!(out, "{:x}\r\n", piece.len());
            out.extend_from_slice(piece);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(end.as_bytes());
        out
    };
    let early = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n";
    let packed_head = CHUNKED.replace("transfer", "content-encoding: gzip\r\ntransfer");
    let answers: Vec<Vec<u8>> = vec![
        [CHUNKED.as_bytes(), &chunks(text, 5, "0\r\n\r\n")].concat(),
        [CHUNKED.as_bytes(), &chunks(text, 7, "0;x=y\r\nx-one: 1\r\nx-two: 2\r\n\r\n")].concat(),
        [packed_head.as_bytes(), &chunks(&packed, 9, "0\r\n\r\n")].concat(),
        [format!("{early}HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", text.len()).as_bytes(), text]
            .concat(),
    ];
    let whole = answers.clone();
    let server = Server::new(move |mut client, _| {
        while let Some(request) = client.request() {
            let mut place = request.line.split(['/', ' ']).filter_map(|word| word.parse::<usize>().ok());
            let answer = &whole[place.next().unwrap()];
            let (one, other) = answer.split_at(place.next().unwrap());
            client.send(one);
            thread::sleep(Duration::from_micros(500));
            client.send(other);
        }
    });
    for (number, answer) in answers.iter().enumerate() {
        for at in 0..=answer.len() {
            let answer = exchange(b, request(server.url(&format!("/{number}/{at}"))));
            answer.end.unwrap();
            assert_eq!((answer.status, answer.body.as_slice()), (200, text.as_slice()), "{number} at {at}");
        }
    }
    assert_eq!(server.connections(), 1);
}

on_each_backend!(informational_answers_are_passed_over);
/// Also when the answer itself comes right behind them, and is large.
fn informational_answers_are_passed_over(b: &Backend) {
    let body = "0123456789abcdef".repeat(20_000);
    let early = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n".repeat(40);
    let text = format!("{early}HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let server = Server::new(move |mut client, _| {
        while client.request().is_some() {
            client.send(&text);
        }
    });
    for _ in 0..3 {
        let answer = exchange(b, request(server.url("/")));
        answer.end.unwrap();
        assert!(answer.status == 200 && answer.body == body.as_bytes());
    }
    assert_eq!(server.connections(), 1);
}

on_each_backend!(answers_without_a_body_end_with_their_head);
fn answers_without_a_body_end_with_their_head(b: &Backend) {
    let server = Server::new(|mut client, _| {
        while let Some(request) = client.request() {
            let status = request.line.split(['/', ' ']).find_map(|word| word.parse::<u16>().ok()).unwrap();
            // What they say about a body describes one that does not come.
            client
                .send(format!("HTTP/1.1 {status} X\r\ncontent-length: 5\r\ncontent-encoding: gzip\r\n\r\n"));
        }
    });
    for (method, status) in [("POST", 204), ("POST", 304), ("HEAD", 200), ("GET", 204)] {
        let body = if method == "POST" { b"{}".to_vec() } else { Vec::new() };
        let asked = HttpRequest { method, body: body.into(), ..request(server.url(&format!("/{status}"))) };
        let answer = exchange(b, asked);
        answer.end.unwrap();
        assert_eq!((answer.status, answer.body.len()), (status, 0), "{method} {status}");
    }
    assert_eq!(server.connections(), 1);
}

on_each_backend!(what_the_server_says_last_may_be_cut);
/// The body is complete: what is missing is only the end of the frame.
fn what_the_server_says_last_may_be_cut(b: &Backend) {
    for end in ["0\r\n", "0\r\n\r"] {
        let text = format!("{CHUNKED}5\r\nhello\r\n{end}");
        let server = Server::new(move |mut client: Client, _| {
            client.request();
            client.send(&text);
        });
        let answer = exchange(b, request(server.url("/")));
        assert_eq!((answer.body.as_slice(), answer.end), (b"hello".as_slice(), Ok(())), "{end:?}");
    }
}

on_each_backend!(frames_without_end_are_faults);
fn frames_without_end_are_faults(b: &Backend) {
    let many = |count: usize| {
        let headers: String = (0..count).map(|number| format!("x-{number}: y\r\n")).collect();
        format!("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n{headers}\r\n")
    };
    for (text, word) in [
        (format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(4 << 20)), "head of the answer is too large"),
        (
            format!("HTTP/1.1 200 OK\r\n{}", "x: y\r\n".repeat(100)) + &"z".repeat(1 << 20),
            "not valid HTTP|head of",
        ),
        (many(5000), "not valid HTTP"),
        (format!("{CHUNKED}{}", "1".repeat(1 << 20)), "not valid HTTP"),
        (format!("{CHUNKED}5\r\nhello{}", "x".repeat(1 << 20)), "not valid HTTP"),
        (format!("{CHUNKED}0\r\nx: {}", "x".repeat(1 << 20)), "not valid HTTP"),
    ] {
        let begin = text.get(..60).unwrap().to_owned();
        let server = Server::new(move |mut client: Client, _| {
            client.request();
            client.send(&text);
            // Nothing more comes, and the connection stays.
            client.request();
        });
        let fault = failure(b, request(server.url("/")));
        assert_eq!(fault.kind, FaultKind::Other, "{fault} for {begin:?}");
        assert!(word.split('|').any(|word| fault.detail.contains(word)), "{fault} for {begin:?}");
    }
    let few = many(120);
    let server = Server::new(move |mut client: Client, _| {
        client.request();
        client.send(&few);
    });
    assert_eq!(exchange(b, request(server.url("/"))).headers.len(), 121);
}

on_each_backend!(lengths_that_contradict_each_other_are_faults);
fn lengths_that_contradict_each_other_are_faults(b: &Backend) {
    for length in ["3\r\ncontent-length: 4", "3, 4", "-1", "x", "18446744073709551616", ""] {
        let text = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\nabcd");
        let server = Server::new(move |mut client: Client, _| {
            client.request();
            client.send(&text);
        });
        let fault = failure(b, request(server.url("/")));
        assert!(
            fault.kind == FaultKind::Other && fault.detail.contains("not valid HTTP"),
            "{length}: {fault}"
        );
    }
}

on_each_backend!(a_connection_that_breaks_is_no_end);
/// A body that lasts until the connection is closed ends by closing, not by a reset.
fn a_connection_that_breaks_is_no_end(b: &Backend) {
    let server = Server::new(|mut client, _| {
        client.head();
        client.send("HTTP/1.1 200 OK\r\n\r\nhello");
        // Who closes while something is left to be read breaks the connection.
        thread::sleep(Duration::from_millis(50));
    });
    let asked = HttpRequest { body: vec![b'x'; 200_000].into(), ..request(server.url("/")) };
    let answer = exchange(b, asked);
    assert_eq!((answer.status, answer.body.as_slice()), (200, b"hello".as_slice()));
    assert_eq!(answer.end.unwrap_err().kind, FaultKind::Reset);
}

on_each_backend!(answers_before_the_end_of_the_request_are_heard);
/// A server that wants no more answers at once, and closes what it does not read.
fn answers_before_the_end_of_the_request_are_heard(b: &Backend) {
    let server = Server::new(|mut client, _| {
        client.head();
        client.send("HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: 9\r\n\r\ntoo large");
        thread::sleep(Duration::from_millis(100));
    });
    for _ in 0..2 {
        let large = HttpRequest { body: vec![b'x'; 32 << 20].into(), ..request(server.url("/")) };
        let answer = exchange(b, large);
        assert_eq!(
            (answer.status, answer.body.as_slice()),
            (413, b"too large".as_slice()),
            "{:?}",
            answer.end
        );
    }
}
