//! A copy of a session as a new one: all entries of all branches under a new header (spec 60 §1.11).

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use tau_core::entropy::Entropy;
use tau_core::session::{Header, Want, fork as copies, migrate, open};
use tau_io_std::sys::fault;

use super::find;

/// Copies the session file `source` to `target`, which must not exist. What can be read of a damaged file is copied,
/// the file itself stays as it is.
///
/// # Errors
/// When the source is no session, or the target cannot be written.
pub(super) fn fork(source: &str, target: &str, header: &Header, rng: &mut Entropy) -> Result<(), String> {
    let bytes = find::open(source)
        .and_then(|_| fs::read(source))
        .map_err(|e| format!("the session cannot be copied: {}", fault::of(&e, source)))?;
    let current = migrate::rewrite(&bytes, rng).unwrap_or(bytes);
    let (session, _) = open(&current, source.to_owned(), "", Want::Context)
        .map_err(|why| format!("{source} cannot be copied: {why}"))?;
    let copy = copies::whole(&current, session.tree(), header).bytes;
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(target);
    file.and_then(|mut file| file.write_all(&copy))
        .map_err(|e| format!("the copy cannot be written: {}", fault::of(&e, target)))
}
