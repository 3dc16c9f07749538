//! Queues of messages that wait for a place in the run.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::input::QueueMode;
use crate::message::Message;

/// Messages in the order in which they came.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    messages: VecDeque<Arc<Message>>,
    /// How many leave at once.
    pub mode: QueueMode,
}

impl Queue {
    /// Adds one at the end.
    pub fn push(&mut self, message: Arc<Message>) {
        self.messages.push_back(message);
    }

    /// Takes what the mode lets go: the oldest message, or all.
    pub fn drain(&mut self) -> Vec<Arc<Message>> {
        match self.mode {
            QueueMode::OneAtATime => self.messages.pop_front().into_iter().collect(),
            QueueMode::All => self.messages.drain(..).collect(),
        }
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.messages.clear();
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// What waits, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Message>> {
        self.messages.iter()
    }
}
