//! Compressed bodies: `gzip` and `deflate` (RFC 1952, 1950, 1951), decoded as they arrive.
//!
//! What came is given at once: nothing waits for more input while output is left. An answer that grows far beyond what
//! arrived is given up.

use std::io::{self, ErrorKind, Read};

use flate2::{Crc, Decompress, FlushDecompress, Status};
use tau_core::fault::{FaultKind, IoFault};

/// What we ask for.
pub const ACCEPTED: &str = "gzip, deflate";

/// Bytes read at once.
const INPUT: usize = 32 << 10;
/// Longest head of a gzip member: a name and a comment may be in it.
const MOST_HEAD: usize = 64 << 10;
/// Up to here an answer may grow as it likes.
const FREE_BYTES: u64 = 64 << 20;
/// Beyond, by this factor at most. Text is rarely compressed to a twentieth, a bomb to a thousandth.
const MOST_GROWTH: u64 = 100;

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// RFC 1952.
    Gzip,
    /// In its envelope, or bare as some servers send it.
    Deflate,
}

impl Coding {
    /// Reads `content-encoding`; `None` = not compressed.
    ///
    /// # Errors
    /// The name of a coding that was not asked for.
    pub fn parse(value: &str) -> Result<Option<Self>, &str> {
        let mut names = value.split(',').map(str::trim).filter(|name| !name.eq_ignore_ascii_case("identity"));
        match names.find(|name| !name.is_empty()) {
            None => Ok(None),
            Some(_) if names.next().is_some() => Err(value),
            Some(name) if ["gzip", "x-gzip"].iter().any(|own| name.eq_ignore_ascii_case(own)) => {
                Ok(Some(Self::Gzip))
            }
            Some(name) if name.eq_ignore_ascii_case("deflate") => Ok(Some(Self::Deflate)),
            Some(name) => Err(name),
        }
    }
}

/// A decoded body.
pub struct Inflate<R> {
    inner: R,
    coding: Coding,
    /// For faults.
    host: String,
    input: Vec<u8>,
    /// Where the rest of the input begins.
    at: usize,
    stage: Stage,
    crc: Crc,
    arrived: u64,
    given: u64,
}

enum Stage {
    /// Before the data; `true` = of a further gzip member, which need not be there.
    Head(bool),
    Data(Box<Decompress>),
    /// Checksum and length.
    Tail,
    /// Nothing more may come.
    End,
}

impl<R: Read> Inflate<R> {
    /// Decodes what `inner` reads; `host` is for faults.
    pub fn new(inner: R, coding: Coding, host: String) -> Self {
        Self {
            inner,
            coding,
            host,
            input: Vec::new(),
            at: 0,
            stage: Stage::Head(false),
            crc: Crc::new(),
            arrived: 0,
            given: 0,
        }
    }

    /// What it reads from. A source that says `WouldBlock` is asked again at the next read; nothing is lost.
    pub const fn inner(&mut self) -> &mut R {
        &mut self.inner
    }

    /// Gives it back.
    pub fn into_inner(self) -> R {
        self.inner
    }

    fn fault(&self, kind: FaultKind, what: &str) -> io::Error {
        io::Error::other(IoFault::new(kind, format!("{}: {what}", self.host)))
    }

    fn damaged(&self) -> io::Error {
        self.fault(FaultKind::Other, "the compressed answer is damaged")
    }

    fn rest(&self) -> &[u8] {
        self.input.get(self.at..).unwrap_or_default()
    }

    /// Waits for more input; `false` at its end.
    fn fill(&mut self) -> io::Result<bool> {
        let mut piece = vec![0; INPUT];
        let len = self.inner.read(&mut piece)?;
        self.input.drain(..self.at);
        self.at = 0;
        self.input.extend_from_slice(piece.get(..len).unwrap_or_default());
        self.arrived += len as u64;
        Ok(len > 0)
    }

    /// Goes to the data; `false` when there is none.
    fn head(&mut self, further: bool) -> io::Result<bool> {
        loop {
            let rest = self.rest();
            let found = match self.coding {
                Coding::Gzip => gzip_head(rest).map_err(|()| self.damaged())?.map(|len| (len, false)),
                Coding::Deflate => is_wrapped(rest).map(|wrapped| (0, wrapped)),
            };
            if let Some((len, wrapped)) = found {
                self.at += len;
                self.crc.reset();
                self.stage = Stage::Data(Box::new(Decompress::new(wrapped)));
                return Ok(true);
            }
            if rest.len() > MOST_HEAD {
                return Err(self.damaged());
            }
            if !self.fill()? {
                // A body without a byte is no compressed one.
                let absent = self.rest().is_empty() && (further || self.arrived == 0);
                return if absent { Ok(false) } else { Err(ErrorKind::UnexpectedEof.into()) };
            }
        }
    }

    /// Checks what follows the data of a gzip member.
    fn tail(&mut self) -> io::Result<()> {
        loop {
            if let Some((tail, _)) = self.rest().split_first_chunk::<8>() {
                let [a, b, c, d, e, f, g, h] = *tail;
                let says = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
                self.at += 8;
                return if says == (self.crc.sum(), self.crc.amount()) {
                    Ok(())
                } else {
                    Err(self.damaged())
                };
            }
            if !self.fill()? {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Fills `out` from what is here; 0 = more input is needed, or the data has ended.
    fn data(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let Stage::Data(data) = &mut self.stage else { return Ok(0) };
        let before = (data.total_in(), data.total_out());
        let input = self.input.get(self.at..).unwrap_or_default();
        let status = data.decompress(input, out, FlushDecompress::None);
        let (used, made) = (data.total_in() - before.0, data.total_out() - before.1);
        let status = status.map_err(|_| self.damaged())?;
        self.at += usize::try_from(used).unwrap_or_default();
        let made = usize::try_from(made).unwrap_or_default();
        if self.coding == Coding::Gzip {
            self.crc.update(out.get(..made).unwrap_or_default());
        }
        self.given += made as u64;
        if self.given > FREE_BYTES && self.given / MOST_GROWTH > self.arrived {
            return Err(
                self.fault(FaultKind::TooBig, "the compressed answer grows without end and was given up")
            );
        }
        match status {
            Status::StreamEnd if self.coding == Coding::Gzip => self.stage = Stage::Tail,
            Status::StreamEnd => self.stage = Stage::End,
            Status::Ok | Status::BufError if made == 0 && used == 0 && !self.rest().is_empty() => {
                return Err(self.damaged());
            }
            Status::Ok | Status::BufError => {}
        }
        Ok(made)
    }
}

impl<R: Read> Read for Inflate<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            match self.stage {
                Stage::Head(further) => {
                    if !self.head(further)? {
                        return Ok(0);
                    }
                }
                Stage::Data(_) => {
                    let made = self.data(out)?;
                    if made > 0 {
                        return Ok(made);
                    }
                    if matches!(self.stage, Stage::Data(_)) && self.rest().is_empty() && !self.fill()? {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                }
                Stage::Tail => {
                    self.tail()?;
                    self.stage = Stage::Head(true);
                }
                Stage::End if !self.rest().is_empty() => return Err(self.damaged()),
                Stage::End => {
                    if !self.fill()? {
                        return Ok(0);
                    }
                }
            }
        }
    }
}

/// Length of the head of a gzip member; `None` = not all of it is here; an error = it is none.
fn gzip_head(bytes: &[u8]) -> Result<Option<usize>, ()> {
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    const CHECK: u8 = 2;
    let begin = [0x1f, 0x8b, 8];
    if bytes.iter().zip(begin).any(|(byte, own)| *byte != own) {
        return Err(());
    }
    let Some((head, mut rest)) = bytes.split_first_chunk::<10>() else { return Ok(None) };
    let flags = head[3];
    if flags & EXTRA != 0 {
        let Some((len, more)) = rest.split_first_chunk::<2>() else { return Ok(None) };
        let Some(more) = more.get(usize::from(u16::from_le_bytes(*len))..) else { return Ok(None) };
        rest = more;
    }
    for flag in [NAME, COMMENT] {
        if flags & flag != 0 {
            let Some(end) = rest.iter().position(|byte| *byte == 0) else { return Ok(None) };
            rest = rest.get(end + 1..).unwrap_or_default();
        }
    }
    if flags & CHECK != 0 {
        let Some(more) = rest.get(2..) else { return Ok(None) };
        rest = more;
    }
    Ok(Some(bytes.len() - rest.len()))
}

/// Whether deflated data is in the envelope of RFC 1950; `None` = too few bytes are here.
fn is_wrapped(bytes: &[u8]) -> Option<bool> {
    let (&[first, second], _) = bytes.split_first_chunk::<2>()?;
    Some(first & 0x0f == 8 && u16::from_be_bytes([first, second]) % 31 == 0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    /// Gives its pieces one at a time, then says that it must wait, then that it ended.
    struct Pieces<'a>(Vec<&'a [u8]>);

    impl Read for Pieces<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            match self.0.pop() {
                None => Ok(0),
                Some([]) => Err(ErrorKind::WouldBlock.into()),
                Some(piece) => {
                    let len = piece.len().min(out.len());
                    out[..len].copy_from_slice(&piece[..len]);
                    if len < piece.len() {
                        self.0.push(&piece[len..]);
                    }
                    Ok(len)
                }
            }
        }
    }

    fn pieces(bytes: &[u8], size: usize) -> Pieces<'_> {
        Pieces(bytes.chunks(size).rev().collect())
    }

    fn decode(bytes: &[u8], size: usize, coding: Coding) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        Inflate::new(pieces(bytes, size), coding, "http://h".into()).read_to_end(&mut out).map(|_| out)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn wrapped(text: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn bare(text: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn names_of_codings() {
        for (value, coding) in [
            ("", Ok(None)),
            ("identity", Ok(None)),
            ("gzip", Ok(Some(Coding::Gzip))),
            (" X-GZip ,identity", Ok(Some(Coding::Gzip))),
            ("Deflate", Ok(Some(Coding::Deflate))),
            ("br", Err("br")),
            ("gzip, deflate", Err("gzip, deflate")),
        ] {
            assert_eq!(Coding::parse(value), coding, "{value}");
        }
    }

    #[test]
    fn every_form_in_every_split() {
        let text: Vec<u8> = (0..100_000_u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
        let mut named = gzip(&text);
        // A member with an extra field, a name, a comment and a check of the head.
        named[3] = 4 | 8 | 16 | 2;
        named.splice(10..10, *b"\x03\x00xyzname\0comment\0cc");
        let two = [gzip(&text[..5000]), gzip(&text[5000..])].concat();
        for (what, bytes, coding) in [
            ("gzip", gzip(&text), Coding::Gzip),
            ("named", named, Coding::Gzip),
            ("two members", two, Coding::Gzip),
            ("wrapped", wrapped(&text), Coding::Deflate),
            ("bare", bare(&text), Coding::Deflate),
        ] {
            for size in [1, 2, 3, 7, 4096, usize::MAX] {
                assert!(decode(&bytes, size, coding).unwrap() == text, "{what}, pieces of {size}");
            }
            for cut in [1, 5, 12, bytes.len() / 2, bytes.len() - 1] {
                let error = decode(&bytes[..cut], 100, coding).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{what} cut at {cut}");
            }
        }
        assert_eq!(decode(b"", 1, Coding::Gzip).unwrap(), b"");
        assert_eq!(decode(&gzip(b""), 1, Coding::Gzip).unwrap(), b"");
    }

    #[test]
    fn what_is_wrong_is_no_answer() {
        let damaged =
            IoFault::new(FaultKind::Other, "http://h: the compressed answer is damaged").to_string();
        let mut other_sum = gzip(b"hello");
        let at = other_sum.len() - 5;
        other_sum[at] ^= 1;
        for bytes in [b"<html></html>".to_vec(), other_sum, [gzip(b"x"), b"more".to_vec()].concat()] {
            assert_eq!(decode(&bytes, 10, Coding::Gzip).unwrap_err().to_string(), damaged);
        }
        let more = [wrapped(b"x"), b"more".to_vec()].concat();
        for bytes in [b"\xff\xff\xff\xff".to_vec(), more] {
            assert_eq!(decode(&bytes, 10, Coding::Deflate).unwrap_err().to_string(), damaged);
        }
    }

    /// What a server flushed is given before more is waited for, also when it is more than fits at once.
    #[test]
    fn flushed_data_is_given_at_once() {
        let text = vec![b'x'; 300_000];
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&text).unwrap();
        encoder.flush().unwrap();
        let flushed = encoder.get_ref().clone();
        let all = encoder.finish().unwrap();
        let mut reader =
            Inflate::new(Pieces(vec![&all[flushed.len()..], b"", &flushed]), Coding::Gzip, String::new());
        let mut given = 0;
        let mut buffer = [0; 1000];
        loop {
            match reader.read(&mut buffer) {
                Ok(len) => given += len,
                Err(e) => break assert_eq!(e.kind(), ErrorKind::WouldBlock),
            }
        }
        assert_eq!(given, text.len());
        assert_eq!(reader.read(&mut buffer).unwrap(), 0);
    }

    /// Zeros, compressed as far as it goes, without end.
    struct Bomb(Vec<u8>, usize);

    impl Read for Bomb {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let piece = self.0.get(self.1..).filter(|piece| !piece.is_empty()).unwrap();
            let len = piece.len().min(out.len());
            out[..len].copy_from_slice(&piece[..len]);
            self.1 += len;
            Ok(len)
        }
    }

    #[test]
    fn a_bomb_is_given_up() {
        let bytes = gzip(&vec![0; 200 << 20]);
        let mut reader = Inflate::new(Bomb(bytes, 0), Coding::Gzip, String::new());
        let mut buffer = vec![0; 64 << 10];
        let mut given = 0_u64;
        let error = loop {
            match reader.read(&mut buffer) {
                Ok(len) => given += len as u64,
                Err(e) => break e,
            }
        };
        let fault = error.get_ref().unwrap().downcast_ref::<IoFault>().unwrap();
        assert_eq!(fault.kind, FaultKind::TooBig);
        assert!(given <= FREE_BYTES, "{given}");
    }
}
