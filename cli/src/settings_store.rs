//! Saves settings: one key of a file changes, everything else in it stays (spec 40 §4.1, D51).

use std::time::Duration;

use tau_core::fault::{FaultKind, IoFault};
use tau_core::json::Value;
use tau_core::settings::{Change, Scope, rewrite};
use tau_io_std::sys::CancelToken;
use tau_io_std::sys::update::{How, update};

use crate::surroundings::Surroundings;

/// How long a command that saves something by the way waits for another process.
pub const PASSING: Duration = Duration::from_secs(2);

/// How long one that does nothing else does; a lock that nobody holds any more is free before that.
pub const PATIENT: Duration = Duration::from_secs(35);

/// The settings file of a scope.
#[must_use]
pub fn path(place: &Surroundings, scope: Scope) -> String {
    match scope {
        Scope::Global => place.agent_file("settings.json"),
        Scope::Project => format!("{}/.pi/settings.json", place.cwd),
    }
}

/// A change that gives a setting a value, or takes it out.
#[must_use]
pub fn change(path: &[&str], value: Option<Value>) -> Change {
    Change { path: path.iter().map(|&name| name.to_owned()).collect(), value }
}

/// Makes changes in the file of a scope. That of a project must be trusted for that: ask before.
///
/// # Errors
/// Why nothing was written, and what to do. A file that cannot be understood stays as it is.
pub fn save(
    place: &Surroundings,
    scope: Scope,
    changes: &[Change],
    patience: Duration,
) -> Result<(), String> {
    let path = path(place, scope);
    let how = match scope {
        Scope::Global => How { mode: 0o600, folder_mode: 0o700, patience },
        Scope::Project => How { mode: 0o666, folder_mode: 0o777, patience },
    };
    update(&path, how, &CancelToken::new(), &mut |text| rewrite(text, changes)).map_err(explain)
}

/// Why a file was not changed, and what to do.
pub(crate) fn explain(fault: IoFault) -> String {
    match fault.kind {
        FaultKind::Invalid => {
            format!("{}; nothing was written: correct the file, or move it away", fault.detail)
        }
        _ => format!("{}; nothing was written", fault.detail),
    }
}
