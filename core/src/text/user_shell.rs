//! The output of a command that the user typed (`!`, `!!`, RPC `bash`), spec 50 §10.4.

use alloc::collections::VecDeque;
use alloc::string::String;

use super::ansi::{split_unfinished, strip};
use super::clean::is_unwanted;
use super::truncate::{Limits, MAX_BYTES, Truncation, truncate_tail};
use super::utf8::Utf8Decoder;
use super::utf16::utf16_len;

/// How much text is remembered for the tail, UTF-16 units.
const KEEP_UNITS: usize = 2 * MAX_BYTES;

/// Cleans the output piece by piece and remembers its tail.
#[derive(Clone, Debug, Default)]
pub struct UserShellOutput {
    decoder: Utf8Decoder,
    held: String,
    pieces: VecDeque<String>,
    units: usize,
    raw_bytes: u64,
    dropped: bool,
}

/// The tail of the output and whether it is all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserShellTail {
    /// The text to show and to store.
    pub tail: Truncation,
    /// Something was left out, here or by the limits of `tail`.
    pub truncated: bool,
}

impl UserShellOutput {
    /// No output yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes raw bytes; returns the clean text of this piece, empty when nothing is to be reported.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.raw_bytes = self.raw_bytes.saturating_add(bytes.len() as u64);
        let mut text = core::mem::take(&mut self.held);
        self.decoder.push(bytes, &mut text);
        let (complete, unfinished) = split_unfinished(&text);
        self.held = unfinished.into();
        let clean = clean(complete);
        self.remember(&clean);
        clean
    }

    /// End of the output: the text of what was still held back.
    pub fn finish(&mut self) -> String {
        let mut text = core::mem::take(&mut self.held);
        self.decoder.finish(&mut text);
        let clean = clean(&text);
        self.remember(&clean);
        clean
    }

    /// Whether the full text belongs into a file by its size alone: more than 50 KB of raw bytes.
    #[must_use]
    pub const fn is_large(&self) -> bool {
        self.raw_bytes > MAX_BYTES as u64
    }

    /// The tail within the usual limits.
    #[must_use]
    pub fn tail(&self) -> UserShellTail {
        let text: String = self.pieces.iter().map(String::as_str).collect();
        let tail = truncate_tail(&text, Limits::default());
        let truncated = self.dropped || tail.truncated();
        UserShellTail { tail, truncated }
    }

    /// Keeps the newest pieces, always at least one.
    fn remember(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.units += utf16_len(piece);
        self.pieces.push_back(piece.into());
        while self.units > KEEP_UNITS && self.pieces.len() > 1 {
            self.units -= self.pieces.pop_front().map_or(0, |old| utf16_len(&old));
            self.dropped = true;
        }
    }
}

fn clean(text: &str) -> String {
    strip(text).chars().filter(|c| *c != '\r' && !is_unwanted(*c)).collect()
}
