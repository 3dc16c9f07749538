//! The public messages of a list that grows from request to request.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::memo::{Memo, Pass};
use super::prefix::common;
use super::transform::without_images;
use super::{IMAGE_BLOCKED, to_llm};
use crate::message::Message;

/// What [`to_llm`](super::to_llm()) makes of a list, without images if they are blocked, kept so that each message is
/// converted once.
#[derive(Debug, Default)]
pub struct Public {
    /// What was read. Held so that an address stays taken.
    sources: Vec<Arc<Message>>,
    /// What became of it; `None` while all of it is public as it is.
    made: Option<Vec<Arc<Message>>>,
    blocked: bool,
    memo: Memo,
}

impl Public {
    /// The messages for a model. Reads only what follows the part that is the same as last time; a list that changed
    /// before its end is read again.
    pub fn update<'a>(&'a mut self, messages: &'a [Arc<Message>], block_images: bool) -> &'a [Arc<Message>] {
        let mut same = common(&self.sources, messages);
        let anew = same < self.sources.len() || self.blocked != block_images;
        if anew {
            same = 0;
            self.sources.clear();
            self.made = None;
            self.blocked = block_images;
            self.memo.next_round();
        }
        for message in messages.get(same..).unwrap_or_default() {
            self.read(message);
        }
        if anew {
            self.memo.end();
        }
        self.made.as_deref().unwrap_or(messages)
    }

    fn read(&mut self, message: &Arc<Message>) {
        let mut converted = to_llm::convert(message, &mut self.memo);
        if self.blocked {
            converted = converted.map(|public| blocked(public, &mut self.memo));
        }
        let unchanged = converted.as_ref().is_some_and(|converted| Arc::ptr_eq(converted, message));
        if self.made.is_none() && !unchanged {
            self.made = Some(self.sources.clone());
        }
        if let Some(made) = &mut self.made {
            made.extend(converted);
        }
        self.sources.push(Arc::clone(message));
    }
}

/// The message with a note for each image, for the setting that blocks images.
fn blocked(message: Arc<Message>, memo: &mut Memo) -> Arc<Message> {
    let noted = without_images(&message, IMAGE_BLOCKED, IMAGE_BLOCKED)
        .map(|make| memo.rewrite(&message, Pass::Images, |_| true, make));
    noted.unwrap_or(message)
}
