//! Reading a session file: in chunks, and of old parts no more than where they are.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use tau_core::entropy::Entropy;
use tau_core::session::{Header, Loading, OpenError, Reader, Session, Want, migrate};

use super::{atomic, fault};

const CHUNK: usize = 128 * 1024;

/// Opens a regular file for reading. What is none is refused without waiting for anybody (a pipe, a device).
///
/// # Errors
/// That of the operating system, or what the path is instead.
pub fn open(path: &str) -> io::Result<(File, Metadata)> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let meta = file.metadata()?;
    if meta.is_file() {
        return Ok((file, meta));
    }
    Err(io::Error::other(if meta.is_dir() { "is a folder" } else { "is not a regular file" }))
}

/// Opens a file as a session. A missing or empty one becomes a new session at that path, whose header `begin`
/// makes; one of an older version is brought to the current one first.
///
/// # Errors
/// Why the file is no session, or cannot be read; it is left as it is.
pub fn load(
    path: &str,
    cwd: &str,
    want: Want,
    begin: impl FnOnce(&mut Entropy) -> Header,
    rng: &mut Entropy,
) -> Result<Session, String> {
    let file = match open(path) {
        Ok((file, _)) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Ok(Session::new(begin(rng), Some(path.to_owned())));
        }
        Err(e) => return Err(cannot_open(path, &e)),
    };
    match read(&file, want).map_err(|e| cannot_open(path, &e))? {
        Ok(loading) => Ok(loading.finish(path.to_owned(), cwd)),
        Err(OpenError::Empty) => Ok(Session::in_empty_file(begin(rng), path.to_owned())),
        Err(OpenError::Old) => {
            bring_up_to_date(path, rng)?;
            let (file, _) = open(path).map_err(|e| cannot_open(path, &e))?;
            let loading = read(&file, want).map_err(|e| cannot_open(path, &e))?;
            Ok(loading.map_err(|why| not_a_session(path, why))?.finish(path.to_owned(), cwd))
        }
        Err(why) => Err(not_a_session(path, why)),
    }
}

fn read(mut file: &File, want: Want) -> io::Result<Result<Loading, OpenError>> {
    let mut reader = Reader::new(want);
    let mut chunk = vec![0; CHUNK];
    while !reader.is_refused() {
        match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => reader.feed(chunk.get(..count).unwrap_or_default()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    let mut loading = match reader.finish() {
        Ok(loading) => loading,
        Err(why) => return Ok(Err(why)),
    };
    while let Some(range) = loading.next_range() {
        let wanted = usize::try_from(range.len).unwrap_or(usize::MAX);
        if chunk.len() < wanted {
            chunk.resize(wanted, 0);
        }
        let part = chunk.get_mut(..wanted).unwrap_or_default();
        let count = read_at(file, part, range.offset)?;
        loading.give(part.get(..count).unwrap_or_default());
    }
    Ok(Ok(loading))
}

/// As much as there is, up to the whole buffer.
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

/// Rewrites a file of version 1 or 2 by way of a temporary one.
fn bring_up_to_date(path: &str, rng: &mut Entropy) -> Result<(), String> {
    let bytes = fs::read(path).map_err(|e| cannot_open(path, &e))?;
    let Some(new) = migrate::rewrite(&bytes, rng) else { return Ok(()) };
    atomic::replace(Path::new(path), &new, 0o600)
        .map_err(|e| format!("the session {path} has an older version and cannot be rewritten: {e}"))
}

fn cannot_open(path: &str, error: &io::Error) -> String {
    format!("the session cannot be opened: {}", fault::of(error, path))
}

fn not_a_session(path: &str, why: OpenError) -> String {
    format!("{path} cannot be opened as a session: {why}; it was left as it is")
}
