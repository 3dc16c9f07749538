//! Entries of a session, wherever they are.

use std::fs::File;
use std::os::unix::fs::FileExt;

use tau_core::json::{Value, Writer, parse};
use tau_core::message::Message;
use tau_core::session::decode::parse_body;
use tau_core::session::entry::EntryLine;
use tau_core::session::stats::Stats;
use tau_core::session::tree::{Node, Slot};
use tau_core::session::{EntryBody, EntryKind, Session};

/// Counts over the first entries of a session. Entries are only added, and never change.
#[derive(Default)]
pub(super) struct Counted {
    stats: Stats,
    slots: Slot,
}

impl Counted {
    /// Counts the entries that were added since; the counts over all of them.
    pub(super) fn go_on(&mut self, session: &Session) -> &Stats {
        let entries = Entries::of(session);
        for slot in session.tree().slots().skip(self.slots as usize) {
            entries.count(slot, &mut self.stats);
            self.slots = slot + 1;
        }
        &self.stats
    }
}

/// Entries of a session as they stand in its file. Old ones are read there: they are not kept in memory.
pub(super) struct Entries<'a> {
    session: &'a Session,
    file: Option<File>,
}

impl<'a> Entries<'a> {
    pub(super) fn of(session: &'a Session) -> Self {
        Self { session, file: session.path().and_then(|path| File::open(path).ok()) }
    }

    /// Writes an entry as one object.
    pub(super) fn write(&self, slot: Slot, w: &mut Writer) {
        let tree = self.session.tree();
        let Some(node) = tree.node(slot) else { return w.null() };
        let place = node.place();
        if let Some(line) = self.read(place.offset, place.len)
            && let Ok(value) = parse(&line)
            && is_of(&value, tree.id(slot))
        {
            return w.value(&value);
        }
        match (node.body(), node.time()) {
            (Some(body), Some(time)) => {
                EntryLine { id: tree.id(slot), parent: tree.parent_id(slot), time, body }.write(w);
            }
            _ => w.null(),
        }
    }

    /// Counts an entry.
    fn count(&self, slot: Slot, stats: &mut Stats) {
        let Some(node) = self.session.tree().node(slot) else { return };
        if let Some(body) = node.body() {
            return stats.add(body);
        }
        if let Some(body) = self.stored_body(node) {
            stats.add(&body);
        }
    }

    /// The text of a message of a person; `None` for every other entry.
    pub(super) fn user_text(&self, slot: Slot) -> Option<String> {
        let node = self.session.tree().node(slot).filter(|node| node.kind() == EntryKind::User)?;
        let stored = || self.stored_body(node);
        let body = node.body().cloned().or_else(stored)?;
        let EntryBody::Message(message) = body else { return None };
        let Message::User(user) = &*message else { return None };
        Some(user.content.texts().collect())
    }

    fn stored_body(&self, node: &Node) -> Option<EntryBody> {
        let place = node.place();
        parse_body(&self.read(place.offset, place.len)?)
    }

    fn read(&self, offset: u64, len: u32) -> Option<String> {
        let file = self.file.as_ref().filter(|_| len > 0)?;
        let mut bytes = vec![0; len as usize];
        file.read_exact_at(&mut bytes, offset).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Whether the record is that of an entry. Old records have no id.
fn is_of(record: &Value, id: &str) -> bool {
    record.get("id").is_none_or(|own| own.as_str() == Some(id))
}
