//! Which call a piece of a tool call belongs to.
//!
//! Servers number their calls, or name them by id, or do neither, or reuse a number (bugs 16, 17, 19). The rule: by id
//! first; by number second, but a new id never joins a call that has another one; the call opened last is third.

use alloc::string::String;
use alloc::vec::Vec;

use crate::provider::halves::Halves;

/// One call of the reply.
#[derive(Debug)]
pub(in crate::provider) struct Slot {
    /// Index in the content.
    pub(in crate::provider) content: usize,
    /// Id given by the server; empty as long as none came.
    pub(in crate::provider) id: String,
    /// Number given by the server.
    index: Option<i64>,
    /// Whether the name is known.
    pub(in crate::provider) named: bool,
    /// A call of a free-form tool: its input is wrapped into JSON here.
    pub(in crate::provider) custom: bool,
    pub(in crate::provider) halves: Halves,
}

/// The calls of one reply in the order in which they began.
#[derive(Debug, Default)]
pub(in crate::provider) struct Calls(Vec<Slot>);

impl Calls {
    /// Position of the call that a piece belongs to; `None` = it begins a new one.
    pub(in crate::provider) fn find(&self, id: &str, index: Option<i64>, has_name: bool) -> Option<usize> {
        let numbered = || index.and_then(|index| self.0.iter().rposition(|slot| slot.index == Some(index)));
        if !id.is_empty() {
            let by_id = self.0.iter().rposition(|slot| slot.id == id);
            return by_id
                .or_else(|| numbered().filter(|at| self.0.get(*at).is_some_and(|slot| slot.id.is_empty())));
        }
        let last = self.0.len().checked_sub(1)?;
        let last_has_name = self.0.get(last).is_some_and(|slot| slot.named);
        let begins = has_name && (index.is_some() || last_has_name);
        numbered().or_else(|| (!begins).then_some(last))
    }

    /// Adds a call; returns its position.
    pub(in crate::provider) fn push(&mut self, content: usize, index: Option<i64>, custom: bool) -> usize {
        self.0.push(Slot {
            content,
            id: String::new(),
            index,
            named: false,
            custom,
            halves: Halves::default(),
        });
        self.0.len() - 1
    }

    /// The call at a position.
    pub(in crate::provider) fn get_mut(&mut self, at: usize) -> Option<&mut Slot> {
        self.0.get_mut(at)
    }

    /// All calls.
    pub(in crate::provider) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.0.iter()
    }
}
