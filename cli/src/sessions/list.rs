//! Lists: what each session file of a folder holds, read from the files or known from the index.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io::Read;

use tau_core::now::Wall;
use tau_core::session::{InfoReader, SessionInfo};
use tau_io_std::sys::clock;

use super::find::{Folder, open};
use super::index::{self, Record, Stamp};

/// Large enough that most of the time goes into looking at the bytes, small enough to stay in the cache.
const CHUNK: usize = 256 << 10;

/// Longer names and first messages are cut.
const TEXT_BYTES: usize = 1000;

/// Reading this much again costs next to nothing: no index is kept for it.
const WORTH_BYTES: u64 = 4 << 20;

/// What opening a file costs, in bytes read.
const FILE_BYTES: u64 = 16 << 10;

/// A session of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Absolute path.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// What it holds, without the text; name and first message are cut at 1,000 bytes.
    pub info: SessionInfo,
}

impl Found {
    fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Newest activity first, then the later file name.
    #[must_use]
    pub fn order(a: &Self, b: &Self) -> Ordering {
        SessionInfo::order((&a.info, a.file_name()), (&b.info, b.file_name()))
    }
}

impl Folder {
    /// All sessions of the folder, whatever their directories, newest activity first. `cache` is the folder of
    /// index files.
    #[must_use]
    pub fn list(&self, cache: &str) -> Vec<Found> {
        let index = index::path(cache, &self.path);
        let mut known = index::load(&index, &self.path);
        let had = known.len();
        let mut scan = Scan { now: clock::wall(), buffer: vec![0; CHUNK], changed: false };
        let records: Vec<Record> = self
            .regular_files()
            .filter_map(|(name, meta)| scan.file(self, name, &meta, &mut known))
            .collect();
        // What is left is gone.
        if scan.changed || !known.is_empty() {
            self.remember(&index, &records, scan.now, had);
        }
        let mut found: Vec<Found> = records
            .into_iter()
            .filter_map(|Record { file, stamp, info }| {
                Some(Found { path: format!("{}/{file}", self.path), size: stamp.size, info: info? })
            })
            .collect();
        tau_core::order::sort(&mut found, Found::order);
        found
    }

    /// Session files by name; links are followed.
    fn regular_files(&self) -> impl Iterator<Item = (String, Metadata)> + use<> {
        let folder = self.path.clone();
        fs::read_dir(&folder).into_iter().flatten().flatten().filter_map(move |entry| {
            let name = entry.file_name().into_string().ok().filter(|name| name.ends_with(".jsonl"))?;
            let mut meta = entry.metadata().ok()?;
            if meta.is_symlink() {
                meta = fs::metadata(entry.path()).ok()?;
            }
            meta.is_file().then_some((name, meta))
        })
    }

    fn remember(&self, index: &str, records: &[Record], now: Wall, had: usize) {
        let settled: Vec<&Record> = records.iter().filter(|record| record.stamp.is_settled(now)).collect();
        let worth: u64 = settled.iter().map(|record| record.stamp.size.saturating_add(FILE_BYTES)).sum();
        if worth >= WORTH_BYTES {
            index::store(index, &self.path, &settled);
        } else if had > 0 {
            let _ = fs::remove_file(index);
        }
    }

    /// Takes files out of the index, so that nothing of them is left.
    pub(super) fn forget(&self, cache: &str, files: &[&str]) {
        let index = index::path(cache, &self.path);
        let mut known = index::load(&index, &self.path);
        let had = known.len();
        known.retain(|name, _| !files.contains(&name.as_str()));
        if known.len() < had {
            index::store(&index, &self.path, &known.values().collect::<Vec<_>>());
        }
    }
}

struct Scan {
    now: Wall,
    buffer: Vec<u8>,
    changed: bool,
}

impl Scan {
    /// What is known about a file, else what it holds; `None` when it cannot be read.
    fn file(
        &mut self,
        folder: &Folder,
        name: String,
        meta: &Metadata,
        known: &mut HashMap<String, Record>,
    ) -> Option<Record> {
        let old = known.remove(&name);
        if let Some(record) = old.filter(|record| record.stamp == Stamp::of(meta)) {
            return Some(record);
        }
        self.changed = true;
        let (file, meta) = open(&format!("{}/{name}", folder.path)).ok()?;
        let info = read(file, InfoReader::brief(), mtime(&meta), &mut self.buffer)?;
        Some(Record { file: name, stamp: Stamp::of(&meta), info: info.map(brief) })
    }
}

fn mtime(meta: &Metadata) -> Wall {
    Wall(Stamp::of(meta).mtime.div_euclid(1_000_000))
}

/// What a file holds: `None` when it cannot be read, `Some(None)` when it is no session.
fn read(
    mut file: impl Read,
    mut reader: InfoReader,
    mtime: Wall,
    buffer: &mut [u8],
) -> Option<Option<SessionInfo>> {
    while !reader.is_refused() {
        match file.read(buffer) {
            Ok(0) => break,
            Ok(count) => reader.feed(buffer.get(..count)?),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    Some(reader.finish(mtime))
}

/// Everything about a file, its text too.
pub(super) fn whole(path: &str) -> Option<SessionInfo> {
    let (file, meta) = open(path).ok()?;
    read(file, InfoReader::default(), mtime(&meta), &mut vec![0; CHUNK])?
}

/// A single file as a list would show it.
pub(super) fn single(path: &str) -> Option<Found> {
    let (file, meta) = open(path).ok()?;
    let info = read(file, InfoReader::brief(), mtime(&meta), &mut vec![0; CHUNK])??;
    Some(Found { path: path.to_owned(), size: meta.len(), info: brief(info) })
}

fn brief(mut info: SessionInfo) -> SessionInfo {
    for text in [&mut info.name, &mut info.first_message].into_iter().flatten() {
        text.truncate(text.floor_char_boundary(TEXT_BYTES));
        text.shrink_to_fit();
    }
    info
}
