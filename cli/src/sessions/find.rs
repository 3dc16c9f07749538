//! Looking for sessions in folders. Nothing is read that the question does not need.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::SystemTime;

use tau_core::now::Wall;
use tau_core::path::{Style, normalize};
use tau_core::session::Header;
use tau_core::session::info::{InfoReader, find_header};
pub(super) use tau_io_std::sys::session::open;

const CHUNK: usize = 128 * 1024;

/// A header is found within this many bytes, or not at all (spec 60 §1.7 rule 6).
const HEADER_LIMIT: u64 = 1 << 20;

/// A folder of session files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// Absolute path.
    pub path: String,
}

impl Folder {
    /// Creates it, so that a run that cannot be stored fails before it begins.
    ///
    /// # Errors
    /// Why not, with the path.
    pub fn create(&self) -> Result<(), String> {
        tau_io_std::sys::fs::private_dir(&self.path)
            .map(drop)
            .map_err(|e| format!("sessions cannot be stored: {e} (--no-session runs without storing)"))
    }

    /// The file changed last whose header belongs to this working directory (D24).
    #[must_use]
    pub fn newest(&self, cwd: &str) -> Option<String> {
        let mut files: Vec<(SystemTime, String)> = self.files().filter_map(with_mtime).collect();
        tau_core::order::sort(&mut files, |a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        files.into_iter().map(|(_, path)| path).find(|path| belongs(path, cwd))
    }

    /// The session with this id. The usual file names end in it, which spares reading the others.
    #[must_use]
    pub fn exact(&self, id: &str, cwd: &str) -> Option<String> {
        let mut files: Vec<String> = self.files().collect();
        tau_core::order::sort(&mut files, Ord::cmp);
        let is = |path: &&String| header(path).is_some_and(|h| h.id == id && is_for(&h, cwd));
        let ending = format!("_{id}.jsonl");
        files
            .iter()
            .filter(|path| path.ends_with(&ending))
            .find(is)
            .or_else(|| files.iter().find(is))
            .cloned()
    }

    /// The session with this id, whatever its directory.
    #[must_use]
    pub fn with_id(&self, id: &str) -> Option<String> {
        let named = format!("_{id}.jsonl");
        self.files().find(|path| path.ends_with(&named) && header(path).is_some_and(|h| h.id == id))
    }

    /// The session whose id begins with this; among several the one with the newest activity.
    #[must_use]
    pub fn by_prefix(&self, prefix: &str, cwd: &str) -> Option<String> {
        let is = |path: &String| header(path).is_some_and(|h| h.id.starts_with(prefix) && is_for(&h, cwd));
        newest_activity(self.files().filter(is).collect())
    }

    pub(super) fn files(&self) -> impl Iterator<Item = String> + use<> {
        files(Path::new(&self.path))
    }
}

/// Every folder of sessions below `all`, links included.
pub(super) fn folders(all: &str) -> impl Iterator<Item = Folder> + use<> {
    let entries = fs::read_dir(all).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.path().into_os_string().into_string().ok())
        .map(|path| Folder { path })
}

/// A session of any working directory by id, else by the beginning of one, and that directory.
pub(super) fn elsewhere(folders: impl Iterator<Item = Folder>, wanted: &str) -> Option<(String, String)> {
    let files = folders.flat_map(|folder| folder.files());
    let is_wanted = |h: &Header| h.id.starts_with(wanted);
    let matching = files.filter_map(|path| header(&path).filter(is_wanted).map(|header| (path, header)));
    let (exact, longer): (Vec<_>, Vec<_>) = matching.partition(|(_, header)| header.id == wanted);
    let among = if exact.is_empty() { longer } else { exact };
    let path = newest_activity(among.iter().map(|(path, _)| path.clone()).collect())?;
    let home = among.into_iter().find(|(own, _)| *own == path)?.1.cwd.unwrap_or_default();
    Some((path, home))
}

fn files(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.path().into_os_string().into_string().ok())
        .filter(|p| p.ends_with(".jsonl"))
}

fn with_mtime(path: String) -> Option<(SystemTime, String)> {
    let modified = fs::metadata(&path).ok()?.modified().ok()?;
    Some((modified, path))
}

fn belongs(path: &str, cwd: &str) -> bool {
    header(path).is_some_and(|header| is_for(&header, cwd))
}

/// Directories are compared as they are spelled, dots and doubled separators aside.
#[must_use]
pub fn is_same_directory(own: &str, cwd: &str) -> bool {
    own == cwd || (own.starts_with('/') && normalize(own, Style::Posix) == cwd)
}

fn is_for(header: &Header, cwd: &str) -> bool {
    header.cwd.as_deref().is_some_and(|own| is_same_directory(own, cwd))
}

/// Reads the header only.
pub(super) fn header(path: &str) -> Option<Header> {
    let mut file = open(path).ok()?.0.take(HEADER_LIMIT);
    let mut text = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let count = file.read(&mut chunk).ok()?;
        text.extend_from_slice(chunk.get(..count)?);
        if let Some(found) = find_header(&text, count == 0) {
            return found;
        }
        if count == 0 {
            return None;
        }
    }
}

fn newest_activity(mut paths: Vec<String>) -> Option<String> {
    if paths.len() < 2 {
        return paths.pop();
    }
    let times = paths.into_iter().map(|path| (activity(&path), path));
    times.max().map(|(_, path)| path)
}

/// Time of the newest message of user or model.
fn activity(path: &str) -> Option<Wall> {
    let mut file = BufReader::with_capacity(CHUNK, open(path).ok()?.0);
    let mut reader = InfoReader::brief();
    loop {
        let piece = file.fill_buf().ok()?;
        if piece.is_empty() {
            break;
        }
        reader.feed(piece);
        let taken = piece.len();
        file.consume(taken);
    }
    Some(reader.finish(Wall(0))?.modified)
}
