//! Reading a session file: total, tolerant, and no more work than the context needs (spec 60 §1.7).
//!
//! Two phases. **Heads**: the file goes through [`Reader::feed`] in chunks of any size; of each line only type, id,
//! parent and time are kept, with its place in the file. **Bodies**: [`Loading::next_range`] names the places that
//! must be read once more, which are the entries of the active branch after its last compaction; each goes back in
//! with [`Loading::give`]. A long history that was summarised is therefore never held, neither as bytes nor as
//! messages. A file of at most [`KEEP_BYTES`] stays in memory between the phases and asks for no range.
//!
//! The quick head scan does not prove that a line is whole. If a line that is needed turns out to be broken, or the
//! branch ends at a parent that is missing, the file is read once more strictly: then every line is checked to its
//! end, records glued to one line are split, and what is broken costs only itself.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use thiserror::Error;

use super::context::{Settings, select};
use super::decode::{parse_body, parse_line, parse_message_at};
use super::entry::{EntryBody, EntryKind, Header};
use super::head::{Head, Line, full, quick, salvage};
use super::store::Session;
use super::tree::{NewNode, Place, Slot, Tree};
use crate::text::utf8::lossy;
use crate::wire::jsonl::{JsonLine, JsonLines};

/// Files up to this size are kept between the two phases.
pub const KEEP_BYTES: usize = 1 << 20;

/// A line longer than this is skipped.
pub const MAX_LINE_BYTES: usize = 1 << 30;

/// Largest range asked for at once, unless a single line is longer.
const RANGE_BYTES: u64 = 256 << 10;

/// Bytes between two needed lines that are read along rather than asked for separately.
const GAP_BYTES: u64 = 16 << 10;

/// Most notes kept; further ones are only counted.
const MAX_NOTES: usize = 100;

/// Why a file cannot be opened as a session. It is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OpenError {
    /// The file has no bytes: it becomes a new session ([`Session::in_empty_file`]).
    #[error("the file is empty")]
    Empty,
    /// The first record is no session header.
    #[error("the file does not start with a session header")]
    NotASession,
    /// Version 1 or 2: [`super::migrate::rewrite`] gives the new content.
    #[error("the file has an older version")]
    Old,
}

/// What was wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Not JSON; skipped.
    NotJson,
    /// JSON without what makes an entry; skipped.
    NoEntry,
    /// Longer than [`MAX_LINE_BYTES`]; skipped.
    TooLong,
    /// Several records or a fragment and a record on one line; the whole ones were read.
    Glued,
}

/// A remark about a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Line number from 1.
    pub line: u64,
    /// What was wrong.
    pub trouble: Trouble,
}

/// Remarks about a file.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// The first ones.
    pub list: Vec<Note>,
    /// How many there were.
    pub count: u64,
}

impl Notes {
    fn add(&mut self, line: u64, trouble: Trouble) {
        self.count += 1;
        if self.list.len() < MAX_NOTES {
            self.list.push(Note { line, trouble });
        }
    }
}

/// What the lines gave so far.
#[derive(Debug, Default)]
struct Heads {
    strict: bool,
    header: Option<Header>,
    refused: bool,
    tree: Tree,
    line: u64,
    notes: Notes,
    len: u64,
    torn: bool,
}

/// Which entries are decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Want {
    /// What the context of the last entry needs.
    #[default]
    Context,
    /// All of them, on every branch.
    Everything,
    /// Only what was small enough to be read at once. Every line is checked to its end, so each place of the tree
    /// is a whole record, to be read when it is its turn ([`parse_body`]).
    Places,
}

/// Phase one.
#[derive(Debug)]
pub struct Reader {
    want: Want,
    lines: JsonLines,
    heads: Heads,
    kept: Option<Vec<u8>>,
}

impl Default for Reader {
    fn default() -> Self {
        Self::new(Want::Context)
    }
}

impl Reader {
    /// A reader at the start of a file.
    #[must_use]
    pub fn new(want: Want) -> Self {
        let heads = Heads { strict: want == Want::Places, ..Heads::default() };
        // Nothing is read a second time where only places are wanted.
        let kept = (want != Want::Places).then(Vec::new);
        Self { want, lines: lines(), heads, kept }
    }

    /// Takes the next bytes of the file.
    pub fn feed(&mut self, bytes: &[u8]) {
        let room = self.kept.as_ref().map_or(0, |kept| KEEP_BYTES.saturating_sub(kept.len()));
        match &mut self.kept {
            Some(kept) if bytes.len() <= room => kept.extend_from_slice(bytes),
            _ => self.kept = None,
        }
        if !self.heads.refused {
            let heads = &mut self.heads;
            self.lines.feed(bytes, &mut |line| heads.line(&line));
        }
    }

    /// The file cannot become a session any more; the rest need not be read.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        self.heads.refused
    }

    /// End of the file.
    ///
    /// # Errors
    /// Why this is no session that can be opened.
    pub fn finish(mut self) -> Result<Loading, OpenError> {
        let heads = &mut self.heads;
        self.lines.finish(&mut |line| heads.line(&line));
        if self.heads.len == 0 && !self.heads.refused {
            return Err(OpenError::Empty);
        }
        match &self.heads.header {
            None => Err(OpenError::NotASession),
            Some(header) if header.is_old() => Err(OpenError::Old),
            Some(_) => {
                let Self { want, heads, .. } = self;
                let mut loading = Loading { want, heads, again: None, queue: Vec::new(), asked: None };
                if let Some(kept) = self.kept {
                    loading.serve(&kept);
                }
                Ok(loading)
            }
        }
    }
}

const fn lines() -> JsonLines {
    JsonLines::with_limit(MAX_LINE_BYTES)
}

impl Heads {
    fn line(&mut self, line: &JsonLine<'_>) {
        self.line += 1;
        self.len = line.offset + line.wire_len;
        self.torn = !line.terminated;
        if self.refused {
            return;
        }
        if line.too_long {
            self.notes.add(self.line, Trouble::TooLong);
            return;
        }
        if self.header.is_some()
            && !self.strict
            && let Some(head) = quick(line.raw)
        {
            self.entry(head, line.offset, line.raw.len(), None);
            return;
        }
        self.careful(line.raw, line.offset);
    }

    fn careful(&mut self, raw: &[u8], offset: u64) {
        let lossy = lossy(raw);
        let text: &str = &lossy;
        if text.trim_matches(is_blank).is_empty() {
            return;
        }
        match full(text) {
            Line::Header if self.header.is_none() => {
                self.header = parse_line(text).and_then(Header::from_value);
                self.refused = self.header.is_none();
            }
            // Later headers mean nothing (spec 60 §1.7 rule 5).
            Line::Header | Line::NoEntry { falsy: true } => {}
            Line::Entry(_) | Line::NoEntry { .. } if self.header.is_none() => self.refused = true,
            Line::Entry(head) => self.entry(head, offset, raw.len(), Some(text)),
            Line::NoEntry { .. } => self.notes.add(self.line, Trouble::NoEntry),
            Line::Broken => self.broken(text, matches!(lossy, Cow::Owned(_)), offset),
        }
    }

    /// `replaced`: invalid bytes were replaced, so offsets in the text are none in the file.
    fn broken(&mut self, text: &str, replaced: bool, offset: u64) {
        let found = if self.header.is_some() { salvage(text) } else { Vec::new() };
        self.notes.add(self.line, if found.is_empty() { Trouble::NotJson } else { Trouble::Glued });
        for (at, record, head) in found {
            self.entry(head, offset + at as u64, record.len(), Some(record));
            if let Some(slot) = self.tree.leaf().filter(|_| replaced) {
                self.tree
                    .set_body(slot, parse_body(record).unwrap_or_else(|| EntryBody::Unknown(record.into())));
            }
        }
    }

    /// `text` is the line when it was read anyway; small kinds are decoded at once.
    fn entry(&mut self, mut head: Head<'_>, offset: u64, len: usize, text: Option<&str>) {
        let body = match text {
            Some(text) if !is_lazy(head.kind) => parse_body(text),
            _ => None,
        };
        let Ok(len) = u32::try_from(len) else { return };
        if let Some(body) = &body {
            head.kind = body.kind();
        }
        let added = self.tree.push(NewNode {
            id: &head.id,
            parent: head.parent.as_deref(),
            time: head.time,
            kind: head.kind,
            at: Place { offset, len, message_at: head.message_at },
            body,
        });
        if added.is_none() {
            self.notes.add(self.line, Trouble::TooLong);
        }
    }
}

/// White space as JavaScript trims it.
const fn is_blank(c: char) -> bool {
    c.is_whitespace() && c != '\u{85}' || c == '\u{feff}'
}

/// Kinds that can be large and that most readers never need.
const fn is_lazy(kind: EntryKind) -> bool {
    kind.is_message()
        || matches!(
            kind,
            EntryKind::CustomMessage | EntryKind::Custom | EntryKind::Unknown | EntryKind::Usage
        )
}

/// Bytes to read from the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRange {
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

/// Phase two.
#[derive(Debug)]
pub struct Loading {
    want: Want,
    heads: Heads,
    /// The strict reading in progress.
    again: Option<Again>,
    /// Entries to decode, last first.
    queue: Vec<Slot>,
    asked: Option<Asked>,
}

#[derive(Debug)]
struct Again {
    lines: JsonLines,
    heads: Heads,
    at: u64,
}

#[derive(Debug)]
struct Asked {
    range: FileRange,
    slots: Vec<Slot>,
}

impl Loading {
    /// The next place to read; give its bytes back with [`Loading::give`]. `None` = everything needed is there.
    pub fn next_range(&mut self) -> Option<FileRange> {
        if let Some(asked) = &self.asked {
            return Some(asked.range);
        }
        let asked = match self.again_range() {
            Some(range) => Asked { range, slots: Vec::new() },
            None => self.next_lines()?,
        };
        let range = asked.range;
        self.asked = Some(asked);
        Some(range)
    }

    /// Takes the bytes of the range that was named last. Fewer bytes mean that the file became shorter.
    pub fn give(&mut self, bytes: &[u8]) {
        let Some(asked) = self.asked.take() else { return };
        if self.again.is_some() {
            self.give_again(bytes, asked.range);
            return;
        }
        for slot in asked.slots {
            let Some(place) = self.heads.tree.node(slot).map(|node| node.place()) else { continue };
            let start =
                usize::try_from(place.offset.saturating_sub(asked.range.offset)).unwrap_or(usize::MAX);
            let line = bytes.get(start..).and_then(|rest| rest.get(..place.len as usize)).unwrap_or_default();
            match decode(&lossy(line), place) {
                Some(body) => self.heads.tree.set_body(slot, body),
                None if self.heads.strict => {
                    self.heads.tree.set_body(slot, EntryBody::Unknown(lossy(line).as_ref().into()));
                }
                None => return self.start_again(),
            }
        }
    }

    /// Remarks about the file.
    #[must_use]
    pub const fn notes(&self) -> &Notes {
        &self.heads.notes
    }

    /// Whether the file ends inside a line.
    #[must_use]
    pub const fn is_torn(&self) -> bool {
        self.heads.torn
    }

    /// All entries; bodies only as far as they were needed.
    #[must_use]
    pub const fn tree(&self) -> &Tree {
        &self.heads.tree
    }

    /// The session. `path` is its file; `cwd` counts when the header has none.
    #[must_use]
    pub fn finish(self, path: String, cwd: &str) -> Session {
        let Heads { header, tree, len, torn, .. } = self.heads;
        let header =
            header.unwrap_or_else(|| Header::new(String::new(), crate::now::Wall(0), cwd.into(), None));
        let cwd = header.cwd.clone().unwrap_or_else(|| cwd.into());
        Session::from_parts(header, cwd, tree, path, len, torn)
    }

    fn serve(&mut self, file: &[u8]) {
        while let Some(range) = self.next_range() {
            let start = usize::try_from(range.offset).unwrap_or(usize::MAX);
            let len = usize::try_from(range.len).unwrap_or(usize::MAX);
            self.give(file.get(start..).and_then(|rest| rest.get(..len)).unwrap_or_default());
        }
    }

    /// Entries that the context needs and that are not decoded, as one range of the file.
    fn next_lines(&mut self) -> Option<Asked> {
        if self.queue.is_empty() {
            self.plan();
            if let Some(range) = self.again_range() {
                return Some(Asked { range, slots: Vec::new() });
            }
        }
        let tree = &self.heads.tree;
        let place = |slot: Slot| tree.node(slot).map(|node| node.place()).unwrap_or_default();
        let first = self.queue.pop()?;
        let start = place(first).offset;
        let mut end = start + u64::from(place(first).len);
        let mut slots = alloc::vec![first];
        while let Some(next) = self.queue.last().copied() {
            let next_end = place(next).offset + u64::from(place(next).len);
            if place(next).offset > end + GAP_BYTES || next_end - start > RANGE_BYTES {
                break;
            }
            end = next_end;
            slots.push(next);
            self.queue.pop();
        }
        Some(Asked { range: FileRange { offset: start, len: end - start }, slots })
    }

    fn plan(&mut self) {
        let tree = &self.heads.tree;
        let path = tree.path(tree.leaf());
        if tree.is_cut(&path) && !self.heads.strict {
            return self.start_again();
        }
        let is_unread = |slot: &Slot| tree.node(*slot).is_some_and(|node| node.body().is_none());
        let is_needed = |slot: &Slot| tree.node(*slot).is_some_and(|node| is_needed(node.kind()));
        let mut needed: Vec<Slot> = match self.want {
            Want::Places => Vec::new(),
            Want::Everything => tree.slots().filter(is_unread).collect(),
            Want::Context => {
                let selection = select(tree, &path).into_iter();
                let last_model = Settings::of(tree, &path).unread;
                selection.filter(is_needed).chain(last_model).filter(is_unread).collect()
            }
        };
        crate::order::sort(&mut needed, |a, b| b.cmp(a));
        needed.dedup();
        self.queue = needed;
    }

    fn start_again(&mut self) {
        self.queue.clear();
        let heads = Heads { strict: true, ..Heads::default() };
        self.again = Some(Again { lines: lines(), heads, at: 0 });
    }

    fn again_range(&self) -> Option<FileRange> {
        let again = self.again.as_ref()?;
        Some(FileRange { offset: again.at, len: RANGE_BYTES.min(self.heads.len.saturating_sub(again.at)) })
    }

    fn give_again(&mut self, bytes: &[u8], range: FileRange) {
        let Some(again) = &mut self.again else { return };
        let heads = &mut again.heads;
        again.lines.feed(bytes, &mut |line| heads.line(&line));
        again.at += bytes.len() as u64;
        let short = (bytes.len() as u64) < range.len;
        if !short && again.at < self.heads.len {
            return;
        }
        if let Some(Again { mut lines, mut heads, .. }) = self.again.take() {
            lines.finish(&mut |line| heads.line(&line));
            heads.header = heads.header.or_else(|| self.heads.header.take());
            self.heads = heads;
        }
    }
}

/// Kinds whose bodies a context shows. Summaries are decoded at once, and may be left behind later.
pub(super) const fn is_needed(kind: EntryKind) -> bool {
    let is_summary = matches!(kind, EntryKind::Compaction | EntryKind::BranchSummary);
    kind.is_message() || is_summary || matches!(kind, EntryKind::CustomMessage)
}

fn decode(line: &str, place: Place) -> Option<EntryBody> {
    let at = place.message_at as usize;
    let quick = if at > 0 { parse_message_at(line, at) } else { None };
    quick.or_else(|| parse_body(line))
}

/// Opens a whole file at once. `cwd` counts when the header has none.
///
/// # Errors
/// Why this is no session that can be opened.
pub fn open(bytes: &[u8], path: String, cwd: &str, want: Want) -> Result<(Session, Notes), OpenError> {
    let mut reader = Reader::new(want);
    reader.feed(bytes);
    let mut loading = reader.finish()?;
    loading.serve(bytes);
    let notes = core::mem::take(&mut loading.heads.notes);
    Ok((loading.finish(path, cwd), notes))
}

/// Takes the lines of another writer into a tree: entries with new ids, the leaf stays. Returns their number.
pub(super) fn absorb(tree: &mut Tree, bytes: &[u8]) -> usize {
    let mut count = 0;
    for line in bytes.split(|byte| *byte == b'\n') {
        let text = lossy(line);
        let Line::Entry(head) = full(&text) else { continue };
        if tree.find(&head.id).is_some() {
            continue;
        }
        let body = parse_body(&text);
        let kind = body.as_ref().map_or(head.kind, EntryBody::kind);
        let (parent, at) = (head.parent.as_deref(), Place::default());
        let new = NewNode { id: &head.id, parent, time: head.time, kind, at, body };
        count += usize::from(tree.add(new).is_some());
    }
    count
}
