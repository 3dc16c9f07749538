//! The history of one encoder: adapted, repaired and measured, message by message as it grows.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::memo::Memo;
use super::prefix::common;
use super::repair::Repair;
use super::transform::{Adapter, Target};
use super::{Fold, fold};
use crate::message::Message;
use crate::tokens::request::Meter;

/// The messages of a request as one target may be sent them, kept from request to request.
///
/// Equal to a conversion of the whole list at every update, whatever the list was before; the cost is that of what was
/// appended since then. A list that changed before its end, and another target, are read from the start.
#[derive(Debug, Default)]
pub struct History {
    target: ([String; 3], bool),
    /// What was read. Held so that an address stays taken.
    sources: Vec<Arc<Message>>,
    systems: Vec<Arc<Message>>,
    meter: Meter,
    adapter: Adapter,
    images: bool,
    repair: Repair,
    memo: Memo,
}

impl History {
    /// Takes in the messages of a request. `now_ms` is stamped on results made here.
    pub fn update(&mut self, messages: &[Arc<Message>], target: &Target<'_>, now_ms: i64) {
        let mut same = common(&self.sources, messages);
        let anew = same < self.sources.len() || !self.is_for(target);
        if anew {
            same = 0;
            self.restart(target);
        }
        let more = messages.get(same..).unwrap_or_default();
        let mut adapted = Vec::with_capacity(more.len());
        for source in more {
            self.sources.push(Arc::clone(source));
            self.meter.read(source);
            if let Message::System(_) = **source {
                self.systems.push(Arc::clone(source));
            } else if let Some(message) = self.adapter.adapt(source, target, &mut self.memo) {
                self.images |= message.has_image();
                adapted.push(message);
            }
        }
        self.repair.extend(adapted, now_ms, &mut self.memo);
        if anew {
            self.memo.end();
        }
    }

    fn is_for(&self, target: &Target<'_>) -> bool {
        self.target.0 == [target.provider, target.api, target.model] && self.target.1 == target.images
    }

    fn restart(&mut self, target: &Target<'_>) {
        self.memo.begin(target);
        self.target = ([target.provider, target.api, target.model].map(String::from), target.images);
        self.sources.clear();
        self.systems.clear();
        self.meter = Meter::default();
        self.adapter = Adapter::default();
        self.images = false;
        self.repair.clear();
    }

    /// The messages to encode; none of them is a system message.
    #[must_use]
    pub fn messages(&self) -> &[Arc<Message>] {
        self.repair.repaired()
    }

    /// What the system messages say.
    #[must_use]
    pub fn fold(&self) -> Fold<'_> {
        fold(&self.systems)
    }

    /// Estimated tokens of the messages as they were given ([`tokens::request`](crate::tokens::request)).
    pub fn tokens(&mut self) -> u64 {
        self.meter.usage(&self.sources).tokens
    }

    /// Whether a user or a tool gave an image that the target is shown.
    #[must_use]
    pub const fn has_images(&self) -> bool {
        self.images
    }

    /// Whether a tool was called.
    #[must_use]
    pub fn has_calls(&self) -> bool {
        self.repair.has_calls()
    }
}

/// The messages to encode for `target`, converted at once: for those who ask only once.
#[must_use]
pub fn prepare(messages: &[Arc<Message>], target: &Target<'_>, now_ms: i64) -> Vec<Arc<Message>> {
    let mut history = History::default();
    history.update(messages, target, now_ms);
    history.repair.into_repaired()
}
