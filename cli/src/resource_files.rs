//! The file system as the search for skills and templates wants to see it.

use std::fs;
use std::io::Read;

use tau_core::fault::{FaultKind, IoFault};
use tau_core::skills::disk::{Disk, Entry, EntryKind, ReadFault, Target};
use tau_io_std::sys;

use crate::prompt_files::Folders;

/// Most names of one folder.
const MOST_ENTRIES: usize = 100_000;

/// The real files.
#[derive(Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn list(&mut self, folder: &str) -> Option<Vec<Entry>> {
        let entries = fs::read_dir(folder).ok()?.take(MOST_ENTRIES).flatten();
        let known = entries.filter_map(|entry| {
            let kind = entry.file_type().map_or(EntryKind::Link, kind);
            Some(Entry { name: entry.file_name().into_string().ok()?, kind })
        });
        Some(known.collect())
    }

    fn follow(&mut self, path: &str) -> Target {
        match fs::metadata(path) {
            Ok(meta) if meta.is_file() => Target::File,
            Ok(meta) if meta.is_dir() => Target::Folder,
            _ => Target::Absent,
        }
    }

    fn read(&mut self, path: &str, most: usize) -> Result<String, ReadFault> {
        let (file, size) = sys::fs::open_regular(path).map_err(|fault| read_fault(path, &fault))?;
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(most).min(most) + 1);
        file.take(most as u64)
            .read_to_end(&mut bytes)
            .map_err(|error| ReadFault::Failed(error.to_string()))?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|broken| String::from_utf8_lossy(broken.as_bytes()).into_owned()))
    }

    fn real(&mut self, path: &str) -> Option<String> {
        fs::canonicalize(path).ok()?.into_os_string().into_string().ok()
    }
}

/// The real files, without looks for what is known to be missing.
#[derive(Debug)]
pub struct KnownDisk<'a>(pub &'a Folders<'a>);

impl Disk for KnownDisk<'_> {
    fn list(&mut self, folder: &str) -> Option<Vec<Entry>> {
        if self.0.lacks(folder) { None } else { RealDisk.list(folder) }
    }

    fn follow(&mut self, path: &str) -> Target {
        if self.0.lacks(path) { Target::Absent } else { RealDisk.follow(path) }
    }

    fn read(&mut self, path: &str, most: usize) -> Result<String, ReadFault> {
        RealDisk.read(path, most)
    }

    fn real(&mut self, path: &str) -> Option<String> {
        RealDisk.real(path)
    }
}

fn kind(kind: fs::FileType) -> EntryKind {
    if kind.is_file() {
        EntryKind::File
    } else if kind.is_dir() {
        EntryKind::Folder
    } else if kind.is_symlink() {
        EntryKind::Link
    } else {
        EntryKind::Other
    }
}

fn read_fault(path: &str, fault: &IoFault) -> ReadFault {
    match fault.kind {
        FaultKind::NotFound | FaultKind::NotDir | FaultKind::IsDir | FaultKind::Special => ReadFault::Absent,
        _ => ReadFault::Failed(
            fault.detail.strip_prefix(&format!("{path}: ")).unwrap_or(&fault.detail).to_owned(),
        ),
    }
}
