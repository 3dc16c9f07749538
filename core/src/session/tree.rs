//! The forest of entries: ids, parents, leaf, labels, name (spec 60 §1.5).
//!
//! Entries stand in file order and are named by their index ([`Slot`]). Ids live in one arena and the index over
//! them holds only slots, so an entry that is never decoded costs some 60 bytes.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::entry::{EntryBody, EntryKind};
use crate::now::Wall;

/// Place of an entry in file order.
pub type Slot = u32;

/// Time of entries whose timestamp is missing or unreadable.
const NO_TIME: i64 = i64::MIN;

/// A piece of the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    start: u32,
    len: u32,
}

/// One entry. The body of an entry that the context does not need stays in the file.
#[derive(Clone, Debug)]
pub struct Node {
    id: Piece,
    parent: Option<Piece>,
    time: i64,
    kind: EntryKind,
    at: Place,
    body: Option<EntryBody>,
}

/// Where the line of an entry stands in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Offset of the first byte.
    pub offset: u64,
    /// Length without the line feed; 0 = not read from a file.
    pub len: u32,
    /// For `message` entries of the usual shape: where the message starts in the line.
    pub message_at: u32,
}

impl Node {
    /// What kind of entry this is.
    #[must_use]
    pub const fn kind(&self) -> EntryKind {
        self.kind
    }

    /// Creation time; `None` when the file has no readable one.
    #[must_use]
    pub const fn time(&self) -> Option<Wall> {
        if self.time == NO_TIME { None } else { Some(Wall(self.time)) }
    }

    /// What it says, if that was read.
    #[must_use]
    pub const fn body(&self) -> Option<&EntryBody> {
        self.body.as_ref()
    }

    /// Where its line stands.
    #[must_use]
    pub const fn place(&self) -> Place {
        self.at
    }
}

/// A new node before it has a place in the tree.
#[derive(Clone, Debug)]
pub struct NewNode<'a> {
    /// Its id.
    pub id: &'a str,
    /// Id of the parent; `None` = root.
    pub parent: Option<&'a str>,
    /// Creation time.
    pub time: Option<Wall>,
    /// What kind of entry.
    pub kind: EntryKind,
    /// Where its line stands.
    pub at: Place,
    /// What it says; `None` = read when needed.
    pub body: Option<EntryBody>,
}

/// A label and when it was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelNote {
    /// The label.
    pub label: String,
    /// Time of the label entry.
    pub time: Option<Wall>,
}

/// One entry of the tree view with its children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeItem {
    /// The entry.
    pub slot: Slot,
    /// Depth below its root.
    pub depth: u32,
}

/// All entries of a session.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    nodes: Vec<Node>,
    arena: String,
    index: HashTable<Slot>,
    hasher: DefaultHashBuilder,
    leaf: Option<Slot>,
    labels: BTreeMap<String, LabelNote>,
    name: Option<Box<str>>,
}

impl Tree {
    /// Adds an entry and makes it the leaf. `None` (nothing added) when the tree is full (4 Gi entries or bytes of ids).
    pub fn push(&mut self, new: NewNode<'_>) -> Option<Slot> {
        let slot = self.add(new)?;
        self.leaf = Some(slot);
        Some(slot)
    }

    /// Adds an entry without moving the leaf (lines of another writer).
    pub fn add(&mut self, new: NewNode<'_>) -> Option<Slot> {
        let slot = Slot::try_from(self.nodes.len()).ok()?;
        let parent = match new.parent {
            Some(parent) => Some(self.intern(parent)?),
            None => None,
        };
        let id = self.store(new.id)?;
        self.note_global(&new);
        self.nodes.push(Node {
            id,
            parent,
            time: new.time.map_or(NO_TIME, |t| t.0),
            kind: new.kind,
            at: new.at,
            body: new.body,
        });
        self.index_slot(slot);
        Some(slot)
    }

    /// Labels and the name count over all branches, in file order.
    fn note_global(&mut self, new: &NewNode<'_>) {
        match &new.body {
            Some(EntryBody::Label(label)) => match &label.label {
                Some(text) => {
                    let note = LabelNote { label: text.clone(), time: new.time };
                    self.labels.insert(label.target_id.clone(), note);
                }
                None => {
                    self.labels.remove(&label.target_id);
                }
            },
            Some(EntryBody::SessionInfo(name)) => {
                self.name = name.as_deref().map(str::trim).filter(|name| !name.is_empty()).map(Into::into);
            }
            _ => {}
        }
    }

    fn store(&mut self, text: &str) -> Option<Piece> {
        let start = u32::try_from(self.arena.len()).ok()?;
        let len = u32::try_from(text.len()).ok()?;
        start.checked_add(len)?;
        self.arena.push_str(text);
        Some(Piece { start, len })
    }

    /// Parents are nearly always the entry before, whose id is stored already.
    fn intern(&mut self, id: &str) -> Option<Piece> {
        if let Some(last) = self.nodes.last().map(|node| node.id)
            && self.text(last) == id
        {
            return Some(last);
        }
        match self.find(id).and_then(|slot| self.node(slot)) {
            Some(node) => Some(node.id),
            None => self.store(id),
        }
    }

    fn index_slot(&mut self, slot: Slot) {
        let Self { nodes, arena, index, hasher, .. } = self;
        let id_of =
            |slot: &Slot| -> &str { nodes.get(*slot as usize).map_or("", |node| piece_of(arena, node.id)) };
        let id = id_of(&slot);
        let hash = hasher.hash_one(id);
        match index.find_mut(hash, |other| id_of(other) == id) {
            // On duplicate ids the later definition wins.
            Some(other) => *other = slot,
            None => {
                index.insert_unique(hash, slot, |other| hasher.hash_one(id_of(other)));
            }
        }
    }

    fn text(&self, piece: Piece) -> &str {
        piece_of(&self.arena, piece)
    }

    /// The entry of a slot.
    #[must_use]
    pub fn node(&self, slot: Slot) -> Option<&Node> {
        self.nodes.get(slot as usize)
    }

    /// All entries in file order.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Slots in file order.
    pub fn slots(&self) -> impl DoubleEndedIterator<Item = Slot> + use<> {
        0..self.nodes.len() as Slot
    }

    /// Id of an entry; empty for a slot that does not exist.
    #[must_use]
    pub fn id(&self, slot: Slot) -> &str {
        self.node(slot).map_or("", |node| self.text(node.id))
    }

    /// The parent id as the file has it.
    #[must_use]
    pub fn parent_id(&self, slot: Slot) -> Option<&str> {
        self.node(slot)?.parent.map(|piece| self.text(piece))
    }

    /// The parent, if it exists.
    #[must_use]
    pub fn parent(&self, slot: Slot) -> Option<Slot> {
        self.find(self.parent_id(slot)?)
    }

    /// The entry with an id; the latest of several.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<Slot> {
        let hash = self.hasher.hash_one(id);
        self.index.find(hash, |slot| self.id(*slot) == id).copied()
    }

    /// Number of different ids.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Where the next entry is appended; `None` = as a new root.
    #[must_use]
    pub const fn leaf(&self) -> Option<Slot> {
        self.leaf
    }

    /// Moves the leaf; in memory only, until something is appended.
    pub const fn set_leaf(&mut self, leaf: Option<Slot>) {
        self.leaf = leaf;
    }

    /// The display name.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Labels by target id.
    #[must_use]
    pub const fn labels(&self) -> &BTreeMap<String, LabelNote> {
        &self.labels
    }

    /// The path from the root to an entry. Ends at an unknown parent; a cycle is cut where it closes.
    #[must_use]
    pub fn path(&self, leaf: Option<Slot>) -> Vec<Slot> {
        let mut seen = alloc::vec![false; self.nodes.len()];
        let mut path = Vec::new();
        let mut next = leaf;
        while let Some(slot) = next {
            match seen.get_mut(slot as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => break,
            }
            path.push(slot);
            next = self.parent(slot);
        }
        path.reverse();
        path
    }

    /// Whether the path to `leaf` starts at an entry whose parent is missing from the file.
    #[must_use]
    pub fn is_cut(&self, path: &[Slot]) -> bool {
        path.first().is_some_and(|first| self.parent_id(*first).is_some_and(|id| self.find(id).is_none()))
    }

    /// Entries whose parent is `id`, in file order.
    #[must_use]
    pub fn children(&self, id: &str) -> Vec<Slot> {
        self.slots().filter(|slot| self.parent_id(*slot) == Some(id)).collect()
    }

    /// The whole forest, parents before children, siblings by time (entries without one keep their place).
    ///
    /// Roots are entries without parent, with an unknown one, or that are their own parent.
    #[must_use]
    pub fn view(&self) -> Vec<TreeItem> {
        let mut children: BTreeMap<&str, Vec<Slot>> = BTreeMap::new();
        let mut roots = Vec::new();
        for slot in self.slots() {
            match self.parent_id(slot) {
                Some(parent) if parent != self.id(slot) && self.find(parent).is_some() => {
                    children.entry(parent).or_default().push(slot);
                }
                _ => roots.push(slot),
            }
        }
        children.values_mut().for_each(|list| self.sort_by_time(list));
        let mut items = Vec::with_capacity(self.nodes.len());
        // Duplicate ids share their children; a cycle is never reached from a root.
        let mut stack: Vec<TreeItem> =
            roots.into_iter().rev().map(|slot| TreeItem { slot, depth: 0 }).collect();
        let mut budget = self.nodes.len().saturating_mul(4);
        while let Some(item) = stack.pop() {
            if budget == 0 {
                break;
            }
            budget -= 1;
            if let Some(list) = children.get(self.id(item.slot)) {
                let depth = item.depth + 1;
                stack.extend(list.iter().rev().map(|slot| TreeItem { slot: *slot, depth }));
            }
            items.push(item);
        }
        items
    }

    fn sort_by_time(&self, list: &mut [Slot]) {
        let time = |slot: Slot| self.node(slot).and_then(Node::time);
        if list.iter().all(|slot| time(*slot).is_some()) {
            crate::order::sort(list, |a, b| time(*a).cmp(&time(*b)));
        }
    }

    /// The line of an entry stands there.
    pub(super) fn set_place(&mut self, slot: Slot, at: Place) {
        if let Some(node) = self.nodes.get_mut(slot as usize) {
            node.at = at;
        }
    }

    /// What an entry says is in the file only.
    pub(super) fn drop_body(&mut self, slot: Slot) {
        if let Some(node) = self.nodes.get_mut(slot as usize) {
            node.body = None;
        }
    }

    pub(super) fn set_body(&mut self, slot: Slot, body: EntryBody) {
        if let Some(node) = self.nodes.get_mut(slot as usize) {
            node.kind = body.kind();
            node.body = Some(body);
        }
    }
}

fn piece_of(arena: &str, piece: Piece) -> &str {
    let start = piece.start as usize;
    arena.get(start..start + piece.len as usize).unwrap_or_default()
}
