//! Server-sent events: one push decoder for every protocol (spec 30 §5, decision D54).
//!
//! The decoder works on bytes, keeps only what an unfinished event needs, and lends an event straight out of the
//! caller's chunk when the event lies whole within it.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::mem;

use memchr::memchr2;

use crate::text::utf8::lossy;

/// Largest event (name and data together, bytes) that is delivered. At a larger one the decoder gives up.
pub const MAX_EVENT_BYTES: usize = 64 << 20;

/// How many bytes of lines that are no event stream at all are kept for an error message. With so many before the
/// first event, there will be none.
const MAX_STRAY_BYTES: usize = 4096;

/// So many of them among events are the end of the stream.
const MAX_ASTRAY: usize = 256 << 10;

/// Buffers above this size are given back after the event that needed them.
const KEEP_BUFFER_BYTES: usize = 256 << 10;

/// So many bytes of a line tell its field, and for `data` whether a space follows the colon.
const FIELD_KNOWN: usize = 7;

const BOM: [u8; 3] = [0xef, 0xbb, 0xbf];

/// One dispatched event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// Value of the last `event` field; empty when there was none.
    pub event: &'a str,
    /// Whether an `event` field was there at all (it may be empty).
    pub named: bool,
    /// The `data` lines joined by LF; invalid UTF-8 is replaced by U+FFFD.
    pub data: &'a str,
}

/// Why nothing more of a stream is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GaveUp {
    /// An event was larger than the limit.
    TooLarge,
    /// It is no event stream, or not any more.
    Astray,
}

/// What the decoder does with the bytes of a line whose start was in an earlier chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Carry {
    /// Collect: the field name may not be complete yet.
    #[default]
    Collect,
    /// Inside the value of a `data` field: append to the data.
    Data,
    /// A comment, `id` or `retry`: throw away.
    Skip,
    /// Nothing of an event stream: keep the head for an error message.
    Stray,
}

/// Push decoder: feed chunks as they come, events come out of the sink in order. The split into chunks never
/// changes the events.
#[derive(Clone, Debug)]
pub struct SseDecoder {
    limit: usize,
    /// How much of a BOM was seen at the very start; 4 = start is over.
    bom: u8,
    after_cr: bool,
    carry: Carry,
    line: Vec<u8>,
    event: Option<Vec<u8>>,
    data: Option<Vec<u8>>,
    /// The current event is beyond the limit: drop everything up to the next blank line.
    dropping: bool,
    gave_up: Option<GaveUp>,
    stray: Vec<u8>,
    /// Bytes of stray lines, kept or not.
    astray: usize,
    /// Whether any event was delivered.
    begun: bool,
}

impl Default for SseDecoder {
    fn default() -> Self {
        Self::new()
    }
}

/// Fields of the current event that lie in the chunk at hand.
#[derive(Default)]
struct Held<'a> {
    event: Option<&'a [u8]>,
    data: Option<&'a [u8]>,
}

impl SseDecoder {
    /// A decoder with the limit [`MAX_EVENT_BYTES`].
    #[must_use]
    pub const fn new() -> Self {
        Self::with_limit(MAX_EVENT_BYTES)
    }

    /// A decoder that gives up at an event above `limit` bytes.
    #[must_use]
    pub const fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            bom: 0,
            after_cr: false,
            carry: Carry::Collect,
            line: Vec::new(),
            event: None,
            data: None,
            dropping: false,
            gave_up: None,
            stray: Vec::new(),
            astray: 0,
            begun: false,
        }
    }

    /// Why nothing more is delivered, whatever comes.
    #[must_use]
    pub const fn gave_up(&self) -> Option<GaveUp> {
        self.gave_up
    }

    /// The first 4 KiB of lines that belong to no event stream (an HTML page, a bare JSON error), for messages.
    #[must_use]
    pub fn stray(&self) -> Cow<'_, str> {
        lossy(&self.stray)
    }

    /// Takes a chunk of any size and hands every event that is complete now to `sink`.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(SseEvent<'_>)) {
        let mut rest = if self.bom < 4 { self.start(bytes) } else { bytes };
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        let mut held = Held::default();
        while let Some(at) = memchr2(b'\n', b'\r', rest) {
            let (line, tail) = rest.split_at(at);
            rest = match tail {
                [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
                [] => &[],
            };
            self.after_cr = rest.is_empty() && tail == b"\r";
            if self.line.is_empty() && self.carry == Carry::Collect {
                self.whole_line(line, &mut held, sink);
            } else {
                self.spill(&mut held);
                self.end_carried(line, sink);
            }
        }
        self.spill(&mut held);
        self.carry_on(rest);
    }

    /// End of the stream: an event without its blank line, even without a line end, is delivered too.
    pub fn finish(&mut self, sink: &mut impl FnMut(SseEvent<'_>)) {
        self.end_start();
        if !self.line.is_empty() || self.carry != Carry::Collect {
            self.end_carried(&[], sink);
        }
        self.dispatch(Held::default(), sink);
        let (limit, gave_up, stray) = (self.limit, self.gave_up, mem::take(&mut self.stray));
        *self = Self { gave_up, stray, ..Self::with_limit(limit) };
    }

    /// Drops one BOM at the very start, whatever the split.
    fn start<'a>(&mut self, mut bytes: &'a [u8]) -> &'a [u8] {
        while let (Some(expected), [first, rest @ ..]) = (BOM.get(usize::from(self.bom)), bytes) {
            if first != expected {
                self.end_start();
                return bytes;
            }
            self.bom += 1;
            bytes = rest;
        }
        if usize::from(self.bom) >= BOM.len() {
            self.bom = 4;
        }
        bytes
    }

    /// The start is over; bytes that only looked like a BOM are line content.
    fn end_start(&mut self) {
        if let Some(seen) = BOM.get(..usize::from(self.bom)) {
            if self.bom < 3 {
                self.line.extend_from_slice(seen);
            }
            self.bom = 4;
        }
    }

    /// A line that lies whole in the chunk.
    fn whole_line<'a>(&mut self, line: &'a [u8], held: &mut Held<'a>, sink: &mut impl FnMut(SseEvent<'_>)) {
        match parse(line) {
            Line::Blank => self.dispatch(mem::take(held), sink),
            Line::Data(value) if self.data.is_none() && held.data.is_none() => {
                if value.len() > self.limit {
                    self.overflow();
                } else {
                    held.data = Some(value);
                }
            }
            Line::Data(value) => {
                self.spill(held);
                self.begin_data(value);
            }
            Line::Event(value) if value.len() > self.limit => self.overflow(),
            Line::Event(value) => held.event = Some(value),
            Line::Ignored => {}
            Line::Stray => {
                self.keep_stray(line);
                self.keep_stray(b"\n");
            }
        }
    }

    /// Moves what is held out of the chunk into buffers of our own.
    fn spill(&mut self, held: &mut Held<'_>) {
        if let Some(event) = held.event.take() {
            self.event = Some(event.to_vec());
        }
        if let Some(data) = held.data.take() {
            self.begin_data(data);
        }
    }

    /// One more data line with (the start of) its value.
    fn begin_data(&mut self, value: &[u8]) {
        match &mut self.data {
            Some(data) => data.push(b'\n'),
            None => self.data = Some(Vec::new()),
        }
        self.append_data(value);
    }

    fn append_data(&mut self, value: &[u8]) {
        if self.dropping {
            return;
        }
        let Some(data) = &mut self.data else { return };
        if data.len() + value.len() > self.limit {
            self.overflow();
        } else {
            data.extend_from_slice(value);
        }
    }

    fn overflow(&mut self) {
        self.dropping = true;
        self.gave_up.get_or_insert(GaveUp::TooLarge);
        self.data = Some(Vec::new());
    }

    /// Bytes of a line that does not end in this chunk.
    fn carry_on(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        match self.carry {
            Carry::Data => self.append_data(bytes),
            Carry::Skip => {}
            Carry::Stray => self.keep_stray(bytes),
            Carry::Collect => {
                // The first bytes tell the field; the rest goes straight to where it belongs.
                let (head, rest) =
                    bytes.split_at(bytes.len().min(FIELD_KNOWN.saturating_sub(self.line.len())));
                self.line.extend_from_slice(head);
                self.settle_carry();
                if self.carry != Carry::Collect {
                    self.carry_on(rest);
                } else if self.line.len() + rest.len() > self.limit.saturating_add(FIELD_KNOWN) {
                    self.line = Vec::new();
                    self.overflow();
                    self.carry = Carry::Data;
                } else {
                    self.line.extend_from_slice(rest);
                }
            }
        }
    }

    /// As soon as the field of a carried line is known, its bytes go where they belong.
    fn settle_carry(&mut self) {
        let line = mem::take(&mut self.line);
        let known = line.len() >= FIELD_KNOWN;
        if known && line.starts_with(b"data:") {
            let value = line.get(5..).unwrap_or_default();
            self.begin_data(value.strip_prefix(b" ").unwrap_or(value));
            self.carry = Carry::Data;
        } else if line.first() == Some(&b':') {
            self.carry = Carry::Skip;
        } else if known && !line.starts_with(b"event:") {
            self.carry = if matches!(parse(&line), Line::Stray) { Carry::Stray } else { Carry::Skip };
            self.carry_on(&line);
        } else {
            self.line = line;
        }
    }

    /// The end of a line whose start came with earlier chunks.
    fn end_carried(&mut self, end: &[u8], sink: &mut impl FnMut(SseEvent<'_>)) {
        self.carry_on(end);
        match mem::take(&mut self.carry) {
            Carry::Data | Carry::Skip => {}
            Carry::Stray => self.keep_stray(b"\n"),
            Carry::Collect => {
                let mut line = mem::take(&mut self.line);
                let mut held = Held::default();
                self.whole_line(&line, &mut held, sink);
                self.spill(&mut held);
                if line.capacity() <= KEEP_BUFFER_BYTES {
                    line.clear();
                    self.line = line;
                }
            }
        }
    }

    /// Blank line: deliver if an event name or a data line exists.
    fn dispatch(&mut self, held: Held<'_>, sink: &mut impl FnMut(SseEvent<'_>)) {
        let event = self.event.take();
        let dropped = mem::take(&mut self.dropping);
        let own = self.data.take();
        let name = held.event.or(event.as_deref());
        let data = held.data.or(own.as_deref());
        if (name.is_some() || data.is_some()) && !dropped && self.gave_up.is_none() {
            self.begun = true;
            let text = lossy(data.unwrap_or_default());
            let named = name.is_some();
            let name = lossy(name.unwrap_or_default());
            sink(SseEvent { event: &name, named, data: &text });
        }
    }

    /// Keeps the head of lines that are no fields.
    fn keep_stray(&mut self, bytes: &[u8]) {
        self.astray = self.astray.saturating_add(bytes.len());
        if self.astray >= if self.begun { MAX_ASTRAY } else { MAX_STRAY_BYTES } {
            self.gave_up.get_or_insert(GaveUp::Astray);
        }
        let room = MAX_STRAY_BYTES.saturating_sub(self.stray.len());
        self.stray.extend(bytes.iter().take(room));
    }
}

enum Line<'a> {
    Blank,
    Data(&'a [u8]),
    Event(&'a [u8]),
    /// Comments, `id`, `retry`.
    Ignored,
    /// Nothing an event stream contains.
    Stray,
}

fn parse(line: &[u8]) -> Line<'_> {
    let value = |rest: &'_ [u8]| match rest {
        [] => Some(0),
        [b':', b' ', ..] => Some(2),
        [b':', ..] => Some(1),
        _ => None,
    };
    let field = |name: &[u8]| {
        let rest = line.strip_prefix(name)?;
        rest.get(value(rest)?..)
    };
    match line.first() {
        None => Line::Blank,
        Some(b':') => Line::Ignored,
        Some(b'd') => field(b"data").map_or(Line::Stray, Line::Data),
        Some(b'e') => field(b"event").map_or(Line::Stray, Line::Event),
        _ if field(b"id").is_some() || field(b"retry").is_some() => Line::Ignored,
        _ => Line::Stray,
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec;

    use super::*;

    fn events(decoder: &mut SseDecoder, chunks: &[&[u8]]) -> Vec<(String, String)> {
        let mut got = Vec::new();
        let mut sink = |e: SseEvent<'_>| got.push((e.event.into(), e.data.into()));
        chunks.iter().for_each(|chunk| decoder.feed(chunk, &mut sink));
        decoder.finish(&mut sink);
        got
    }

    #[test]
    fn every_two_way_split_gives_the_same_events() {
        let body = concat!(
            "\u{feff}: hi\r\nevent: é\r\ndata: 1\rdata:2\n\rid: 7\nretry: 1\ndata\n\n",
            "<html>\ndatax: 3\r\n\r\ndata:  €\nevent"
        );
        let whole = events(&mut SseDecoder::new(), &[body.as_bytes()]);
        assert_eq!(
            whole,
            [("é", "1\n2"), ("", ""), ("", " €")].map(|(a, b)| (String::from(a), String::from(b)))
        );
        for first in 0..=body.len() {
            for second in first..=body.len() {
                let bytes = body.as_bytes();
                let chunks = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(events(&mut SseDecoder::new(), &chunks), whole, "split at {first}, {second}");
            }
        }
    }

    #[test]
    fn a_page_is_no_event_but_kept_for_the_message() {
        let page = b"<html><body>Sign in to the network</body></html>";
        for size in [1, 5, 7, page.len()] {
            let mut decoder = SseDecoder::new();
            let chunks: Vec<&[u8]> = page.chunks(size).collect();
            assert!(events(&mut decoder, &chunks).is_empty());
            assert!(decoder.stray().starts_with("<html><body>Sign in"), "{size}: {}", decoder.stray());
            assert_eq!(decoder.gave_up(), None);
        }
    }

    #[test]
    fn junk_costs_no_memory_and_large_events_are_refused() {
        let junk = vec![b'x'; 100_000];
        for size in [1, 7, 100_000] {
            let mut decoder = SseDecoder::with_limit(1000);
            for chunk in junk.chunks(size).cycle().take(20 * junk.len() / size) {
                decoder.feed(chunk, &mut |_| panic!("no event"));
            }
            assert!(decoder.line.capacity() + decoder.stray.capacity() < 20_000);
            assert_eq!(decoder.gave_up(), Some(GaveUp::Astray));
        }
        let lines = b"no event
"
        .repeat(MAX_ASTRAY / 9);
        let (event, large) = (
            &b"data: ok

"[..],
            [
                b"data: ",
                &junk[..],
                b"

",
            ]
            .concat(),
        );
        for (parts, delivered, why) in [
            (&[event, &lines, event][..], 2, None),
            (
                &[
                    event,
                    &lines,
                    b"more lines
",
                    event,
                ],
                1,
                Some(GaveUp::Astray),
            ),
            (&[&lines, event], 0, Some(GaveUp::Astray)),
            (
                &[
                    &b"no event
"
                    .repeat(400),
                    event,
                ],
                1,
                None,
            ),
            (&[event, &large, event], 1, Some(GaveUp::TooLarge)),
        ] {
            let body = parts.concat();
            for size in [1, 9, 4096, body.len()] {
                let mut decoder = SseDecoder::with_limit(1000);
                let chunks: Vec<&[u8]> = body.chunks(size).collect();
                let got = events(&mut decoder, &chunks).len();
                assert_eq!((got, decoder.gave_up()), (delivered, why), "in pieces of {size}");
            }
        }
    }

    #[test]
    fn invalid_bytes_are_replaced() {
        assert_eq!(
            events(&mut SseDecoder::new(), &[b"data: a\xffb\xe2\x82\n\n"]),
            [(String::new(), String::from("a\u{fffd}b\u{fffd}"))]
        );
        assert_eq!(events(&mut SseDecoder::new(), &[b"\xef\xbb", b"data: a\n\n"]), []);
    }
}
