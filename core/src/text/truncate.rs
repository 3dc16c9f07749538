//! Cutting text to limits of lines and bytes (spec 50 §1.4).

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;

use memchr::{memchr, memchr_iter, memrchr};
use serde_json::{Value, json};

use super::utf16;

/// Limit of lines for text that goes to the model.
pub const MAX_LINES: usize = 2000;

/// Limit of bytes for text that goes to the model: 50 KB.
pub const MAX_BYTES: usize = 50 * 1024;

/// Longest line of a grep match, UTF-16 units.
pub const MAX_LINE_UNITS: usize = 500;

/// "No limit of lines" as it is written in details: the largest safe integer of JavaScript.
const UNLIMITED: u64 = 9_007_199_254_740_991;

/// The two limits; the one hit first cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Lines at most; `usize::MAX` = no limit.
    pub lines: usize,
    /// Bytes at most.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { lines: MAX_LINES, bytes: MAX_BYTES }
    }
}

/// Which limit cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutBy {
    /// The limit of lines.
    Lines,
    /// The limit of bytes.
    Bytes,
}

/// A cut text and the figures about it (spec 50 §1.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// What is left; unchanged, with its final LF, when nothing was cut.
    pub content: String,
    /// What cut, `None` when nothing did.
    pub cut_by: Option<CutBy>,
    /// Lines of the whole text; a final LF ends a line and starts none.
    pub total_lines: usize,
    /// Bytes of the whole text.
    pub total_bytes: usize,
    /// Lines of `content`.
    pub output_lines: usize,
    /// Bytes of `content`.
    pub output_bytes: usize,
    /// The last line alone was above the limit and only its end is shown (tail only).
    pub last_line_partial: bool,
    /// The first line alone is above the limit, so nothing is shown (head only).
    pub first_line_exceeds_limit: bool,
    /// The limits used.
    pub limits: Limits,
}

impl Truncation {
    /// Whether anything was cut.
    #[must_use]
    pub const fn truncated(&self) -> bool {
        self.cut_by.is_some()
    }

    /// The object that tool details carry.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let max_lines = if self.limits.lines == usize::MAX { UNLIMITED } else { self.limits.lines as u64 };
        json!({
            "content": self.content,
            "truncated": self.truncated(),
            "truncatedBy": self.cut_by.map(|by| match by {
                CutBy::Lines => "lines",
                CutBy::Bytes => "bytes",
            }),
            "totalLines": self.total_lines,
            "totalBytes": self.total_bytes,
            "outputLines": self.output_lines,
            "outputBytes": self.output_bytes,
            "lastLinePartial": self.last_line_partial,
            "firstLineExceedsLimit": self.first_line_exceeds_limit,
            "maxLines": max_lines,
            "maxBytes": self.limits.bytes,
        })
    }
}

/// Lines of a text: pieces between LFs, without an empty last one.
#[must_use]
pub fn count_lines(text: &str) -> usize {
    let breaks = memchr_iter(b'\n', text.as_bytes()).count();
    breaks + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// Keeps whole lines from the start.
#[must_use]
pub fn truncate_head(text: &str, limits: Limits) -> Truncation {
    cut(text, limits, |lines| {
        let bytes = lines.as_bytes();
        let first = memchr(b'\n', bytes).unwrap_or(bytes.len());
        if first > limits.bytes {
            return Kept { by: CutBy::Bytes, first_too_long: true, ..Kept::nothing() };
        }
        let (mut end, mut count, mut by) = (0, 0, CutBy::Lines);
        let mut start = 0;
        while count < limits.lines && start <= bytes.len() {
            let rest = bytes.get(start..).unwrap_or_default();
            let line_end = start + memchr(b'\n', rest).unwrap_or(rest.len());
            if line_end > limits.bytes {
                by = CutBy::Bytes;
                break;
            }
            end = line_end;
            start = line_end + 1;
            count += 1;
        }
        Kept { content: lines.get(..end).unwrap_or_default(), lines: count, by, ..Kept::nothing() }
    })
}

/// Keeps whole lines from the end; of a last line that alone is too long, its end.
#[must_use]
pub fn truncate_tail(text: &str, limits: Limits) -> Truncation {
    cut(text, limits, |lines| {
        let bytes = lines.as_bytes();
        let (mut start, mut count, mut by) = (bytes.len(), 0, CutBy::Lines);
        let mut end = Some(bytes.len());
        while let Some(line_end) = end.filter(|_| count < limits.lines) {
            let before = bytes.get(..line_end).unwrap_or_default();
            let line_start = memrchr(b'\n', before).map_or(0, |at| at + 1);
            if bytes.len() - line_start > limits.bytes {
                by = CutBy::Bytes;
                if count == 0 {
                    let from = lines.ceil_char_boundary(bytes.len().saturating_sub(limits.bytes));
                    let content = lines.get(from..).unwrap_or_default();
                    return Kept { content, lines: 1, by, partial: true, ..Kept::nothing() };
                }
                break;
            }
            start = line_start;
            end = line_start.checked_sub(1);
            count += 1;
        }
        Kept { content: lines.get(start..).unwrap_or_default(), lines: count, by, ..Kept::nothing() }
    })
}

/// What a cut keeps.
struct Kept<'a> {
    content: &'a str,
    lines: usize,
    by: CutBy,
    partial: bool,
    first_too_long: bool,
}

impl Kept<'_> {
    const fn nothing() -> Self {
        Self { content: "", lines: 0, by: CutBy::Lines, partial: false, first_too_long: false }
    }
}

/// Shared frame: nothing happens within the limits; else `keep` chooses from the text without its final LF.
fn cut<'a>(text: &'a str, limits: Limits, keep: impl FnOnce(&'a str) -> Kept<'a>) -> Truncation {
    let total_lines = count_lines(text);
    let fits = total_lines <= limits.lines && text.len() <= limits.bytes;
    let kept = if fits {
        Kept { content: text, lines: total_lines, ..Kept::nothing() }
    } else {
        keep(text.strip_suffix('\n').unwrap_or(text))
    };
    Truncation {
        content: kept.content.into(),
        cut_by: (!fits).then_some(kept.by),
        total_lines,
        total_bytes: text.len(),
        output_lines: kept.lines,
        output_bytes: kept.content.len(),
        last_line_partial: kept.partial,
        first_line_exceeds_limit: kept.first_too_long,
        limits,
    }
}

/// The start of a line of at most `units` UTF-16 units, and whether something was cut. The caller adds a marker.
#[must_use]
pub fn truncate_line(line: &str, units: usize) -> (&str, bool) {
    let kept = utf16::head(line, units);
    (kept, kept.len() < line.len())
}

/// A size for people: `512B`, `1.5KB`, `100.0MB` (base 1024, one decimal).
#[must_use]
pub fn format_size(bytes: u64) -> String {
    const KB: u64 = 1 << 10;
    const MB: u64 = 1 << 20;
    let (unit, name) = match bytes {
        0..KB => return format!("{bytes}B"),
        KB..MB => (KB, "KB"),
        _ => (MB, "MB"),
    };
    // Half up, as JavaScript rounds.
    let tenths = (u128::from(bytes) * 20 + u128::from(unit)) / u128::from(2 * unit);
    format!("{}.{}{name}", tenths / 10, tenths % 10)
}

/// A long text abridged for a message: its start and its end around a note of how much is left out. The result may
/// exceed `bytes` by the length of the note.
#[must_use]
pub fn excerpt(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        return Cow::Borrowed(text);
    }
    let head_end = text.floor_char_boundary(bytes - bytes / 4);
    let tail_start = text.ceil_char_boundary(text.len() - bytes / 4);
    let head = text.get(..head_end).unwrap_or_default();
    let tail = text.get(tail_start..).unwrap_or_default();
    Cow::Owned(format!("{head} [… {} left out …] {tail}", format_size((tail_start - head_end) as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_round_half_up() {
        assert_eq!(format_size(1280), "1.3KB");
        assert_eq!(format_size(u64::MAX), "17592186044416.0MB");
    }

    #[test]
    fn no_lines_allowed() {
        let limits = Limits { lines: 0, bytes: 10 };
        for cut in [truncate_head("abc", limits), truncate_tail("abc\n", limits)] {
            assert_eq!((cut.content.as_str(), cut.cut_by, cut.output_lines), ("", Some(CutBy::Lines), 0));
        }
        assert_eq!(
            truncate_head("", Limits { lines: usize::MAX, bytes: 0 }).to_value()["maxLines"],
            UNLIMITED
        );
    }

    #[test]
    fn excerpts_keep_both_ends() {
        assert_eq!(excerpt("short", 5), "short");
        assert_eq!(excerpt("aaaabbbbcccc", 4), "aaa [… 8B left out …] c");
        assert_eq!(excerpt("ééééé", 4), "é [… 8B left out …] ");
    }
}
