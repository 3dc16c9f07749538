//! Where the replies of an op go: a bounded queue, so that an op waits while the machine has enough to do.

use smol::channel::Sender;
use tau_core::ids::OpId;
use tau_core::input::Reply;

/// Replies that may wait for the machine. Pieces of a body are 64 KiB at most, those of a process 128 KiB.
pub(crate) const WAITING: usize = 8;

/// Takes the replies of one op.
#[derive(Clone, Debug)]
pub struct Replies {
    op: OpId,
    sender: Sender<(OpId, Reply)>,
}

impl Replies {
    /// Marks replies as those of `op`.
    #[must_use]
    pub const fn new(op: OpId, sender: Sender<(OpId, Reply)>) -> Self {
        Self { op, sender }
    }

    /// Hands a reply over; waits for room. When nobody listens any more, it is gone.
    pub async fn give(&self, reply: Reply) {
        let _ = self.sender.send((self.op, reply)).await;
    }

    /// The same on a thread that may block.
    pub fn give_blocking(&self, reply: Reply) {
        let _ = self.sender.send_blocking((self.op, reply));
    }
}
