//! A copy of a session as a new one: all entries of all branches under a new header (spec 60 §1.11).

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use serde_json::Value;
use tau_core::entropy::Entropy;
use tau_core::json::Writer;
use tau_core::session::{Header, migrate};
use tau_io_std::sys::fault;

/// Copies the session file `source` to `target`, which must not exist.
///
/// # Errors
/// When the source is no session, or the target cannot be written.
pub(super) fn fork(source: &str, target: &str, header: &Header, rng: &mut Entropy) -> Result<(), String> {
    let bytes =
        fs::read(source).map_err(|e| format!("the session cannot be copied: {}", fault::of(&e, source)))?;
    let current = migrate::rewrite(&bytes, rng).unwrap_or(bytes);
    let mut records = current.split(|byte| *byte == b'\n').filter(is_record);
    if !records.next().is_some_and(is_header) {
        return Err(format!("{source} cannot be copied: it does not start with a session header"));
    }
    let mut w = Writer::new();
    header.write(&mut w);
    let mut out = w.into_bytes();
    out.push(b'\n');
    for line in records.filter(|line| !is_header(line)) {
        out.extend_from_slice(line);
        out.push(b'\n');
    }
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(target);
    file.and_then(|mut file| file.write_all(&out))
        .map_err(|e| format!("the copy cannot be written: {}", fault::of(&e, target)))
}

/// Lines that are no JSON (blank, torn) are not worth copying.
fn is_record(line: &&[u8]) -> bool {
    serde_json::from_slice::<&serde_json::value::RawValue>(line).is_ok()
}

fn is_header(line: &[u8]) -> bool {
    // Only lines that may be one are read as values.
    line.windows(9).any(|part| part == b"\"session\"")
        && serde_json::from_slice::<Value>(line).is_ok_and(|value| value["type"] == "session")
}
