//! Copies of a session: one branch as a new file, a whole file under a new header, a branch for export
//! (spec 60 §1.11). Records are copied as they stand; only what the copy demands is changed in them.

use alloc::string::String;
use alloc::vec::Vec;

use super::decode::parse_line;
use super::entry::{EntryKind, EntryLine, Header};
use super::tree::{Slot, Tree};
use crate::entropy::Entropy;
use crate::fault::Fault;
use crate::ids::EntryId;
use crate::json::{self, Value, Writer};
use crate::now::Wall;
use crate::text::utf8::lossy;

/// A copy that is ready to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copy {
    /// The new file.
    pub bytes: Vec<u8>,
    /// Leaf of the new session.
    pub leaf: Option<String>,
    /// Whether a user message or a reply is included; without one the file is not created yet.
    pub starts_file: bool,
}

impl Copy {
    fn begin(header: &Header) -> Self {
        let mut copy = Self::default();
        let mut w = Writer::new();
        header.write(&mut w);
        copy.line(w.as_str());
        copy
    }

    fn line(&mut self, line: &str) {
        self.bytes.extend_from_slice(line.as_bytes());
        self.bytes.push(b'\n');
    }

    fn entry(&mut self, entry: &Value) {
        self.line(&json::to_string(entry));
        self.leaf = entry.get("id").and_then(Value::as_str).map(String::from);
    }
}

/// The path to an entry as a new session. Label entries leave the chain; the current labels of copied entries are
/// set again at its end. `file` is the content of the session's file.
///
/// # Errors
/// `unknown_entry`.
pub fn branch(
    file: &[u8],
    tree: &Tree,
    leaf_id: &str,
    header: &Header,
    rng: &mut Entropy,
) -> Result<Copy, Fault> {
    let leaf = tree.find(leaf_id);
    let leaf = leaf
        .ok_or_else(|| Fault::new("unknown_entry", alloc::format!("This session has no entry {leaf_id}.")))?;
    let mut copy = Copy::begin(header);
    let path = tree.path(Some(leaf));
    let is_label = |slot: Slot| tree.node(slot).map(|node| node.kind()) == Some(EntryKind::Label);
    let mut kept = Vec::new();
    for slot in path.iter().copied().filter(|slot| !is_label(*slot)) {
        let mut entry = record(file, tree, slot);
        relink(&mut entry, copy.leaf.take());
        retarget(&mut entry, tree, &path, is_label);
        copy.starts_file |= tree.node(slot).is_some_and(|node| node.kind().starts_file());
        copy.entry(&entry);
        kept.push(slot);
    }
    for slot in kept {
        let Some(note) = tree.labels().get(tree.id(slot)) else { continue };
        let id = EntryId::fresh(rng, |id| tree.find(id).is_some());
        let entry = serde_json::json!({
            "type": "label",
            "id": id.as_str(),
            "parentId": copy.leaf,
            "timestamp": note.time.unwrap_or_default().to_iso(),
            "targetId": tree.id(slot),
            "label": note.label,
        });
        copy.entry(&entry);
    }
    Ok(copy)
}

/// All entries of a file, on every branch, under a new header. Later headers are left out.
#[must_use]
pub fn whole(file: &[u8], tree: &Tree, header: &Header) -> Copy {
    let mut copy = Copy::begin(header);
    for slot in tree.slots() {
        copy.line(&text(file, tree, slot));
        copy.starts_file |= tree.node(slot).is_some_and(|node| node.kind().starts_file());
    }
    copy.leaf = tree.slots().next_back().map(|slot| tree.id(slot).into());
    copy
}

/// The path to `leaf` for other programs: the same id, one unbranched chain.
#[must_use]
pub fn export(file: &[u8], tree: &Tree, leaf: Option<Slot>, header: &Header, now: Wall) -> Vec<u8> {
    let cwd = header.cwd.clone().unwrap_or_default();
    let mut copy = Copy::begin(&Header::new(header.id.clone(), now, cwd, None));
    for slot in tree.path(leaf) {
        let mut entry = record(file, tree, slot);
        relink(&mut entry, copy.leaf.take());
        copy.entry(&entry);
    }
    copy.bytes
}

/// The line of an entry: from the file, else as it would be written. What is in memory does not depend on a file that
/// somebody else may have changed.
fn text(file: &[u8], tree: &Tree, slot: Slot) -> String {
    let Some(node) = tree.node(slot) else { return String::new() };
    let place = node.place();
    let start = usize::try_from(place.offset).unwrap_or(usize::MAX);
    let stored = file.get(start..).and_then(|rest| rest.get(..place.len as usize)).unwrap_or_default();
    match node.body() {
        Some(body) if !is_line_of(stored, tree.id(slot)) => {
            let (id, parent) = (tree.id(slot), tree.parent_id(slot));
            let mut w = Writer::new();
            EntryLine { id, parent, time: node.time().unwrap_or_default(), body }.write(&mut w);
            w.into_string()
        }
        _ => lossy(stored).trim().into(),
    }
}

/// Whether bytes are the record of an entry. Old records have no id.
fn is_line_of(bytes: &[u8], id: &str) -> bool {
    let is_own = |record: Value| record.get("id").is_none_or(|own| own.as_str() == Some(id));
    !bytes.is_empty() && parse_line(&lossy(bytes)).is_some_and(is_own)
}

fn record(file: &[u8], tree: &Tree, slot: Slot) -> Value {
    parse_line(&text(file, tree, slot)).unwrap_or_default()
}

fn relink(entry: &mut Value, parent: Option<String>) {
    if let Some(map) = entry.as_object_mut() {
        map.insert("parentId".into(), parent.into());
    }
}

/// A compaction that keeps from a label on keeps from the entry after it.
fn retarget(entry: &mut Value, tree: &Tree, path: &[Slot], is_label: impl Fn(Slot) -> bool) {
    let Some(map) = entry.as_object_mut().filter(|map| map.get("type") == Some(&"compaction".into())) else {
        return;
    };
    let first = map.get("firstKeptEntryId").and_then(Value::as_str);
    let at = first.and_then(|first| path.iter().position(|slot| tree.id(*slot) == first));
    let Some(rest) = at.and_then(|at| path.get(at..)) else { return };
    if let Some(next) = rest.iter().copied().find(|slot| !is_label(*slot)) {
        map.insert("firstKeptEntryId".into(), tree.id(next).into());
    }
}
