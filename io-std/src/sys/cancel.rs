//! Cancellation of one running op, from any thread.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tau_core::fault::IoFault;

type Hook = Box<dyn Fn() + Send>;

#[derive(Default)]
struct Inner {
    cancelled: AtomicBool,
    detachable: AtomicBool,
    hook: Mutex<Option<Hook>>,
}

/// Says that an op is no longer wanted, and wakes whatever its thread waits for.
#[derive(Clone, Default)]
pub struct CancelToken(Arc<Inner>);

impl CancelToken {
    /// A token that is not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels. Harmless when repeated.
    pub fn cancel(&self) {
        let hook = self.hook();
        self.0.cancelled.store(true, Ordering::SeqCst);
        if let Some(wake) = &*hook {
            wake();
        }
    }

    /// Whether [`cancel`](Self::cancel) was called.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// # Errors
    /// `Cancelled` once the token is.
    pub fn check(&self) -> Result<(), IoFault> {
        if self.is_cancelled() { Err(IoFault::cancelled()) } else { Ok(()) }
    }

    /// Runs `wake` on cancel (at once if that was earlier) until the guard is dropped. One at a time.
    #[must_use]
    pub fn on_cancel(&self, wake: impl Fn() + Send + 'static) -> HookGuard<'_> {
        let mut hook = self.hook();
        if self.is_cancelled() {
            wake();
        }
        *hook = Some(Box::new(wake));
        HookGuard(self)
    }

    /// Says whether the op sits in a call that nothing can wake (a name look-up, a connect). A driver then answers
    /// a cancel itself and ignores what the thread brings later.
    pub fn set_detachable(&self, detachable: bool) {
        self.0.detachable.store(detachable, Ordering::SeqCst);
    }

    /// Whether a cancel has to be answered without the op's thread.
    #[must_use]
    pub fn is_detachable(&self) -> bool {
        self.0.detachable.load(Ordering::SeqCst)
    }

    fn hook(&self) -> MutexGuard<'_, Option<Hook>> {
        self.0.hook.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CancelToken").field(&self.is_cancelled()).finish()
    }
}

/// Keeps a hook of [`CancelToken::on_cancel`]; dropping it removes the hook.
#[derive(Debug)]
pub struct HookGuard<'a>(&'a CancelToken);

impl Drop for HookGuard<'_> {
    fn drop(&mut self) {
        *self.0.hook() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn hooks_run_before_and_after() {
        let count = Arc::new(AtomicU32::new(0));
        let token = CancelToken::new();
        let hook = |count: &Arc<AtomicU32>| {
            let count = Arc::clone(count);
            move || {
                count.fetch_add(1, Ordering::SeqCst);
            }
        };
        drop(token.on_cancel(hook(&count)));
        let guard = token.on_cancel(hook(&count));
        token.cancel();
        assert_eq!(count.load(Ordering::SeqCst), 1);
        drop(guard);
        let _late = token.on_cancel(hook(&count));
        assert_eq!(count.load(Ordering::SeqCst), 2);
        assert!(token.check().is_err());
    }
}
