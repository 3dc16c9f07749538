//! `--record FILE`: everything that goes into a machine, line by line, as it happens.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::mem;
use std::os::unix::fs::OpenOptionsExt as _;

use tau_core::hub::{Boot, Hub};
use tau_core::now::Now;
use tau_core::record::Log;

use crate::args::help::VERSION;
use crate::out::note;

/// Lines are kept back up to this many bytes, while nothing but pieces of a stream arrive.
const KEPT_BACK: usize = 64 * 1024;

/// Bytes in one piece of this many are written without being copied first.
const WRITTEN_BY_ITSELF: usize = 16 * 1024;

/// A session file may be this large to be taken into a record, bytes.
const LARGEST_SESSION: u64 = 256 << 20;

/// Makes the machine of a session, recorded if a file is named.
///
/// # Errors
/// When there is such a file already, or it cannot be made.
pub fn hub(boot: Boot, now: Now, file: Option<&str>) -> Result<Hub, String> {
    let Some(path) = file else { return Ok(Hub::new(boot, now)) };
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let file = opened.map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => {
            format!("--record: {path} exists already; name another file, or remove it")
        }
        _ => format!("--record: {path} cannot be written: {e}"),
    })?;
    let mut pages = Pages { file: Some(file), path: path.to_owned(), kept: Vec::new() };
    let sink = Box::new(move |bytes: &[u8], urgent: bool| pages.take(bytes, urgent));
    let log = Log::begin(VERSION, now, &boot, sink, Box::new(read));
    let mut hub = Hub::new(boot, now);
    hub.record(Box::new(log));
    Ok(hub)
}

/// A session file, as it stands.
fn read(path: &str) -> Option<Vec<u8>> {
    match tau_io_std::sys::fs::read(path, LARGEST_SESSION) {
        Ok(bytes) => Some(bytes),
        Err(fault) => {
            note(&format!("--record: the session is not in the record: {fault}"));
            None
        }
    }
}

struct Pages {
    /// `None` once it could not be written.
    file: Option<File>,
    path: String,
    kept: Vec<u8>,
}

impl Pages {
    fn take(&mut self, bytes: &[u8], urgent: bool) {
        let by_itself = bytes.len() >= WRITTEN_BY_ITSELF;
        if !by_itself {
            self.kept.extend_from_slice(bytes);
        }
        if by_itself || urgent || self.kept.len() >= KEPT_BACK {
            let mut kept = mem::take(&mut self.kept);
            self.write(&kept);
            kept.clear();
            self.kept = kept;
        }
        if by_itself {
            self.write(bytes);
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        if let Err(e) = file.write_all(bytes) {
            note(&format!("--record: {} cannot be written any more: {e}", self.path));
            self.file = None;
        }
    }
}
