//! Output of a process: counted in full, kept only as far as the tail window can show it (spec 50 §5.2).
//!
//! Pieces are moved in, not copied, and bytes that will be cut are only counted, so that hundreds of megabytes cost
//! little more than reading them. What is shown is a function of the bytes, not of how they were split.

use alloc::borrow::Cow;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use memchr::{memchr_iter, memrchr};

use crate::text::truncate::{CutBy, Limits, Truncation, truncate_tail};
use crate::text::utf8::Utf8Decoder;

/// Pieces below this size are joined, so that single bytes do not cost a buffer each.
const SMALL_PIECE: usize = 8192;

/// Tail window over a byte stream.
#[derive(Debug)]
pub struct OutputTail {
    limits: Limits,
    utf8: Utf8Decoder,
    counts: Counts,
    pieces: VecDeque<Vec<u8>>,
    kept: usize,
    dropped: bool,
    finished: bool,
}

/// Totals of the decoded stream.
#[derive(Debug, Default)]
struct Counts {
    bytes: u64,
    lfs: u64,
    /// Bytes since the last LF.
    open_line: u64,
    /// Bytes of the line that the last LF ended.
    closed_line: u64,
    begun: bool,
}

/// What can be shown now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The tail; totals are those of the whole stream.
    pub tail: Truncation,
    /// Full size of the last line, for when only its end is shown.
    pub last_line_bytes: u64,
}

impl OutputTail {
    /// A window that shows at most so many lines and bytes.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            utf8: Utf8Decoder::new(),
            counts: Counts::default(),
            pieces: VecDeque::new(),
            kept: 0,
            dropped: false,
            finished: false,
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, piece: Vec<u8>) {
        let counts = &mut self.counts;
        if counts.begun && !self.utf8.is_pending() && piece.is_ascii() {
            counts.add(&piece);
        } else {
            self.utf8.push_with(&piece, &mut |text| counts.add(text.as_bytes()));
        }
        self.kept += piece.len();
        match self.pieces.back_mut() {
            Some(last) if piece.len() < SMALL_PIECE && last.len() < SMALL_PIECE => {
                last.extend_from_slice(&piece)
            }
            _ if piece.capacity() > piece.len().saturating_mul(2) => {
                self.pieces.push_back(piece.as_slice().into())
            }
            _ => self.pieces.push_back(piece),
        }
        while let Some(first) = self.pieces.front()
            && (self.kept - first.len()) as u64 >= self.whole_bytes()
        {
            self.kept -= first.len();
            self.pieces.pop_front();
            self.dropped = true;
        }
    }

    /// The stream ended: an unfinished character becomes one replacement.
    pub fn finish(&mut self) {
        let counts = &mut self.counts;
        self.utf8.finish_with(&mut |text| counts.add(text.as_bytes()));
        self.finished = true;
    }

    /// Up to this size the whole stream is looked at; above it, half of this.
    const fn whole_bytes(&self) -> u64 {
        (self.limits.bytes as u64).saturating_mul(4)
    }

    /// Size of the last, unterminated line.
    #[must_use]
    pub const fn open_line_bytes(&self) -> u64 {
        self.counts.open_line
    }

    /// Whether anything arrived.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.counts.bytes == 0
    }

    /// The tail, passed through `clean` before it is measured.
    #[must_use]
    pub fn snapshot(&self, clean: fn(&str) -> Cow<'_, str>) -> Snapshot {
        let (text, aligned) = self.window();
        let whole = self.counts.bytes <= self.whole_bytes();
        let text = clean(&text);
        let mut shown = text.as_ref();
        if !aligned
            && let Some((_, lines)) = shown.split_once('\n')
            && !lines.is_empty()
        {
            shown = lines;
        }
        let mut tail = truncate_tail(shown, self.limits);
        if !whole {
            let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
            tail.total_bytes = size(self.counts.bytes);
            tail.total_lines = size(self.counts.lfs + u64::from(self.counts.open_line > 0));
            tail.cut_by = tail.cut_by.or(Some(CutBy::Bytes));
        }
        let counts = &self.counts;
        let last_line_bytes = if counts.open_line > 0 { counts.open_line } else { counts.closed_line };
        Snapshot { tail, last_line_bytes }
    }

    /// The decoded end of the stream, and whether it starts at the start of a line.
    fn window(&self) -> (String, bool) {
        let (mut utf8, mut text) = (Utf8Decoder::new(), String::with_capacity(self.kept));
        for piece in &self.pieces {
            utf8.push(piece, &mut text);
        }
        if self.finished {
            utf8.finish(&mut text);
        }
        if !self.dropped && text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        if self.counts.bytes <= self.whole_bytes() {
            return (text, true);
        }
        let wanted = self.limits.bytes.saturating_mul(2);
        let mut start = text.len().saturating_sub(wanted);
        while !text.is_char_boundary(start) {
            start += 1;
        }
        let aligned = start == 0 || text.as_bytes().get(start - 1) == Some(&b'\n');
        text.drain(..start);
        (text, aligned)
    }
}

impl Counts {
    fn add(&mut self, mut text: &[u8]) {
        if !self.begun && !text.is_empty() {
            self.begun = true;
            text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        }
        self.bytes += text.len() as u64;
        let Some(last) = memrchr(b'\n', text) else {
            self.open_line += text.len() as u64;
            return;
        };
        let before = text.get(..last).unwrap_or_default();
        self.closed_line = match memrchr(b'\n', before) {
            Some(previous) => (last - previous - 1) as u64,
            None => self.open_line + last as u64,
        };
        self.lfs += memchr_iter(b'\n', text).count() as u64;
        self.open_line = (text.len() - last - 1) as u64;
    }
}
