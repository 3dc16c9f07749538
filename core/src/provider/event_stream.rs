//! Framing of AWS's event streams (`application/vnd.amazon.eventstream`).
//!
//! A frame: total length, length of the headers, CRC-32 of these eight bytes; headers; payload; CRC-32 of all before.
//! Numbers are big-endian. A frame that arrives in one piece is read where it lies. Lengths are believed only after
//! their checksum fits, and are bounded, so damage never makes the reader wait for, or keep, what is not a frame.

use alloc::vec::Vec;
use core::str;

/// Lengths and their checksum.
const PRELUDE: usize = 12;
/// The checksum at the end.
const TRAILER: usize = 4;
/// Most bytes of headers, a limit of the format.
const MOST_HEADERS: usize = 128 << 10;
/// Most bytes of a payload, a limit of the format.
const MOST_PAYLOAD: usize = 24 << 20;
/// Bytes of the buffer that are kept when it is empty.
const KEPT: usize = 64 << 10;

/// Why bytes are no event stream. Nothing after the damage can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The checksum of the lengths is wrong: these are no frames at all, or bytes were lost.
    #[error("the lengths of a frame do not fit their checksum")]
    Prelude,
    /// Lengths that contradict each other or the limits of the format.
    #[error("a frame has impossible lengths")]
    Lengths,
    /// The checksum of a frame is wrong.
    #[error("a frame does not fit its checksum")]
    Checksum,
    /// Headers that cannot be read.
    #[error("a frame has unreadable headers")]
    Headers,
}

/// One frame. Its headers were checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    headers: &'a [u8],
    /// The payload.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The text of a header; `None` when there is none of that name, or it is no text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a str> {
        let mut rest = self.headers;
        while let Some(((own, value), next)) = header(rest) {
            if own == name.as_bytes() {
                return value.and_then(|value| str::from_utf8(value).ok());
            }
            rest = next;
        }
        None
    }
}

/// The first header: its name, its value if that is a text, and the headers behind it.
fn header(bytes: &[u8]) -> Option<((&[u8], Option<&[u8]>), &[u8])> {
    const TEXT: u8 = 7;
    let (&len, rest) = bytes.split_first()?;
    let (name, rest) = rest.split_at_checked(len.into())?;
    let (&kind, rest) = rest.split_first()?;
    let (len, rest) = match kind {
        // True and false have no value.
        0 | 1 => (0, rest),
        2 => (1, rest),
        3 => (2, rest),
        4 => (4, rest),
        // A number of eight bytes, and a time.
        5 | 8 => (8, rest),
        // Bytes and text tell their length.
        6 | TEXT => {
            let (len, rest) = rest.split_first_chunk::<2>()?;
            (u16::from_be_bytes(*len).into(), rest)
        }
        // A UUID.
        9 => (16, rest),
        _ => return None,
    };
    let (value, rest) = rest.split_at_checked(len)?;
    Some(((name, (kind == TEXT).then_some(value)), rest))
}

/// Splits a stream into frames.
#[derive(Debug, Default)]
pub struct EventStream {
    /// The beginning of a frame that is not complete.
    buffer: Vec<u8>,
    damage: Option<Damage>,
}

impl EventStream {
    /// Takes bytes in any split and hands over every frame that is complete.
    ///
    /// # Errors
    /// When the bytes are damaged; then and from then on.
    pub fn feed(&mut self, bytes: &[u8], on_frame: &mut dyn FnMut(Frame<'_>)) -> Result<(), Damage> {
        let mut rest = bytes;
        while !rest.is_empty() && self.damage.is_none() {
            let step = if self.buffer.is_empty() {
                self.in_place(rest, on_frame)
            } else {
                self.through_buffer(rest, on_frame)
            };
            match step {
                Ok(after) => rest = after,
                Err(damage) => {
                    self.buffer = Vec::new();
                    self.damage = Some(damage);
                }
            }
        }
        self.damage.map_or(Ok(()), Err)
    }

    /// Whether the stream ended in the middle of a frame.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Reads a frame where it lies; the beginning of one is kept.
    fn in_place<'b>(
        &mut self,
        bytes: &'b [u8],
        on_frame: &mut dyn FnMut(Frame<'_>),
    ) -> Result<&'b [u8], Damage> {
        if let Some(total) = total_length(bytes)?
            && let Some((frame, rest)) = bytes.split_at_checked(total)
        {
            on_frame(read(frame)?);
            return Ok(rest);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(&[])
    }

    /// Completes the kept beginning: first its lengths, then the frame.
    fn through_buffer<'b>(
        &mut self,
        bytes: &'b [u8],
        on_frame: &mut dyn FnMut(Frame<'_>),
    ) -> Result<&'b [u8], Damage> {
        let wanted = total_length(&self.buffer)?.unwrap_or(PRELUDE);
        let missing = wanted.saturating_sub(self.buffer.len()).min(bytes.len());
        let (more, rest) = bytes.split_at(missing);
        self.buffer.extend_from_slice(more);
        if total_length(&self.buffer)? == Some(self.buffer.len()) {
            on_frame(read(&self.buffer)?);
            self.buffer.clear();
            self.buffer.shrink_to(KEPT);
        }
        Ok(rest)
    }
}

/// Length of the frame that begins here; `None` while its lengths are not complete.
fn total_length(bytes: &[u8]) -> Result<Option<usize>, Damage> {
    let Some(prelude) = bytes.first_chunk::<PRELUDE>() else { return Ok(None) };
    let (numbers, _) = prelude.as_chunks::<4>();
    let [total, headers, sum] = [0, 1, 2].map(|at| numbers.get(at).map_or(0, |n| u32::from_be_bytes(*n)));
    if crc32(prelude.get(..8).unwrap_or_default()) != sum {
        return Err(Damage::Prelude);
    }
    let (total, headers) = (total as usize, headers as usize);
    let payload = total.checked_sub(PRELUDE + TRAILER).and_then(|rest| rest.checked_sub(headers));
    match payload {
        Some(payload) if payload <= MOST_PAYLOAD && headers <= MOST_HEADERS => Ok(Some(total)),
        _ => Err(Damage::Lengths),
    }
}

/// Checks a whole frame.
fn read(frame: &[u8]) -> Result<Frame<'_>, Damage> {
    let (body, sum) = frame.split_last_chunk::<TRAILER>().ok_or(Damage::Lengths)?;
    if crc32(body) != u32::from_be_bytes(*sum) {
        return Err(Damage::Checksum);
    }
    let headers = body.get(4..8).and_then(|n| n.first_chunk::<4>()).map_or(0, |n| u32::from_be_bytes(*n));
    let rest = body.get(PRELUDE..).unwrap_or_default();
    let (headers, payload) = rest.split_at_checked(headers as usize).ok_or(Damage::Lengths)?;
    let mut unread = headers;
    while !unread.is_empty() {
        unread = header(unread).ok_or(Damage::Headers)?.1;
    }
    Ok(Frame { headers, payload })
}

/// Tables for four bytes at once.
static TABLES: [[u32; 256]; 4] = tables();

#[allow(clippy::indexing_slicing, reason = "at compile time")]
const fn tables() -> [[u32; 256]; 4] {
    let mut tables = [[0u32; 256]; 4];
    let mut n = 0;
    while n < 256 {
        let mut crc = n as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        tables[0][n] = crc;
        n += 1;
    }
    let mut n = 0;
    while n < 256 {
        let mut table = 1;
        while table < 4 {
            let before = tables[table - 1][n];
            tables[table][n] = (before >> 8) ^ tables[0][(before & 255) as usize];
            table += 1;
        }
        n += 1;
    }
    tables
}

/// CRC-32 of IEEE 802.3, the one of zip.
#[must_use]
#[allow(clippy::indexing_slicing, reason = "a byte is below 256")]
pub fn crc32(bytes: &[u8]) -> u32 {
    let [t0, t1, t2, t3] = &TABLES;
    let (fours, rest) = bytes.as_chunks::<4>();
    let mut crc = !0u32;
    for four in fours {
        crc ^= u32::from_le_bytes(*four);
        let [a, b, c, d] = crc.to_le_bytes();
        crc = t3[usize::from(a)] ^ t2[usize::from(b)] ^ t1[usize::from(c)] ^ t0[usize::from(d)];
    }
    for byte in rest {
        let [low, ..] = crc.to_le_bytes();
        crc = (crc >> 8) ^ t0[usize::from(low ^ byte)];
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};
    use alloc::vec;

    /// A frame as a service makes it.
    fn frame(headers: &[u8], payload: &[u8]) -> Vec<u8> {
        let total = PRELUDE + headers.len() + payload.len() + TRAILER;
        let mut out = Vec::new();
        out.extend(u32::try_from(total).unwrap().to_be_bytes());
        out.extend(u32::try_from(headers.len()).unwrap().to_be_bytes());
        out.extend(crc32(&out).to_be_bytes());
        out.extend(headers);
        out.extend(payload);
        out.extend(crc32(&out).to_be_bytes());
        out
    }

    fn text(name: &str, value: &str) -> Vec<u8> {
        let mut out = vec![u8::try_from(name.len()).unwrap()];
        out.extend(name.as_bytes());
        out.push(7);
        out.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        out.extend(value.as_bytes());
        out
    }

    fn every_kind() -> Vec<u8> {
        let mut headers = text("first", "1");
        for (kind, len) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 4), (5, 8), (8, 8), (9, 16)] {
            headers.extend([1, b'k', kind]);
            headers.extend(vec![b'7'; len]);
        }
        headers.extend([1, b'b', 6, 0, 2, 255, 255]);
        headers.extend(text(":event-type", "é"));
        headers
    }

    type Seen = Vec<(Option<String>, Vec<u8>)>;

    fn feed(pieces: &[&[u8]]) -> (Seen, Result<(), Damage>, bool) {
        let (mut stream, mut seen) = (EventStream::default(), Seen::new());
        let mut last = Ok(());
        for piece in pieces {
            last = stream.feed(piece, &mut |frame: Frame<'_>| {
                seen.push((frame.header(":event-type").map(ToString::to_string), frame.payload.to_vec()));
            });
        }
        (seen, last, stream.is_cut())
    }

    #[test]
    fn frames_in_any_split() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let mut bytes = frame(&every_kind(), b"payload");
        bytes.extend(frame(&[], b""));
        bytes.extend(frame(&text(":event-type", "x"), &[0; 300]));
        let whole = feed(&[&bytes]);
        assert_eq!(whole.0.len(), 3);
        assert_eq!(whole.0[0], (Some("é".to_string()), b"payload".to_vec()));
        assert_eq!((&whole.0[1], whole.1, whole.2), (&(None, vec![]), Ok(()), false));
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(feed(&single), whole);
        for at in 0..bytes.len() {
            let (a, b) = bytes.split_at(at);
            assert_eq!(feed(&[a, b]), whole, "{at}");
            assert_eq!(feed(&[a]).2, !is_border(&bytes, at), "{at}");
        }
    }

    /// Whether a frame ends there.
    fn is_border(bytes: &[u8], at: usize) -> bool {
        let mut end = 0;
        while end < at {
            end += total_length(&bytes[end..]).unwrap().unwrap();
        }
        end == at
    }

    #[test]
    fn damage_is_found_at_once_and_stays() {
        let good = frame(&every_kind(), b"payload");
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            let wanted = if at < PRELUDE { Damage::Prelude } else { Damage::Checksum };
            let (seen, result, cut) = feed(&[&bad, &good]);
            assert_eq!((seen.len(), result, cut), (0, Err(wanted), false), "{at}");
        }
        let lengths = |total: u32, headers: u32| {
            let mut out = total.to_be_bytes().to_vec();
            out.extend(headers.to_be_bytes());
            out.extend(crc32(&out).to_be_bytes());
            out
        };
        for (total, headers) in [
            (0, 0),
            (15, 0),
            (16, 1),
            (u32::MAX, 0),
            (u32::MAX, u32::MAX),
            (200 << 10, 128 << 10 | 1),
            ((24 << 20) + 17, 0),
        ] {
            assert_eq!(feed(&[&lengths(total, headers)]).1, Err(Damage::Lengths), "{total} {headers}");
        }
        for headers in [&[5][..], &[1, b'a'], &[1, b'a', 10], &[1, b'a', 7, 0], &[1, b'a', 7, 0, 2, b'x']] {
            assert_eq!(feed(&[&frame(headers, b"p")]).1, Err(Damage::Headers), "{headers:?}");
        }
        assert_eq!(feed(&[b"HTTP/1.1 200 OK"]).1, Err(Damage::Prelude));
    }
}
