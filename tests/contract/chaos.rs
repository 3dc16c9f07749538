//! Servers that answer nonsense, too little, too slowly: by a seed, so that all backends meet the same one.

use std::thread;
use std::time::{Duration, Instant};

use tau_core::fault::{FaultKind, IoFault};
use tau_core::op::HttpRequest;

use crate::backend::{Backend, alone, io_smol, io_std};
use crate::http::{Answer, exchange, extra_authority, gzip, request};
use crate::server::{Client, Server};

/// Numbers from a seed (xorshift).
#[derive(Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Less than `below`.
    pub fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % below.max(1)
    }

    /// One of these.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.roll(of.len())]
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.roll(most)).map(|_| u8::try_from(self.roll(256)).unwrap()).collect()
    }
}

/// What a server sends for one request, in pieces, and whether it then hangs up.
#[derive(Debug)]
struct Play {
    pieces: Vec<Vec<u8>>,
    closes: bool,
}

const STATUS: [&str; 12] = [
    "200 OK",
    "200 OK",
    "200 OK",
    "200",
    "204 No Content",
    "304 Not Modified",
    "307 Elsewhere",
    "401 No",
    "500 Oh",
    "101 Switching",
    "099 Low",
    "1000 High",
];

const ODD_HEADERS: [&str; 14] = [
    "connection: close",
    "connection: keep-alive",
    "content-length: 3",
    "content-length: 3, 3",
    "content-length: -1",
    "content-length: 99999999999999999999",
    "transfer-encoding: chunked",
    "transfer-encoding: identity",
    "content-encoding: gzip",
    "content-encoding: br",
    "x-odd: \u{fe}\u{e9}",
    "x-empty:",
    "no colon here",
    " folded",
];

/// An answer that is whole and well formed.
fn whole(dice: &mut Dice) -> Vec<u8> {
    let text = "0123456789abcdef".repeat(dice.one(&[0, 1, 3, 400, 9000]));
    let packed = dice.roll(4) == 0;
    let body = if packed { gzip(text.as_bytes()) } else { text.into_bytes() };
    let mut out = Vec::new();
    for _ in 0..dice.one(&[0, 0, 0, 1, 3]) {
        out.extend_from_slice(dice.one(&[
            b"HTTP/1.1 100 Continue\r\n\r\n".as_slice(),
            b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\n",
            b"HTTP/1.1 102 Busy\r\n\r\n",
        ]));
    }
    let version = dice.one(&["1.1", "1.1", "1.1", "1.0", "2.0"]);
    out.extend(format!("HTTP/{version} {}\r\n", dice.one(&STATUS)).bytes());
    for _ in 0..dice.one(&[0, 0, 1, 2]) {
        out.extend(format!("{}\r\n", dice.one(&ODD_HEADERS)).bytes());
    }
    if packed {
        out.extend(b"content-encoding: gzip\r\n");
    }
    match dice.roll(5) {
        0 => out.extend(b"\r\n"),
        1 | 2 => {
            let len = body.len() + dice.one(&[0, 0, 0, 0, 1, 500]);
            out.extend(format!("content-length: {len}\r\n\r\n").bytes());
        }
        _ => {
            out.extend(b"transfer-encoding: chunked\r\n\r\n");
            let size = dice.one(&[1, 7, 1000, 70_000]).max(body.len() / 500);
            for piece in body.chunks(size) {
                out.extend(format!("{:x}{}\r\n", piece.len(), dice.one(&["", "", ";a=b"])).bytes());
                out.extend(piece);
                out.extend(b"\r\n");
            }
            out.extend_from_slice(dice.one(&[
                b"0\r\n\r\n".as_slice(),
                b"0\r\n\r\n",
                b"0\r\nx-trailer: 1\r\n\r\n",
                b"0\r\n",
                b"",
            ]));
            return out;
        }
    }
    out.extend(body);
    out
}

fn play(seed: u64) -> Play {
    let dice = &mut Dice::new(seed);
    let mut bytes = if dice.roll(12) == 0 { dice.bytes(3000) } else { whole(dice) };
    match dice.roll(8) {
        0 => bytes.truncate(dice.roll(bytes.len() + 1)),
        1 => {
            let at = dice.roll(bytes.len() + 1);
            bytes.splice(at..at, dice.bytes(40));
        }
        2 => {
            for _ in 0..3 {
                let at = dice.roll(bytes.len());
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = u8::try_from(dice.roll(256)).unwrap();
                }
            }
        }
        3 => bytes.extend(dice.bytes(40)),
        _ => {}
    }
    let (mut pieces, mut rest) = (Vec::new(), bytes.as_slice());
    for _ in 0..dice.one(&[0, 0, 1, 4]) {
        let (piece, after) = rest.split_at(dice.roll(rest.len() + 1));
        pieces.push(piece.to_vec());
        rest = after;
    }
    pieces.push(rest.to_vec());
    Play { pieces, closes: dice.roll(4) > 0 }
}

/// What came of two requests in a row; of a fault only its kind.
type Outcome = Vec<(u16, Vec<u8>, Result<(), FaultKind>)>;

fn outcome(backend: &Backend, way: Way, seed: u64, limit: u64) -> Outcome {
    let play_out = move |mut client: Client, _: usize| {
        while client.request().is_some() {
            let play = play(seed);
            for piece in &play.pieces {
                client.send(piece);
                if play.pieces.len() > 1 {
                    thread::sleep(Duration::from_millis(2));
                }
            }
            if play.closes {
                return;
            }
        }
    };
    let babble = move |mut client: Client, _: usize| {
        // Instead of a handshake, or in its middle.
        for piece in play(seed).pieces {
            client.send(piece);
        }
        if play(seed).closes { client.leave() } else { client.drain() }
    };
    let server = match way {
        Way::Plain => Server::new(play_out),
        Way::Tls => Server::tls("good", play_out),
        Way::NoTls | Way::Connect => Server::new(babble),
    };
    let url = match way {
        Way::Plain => server.url("/"),
        Way::Tls | Way::NoTls => format!("https://localhost:{}/", server.port),
        Way::Connect => "https://localhost/".to_owned(),
    };
    let proxy = matches!(way, Way::Connect).then(|| format!("http://user:secret@localhost:{}", server.port));
    let limit = Some(limit);
    let one = || {
        let asked = HttpRequest {
            head_timeout_ms: limit,
            idle_timeout_ms: limit,
            proxy: proxy.clone(),
            ..request(&url)
        };
        let start = Instant::now();
        let Answer { status, body, end, .. } = exchange(backend, asked);
        let took = start.elapsed();
        assert!(took < Duration::from_secs(20), "{}: seed {seed} took {took:?}", backend.name);
        if let Err(IoFault { detail, .. }) = &end {
            assert!(!detail.contains("secret"), "seed {seed}: {detail}");
            assert!(detail.contains("127.0.0.1") || detail.contains("localhost"), "seed {seed}: {detail}");
        }
        (status, body, end.map_err(|fault| fault.kind))
    };
    vec![one(), one()]
}

/// A fault may come before or after what arrived with it was delivered.
fn same(one: &Outcome, other: &Outcome) -> bool {
    one.iter().zip(other).all(|(one, other)| {
        let body = if one.2.is_ok() {
            one.1 == other.1
        } else {
            one.1.starts_with(&other.1) || other.1.starts_with(&one.1)
        };
        one.0 == other.0 && one.2 == other.2 && body
    })
}

/// How a server is reached.
#[derive(Clone, Copy, Debug)]
enum Way {
    Plain,
    Tls,
    /// It should speak TLS and does not.
    NoTls,
    /// It is the proxy that is asked for a tunnel.
    Connect,
}

#[test]
fn what_servers_do_comes_out_the_same() {
    all_come_out_the_same(Way::Plain, 160);
}

#[test]
fn what_servers_do_over_tls_comes_out_the_same() {
    alone("chaos::with_authority", &[extra_authority()]);
}

#[test]
#[ignore = "run by `what_servers_do_over_tls_comes_out_the_same` with its environment"]
fn with_authority() {
    all_come_out_the_same(Way::Tls, 96);
}

#[test]
fn what_is_said_instead_of_a_handshake_comes_out_the_same() {
    all_come_out_the_same(Way::NoTls, 48);
    all_come_out_the_same(Way::Connect, 96);
}

fn all_come_out_the_same(way: Way, count: u64) {
    let (from, count) = match std::env::var("TAU_TEST_SEEDS") {
        Ok(range) => {
            let (from, count) = range.split_once('+').unwrap();
            (from.parse().unwrap(), count.parse().unwrap())
        }
        Err(_) => (0, count),
    };
    let workers: Vec<_> = (0..8)
        .map(|worker| {
            thread::spawn(move || {
                let backends = [io_std(), io_smol()];
                let mut differences = Vec::new();
                for seed in (from..from + count).filter(|seed| seed % 8 == worker) {
                    // A busy machine may be late: the second time there is more of it.
                    let limits = [400, 3000].into_iter();
                    let mut outcomes = limits.map(|limit| {
                        let [one, other] =
                            backends.each_ref().map(|backend| outcome(backend, way, seed, limit));
                        (same(&one, &other), one, other)
                    });
                    let Some((false, ..)) = outcomes.next() else { continue };
                    if let Some((false, one, other)) = outcomes.next() {
                        let sent = shown(&play(seed).pieces.concat());
                        let (one, other) = (told(&one), told(&other));
                        differences
                            .push(format!("{way:?}, seed {seed}: {sent}\nio-std: {one}\nio-smol: {other}"));
                    }
                }
                differences
            })
        })
        .collect();
    let differences: Vec<_> = workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn told(outcome: &Outcome) -> String {
    let each = outcome.iter().map(|(status, body, end)| format!("{status} {} bytes {end:?}", body.len()));
    each.collect::<Vec<_>>().join(", then ")
}

fn shown(bytes: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(bytes.get(..bytes.len().min(400)).unwrap()))
}
