//! Small files of the user, read whole.

use tau_core::fault::FaultKind;
use tau_io_std::sys::fs;

/// A file of settings or instructions may be this large.
const LIMIT: u64 = 64 << 20;

/// The text of a regular file, invalid bytes replaced; `None` when there is none.
///
/// # Errors
/// Why it cannot be read.
pub fn read_text(path: &str) -> Result<Option<String>, String> {
    match fs::read(path, LIMIT) {
        Ok(bytes) => Ok(Some(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(broken) => String::from_utf8_lossy(broken.as_bytes()).into_owned(),
        })),
        Err(fault) => match fault.kind {
            FaultKind::NotFound | FaultKind::NotDir | FaultKind::IsDir | FaultKind::Special => Ok(None),
            _ => Err(fault.detail.strip_prefix(&format!("{path}: ")).unwrap_or(&fault.detail).to_owned()),
        },
    }
}

/// The text of a file that is known to be there, as [`read_text`] gives it.
///
/// # Errors
/// Why it cannot be read; also when it is something else than a file.
pub fn read_present(path: &str) -> Result<Option<String>, String> {
    match read_text(path) {
        Ok(None) => Err("it is no file".to_owned()),
        other => other,
    }
}
