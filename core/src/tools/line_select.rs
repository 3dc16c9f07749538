//! Selecting lines of a file while it streams by (spec 50 §2 step 3, §1.4): memory does not grow with the file.
//!
//! A backend answers [`FsOp::ReadText`](crate::op::FsOp::ReadText) by feeding the file's bytes, in pieces of any
//! size, to [`LineSelect`]. The result does not depend on how the bytes were split.

use alloc::string::String;
use alloc::vec::Vec;

use memchr::{memchr, memchr_iter};

use crate::op::{ReadText, TextSlice};
use crate::text::utf8::Utf8Decoder;

/// Bytes from the start of a file that tell images from text (spec 50 §2 step 2).
pub const SNIFF_BYTES: usize = 4100;

/// What the bytes that come next belong to.
#[derive(Debug)]
enum Phase {
    /// Lines before the first wanted one; so many LFs are still to come.
    Before(u64),
    /// Wanted lines; so many LFs end them (`None` = the end of the file does).
    Inside(Option<u64>),
    /// Lines after the last wanted one.
    After,
}

/// Push parser that picks, decodes and head-truncates lines.
#[derive(Debug)]
pub struct LineSelect {
    phase: Phase,
    max_lines: Option<u64>,
    utf8: Utf8Decoder,
    kept: Kept,
    head: Vec<u8>,
    lf_total: u64,
    lf_selected: u64,
    any_selected: bool,
}

/// The decoded selection: counted in full, kept only as far as truncation can show it.
#[derive(Debug, Default)]
struct Kept {
    text: String,
    keep_lines: u64,
    keep_bytes: u64,
    bytes: u64,
    first_line: u64,
    first_line_done: bool,
    ends_in_lf: bool,
}

impl LineSelect {
    /// Starts at the first byte of the file. The path of `wanted` is not looked at.
    #[must_use]
    pub fn new(wanted: &ReadText) -> Self {
        let inside = match wanted.max_lines {
            Some(0) => Phase::After,
            limit => Phase::Inside(limit),
        };
        let phase = match wanted.first_line {
            0 | 1 => inside,
            first if matches!(inside, Phase::Inside(_)) => Phase::Before(first - 1),
            _ => Phase::After,
        };
        Self {
            any_selected: matches!(phase, Phase::Inside(_)),
            phase,
            max_lines: wanted.max_lines,
            utf8: Utf8Decoder::new(),
            kept: Kept { keep_lines: wanted.keep_lines, keep_bytes: wanted.keep_bytes, ..Kept::default() },
            head: Vec::new(),
            lf_total: 0,
            lf_selected: 0,
        }
    }

    /// Takes the next bytes of the file.
    pub fn push(&mut self, mut bytes: &[u8]) {
        let room = SNIFF_BYTES - self.head.len().min(SNIFF_BYTES);
        self.head.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        while !bytes.is_empty() {
            bytes = match self.phase {
                Phase::Before(lfs) => self.skip(bytes, lfs),
                Phase::Inside(limit) => self.select(bytes, limit),
                Phase::After => {
                    self.lf_total += memchr_iter(b'\n', bytes).count() as u64;
                    &[]
                }
            };
        }
    }

    fn skip<'a>(&mut self, bytes: &'a [u8], lfs: u64) -> &'a [u8] {
        let (used, seen) = through_lf(bytes, lfs);
        self.lf_total += seen;
        self.phase = if seen < lfs {
            Phase::Before(lfs - seen)
        } else {
            self.any_selected = true;
            Phase::Inside(self.max_lines)
        };
        bytes.get(used..).unwrap_or_default()
    }

    fn select<'a>(&mut self, bytes: &'a [u8], limit: Option<u64>) -> &'a [u8] {
        let (used, seen) = match limit {
            Some(lfs) => through_lf(bytes, lfs),
            None => (bytes.len(), memchr_iter(b'\n', bytes).count() as u64),
        };
        self.lf_total += seen;
        let ended = limit == Some(seen);
        // The LF that ends the last wanted line separates it from the rest and is not selected.
        let wanted = if ended { used.saturating_sub(1) } else { used };
        let kept = &mut self.kept;
        self.utf8.push_with(bytes.get(..wanted).unwrap_or_default(), &mut |text| kept.add(text));
        self.lf_selected += seen - u64::from(ended);
        self.phase = if ended { Phase::After } else { Phase::Inside(limit.map(|lfs| lfs - seen)) };
        bytes.get(used..).unwrap_or_default()
    }

    /// The file ended.
    #[must_use]
    pub fn finish(mut self) -> TextSlice {
        let kept = &mut self.kept;
        self.utf8.finish_with(&mut |text| kept.add(text));
        if !kept.first_line_done {
            kept.first_line = kept.bytes;
        }
        let selected_lines = if self.any_selected { self.lf_selected + 1 } else { 0 };
        let ends_empty = self.any_selected && (kept.bytes == 0 || kept.ends_in_lf);
        let (selected_bytes, first_line_bytes) = (kept.bytes, kept.first_line);
        TextSlice {
            text: self.kept.truncate(selected_lines - u64::from(ends_empty)),
            total_lines: self.lf_total + 1,
            selected_lines,
            selected_bytes,
            first_line_bytes,
            ends_empty,
            head: self.head,
        }
    }
}

impl Kept {
    fn add(&mut self, text: &str) {
        if !self.first_line_done {
            self.first_line_done = memchr(b'\n', text.as_bytes())
                .inspect(|at| self.first_line = self.bytes + *at as u64)
                .is_some();
        }
        self.bytes += text.len() as u64;
        self.ends_in_lf = text.ends_with('\n');
        // One byte more than can be shown proves that a line does not fit.
        let room = self.keep_bytes.saturating_add(1).saturating_sub(self.text.len() as u64);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        if room > 0 {
            let mut end = room.min(text.len());
            while !text.is_char_boundary(end) {
                end += 1;
            }
            self.text.push_str(text.get(..end).unwrap_or(text));
        }
    }

    /// Whole lines that fit; the text itself when all of it does. `lines` are counted without a final empty one.
    fn truncate(mut self, lines: u64) -> String {
        if lines <= self.keep_lines && self.bytes <= self.keep_bytes {
            return self.text;
        }
        let complete = self.text.len() as u64 == self.bytes;
        let (mut end, mut start) = (0, 0);
        for _ in 0..self.keep_lines.min(lines) {
            let rest = self.text.as_bytes().get(start..).unwrap_or_default();
            let line_end = match memchr(b'\n', rest) {
                Some(at) => start + at,
                None if complete => self.text.len(),
                None => break,
            };
            if line_end as u64 > self.keep_bytes {
                break;
            }
            (end, start) = (line_end, line_end + 1);
        }
        self.text.truncate(end);
        self.text
    }
}

/// Length up to and including the `lfs`-th LF, and how many were seen; everything when there are fewer.
fn through_lf(bytes: &[u8], lfs: u64) -> (usize, u64) {
    let nth = usize::try_from(lfs.saturating_sub(1)).unwrap_or(usize::MAX);
    let mut seen = 0;
    for at in memchr_iter(b'\n', bytes) {
        if seen == nth {
            return (at + 1, lfs);
        }
        seen += 1;
    }
    (bytes.len(), seen as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(file: &[u8], first: u64, max: Option<u64>, keep: (u64, u64), step: usize) -> TextSlice {
        let mut select = LineSelect::new(&ReadText {
            path: String::new(),
            first_line: first,
            max_lines: max,
            keep_lines: keep.0,
            keep_bytes: keep.1,
        });
        file.chunks(step).for_each(|part| select.push(part));
        select.finish()
    }

    /// The rule written down naively.
    fn reference(file: &[u8], first: u64, max: Option<u64>, keep: (u64, u64)) -> TextSlice {
        let text = String::from_utf8_lossy(file).into_owned();
        let all: Vec<&str> = text.split('\n').collect();
        let from = (first.max(1) - 1) as usize;
        let chosen: Vec<&str> =
            all.iter().skip(from).copied().take(max.map_or(usize::MAX, |m| m as usize)).collect();
        let joined = chosen.join("\n");
        let ends_empty = chosen.last().is_some_and(|l| l.is_empty());
        let lines = &chosen[..chosen.len() - usize::from(ends_empty)];
        let shown = if lines.len() as u64 <= keep.0 && joined.len() as u64 <= keep.1 {
            joined.clone()
        } else {
            let (mut out, mut count, mut size) = (Vec::new(), 0, 0);
            for line in lines {
                let cost = line.len() as u64 + u64::from(count > 0);
                if count == keep.0 || size + cost > keep.1 {
                    break;
                }
                (count, size) = (count + 1, size + cost);
                out.push(*line);
            }
            out.join("\n")
        };
        TextSlice {
            text: shown,
            total_lines: all.len() as u64,
            selected_lines: chosen.len() as u64,
            selected_bytes: joined.len() as u64,
            first_line_bytes: chosen.first().map_or(0, |l| l.len() as u64),
            ends_empty,
            head: file[..file.len().min(SNIFF_BYTES)].to_vec(),
        }
    }

    #[test]
    fn agrees_with_the_rule_for_every_split() {
        let files: [&[u8]; 9] = [
            b"",
            b"\n",
            b"a\nb\n",
            b"a\n\n\nb",
            "é\n日本\n😀".as_bytes(),
            b"a\xff\xe6\x97\nc\xf0\x9f",
            b"\xe6\n\xe6",
            b"long line here\nx\n",
            b"1\n2\n3\n4\n5\n6\n",
        ];
        for file in files {
            for first in 0..5 {
                for max in [None, Some(0), Some(1), Some(2), Some(9)] {
                    for keep in [(100, 100), (2, 100), (100, 3), (0, 0), (1, 4)] {
                        let want = reference(file, first, max, keep);
                        for step in [1, 2, 3, 100] {
                            let got = slice(file, first, max, keep, step);
                            assert_eq!(got, want, "{file:?} {first} {max:?} {keep:?} {step}");
                        }
                    }
                }
            }
        }
    }
}
