//! Tasks that wait until a machine is idle or settled.

use std::mem::take;
use std::task::Waker;

/// One who waits, with a place among the watchers while it does.
#[derive(Debug, Default)]
pub(crate) struct Watch(Option<u64>);

/// Each is called once, and looks whether what it waits for holds; else it waits again.
#[derive(Default)]
pub(super) struct Watchers {
    waiting: Vec<(u64, Waker)>,
    /// To be woken once the lock is free.
    called: Vec<Waker>,
    next: u64,
}

impl Watchers {
    /// Waits, with the latest waker of a task.
    pub(super) fn wait(&mut self, watch: &mut Watch, waker: &Waker) {
        let known = self.waiting.iter_mut().find(|(id, _)| Some(*id) == watch.0);
        if let Some((_, known)) = known {
            known.clone_from(waker);
            return;
        }
        watch.0 = Some(self.next);
        self.waiting.push((self.next, waker.clone()));
        self.next += 1;
    }

    /// Waits no more.
    pub(super) fn forget(&mut self, watch: &mut Watch) {
        if let Some(gone) = watch.0.take() {
            self.waiting.retain(|(id, _)| *id != gone);
        }
    }

    /// There is something to look at.
    pub(super) fn call(&mut self) {
        self.called.extend(take(&mut self.waiting).into_iter().map(|(_, waker)| waker));
    }

    /// Who is to be woken now.
    pub(super) fn take_called(&mut self) -> Vec<Waker> {
        take(&mut self.called)
    }
}
