//! Changing a small file that several processes may change: lock, read again, compute, replace (D51).

use std::path::Path;
use std::time::Duration;

use tau_core::fault::{FaultKind, IoFault};

use super::lock::DirLock;
use super::{CancelToken, atomic, fs};

/// Such a file may be this large.
const LIMIT: u64 = 64 << 20;

/// How a file is changed.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Mode of the file if it is new.
    pub mode: u32,
    /// Mode of its folder if that is new.
    pub folder_mode: u32,
    /// How long to wait for the lock of another process.
    pub patience: Duration,
}

/// Gives the text of a file (`None` = there is none) to `change`, and puts in place what it answers; `None` writes
/// nothing. Nobody else changes the file meanwhile, and a reader sees the old or the new text as a whole.
///
/// # Errors
/// That of `change`, as `Invalid` with the path before it; `Invalid` when the file is not UTF-8; `TimedOut` when another
/// process holds the lock; what the operating system says. The old text stays then.
pub fn update(path: &str, how: How, cancel: &CancelToken, change: Change<'_>) -> Result<(), IoFault> {
    run(path, how, cancel, change, false)
}

/// As [`update`], for a change that may take longer than a few seconds: the lock is renewed meanwhile.
///
/// # Errors
/// As [`update`]; `Conflict` when the lock was lost.
pub fn update_slowly(path: &str, how: How, cancel: &CancelToken, change: Change<'_>) -> Result<(), IoFault> {
    run(path, how, cancel, change, true)
}

/// Makes the new text of a file from the old one; see [`update`].
pub type Change<'a> = &'a mut dyn FnMut(Option<&str>) -> Result<Option<String>, String>;

fn run(path: &str, how: How, cancel: &CancelToken, change: Change<'_>, slow: bool) -> Result<(), IoFault> {
    let target = Path::new(path);
    let invalid = |why: &str| IoFault::new(FaultKind::Invalid, format!("{path}: {why}"));
    if let Some(folder) = target.parent().filter(|folder| !folder.exists()) {
        if !slow && change(None).map_err(|why| invalid(&why))?.is_none() {
            return Ok(());
        }
        fs::create_dirs(&folder.to_string_lossy(), how.folder_mode)?;
    }
    let mut lock = DirLock::acquire_within(target, how.patience, cancel)?;
    let text = match fs::read(path, LIMIT) {
        Ok(bytes) => Some(String::from_utf8(bytes).map_err(|_| invalid("is not UTF-8 text"))?),
        Err(fault) if fault.kind == FaultKind::NotFound => None,
        Err(fault) => return Err(fault),
    };
    let mut work = || change(text.as_deref()).map_err(|why| invalid(&why));
    let new = if slow { lock.keep_while(work)? } else { work()? };
    let Some(new) = new.filter(|new| Some(new) != text.as_ref()) else { return Ok(()) };
    lock.check()?;
    atomic::replace(target, new.as_bytes(), how.mode)
}
