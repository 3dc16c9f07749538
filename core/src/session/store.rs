//! A session: its tree, the context of its leaf, and what must be written (spec 60 §1.6, architecture §9).
//!
//! Nothing is written until a user message or a reply exists; then header and waiting entries go out in one
//! exclusive create, and from there every entry is one append of one line. The caller performs the
//! [`AppendOp`]s of a session in the order in which they were handed out and reports each with
//! [`Session::appended`] or [`Session::append_failed`].
//!
//! Lines of a failed append are kept and go out again together with the next entry, so that no later entry of the
//! file points to a missing parent and nothing is lost while the disk is full.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::context::{Context, Settings, model_of, select};
use super::entry::{BranchSummaryEntry, ContextEdit, EntryBody, EntryKind, EntryLine, Header, Label};
use super::reader::{FileRange, is_needed};
use super::tree::{NewNode, Node, Place, Slot, Tree};
use crate::entropy::Entropy;
use crate::fault::Fault;
use crate::ids::EntryId;
use crate::json::Writer;
use crate::message::{Block, Content};
use crate::now::Wall;
use crate::op::AppendOp;

/// What an append brought.
#[derive(Clone, Debug)]
pub struct AppendPlan {
    /// Id of the new entry.
    pub id: EntryId,
    /// Place of the new entry.
    pub slot: Slot,
    /// What to write now; `None` while the session has no file yet, or never will have one.
    pub op: Option<AppendOp>,
}

/// The file of a session, as far as this program knows it.
#[derive(Clone, Debug)]
struct SessionFile {
    path: String,
    /// Size with everything that was handed out for writing; `None` = the file does not exist yet.
    len: Option<u64>,
    /// The file ends in the middle of a line: the next write starts with a line feed.
    torn: bool,
    /// Header and lines that are not in the file yet.
    waiting: Vec<u8>,
    /// The waiting lines may go out.
    started: bool,
    /// Entries among the waiting lines.
    waiting_entries: Vec<Line>,
    /// Writes that were handed out and not reported back, oldest first.
    in_flight: VecDeque<InFlight>,
    /// Another program writes to it as well: where a line stands is not certain.
    shared: bool,
}

/// A write on its way.
#[derive(Clone, Debug)]
struct InFlight {
    /// Its size.
    own: u64,
    /// Size of the file after it, if nobody else writes.
    after: u64,
    /// Entries in it.
    entries: Vec<Line>,
}

/// The line of an entry within what is written.
#[derive(Clone, Copy, Debug)]
struct Line {
    slot: Slot,
    start: u64,
    /// Without the line feed.
    len: u32,
}

/// One session.
#[derive(Clone, Debug)]
pub struct Session {
    header: Header,
    cwd: String,
    tree: Tree,
    context: Context,
    file: Option<SessionFile>,
    /// What a compaction leaves behind need not stay in memory.
    is_frugal: bool,
    /// There was a compaction since.
    leaves_behind: bool,
}

impl Session {
    /// A new session. `path` is the file it will be written to; `None` keeps it in memory.
    #[must_use]
    pub fn new(header: Header, path: Option<String>) -> Self {
        let file = path.map(|path| {
            let mut waiting = Vec::new();
            push_line(&mut waiting, |w| header.write(w));
            SessionFile { waiting, ..SessionFile::new(path, None) }
        });
        Self {
            cwd: header.cwd.clone().unwrap_or_default(),
            header,
            tree: Tree::default(),
            context: Context::default(),
            file,
            is_frugal: false,
            leaves_behind: false,
        }
    }

    /// The same session; what a compaction leaves behind stays in its file only from now on, as when it is opened with
    /// [`Want::Context`](super::Want::Context). The caller can read the file when that is needed again.
    #[must_use]
    pub fn frugal(self) -> Self {
        Self { is_frugal: true, ..self }
    }

    /// Whether it is [`frugal`](Self::frugal).
    #[must_use]
    pub const fn is_frugal(&self) -> bool {
        self.is_frugal
    }

    /// A new session in an existing, empty file: its header is due at once ([`Session::flush`]).
    #[must_use]
    pub fn in_empty_file(header: Header, path: String) -> Self {
        let mut session = Self::new(header, Some(path));
        if let Some(file) = &mut session.file {
            (file.len, file.started) = (Some(0), true);
        }
        session
    }

    /// The same session as one that no file holds yet: `lines` are all its records, header first, and will be
    /// written to `path` with the first entry that starts a file, or at once when `due` ([`Session::flush`]).
    /// `None` keeps it in memory.
    #[must_use]
    pub fn unstored(self, path: Option<String>, lines: Vec<u8>, due: bool) -> Self {
        let unwritten = |path| SessionFile { waiting: lines, started: due, ..SessionFile::new(path, None) };
        Self { file: path.map(unwritten), ..self }
    }

    /// A session that was read: `len` bytes are in the file, `torn` says that it ends inside a line.
    pub(super) fn from_parts(
        header: Header,
        cwd: String,
        tree: Tree,
        path: String,
        len: u64,
        torn: bool,
    ) -> Self {
        let context = Context::build(&tree, tree.leaf());
        let file = SessionFile { torn, started: true, ..SessionFile::new(path, Some(len)) };
        let (is_frugal, leaves_behind) = (false, false);
        Self { header, cwd, tree, context, file: Some(file), is_frugal, leaves_behind }
    }

    /// The header record.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Session id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.header.id
    }

    /// Working directory of the session.
    #[must_use]
    pub fn cwd(&self) -> &str {
        &self.cwd
    }

    /// The file; `None` for a session in memory. It may not exist yet.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.file.as_ref().map(|file| file.path.as_str())
    }

    /// Whether the file exists, as far as this program knows.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.len.is_some())
    }

    /// Whether it is to be written at once, before anything is appended.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.started && file.len.is_none())
    }

    /// All entries.
    #[must_use]
    pub const fn tree(&self) -> &Tree {
        &self.tree
    }

    /// What the model sees at the leaf.
    #[must_use]
    pub const fn context(&self) -> &Context {
        &self.context
    }

    /// Id of the entry that the next one is appended to; `None` = the next one is a root.
    #[must_use]
    pub fn leaf_id(&self) -> Option<&str> {
        self.tree.leaf().map(|slot| self.tree.id(slot))
    }

    /// Display name.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.tree.name()
    }

    /// Label of an entry.
    #[must_use]
    pub fn label(&self, target_id: &str) -> Option<&str> {
        self.tree.labels().get(target_id).map(|note| note.label.as_str())
    }

    /// What an entry says, if it is in memory.
    #[must_use]
    pub fn body(&self, id: &str) -> Option<&EntryBody> {
        self.tree.node(self.tree.find(id)?)?.body()
    }

    /// Appends an entry below the leaf, which becomes the new leaf.
    ///
    /// # Errors
    /// `session_full` when the file has 4 Gi entries; `not_read` for a compaction that keeps what was left in the
    /// file, as for [`branch`](Self::branch). Nothing is appended then.
    pub fn append(&mut self, body: EntryBody, now: Wall, rng: &mut Entropy) -> Result<AppendPlan, Fault> {
        if let EntryBody::Compaction(compaction) = &body
            && let Some(first) = compaction.first_kept.as_deref()
            && self.keeps_unread(first)
        {
            return Err(not_read());
        }
        let id = EntryId::fresh(rng, |id| self.tree.find(id).is_some());
        let kind = body.kind();
        self.leaves_behind |= kind == EntryKind::Compaction;
        let parent = self.tree.leaf().map(|slot| String::from(self.tree.id(slot)));
        let op = self.file.as_mut().and_then(|file| {
            let line = EntryLine { id: id.as_str(), parent: parent.as_deref(), time: now, body: &body };
            file.write(kind, line, self.tree.nodes().len() as Slot)
        });
        let new = NewNode {
            id: id.as_str(),
            parent: parent.as_deref(),
            time: Some(now),
            kind,
            at: Place::default(),
            body: Some(body),
        };
        let slot = self.tree.push(new).ok_or_else(|| {
            Fault::new("session_full", "This session has too many entries; start a new one.")
        })?;
        if !self.context.extend(&self.tree, slot) {
            self.context = Context::build(&self.tree, Some(slot));
        }
        Ok(AppendPlan { id, slot, op })
    }

    /// What waits to be written although nothing is appended (a header due at once, lines of a failed append).
    pub fn flush(&mut self) -> Option<AppendOp> {
        self.file.as_mut().filter(|file| file.started)?.take()
    }

    /// The oldest write in flight went well; `len` is the size of the file now.
    ///
    /// Returns the place of lines that another writer put before it: they belong to the file, not to this branch
    /// ([`Session::absorb`]).
    pub fn appended(&mut self, len: u64) -> Option<FileRange> {
        let file = self.file.as_mut()?;
        let write = file.in_flight.pop_front()?;
        let foreign = len.saturating_sub(write.after);
        let start = len.saturating_sub(write.own);
        for Line { slot, start: at, len } in write.entries {
            self.tree.set_place(slot, Place { offset: start.saturating_add(at), len, message_at: 0 });
        }
        if foreign == 0 {
            // The lines before these are where they were thought to be.
            let is_whole = file.in_flight.is_empty() && !file.shared;
            if is_whole && self.is_frugal && core::mem::take(&mut self.leaves_behind) {
                self.leave_behind();
            }
            return None;
        }
        file.shared = true;
        file.len = file.len.map(|len| len.saturating_add(foreign));
        file.in_flight.iter_mut().for_each(|later| later.after = later.after.saturating_add(foreign));
        Some(FileRange { offset: write.after.saturating_sub(write.own), len: foreign })
    }

    /// The oldest write in flight failed; its lines wait for the next one.
    pub fn append_failed(&mut self, op: AppendOp) {
        let Some(file) = &mut self.file else { return };
        let entries = file.in_flight.pop_front().map(|write| write.entries).unwrap_or_default();
        let own = op.bytes.len() as u64;
        file.in_flight.iter_mut().for_each(|later| later.after = later.after.saturating_sub(own));
        let mut lines = Arc::unwrap_or_clone(op.bytes);
        if op.create {
            file.len = None;
        } else {
            file.len = file.len.map(|len| len.saturating_sub(own));
            // Part of it may be in the file, if there is one; an empty line does no harm.
            file.torn = file.len.is_some();
        }
        let mut before = file.waiting.len() as u64;
        if lines.first() == Some(&b'\n') {
            lines.remove(0);
            before = before.wrapping_sub(1);
        }
        // What waits already failed before these lines were tried.
        file.waiting.append(&mut lines);
        let moved = entries.into_iter().map(|line| Line { start: line.start.wrapping_add(before), ..line });
        file.waiting_entries.extend(moved);
    }

    /// Forgets what stands in the file and is no part of the context, as if the session had just been opened for it.
    fn leave_behind(&mut self) {
        let path = self.tree.path(self.tree.leaf());
        let mut kept = alloc::vec![false; self.tree.nodes().len()];
        let mut keep = |slot: Slot| {
            if let Some(kept) = kept.get_mut(slot as usize) {
                *kept = true;
            }
        };
        self.context.entries.iter().for_each(|entry| keep(entry.slot));
        // Which model answers is known from the last reply that says so; those behind it say nothing.
        let is_reply = |slot: &Slot| self.tree.node(*slot).map(Node::kind) == Some(EntryKind::Assistant);
        let telling = path.iter().rposition(|slot| tells_model(&self.tree, *slot)).unwrap_or_default();
        path.get(telling..).unwrap_or_default().iter().copied().filter(is_reply).for_each(&mut keep);
        for (slot, kept) in self.tree.slots().zip(kept) {
            let node = self.tree.node(slot).filter(|node| is_needed(node.kind()) && node.place().len > 0);
            if !kept && node.is_some() {
                self.tree.drop_body(slot);
            }
        }
    }

    /// Takes in complete lines that another writer appended. They get a place in the tree; the leaf stays.
    /// Returns how many entries were new.
    pub fn absorb(&mut self, bytes: &[u8]) -> usize {
        super::reader::absorb(&mut self.tree, bytes)
    }

    /// Whether there are lines that could not be written.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.started && !file.waiting.is_empty())
    }

    /// Moves the leaf to an entry, or before the first one.
    ///
    /// # Errors
    /// `unknown_entry`; `not_read` when the entry's branch was left in the file: read the session with
    /// [`Want::Everything`](super::Want) first. The leaf stays where it is.
    pub fn branch(&mut self, target_id: Option<&str>) -> Result<(), Fault> {
        let leaf = match target_id {
            Some(id) => Some(self.tree.find(id).ok_or_else(|| unknown_entry(id))?),
            None => None,
        };
        let path = self.tree.path(leaf);
        let model_is_unread = Settings::of(&self.tree, &path).unread.is_some();
        if model_is_unread || select(&self.tree, &path).into_iter().any(|slot| self.is_unread(slot)) {
            return Err(not_read());
        }
        self.tree.set_leaf(leaf);
        self.context = Context::build(&self.tree, leaf);
        Ok(())
    }

    fn is_unread(&self, slot: Slot) -> bool {
        self.tree.node(slot).is_some_and(|node| node.body().is_none() && is_needed(node.kind()))
    }

    /// Whether something from entry `first` to the leaf was left in the file.
    fn keeps_unread(&self, first: &str) -> bool {
        let path = self.tree.path(self.tree.leaf());
        let start = path.iter().position(|slot| self.tree.id(*slot) == first);
        start.and_then(|at| path.get(at..)).unwrap_or_default().iter().any(|slot| self.is_unread(*slot))
    }

    /// The entry for a summary of the branch that is being left for `target_id` ([`Session::branch`] first, then append).
    #[must_use]
    pub fn summary_of_leaf(&self) -> BranchSummaryEntry {
        let from_id = self.leaf_id().unwrap_or("root").into();
        BranchSummaryEntry { from_id, ..BranchSummaryEntry::default() }
    }

    /// The entry that labels another one; an empty label clears.
    ///
    /// # Errors
    /// `unknown_entry`.
    pub fn label_entry(&self, target_id: &str, label: Option<&str>) -> Result<EntryBody, Fault> {
        self.tree.find(target_id).ok_or_else(|| unknown_entry(target_id))?;
        let label = label.map(str::trim).filter(|label| !label.is_empty()).map(String::from);
        Ok(EntryBody::Label(Box::new(Label { target_id: target_id.into(), label })))
    }

    /// The entry that edits what another one contributes; `None` omits it.
    ///
    /// # Errors
    /// `unknown_entry` when the target does not exist on the active branch, `not_editable` when its kind cannot be
    /// edited (spec 60 §1.9).
    pub fn edit_entry(&self, target_id: &str, replacement: Option<Content>) -> Result<EntryBody, Fault> {
        let target = self.tree.find(target_id).ok_or_else(|| unknown_entry(target_id))?;
        if !self.tree.path(self.tree.leaf()).contains(&target) {
            return Err(Fault::new(
                "unknown_entry",
                alloc::format!("Entry {target_id} is not on the active branch; go to its branch first."),
            ));
        }
        let kind = self.tree.node(target).map(Node::kind);
        if !kind.is_some_and(EntryKind::is_editable) {
            return Err(Fault::new(
                "not_editable",
                alloc::format!("Entry {target_id} is no message that can be edited."),
            ));
        }
        let replacement = match (kind, replacement) {
            (Some(EntryKind::Assistant | EntryKind::ToolResult), Some(Content::Text(text))) => {
                Some(Content::Blocks(alloc::vec![Block::text(text)]))
            }
            (_, replacement) => replacement,
        };
        let target_id = target_id.into();
        Ok(EntryBody::ContextEdit(Box::new(ContextEdit { target_id, replacement })))
    }
}

impl SessionFile {
    const fn new(path: String, len: Option<u64>) -> Self {
        Self {
            path,
            len,
            torn: false,
            waiting: Vec::new(),
            started: false,
            waiting_entries: Vec::new(),
            in_flight: VecDeque::new(),
            shared: false,
        }
    }

    /// Takes in the line of the entry `slot`; what must be written now.
    fn write(&mut self, kind: EntryKind, line: EntryLine<'_>, slot: Slot) -> Option<AppendOp> {
        let start = self.waiting.len();
        push_line(&mut self.waiting, |w| line.write(w));
        let len = u32::try_from(self.waiting.len() - start - 1).unwrap_or_default();
        self.waiting_entries.push(Line { slot, start: start as u64, len });
        self.started |= kind.starts_file();
        if self.started { self.take() } else { None }
    }

    fn take(&mut self) -> Option<AppendOp> {
        if self.waiting.is_empty() {
            return None;
        }
        let mut bytes = core::mem::take(&mut self.waiting);
        let mut entries = core::mem::take(&mut self.waiting_entries);
        if core::mem::take(&mut self.torn) {
            bytes.insert(0, b'\n');
            entries.iter_mut().for_each(|line| line.start += 1);
        }
        let (create, expect_len) = (self.len.is_none(), self.len);
        let own = bytes.len() as u64;
        let after = self.len.unwrap_or(0).saturating_add(own);
        self.len = Some(after);
        self.in_flight.push_back(InFlight { own, after, entries });
        let bytes = Arc::new(bytes);
        Some(AppendOp { path: self.path.clone(), bytes, create, expect_len })
    }
}

/// Whether an entry that is in memory says which model is used.
fn tells_model(tree: &Tree, slot: Slot) -> bool {
    match tree.node(slot).and_then(Node::body) {
        Some(EntryBody::ModelChange(_)) => true,
        Some(EntryBody::Message(message)) => model_of(message).is_some(),
        _ => false,
    }
}

/// Appends one record and its line feed.
fn push_line(out: &mut Vec<u8>, write: impl FnOnce(&mut Writer)) {
    let mut w = Writer::new();
    write(&mut w);
    let bytes = w.into_bytes();
    if out.is_empty() {
        *out = bytes;
    } else {
        out.extend_from_slice(&bytes);
    }
    out.push(b'\n');
}

fn not_read() -> Fault {
    Fault::new("not_read", "That part of the session has not been read yet; open the session anew.")
}

fn unknown_entry(id: &str) -> Fault {
    Fault::new("unknown_entry", alloc::format!("This session has no entry {id}."))
}

/// The name of a session file: creation time with `-` for `:` and `.`, then the id (spec 60 §1.1).
#[must_use]
pub fn file_name(header: &Header) -> String {
    let time = header.timestamp.replace([':', '.'], "-");
    alloc::format!("{time}_{}.jsonl", header.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;

    fn said(session: &mut Session, rng: &mut Entropy, text: &str) -> AppendOp {
        let body = EntryBody::Message(Arc::new(Message::user(text, Vec::new(), 1)));
        session.append(body, Wall(1), rng).unwrap().op.unwrap()
    }

    #[test]
    fn lines_of_failed_writes_keep_their_order() {
        let header = Header::new("s".into(), Wall(0), "/w".into(), None);
        let (mut session, mut rng) = (Session::new(header, Some("/s.jsonl".into())), Entropy::new([1; 32]));
        let lost = ["one", "two", "three"].map(|text| said(&mut session, &mut rng, text));
        for op in lost {
            session.append_failed(op);
        }
        assert!(session.is_dirty());
        let op = said(&mut session, &mut rng, "four");
        assert!(op.create && op.expect_len.is_none());
        let text = core::str::from_utf8(&op.bytes).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let marks = [r#""type":"session""#, "one", "two", "three", "four"];
        assert_eq!(lines.len(), marks.len());
        assert!(lines.iter().zip(marks).all(|(line, mark)| line.contains(mark)), "{text}");
        session.appended(op.bytes.len() as u64);
        assert!(!session.is_dirty() && session.is_stored());
    }
}
