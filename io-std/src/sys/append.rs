//! Appending lines to a file that others may append to as well: one write each, always from a line's start.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use tau_core::fault::{FaultKind, IoFault};
use tau_core::op::{AppendOp, Outcome};

use super::{fault, fs::private_dir};

/// Mode of a new file: it may hold what only its owner should read.
const FILE_MODE: u32 = 0o600;

/// Executes an append. Where the file does not have the expected size, someone else wrote: a line they left torn is
/// ended first, so that ours stands alone.
///
/// # Errors
/// `Exists` on exclusive creation, `NotFound` when the file is gone, `Special`, `NoSpace` …
pub fn append(op: &AppendOp) -> Result<Outcome, IoFault> {
    if op.create {
        let mut file = create(&op.path)?;
        file.write_all(&op.bytes).map_err(fault::at(&op.path))?;
        return Ok(Outcome::Appended { len: op.bytes.len() as u64, foreign: false });
    }
    let mut file = options().read(true).open(&op.path).map_err(fault::at(&op.path))?;
    let meta = file.metadata().map_err(fault::at(&op.path))?;
    if !meta.is_file() {
        return Err(IoFault::new(FaultKind::Special, format!("{}: is not a regular file", op.path)));
    }
    let size = meta.len();
    let foreign = op.expect_len.is_some_and(|expected| expected != size);
    let torn = op.expect_len != Some(size) && size > 0 && !ends_in_lf(&file, size, &op.path)?;
    let written = if torn {
        let mut whole = Vec::with_capacity(op.bytes.len() + 1);
        whole.push(b'\n');
        whole.extend_from_slice(&op.bytes);
        file.write_all(&whole).map(|()| whole.len())
    } else {
        file.write_all(&op.bytes).map(|()| op.bytes.len())
    };
    let written = written.map_err(fault::at(&op.path))?;
    Ok(Outcome::Appended { len: size + written as u64, foreign })
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true).custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed());
    options
}

fn create(path: &str) -> Result<File, IoFault> {
    let open = || options().create_new(true).mode(FILE_MODE).open(path);
    let file = match open() {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let folder = Path::new(path).parent().map(|p| p.to_string_lossy().into_owned());
            private_dir(&folder.unwrap_or_default())?;
            open()
        }
        other => other,
    };
    file.map_err(fault::at(path))
}

fn ends_in_lf(file: &File, size: u64, path: &str) -> Result<bool, IoFault> {
    let mut last = [0];
    let n = file.read_at(&mut last, size - 1).map_err(fault::at(path))?;
    Ok(n == 0 || last == *b"\n")
}
