//! UTF-8 that arrives in pieces; what is invalid becomes U+FFFD, never an error.

use alloc::borrow::Cow;
use alloc::string::String;
use core::str;

const REPLACEMENT: &str = "\u{fffd}";

/// Decodes a whole buffer; borrows when it is valid.
///
/// The same result as [`String::from_utf8_lossy`], but valid text is checked many bytes a step.
#[must_use]
pub fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Streaming decoder: a character may be cut by the end of a piece. All pieces together decode to exactly what
/// [`lossy`] makes of the whole.
#[derive(Clone, Debug, Default)]
pub struct Utf8Decoder {
    /// The unfinished character at the end of the last piece, at most 3 bytes.
    pending: [u8; 4],
    len: usize,
}

impl Utf8Decoder {
    /// A decoder at the start of a stream.
    #[must_use]
    pub const fn new() -> Self {
        Self { pending: [0; 4], len: 0 }
    }

    /// Whether the last piece ended inside a character.
    #[must_use]
    pub const fn is_pending(&self) -> bool {
        self.len > 0
    }

    /// Decodes a piece and appends the text to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        self.push_with(bytes, &mut |text| out.push_str(text));
    }

    /// Decodes a piece and hands on its text in runs, none of them empty.
    pub fn push_with(&mut self, bytes: &[u8], emit: &mut impl FnMut(&str)) {
        let mut rest = self.complete(bytes, emit);
        loop {
            match str::from_utf8(rest) {
                Ok("") => return,
                Ok(text) => return emit(text),
                Err(error) => {
                    let (valid, tail) = rest.split_at(error.valid_up_to());
                    if let Ok(text) = str::from_utf8(valid)
                        && !text.is_empty()
                    {
                        emit(text);
                    }
                    let Some(skip) = error.error_len() else { return self.keep(tail) };
                    emit(REPLACEMENT);
                    rest = tail.get(skip..).unwrap_or_default();
                }
            }
        }
    }

    /// End of the stream: an unfinished character becomes U+FFFD.
    pub fn finish(&mut self, out: &mut String) {
        self.finish_with(&mut |text| out.push_str(text));
    }

    /// As [`finish`](Self::finish), for [`push_with`](Self::push_with).
    pub fn finish_with(&mut self, emit: &mut impl FnMut(&str)) {
        if core::mem::take(&mut self.len) > 0 {
            emit(REPLACEMENT);
        }
    }

    fn keep(&mut self, tail: &[u8]) {
        self.len = tail.len().min(self.pending.len());
        self.pending.iter_mut().zip(tail).for_each(|(slot, byte)| *slot = *byte);
    }

    /// Adds bytes to the unfinished character until it is whole or broken; returns what is left.
    fn complete<'a>(&mut self, mut bytes: &'a [u8], emit: &mut impl FnMut(&str)) -> &'a [u8] {
        while let (1.., [next, rest @ ..]) = (self.len, bytes) {
            let Some(slot) = self.pending.get_mut(self.len) else { break };
            *slot = *next;
            match str::from_utf8(self.pending.get(..=self.len).unwrap_or_default()) {
                Ok(text) => {
                    emit(text);
                    self.len = 0;
                }
                Err(error) if error.error_len().is_none() => self.len += 1,
                Err(_) => {
                    // The kept bytes were a good start, so it is the new byte that breaks them: look at it afresh.
                    self.finish_with(emit);
                    return bytes;
                }
            }
            bytes = rest;
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_split_equals_the_whole() {
        let samples: [&[u8]; 6] = [
            "aé€😀z".as_bytes(),
            b"\xf0\x9f\x9a",
            b"\xf0\x9f\xe2\x82\xac\xff\xc3(\xed\xa0\x80",
            b"\xe2\x82\xe2\x82\xac\xc0\x80\xf4\x90\x80\x80",
            b"plain",
            b"\x80\x80\xf8\x88\x80\x80\x80",
        ];
        for bytes in samples {
            let whole = lossy(bytes);
            for first in 0..=bytes.len() {
                for second in first..=bytes.len() {
                    let (mut decoder, mut out) = (Utf8Decoder::new(), String::new());
                    decoder.push(&bytes[..first], &mut out);
                    decoder.push(&bytes[first..second], &mut out);
                    decoder.push(&bytes[second..], &mut out);
                    decoder.finish(&mut out);
                    assert_eq!(out, whole, "{bytes:x?} split at {first}, {second}");
                }
            }
        }
    }
}
