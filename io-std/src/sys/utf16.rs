//! Texts in UTF-16, read as UTF-8.

use std::io::{self, Read};

/// Bytes that are converted at once.
const PIECE: usize = 64 << 10;

/// The mark a text begins with: its length and what it says.
pub(super) fn byte_order_mark(start: &[u8]) -> Option<(usize, Encoding)> {
    match start {
        [0xef, 0xbb, 0xbf, ..] => Some((3, Encoding::Utf8)),
        [0xff, 0xfe, ..] => Some((2, Encoding::Utf16(u16::from_le_bytes))),
        [0xfe, 0xff, ..] => Some((2, Encoding::Utf16(u16::from_be_bytes))),
        _ => None,
    }
}

/// What a mark says of the bytes behind it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Encoding {
    Utf8,
    /// With the order of two bytes.
    Utf16(fn([u8; 2]) -> u16),
}

/// Converts a reader of UTF-16. What is no character becomes U+FFFD.
#[derive(Debug)]
pub(super) struct Utf16<R> {
    inner: R,
    order: fn([u8; 2]) -> u16,
    /// Read and not converted: half a unit or half a pair.
    rest: Vec<u8>,
    text: String,
    given: usize,
}

impl<R: Read> Utf16<R> {
    pub(super) const fn new(inner: R, order: fn([u8; 2]) -> u16) -> Self {
        Self { inner, order, rest: Vec::new(), text: String::new(), given: 0 }
    }

    /// Converts the next piece; `false` at the end.
    fn advance(&mut self) -> io::Result<bool> {
        self.text.clear();
        self.given = 0;
        let before = self.rest.len();
        self.rest.resize(before + PIECE, 0);
        let read = self.inner.read(self.rest.get_mut(before..).unwrap_or_default());
        self.rest.truncate(before + *read.as_ref().unwrap_or(&0));
        if read? == 0 {
            if !self.rest.is_empty() {
                self.rest.clear();
                self.text.push(char::REPLACEMENT_CHARACTER);
            }
            return Ok(!self.text.is_empty());
        }
        let (pairs, _) = self.rest.as_chunks::<2>();
        let unit = |pair: &[u8; 2]| (self.order)(*pair);
        let is_first_half = |pair: &[u8; 2]| (0xd800..0xdc00).contains(&unit(pair));
        let whole = pairs.len() - usize::from(pairs.last().is_some_and(is_first_half));
        let units = pairs.iter().take(whole).map(unit);
        self.text.extend(char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)));
        self.rest.drain(..2 * whole);
        Ok(true)
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.given == self.text.len() {
            if !self.advance()? {
                return Ok(0);
            }
        }
        let mut text = self.text.as_bytes().get(self.given..).unwrap_or_default();
        let read = text.read(into)?;
        self.given += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.read(into.get_mut(..1).unwrap_or_default())
        }
    }

    #[test]
    fn both_orders_in_any_pieces() {
        for (text, tail, wanted) in [
            ("aé€😀\n", &[][..], "aé€😀\n"),
            ("", &[], ""),
            ("a", &[0x61], "a\u{fffd}"),
            ("a", &[0x3d, 0xd8], "a\u{fffd}"),
        ] {
            for order in [u16::from_le_bytes, u16::from_be_bytes] {
                let big = order([0, 1]) == 1;
                let bytes = |unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() };
                let mut raw: Vec<u8> = text.encode_utf16().flat_map(bytes).collect();
                let mut tail = tail.to_vec();
                if big {
                    tail.reverse();
                }
                raw.extend(tail);
                for piecewise in [false, true] {
                    let mut out = String::new();
                    let read = if piecewise {
                        Utf16::new(Drip(&raw), order).read_to_string(&mut out)
                    } else {
                        Utf16::new(&*raw, order).read_to_string(&mut out)
                    };
                    assert_eq!((read.unwrap(), out.as_str()), (wanted.len(), wanted));
                }
            }
        }
        let lone = [0x00, 0xdc, 0x61, 0x00];
        let mut out = String::new();
        Utf16::new(&lone[..], u16::from_le_bytes).read_to_string(&mut out).unwrap();
        assert_eq!(out, "\u{fffd}a");
    }

    #[test]
    fn marks() {
        assert!(matches!(byte_order_mark(b"\xef\xbb\xbfa"), Some((3, Encoding::Utf8))));
        assert!(matches!(byte_order_mark(b"\xff\xfea"), Some((2, Encoding::Utf16(_)))));
        assert!(byte_order_mark(b"\xef\xbb").is_none() && byte_order_mark(b"").is_none());
    }
}
