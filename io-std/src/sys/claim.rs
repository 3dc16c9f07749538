//! Session files that this process is at work in, for others to see: each has a shared advisory lock, which the system takes
//! away when the process ends. Nobody is kept from anything: who sees that others are at work can go on beside them.

use std::fs::{File, Metadata};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::session;

/// The files; `None` while nobody wants to know.
static CLAIMED: Mutex<Option<Vec<File>>> = Mutex::new(None);

/// How often a lock is asked for that another process holds for a moment only.
const TRIES: u32 = 5;

fn claimed() -> MutexGuard<'static, Option<Vec<File>>> {
    CLAIMED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is(file: &File, wanted: &Metadata) -> bool {
    file.metadata().is_ok_and(|meta| (meta.dev(), meta.ino()) == (wanted.dev(), wanted.ino()))
}

/// From now on session files that this process makes are claimed, too.
pub fn begin() {
    claimed().get_or_insert_default();
}

/// Claims the session file at a path before it is read; whether another process is at work in it. A file that is not
/// there, or on a file system without locks, has nobody at work in it.
#[must_use]
pub fn claim(path: &str) -> bool {
    let Ok((file, meta)) = session::open(path) else { return false };
    let mut claimed = claimed();
    let files = claimed.get_or_insert_default();
    if files.iter().any(|file| is(file, &meta)) {
        return false;
    }
    let others = flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK);
    if share(&file) {
        files.push(file);
    }
    others
}

/// Another process may be looking at the same moment.
fn share(file: impl AsFd) -> bool {
    for _ in 0..TRIES {
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Err(Errno::WOULDBLOCK) => thread::sleep(Duration::from_millis(1)),
            other => return other.is_ok(),
        }
    }
    false
}

/// Claims a session file that was just made.
pub(super) fn made(file: File) {
    if let Some(files) = claimed().as_mut()
        && share(&file)
    {
        files.push(file);
    }
}

/// This process is not at work in the file at a path any more.
pub fn release(path: &str) {
    let Ok(meta) = std::fs::metadata(path) else { return };
    if let Some(files) = claimed().as_mut() {
        files.retain(|file| !is(file, &meta));
    }
}
