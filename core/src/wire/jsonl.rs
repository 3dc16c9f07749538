//! Lines of JSON text: LF ends a line, one CR before it is dropped, nothing else separates (spec 60 §1.1).
//!
//! U+2028, U+2029, U+0085 and lone CRs are content; a BOM is content as well, the caller decides about it.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use memchr::memchr;

use crate::text::utf8::lossy;

/// Buffers above this size are given back after the line that needed them.
const KEEP_BUFFER_BYTES: usize = 256 << 10;

/// One line, without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonLine<'a> {
    /// The bytes of the line; empty when `too_long`.
    pub raw: &'a [u8],
    /// Where the line starts in the stream, bytes.
    pub offset: u64,
    /// Length on the wire in bytes, with its line end.
    pub wire_len: u64,
    /// Whether a LF ended it; `false` only for the last line of a stream.
    pub terminated: bool,
    /// The line was above the limit; its content was thrown away.
    pub too_long: bool,
}

impl<'a> JsonLine<'a> {
    /// The line as text; invalid UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn text(&self) -> Cow<'a, str> {
        lossy(self.raw)
    }

    /// Whether the line holds nothing but JSON whitespace.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        !self.too_long && self.raw.iter().all(|c| matches!(c, b' ' | b'\t' | b'\r' | b'\n'))
    }
}

/// Push splitter: lines that lie whole in a chunk are lent from it; only a cut line is copied.
#[derive(Clone, Debug)]
pub struct JsonLines {
    limit: usize,
    carry: Vec<u8>,
    /// Bytes of the current line seen so far.
    seen: u64,
    /// Offset of the current line.
    offset: u64,
}

impl Default for JsonLines {
    fn default() -> Self {
        Self::new()
    }
}

impl JsonLines {
    /// A splitter without a limit for the length of a line.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_limit(usize::MAX)
    }

    /// A splitter that reports lines above `limit` bytes as `too_long`, without keeping them.
    #[must_use]
    pub const fn with_limit(limit: usize) -> Self {
        Self { limit, carry: Vec::new(), seen: 0, offset: 0 }
    }

    /// Bytes of an unfinished line that were seen.
    #[must_use]
    pub const fn pending(&self) -> u64 {
        self.seen
    }

    /// Takes a chunk of any size and hands every line that ends in it to `sink`.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(JsonLine<'_>)) {
        let mut rest = bytes;
        while let Some(at) = memchr(b'\n', rest) {
            let (line, tail) = rest.split_at(at);
            rest = tail.get(1..).unwrap_or_default();
            if self.seen == 0 {
                self.seen = line.len() as u64;
                self.deliver(line, true, sink);
            } else {
                self.keep(line);
                self.deliver_carried(true, sink);
            }
        }
        self.keep(rest);
    }

    /// End of the stream: an unterminated last line is delivered, an empty one is not.
    pub fn finish(&mut self, sink: &mut impl FnMut(JsonLine<'_>)) {
        if self.seen > 0 {
            self.deliver_carried(false, sink);
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.seen += bytes.len() as u64;
        // One byte more than the limit may be a CR that does not count.
        if self.seen.saturating_sub(1) > self.limit as u64 {
            self.carry = Vec::new();
        } else {
            self.carry.extend_from_slice(bytes);
        }
    }

    fn deliver_carried(&mut self, terminated: bool, sink: &mut impl FnMut(JsonLine<'_>)) {
        let mut line = core::mem::take(&mut self.carry);
        self.deliver(&line, terminated, sink);
        if line.capacity() <= KEEP_BUFFER_BYTES {
            line.clear();
            self.carry = line;
        }
    }

    fn deliver(&mut self, line: &[u8], terminated: bool, sink: &mut impl FnMut(JsonLine<'_>)) {
        let raw = line.strip_suffix(b"\r").unwrap_or(line);
        let too_long = raw.len() > self.limit || (line.len() as u64) < self.seen;
        let wire_len = self.seen + u64::from(terminated);
        let raw = if too_long { &[] } else { raw };
        sink(JsonLine { raw, offset: self.offset, wire_len, terminated, too_long });
        self.offset += wire_len;
        self.seen = 0;
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    fn lines(splitter: &mut JsonLines, chunks: &[&[u8]]) -> Vec<(String, u64, u64, bool, bool)> {
        let mut got = Vec::new();
        let mut sink = |line: JsonLine<'_>| {
            got.push((line.text().into(), line.offset, line.wire_len, line.terminated, line.too_long));
        };
        chunks.iter().for_each(|chunk| splitter.feed(chunk, &mut sink));
        splitter.finish(&mut sink);
        got
    }

    #[test]
    fn every_split_gives_the_same_lines() {
        let body = "a\r\n\r\n\né\u{2028}\r\r\n12345678\r\n123456789\n😀😀😀\nlast\r".as_bytes();
        let whole = lines(&mut JsonLines::with_limit(8), &[body]);
        let texts: Vec<_> = whole.iter().map(|l| (l.0.as_str(), l.4)).collect();
        assert_eq!(
            texts,
            [
                ("a", false),
                ("", false),
                ("", false),
                ("é\u{2028}\r", false),
                ("12345678", false),
                ("", true),
                ("", true),
                ("last", false)
            ]
        );
        assert_eq!(whole.iter().map(|l| l.2).sum::<u64>(), body.len() as u64);
        for first in 0..=body.len() {
            for second in first..=body.len() {
                let chunks = [&body[..first], &body[first..second], &body[second..]];
                assert_eq!(lines(&mut JsonLines::with_limit(8), &chunks), whole, "{first}, {second}");
            }
        }
    }

    #[test]
    fn long_lines_are_not_kept() {
        let mut splitter = JsonLines::with_limit(100);
        for _ in 0..1000 {
            splitter.feed(&[b'x'; 1000], &mut |_| panic!("no line"));
        }
        assert!(splitter.carry.capacity() < 3000);
        assert_eq!(
            lines(&mut splitter, &[b"\nok\n"]),
            [(String::new(), 0, 1_000_001, true, true), ("ok".into(), 1_000_001, 3, true, false)]
        );
    }
}
