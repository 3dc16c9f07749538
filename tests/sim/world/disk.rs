//! A disk in memory: files by path, folders implied.

use std::collections::{BTreeMap, BTreeSet};

use tau_core::fault::{FaultKind, IoFault};
use tau_core::input::Reply;
use tau_core::op::{AppendOp, EntryKind, FsOp, Meta, Outcome, WriteHow};
use tau_core::tools::LineSelect;

#[derive(Default)]
pub(crate) struct Disk {
    files: BTreeMap<String, Vec<u8>>,
    dirs: BTreeSet<String>,
}

fn fault(kind: FaultKind, path: &str) -> IoFault {
    IoFault::new(kind, format!("{path}: {}", kind.code()))
}

impl Disk {
    pub(crate) fn put(&mut self, path: &str, bytes: &[u8]) {
        self.files.insert(path.into(), bytes.to_vec());
        let mut at = path;
        while let Some((parent, _)) = at.rsplit_once('/') {
            self.dirs.insert(if parent.is_empty() { "/".into() } else { parent.into() });
            at = parent;
        }
    }

    pub(crate) fn get(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    pub(crate) fn append(&mut self, op: &AppendOp) -> Reply {
        if op.create && self.files.contains_key(&op.path) {
            return Reply::Failed(fault(FaultKind::Exists, &op.path));
        }
        let before = self.files.get(&op.path).map_or(0, Vec::len) as u64;
        let mut all = self.files.get(&op.path).cloned().unwrap_or_default();
        if all.last().is_some_and(|b| *b != b'\n') && op.bytes.first() != Some(&b'\n') {
            all.push(b'\n');
        }
        all.extend_from_slice(&op.bytes);
        let len = all.len() as u64;
        self.put(&op.path, &all);
        Reply::Done(Outcome::Appended { len, foreign: op.expect_len.is_some_and(|len| len != before) })
    }

    /// Half of a write, then no space.
    pub(crate) fn torn_append(&mut self, op: &AppendOp) -> Reply {
        if !op.create {
            self.write_part(op, op.bytes.len() / 2);
        }
        Reply::Failed(fault(FaultKind::NoSpace, &op.path))
    }

    /// The first bytes of a write.
    pub(crate) fn write_part(&mut self, op: &AppendOp, len: usize) {
        let mut all = self.files.get(&op.path).cloned().unwrap_or_default();
        all.extend_from_slice(&op.bytes[..len]);
        self.put(&op.path, &all);
    }

    pub(crate) fn run(&mut self, op: &FsOp) -> Reply {
        match self.outcome(op) {
            Ok(outcome) => Reply::Done(outcome),
            Err(fault) => Reply::Failed(fault),
        }
    }

    fn outcome(&mut self, op: &FsOp) -> Result<Outcome, IoFault> {
        match op {
            FsOp::Stat { path } => {
                let kind = if self.files.contains_key(path) {
                    EntryKind::File
                } else if self.dirs.contains(path) {
                    EntryKind::Dir
                } else {
                    return Err(fault(FaultKind::NotFound, path));
                };
                let size = self.files.get(path).map_or(0, Vec::len) as u64;
                Ok(Outcome::Meta(Meta { kind, size, mode: 0o644, mtime_ms: 0, real: path.clone() }))
            }
            FsOp::Read { path, limit } => {
                let bytes = self.files.get(path).ok_or_else(|| fault(FaultKind::NotFound, path))?;
                if bytes.len() as u64 > *limit {
                    return Err(fault(FaultKind::TooBig, path));
                }
                Ok(Outcome::Bytes(bytes.clone()))
            }
            FsOp::ReadText(spec) => {
                let bytes =
                    self.files.get(&spec.path).ok_or_else(|| fault(FaultKind::NotFound, &spec.path))?;
                let mut select = LineSelect::new(spec);
                select.push(bytes);
                Ok(Outcome::Text(select.finish()))
            }
            FsOp::Write { path, bytes, how } => {
                if matches!(how, WriteHow::Create { .. }) && self.files.contains_key(path) {
                    return Err(fault(FaultKind::Exists, path));
                }
                if self.dirs.contains(path) {
                    return Err(fault(FaultKind::IsDir, path));
                }
                self.put(path, bytes);
                Ok(Outcome::Unit)
            }
            FsOp::MkdirAll { path } => {
                self.put(&format!("{path}/.keep"), b"");
                self.files.remove(&format!("{path}/.keep"));
                Ok(Outcome::Unit)
            }
            FsOp::ReadDir { path } => {
                if !self.dirs.contains(path) {
                    return Err(fault(FaultKind::NotFound, path));
                }
                let prefix = format!("{}/", path.trim_end_matches('/'));
                let mut entries = BTreeMap::new();
                for file in self.files.keys().filter_map(|f| f.strip_prefix(&prefix)) {
                    match file.split_once('/') {
                        Some((dir, _)) => entries.insert(dir.to_owned(), EntryKind::Dir),
                        None => entries.insert(file.to_owned(), EntryKind::File),
                    };
                }
                Ok(Outcome::Entries(entries.into_iter().collect()))
            }
            FsOp::ReadImage { .. } | FsOp::FitImage { .. } => {
                Ok(Outcome::Image(Err("no images here".into())))
            }
        }
    }
}
