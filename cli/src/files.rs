//! Small files of the user, read whole.

use std::fs;
use std::io::ErrorKind;

use tau_io_std::sys::fault;

/// The text of a file, invalid bytes replaced; `None` when there is none.
///
/// # Errors
/// Why it cannot be read, without the path.
pub fn read_text(path: &str) -> Result<Option<String>, String> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(broken) => String::from_utf8_lossy(broken.as_bytes()).into_owned(),
        })),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(fault::text(&e)),
    }
}
