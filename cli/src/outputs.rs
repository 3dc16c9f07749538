//! Folders for complete outputs of commands: private, one for each session, removed after a week (decision D38).

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;
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
    let began = |name: &OsStr| name.to_str().and_then(began).map(|ms| SystemTime::UNIX_EPOCH + ms);
    let is_young = |name: &OsStr| began(name).is_some_and(|began| now < began + KEPT);
    for entry in fs::read_dir(root()).into_iter().flatten().flatten() {
        if !is_young(&entry.file_name()) && is_old(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// When a session began, told by its name if that is a UUID of version 7: such a folder need not be looked at for as
/// long as it would be kept anyway.
fn began(name: &str) -> Option<Duration> {
    let (high, rest) = name.split_once('-')?;
    let (low, rest) = rest.split_once('-')?;
    let is_time = high.len() == 8 && low.len() == 4 && rest.starts_with('7') && !high.starts_with('+');
    let ms = u64::from_str_radix(&format!("{high}{low}"), 16).ok()?;
    is_time.then(|| Duration::from_millis(ms))
}

fn root() -> &'static str {
    static ROOT: OnceLock<String> = OnceLock::new();
    ROOT.get_or_init(|| format!("{}/tau-outputs-{}", env::temp_dir(), rustix::process::getuid().as_raw()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_when_sessions_began() {
        let ms = Duration::from_millis(0x0197_0000_0000);
        assert_eq!(began("01970000-0000-7abc-8def-0123456789ab"), Some(ms));
        for name in
            ["01970000-0000-4abc-8def-0123456789ab", "mine", "a-b-7", "0197000g-0000-7abc", "+1970000-0000-7"]
        {
            assert_eq!(began(name), None, "{name}");
        }
    }
}
