//! The table of live process groups, so that a signal can end all of them.

use std::sync::atomic::{AtomicI32, Ordering};

use rustix::process::{Pid, Signal, kill_process_group};

/// More groups than a machine runs at once; what does not fit is not killed by [`kill_all`].
const SLOTS: usize = 256;

static LIVE: [AtomicI32; SLOTS] = [const { AtomicI32::new(0) }; SLOTS];

/// Kills every live process group. Only loads and `kill` calls: safe in a signal handler.
pub fn kill_all() {
    for slot in &LIVE {
        if let Some(pid) = Pid::from_raw(slot.load(Ordering::SeqCst)) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

/// A process group led by a child that is not reaped before this is dropped, so that its number stays ours.
#[derive(Debug)]
pub(super) struct Group {
    leader: Pid,
    slot: Option<&'static AtomicI32>,
}

impl Group {
    pub(super) fn enter(leader: Pid) -> Self {
        let raw = leader.as_raw_nonzero().get();
        let free =
            |slot: &&AtomicI32| slot.compare_exchange(0, raw, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        Self { leader, slot: LIVE.iter().find(free) }
    }

    /// Kills all of its members.
    pub(super) fn kill(&self) {
        let _ = kill_process_group(self.leader, Signal::KILL);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            slot.store(0, Ordering::SeqCst);
        }
    }
}
