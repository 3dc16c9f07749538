//! Folders for complete outputs of commands: private, one for each session, removed after a week (decision D38).

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tau_io_std::sys::env;

const KEPT: Duration = Duration::from_hours(7 * 24);

/// The folder of a session. It is made when it is needed.
#[must_use]
pub fn folder(session_id: &str) -> String {
    format!("{}/{session_id}", root())
}

/// Removes folders that nothing was written to for a week.
pub fn sweep() {
    let now = SystemTime::now();
    let is_old = |path: &Path| {
        let changed = path.metadata().and_then(|meta| meta.modified());
        changed.is_ok_and(|changed| now.duration_since(changed).is_ok_and(|age| age > KEPT))
    };
    for entry in fs::read_dir(root()).into_iter().flatten().flatten() {
        if is_old(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn root() -> String {
    format!("{}/tau-outputs-{}", env::temp_dir(), rustix::process::getuid().as_raw())
}
