//! Where the edits of one call apply: all matched against the original, each unique, none overlapping; nothing
//! happens unless all of them do (spec 50 §4.2).

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use memchr::{memchr_iter, memmem};

use super::fuzzy;

/// One wanted replacement. Line ends may be of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit<'a> {
    /// Text to find.
    pub old: Cow<'a, str>,
    /// Text to put there.
    pub new: Cow<'a, str>,
}

/// Bytes `start..end` of the text become `text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement<'a> {
    /// First byte.
    pub start: usize,
    /// Byte after the last one.
    pub end: usize,
    /// What takes their place; line ends are LF.
    pub text: Cow<'a, str>,
}

/// Why edits do not apply. Indices are positions in the list of edits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditError {
    /// No edits were given.
    NoEdits,
    /// `oldText` is empty.
    EmptyOld(usize),
    /// `oldText` is not in the file.
    NotFound(usize),
    /// `oldText` is in the file more than once.
    NotUnique(usize, usize),
    /// Two edits touch the same text; the one that comes first in the file is named first.
    Overlap(usize, usize),
    /// The result is the text that was there.
    NoChange,
}

impl EditError {
    /// What to tell the model; `count` is the number of edits.
    #[must_use]
    pub fn message(&self, path: &str, count: usize) -> String {
        let name = |index: &usize| match count {
            1 => "oldText".into(),
            _ => format!("edits[{index}].oldText"),
        };
        match self {
            Self::NoEdits => {
                format!("edits needs at least one {{oldText, newText}} pair; {path} was not changed.")
            }
            Self::EmptyOld(index) => format!("{} is empty; {path} was not changed.", name(index)),
            Self::NotFound(index) => format!(
                "{} was not found in {path}, which was not changed. It must be exactly what the file contains, \
                 including blanks, indentation and line breaks.",
                name(index)
            ),
            Self::NotUnique(index, times) => format!(
                "{} occurs {times} times in {path}, which was not changed. It must be unique: add lines around it.",
                name(index)
            ),
            Self::Overlap(first, second) => format!(
                "edits[{first}] and edits[{second}] overlap in {path}, which was not changed. Merge them into one edit."
            ),
            Self::NoChange if count == 1 => {
                format!("The edit changes nothing: with newText, {path} would be what it is now.")
            }
            Self::NoChange => format!("The edits change nothing: together they leave {path} as it is now."),
        }
    }
}

/// A text in which edits are searched. `\n` is its only line end.
#[derive(Clone, Copy, Debug)]
pub struct Base<'a> {
    bytes: &'a [u8],
    /// The same as text; `None` when it is not UTF-8, then only exact matches count (decision D33).
    text: Option<&'a str>,
}

impl<'a> Base<'a> {
    /// Looks at the bytes of a file.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, text: core::str::from_utf8(bytes).ok() }
    }

    /// Finds the replacements for all edits, in order of position.
    ///
    /// # Errors
    /// The first reason why one of the edits, or all together, do not apply.
    pub fn plan<'e>(&self, edits: &'e [Edit<'_>]) -> Result<Vec<Replacement<'e>>, EditError> {
        if edits.is_empty() {
            return Err(EditError::NoEdits);
        }
        if let Some(index) = edits.iter().position(|edit| edit.old.is_empty()) {
            return Err(EditError::EmptyOld(index));
        }
        let exact: Vec<Option<usize>> = edits.iter().map(|edit| find(self.bytes, &edit.old)).collect();
        let replacements = match self.text {
            Some(text) if exact.contains(&None) => plan_folded(text, edits)?,
            _ => self.plan_exact(edits, &exact)?,
        };
        if self.unchanged(&replacements) {
            return Err(EditError::NoChange);
        }
        Ok(replacements)
    }

    fn plan_exact<'e>(
        &self,
        edits: &'e [Edit<'_>],
        found: &[Option<usize>],
    ) -> Result<Vec<Replacement<'e>>, EditError> {
        let mut folded = None;
        let mut matches = Vec::with_capacity(edits.len());
        for (index, (edit, start)) in edits.iter().zip(found).enumerate() {
            let Some(start) = *start else { return Err(EditError::NotFound(index)) };
            match self.count(&edit.old, &mut folded) {
                0 | 1 => matches.push(Match { index, start, end: start + edit.old.len() }),
                times => return Err(EditError::NotUnique(index, times)),
            }
        }
        sort_disjoint(&mut matches)?;
        let replace = |m: &Match| {
            let text = edits.get(m.index).map_or("", |edit| &edit.new);
            Replacement { start: m.start, end: m.end, text: Cow::Borrowed(text) }
        };
        Ok(matches.iter().map(replace).collect())
    }

    /// How often a text occurs, also in spellings that only folding makes equal: those are as easily meant.
    fn count(&self, old: &str, folded: &mut Option<Cow<'a, str>>) -> usize {
        let wanted = fuzzy::fold(old);
        match self.text {
            Some(text) if wanted.is_empty() => count(text.as_bytes(), old),
            Some(text) if !wanted.contains('\n') => fuzzy::count_in_lines(text, &wanted),
            Some(text) => count(folded.get_or_insert_with(|| fuzzy::fold(text)).as_bytes(), &wanted),
            None => count(self.bytes, old),
        }
    }

    /// Whether the replacements together give the text back.
    fn unchanged(&self, replacements: &[Replacement<'_>]) -> bool {
        let (Some(first), Some(last)) = (replacements.first(), replacements.last()) else { return true };
        let removed: usize = replacements.iter().map(|r| r.end - r.start).sum();
        let added: usize = replacements.iter().map(|r| r.text.len()).sum();
        if removed != added {
            return false;
        }
        let before = self.bytes.get(first.start..last.end).unwrap_or_default();
        splice(self.bytes, first.start, last.end, replacements) == before
    }
}

/// `bytes[from..to]` with the replacements that lie in it applied.
#[must_use]
pub fn splice(bytes: &[u8], from: usize, to: usize, replacements: &[Replacement<'_>]) -> Vec<u8> {
    let added: usize = replacements.iter().map(|r| r.text.len()).sum();
    let mut out = Vec::with_capacity(to.saturating_sub(from) + added);
    let mut at = from;
    for replacement in replacements {
        out.extend_from_slice(bytes.get(at..replacement.start).unwrap_or_default());
        out.extend_from_slice(replacement.text.as_bytes());
        at = replacement.end;
    }
    out.extend_from_slice(bytes.get(at..to).unwrap_or_default());
    out
}

struct Match {
    index: usize,
    start: usize,
    end: usize,
}

fn find(bytes: &[u8], wanted: &str) -> Option<usize> {
    memmem::find(bytes, wanted.as_bytes())
}

fn count(bytes: &[u8], wanted: &str) -> usize {
    memmem::find_iter(bytes, wanted.as_bytes()).count()
}

/// Sorts by position; touching is allowed, overlapping is not.
fn sort_disjoint(matches: &mut [Match]) -> Result<(), EditError> {
    crate::order::sort(matches, |a, b| a.start.cmp(&b.start));
    match matches.windows(2).find(|pair| matches!(pair, [a, b] if a.end > b.start)) {
        Some([a, b]) => Err(EditError::Overlap(a.index, b.index)),
        _ => Ok(()),
    }
}

/// Matches in folded space. Each replacement is widened to the lines it touches, and those are taken from the folded
/// text; every other line keeps its bytes.
fn plan_folded<'e>(text: &str, edits: &'e [Edit<'_>]) -> Result<Vec<Replacement<'e>>, EditError> {
    let folded = fuzzy::fold(text);
    let mut matches = Vec::with_capacity(edits.len());
    for (index, edit) in edits.iter().enumerate() {
        let wanted = fuzzy::fold(&edit.old);
        let raw = find(folded.as_bytes(), &edit.old).map(|at| (at, edit.old.len()));
        let fuzzy = || find(folded.as_bytes(), &wanted).map(|at| (at, wanted.len()));
        let found = raw.or_else(|| if wanted.is_empty() { None } else { fuzzy() });
        let Some((start, len)) = found else { return Err(EditError::NotFound(index)) };
        let times = if wanted.is_empty() {
            count(folded.as_bytes(), &edit.old)
        } else {
            count(folded.as_bytes(), &wanted)
        };
        if times > 1 {
            return Err(EditError::NotUnique(index, times));
        }
        matches.push(Match { index, start, end: start + len });
    }
    sort_disjoint(&mut matches)?;
    Ok(widen(text, &folded, &matches, edits))
}

/// A cursor over the lines of a text, moving forward only.
struct Lines<'a> {
    bytes: &'a [u8],
    /// Start of the current line and its number from 0.
    start: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    const fn new(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), start: 0, line: 0 }
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// Moves to the line that holds byte `at`.
    fn seek_byte(&mut self, at: usize) {
        let before = self.bytes.get(self.start..at).unwrap_or_default();
        let start = self.start;
        for lf in memchr_iter(b'\n', before) {
            (self.start, self.line) = (start + lf + 1, self.line + 1);
        }
    }

    /// Moves to line `line`.
    fn seek_line(&mut self, line: usize) {
        let Some(steps) = line.checked_sub(self.line).filter(|steps| *steps > 0) else { return };
        if let Some(lf) = memchr_iter(b'\n', self.rest()).nth(steps - 1) {
            (self.start, self.line) = (self.start + lf + 1, line);
        }
    }

    /// End of the current line, before its LF.
    fn end(&self) -> usize {
        memchr::memchr(b'\n', self.rest()).map_or(self.bytes.len(), |lf| self.start + lf)
    }
}

/// Groups matches that share lines and turns each group into one replacement of whole lines (without the last LF,
/// which stays as it is) of the original.
fn widen<'e>(text: &str, folded: &str, matches: &[Match], edits: &'e [Edit<'_>]) -> Vec<Replacement<'e>> {
    let (mut original, mut cursor) = (Lines::new(text), Lines::new(folded));
    let mut out: Vec<Replacement<'e>> = Vec::new();
    let mut rest = matches;
    while let Some(first) = rest.first() {
        cursor.seek_byte(first.start);
        let (from, first_line) = (cursor.start, cursor.line);
        // A match that ends in an LF touches the line of that LF, not the next one.
        let mut taken = 0;
        for m in rest {
            if taken > 0 && m.start > cursor.end() {
                break;
            }
            cursor.seek_byte(m.end.saturating_sub(1).max(cursor.start));
            taken += 1;
        }
        let (group, later) = rest.split_at(taken);
        rest = later;
        let swallowed = group.last().is_some_and(|m| m.end > cursor.end());
        let to = cursor.end();
        let inner: Vec<Replacement<'_>> = group
            .iter()
            .map(|m| {
                let new = edits.get(m.index).map_or("", |edit| &edit.new);
                Replacement { start: m.start, end: m.end, text: Cow::Borrowed(new) }
            })
            .collect();
        let end = if swallowed { to + 1 } else { to };
        let lines = splice(folded.as_bytes(), from, end, &inner);
        original.seek_line(first_line);
        let start = original.start;
        original.seek_line(cursor.line);
        out.push(Replacement {
            start,
            end: original.end() + usize::from(swallowed),
            text: Cow::Owned(String::from_utf8_lossy(&lines).into_owned()),
        });
    }
    out
}
