//! A world with one file, for tools that read and write.

use std::sync::Arc;

use tau_core::fault::{FaultKind, IoFault};
use tau_core::input::Reply;
use tau_core::op::{EntryKind, FsOp, Meta, Op, Outcome};
use tau_core::tools::LineSelect;

use crate::tool_driver::World;

/// One file, and what happens to who touches it.
pub struct OneFile {
    /// Absolute path.
    pub path: String,
    /// Content now.
    pub bytes: Vec<u8>,
    /// Answer to each operation instead of the file.
    pub fault: Option<FaultKind>,
    /// Whether the file was written.
    pub written: bool,
}

impl OneFile {
    /// A file that can be read and written.
    #[must_use]
    pub fn new(path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.to_owned(), bytes: bytes.into(), fault: None, written: false }
    }

    fn answer(&mut self, op: &Op) -> Result<Outcome, IoFault> {
        let Op::Fs(op) = op else { return Err(IoFault::new(FaultKind::Other, "only files here")) };
        let (FsOp::Stat { path } | FsOp::Read { path, .. } | FsOp::Write { path, .. }) = op else {
            let FsOp::ReadText(wanted) = op else { return Err(IoFault::new(FaultKind::Other, "not here")) };
            let mut select = LineSelect::new(wanted);
            self.bytes.chunks(4096).for_each(|chunk| select.push(chunk));
            return Ok(Outcome::Text(select.finish()));
        };
        if *path != self.path {
            return Err(IoFault::new(FaultKind::NotFound, format!("{path}: no such file")));
        }
        if let Some(kind) = self.fault {
            return Err(IoFault::new(kind, format!("{path}: {}", kind.code())));
        }
        Ok(match op {
            FsOp::Stat { .. } => Outcome::Meta(Meta {
                kind: EntryKind::File,
                size: self.bytes.len() as u64,
                mode: 0o644,
                mtime_ms: 0,
                real: self.path.clone(),
            }),
            FsOp::Write { bytes, .. } => {
                self.bytes = Arc::unwrap_or_clone(bytes.clone());
                self.written = true;
                Outcome::Unit
            }
            _ => Outcome::Bytes(self.bytes.clone()),
        })
    }
}

impl World for OneFile {
    fn start(&mut self, op: &Op) -> Vec<(u64, Reply)> {
        vec![(0, self.answer(op).map_or_else(Reply::Failed, Reply::Done))]
    }
}
