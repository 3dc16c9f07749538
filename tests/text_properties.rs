//! Bytes that arrive in pieces mean the same whatever the pieces: framing, decoding, cleaning, streamed arguments.

#![allow(missing_docs)]

use tau_core::entropy::Entropy;
use tau_core::json::{PartialArgs, parse, repair, to_string};
use tau_core::text::clean::{Cleaner, clean};
use tau_core::text::surrogate::drop_unpaired;
use tau_core::text::utf8::{Utf8Decoder, lossy};
use tau_core::wire::jsonl::{JsonLine, JsonLines};
use tau_core::wire::sse::{SseDecoder, SseEvent};

const RUNS: usize = 3000;

struct Random(Entropy);

impl Random {
    fn new(seed: u8) -> Self {
        Self(Entropy::new([seed; 32]))
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.0.below(limit.max(1) as u64)).unwrap_or(0)
    }

    /// Up to `most` of the given words in random order.
    fn mix(&mut self, words: &[&[u8]], most: usize) -> Vec<u8> {
        let count = self.below(most + 1);
        (0..count).flat_map(|_| words[self.below(words.len())].to_vec()).collect()
    }

    /// The bytes in random pieces, some of them empty.
    fn pieces<'a>(&mut self, mut bytes: &'a [u8]) -> Vec<&'a [u8]> {
        let mut out = Vec::new();
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at(self.below(9).min(bytes.len()));
            out.push(piece);
            bytes = rest;
        }
        out
    }
}

#[test]
fn server_sent_events() {
    let words: &[&[u8]] = &[
        b"data:",
        b"data: ",
        b"event: ",
        b"id: 7",
        b"retry",
        b": c",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"x",
        b"\xff",
        "é😀".as_bytes(),
        "\u{feff}".as_bytes(),
        b"\xef\xbb",
        b"<html>",
        b"dat",
        b" ",
    ];
    let decode = |pieces: &[&[u8]], limit| {
        let (mut decoder, mut events) = (SseDecoder::with_limit(limit), Vec::new());
        let mut sink = |e: SseEvent<'_>| events.push((e.event.to_owned(), e.named, e.data.to_owned()));
        pieces.iter().for_each(|piece| decoder.feed(piece, &mut sink));
        decoder.finish(&mut sink);
        (events, decoder.gave_up(), decoder.stray().into_owned())
    };
    let mut random = Random::new(1);
    for _ in 0..RUNS {
        let body = random.mix(words, 40);
        let pieces = random.pieces(&body);
        for limit in [usize::MAX, 6] {
            assert_eq!(
                decode(&pieces, limit),
                decode(&[&body], limit),
                "{body:?} as {pieces:?}, limit {limit}"
            );
        }
    }
}

#[test]
fn lines_of_json() {
    let words: &[&[u8]] =
        &[b"\n", b"\r", b"\r\n", b"{\"a\":1}", b"x", b"\xff", "\u{2028}".as_bytes(), b"\0", b"123456789"];
    let split = |pieces: &[&[u8]], limit| {
        let (mut lines, mut got) = (JsonLines::with_limit(limit), Vec::new());
        let mut sink =
            |l: JsonLine<'_>| got.push((l.raw.to_vec(), l.offset, l.wire_len, l.terminated, l.too_long));
        pieces.iter().for_each(|piece| lines.feed(piece, &mut sink));
        lines.finish(&mut sink);
        got
    };
    let mut random = Random::new(2);
    for _ in 0..RUNS {
        let body = random.mix(words, 30);
        let pieces = random.pieces(&body);
        for limit in [usize::MAX, 8] {
            let whole = split(&[&body], limit);
            assert_eq!(split(&pieces, limit), whole, "{body:?} as {pieces:?}, limit {limit}");
            assert_eq!(whole.iter().map(|line| line.2).sum::<u64>(), body.len() as u64);
        }
    }
}

#[test]
fn decoding_and_cleaning() {
    let words: &[&[u8]] = &[
        "é€😀".as_bytes(),
        b"\xf0\x9f",
        b"\xe2\x82",
        b"\xff",
        b"\xed\xa0\x80",
        b"plain ",
        b"\x1b[31m",
        b"\x1b[",
        b"3",
        b"\x1b]8;;u",
        b"\x07",
        b"\x1b\\",
        b"\x1b",
        b"\r",
        b"\r\n",
        b"\n",
        b"\0\x08",
        b"\x1bP",
        b"\xc2\x9b1m",
        b"m",
    ];
    let mut random = Random::new(3);
    for _ in 0..RUNS {
        let body = random.mix(words, 30);
        let (mut decoder, mut text) = (Utf8Decoder::new(), String::new());
        let (mut cleaner, mut cleaned) = (Cleaner::new(), String::new());
        for piece in random.pieces(&body) {
            let from = text.len();
            decoder.push(piece, &mut text);
            cleaner.push(&text[from..], &mut cleaned);
        }
        let from = text.len();
        decoder.finish(&mut text);
        cleaner.push(&text[from..], &mut cleaned);
        cleaner.finish(&mut cleaned);
        assert_eq!(text, lossy(&body), "{body:?}");
        assert_eq!(cleaned, clean(&text), "{text:?}");
        assert!(!cleaned.contains(['\u{1b}', '\0', '\r', '\u{9b}']), "{text:?} became {cleaned:?}");
    }
}

#[test]
fn streamed_arguments() {
    let words: &[&[u8]] = &[
        b"{",
        b"}",
        b"[",
        b"]",
        b"\"",
        b"\"a\":",
        b"\"b\"",
        b",",
        b":",
        b"\\",
        b"\\n",
        b"\\u00e9",
        b"\\ud83d",
        b"\\ude00",
        b"\\u0",
        b"\\q",
        b"1",
        b"-",
        b".5",
        b"e+",
        b"true",
        b"nul",
        b" ",
        b"\n",
        "é😀".as_bytes(),
        b"x",
    ];
    let mut random = Random::new(4);
    for _ in 0..RUNS {
        let body = random.mix(words, 30);
        let text = lossy(&body);
        let mut whole = PartialArgs::new();
        whole.push(&text);
        let (mut split, mut decoder) = (PartialArgs::new(), Utf8Decoder::new());
        for piece in random.pieces(text.as_bytes()) {
            let mut delta = String::new();
            decoder.push(piece, &mut delta);
            split.push(&delta);
            if random.below(2) == 0 {
                split.snapshot();
            }
        }
        assert_eq!(split.value(), whole.value(), "{text:?}");
        if let Ok(value) = parse(&text) {
            assert!(!value.is_object() || whole.value().as_ref() == Some(&value), "{text:?}");
            assert_eq!(repair(&text), text);
            assert_eq!(to_string(&parse(&to_string(&value)).unwrap()), to_string(&value));
            // Without lone surrogates both parsers read the same.
            let fixed = drop_unpaired(&text);
            assert_eq!(serde_json::from_str::<serde_json::Value>(&fixed).ok(), Some(value), "{text:?}");
        } else {
            assert!(serde_json::from_str::<serde_json::Value>(&text).is_err(), "{text:?}");
        }
        let _ = whole.finish();
    }
}

/// Processor time of this thread in nanoseconds, where the system tells it: other load does not count.
fn thread_time() -> Option<u64> {
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}

/// Cost follows the text, not the number of pieces or the depth: ten times the pieces take far less than a hundred
/// times the time, which is what a quadratic parser takes.
#[test]
fn streamed_arguments_cost_what_they_are_long() {
    let time = |pieces: usize, piece: &str| {
        let start = thread_time();
        let mut args = PartialArgs::new();
        args.push("{\"a\":");
        for i in 0..pieces {
            args.push(piece);
            if i % (pieces / 4) == 0 {
                args.snapshot();
            }
        }
        let _ = args.finish();
        Some(thread_time()?.saturating_sub(start?))
    };
    for piece in ["\"text of words and words\\n\",", "[1,{\"b\":\"c\"}],", "\"x", "[", "{\"a\":"] {
        let best = |pieces| (0..3).filter_map(|_| time(pieces, piece)).min();
        let (Some(small), Some(large)) = (best(2000), best(20_000)) else { return };
        // The system counts in ticks of some milliseconds. Reading everything again for each piece takes seconds.
        assert!(large < 40 * small.max(5_000_000), "{piece}: {small} ns, then {large} ns");
    }
}

#[test]
fn hashes_are_those_of_another_implementation() {
    use sha2::Digest as _;
    use tau_core::auth::sha256::{hmac, sha256};

    let mut random = Random::new(7);
    for length in (0..200).chain([1000, 4095, 4096, 70_001]) {
        let bytes: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
        assert_eq!(sha256(&bytes)[..], sha2::Sha256::digest(&bytes)[..], "{length} bytes");
        // The definition of RFC 2104, with keys of every length.
        let key: Vec<u8> = bytes.iter().rev().copied().collect();
        let mut padded = if key.len() > 64 { sha2::Sha256::digest(&key).to_vec() } else { key.clone() };
        padded.resize(64, 0);
        let pad = |with: u8| padded.iter().map(|byte| byte ^ with).collect::<Vec<u8>>();
        let inner = sha2::Sha256::digest([pad(0x36), bytes.clone()].concat());
        let outer = sha2::Sha256::digest([pad(0x5c), inner.to_vec()].concat());
        assert_eq!(hmac(&key, &bytes)[..], outer[..], "{length} bytes");
    }
}
