//! Rewritten messages of the last request.

use alloc::string::String;
use alloc::sync::Arc;

use hashbrown::HashMap;

use super::Target;
use crate::message::Message;

/// Which pass made a message out of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Pass {
    ToLlm,
    Images,
    Adapt,
    /// The made-up result of the n-th call.
    Answer(usize),
    Repair,
}

/// Remembers rewritten messages by the address of their source, so that the next request gets the same `Arc`s.
///
/// Keep one per place that converts (one per encoder, one per session). Sources are held, so an address cannot be
/// reused while it is a key; what one conversion did not use is dropped at its end.
#[derive(Debug, Default)]
pub struct Memo {
    entries: HashMap<(usize, Pass), Entry>,
    round: u32,
    target: [String; 3],
    images: bool,
}

#[derive(Debug)]
struct Entry {
    /// Held so that the address stays taken.
    _source: Arc<Message>,
    made: Arc<Message>,
    round: u32,
}

impl Memo {
    /// Starts a conversion. What was made for another target is forgotten.
    pub(super) fn begin(&mut self, target: &Target<'_>) {
        let names = [target.provider, target.api, target.model];
        if self.target != names || self.images != target.images {
            self.entries.clear();
            self.target = names.map(String::from);
            self.images = target.images;
        }
        self.next_round();
    }

    /// Starts a conversion that has no target.
    pub(super) const fn next_round(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// Ends a conversion: keeps what it used.
    pub(super) fn end(&mut self) {
        let round = self.round;
        self.entries.retain(|_, entry| entry.round == round);
    }

    /// What `pass` made out of `source` last time if that still fits, else what `make` makes now.
    pub(super) fn rewrite(
        &mut self,
        source: &Arc<Message>,
        pass: Pass,
        fits: impl FnOnce(&Message) -> bool,
        make: impl FnOnce() -> Message,
    ) -> Arc<Message> {
        let key = (Arc::as_ptr(source) as usize, pass);
        if let Some(entry) = self.entries.get_mut(&key)
            && fits(&entry.made)
        {
            entry.round = self.round;
            return Arc::clone(&entry.made);
        }
        let made = Arc::new(make());
        let entry = Entry { _source: Arc::clone(source), made: Arc::clone(&made), round: self.round };
        self.entries.insert(key, entry);
        made
    }
}
