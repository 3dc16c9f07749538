//! Appending lines to a file that others may append to as well: one write each, always from a line's start.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::OFlags;
use tau_core::fault::{FaultKind, IoFault};
use tau_core::op::{AppendOp, Outcome};

use super::fs::private_dir;
use super::{claim, fault};

/// Mode of a new file: it may hold what only its owner should read.
const FILE_MODE: u32 = 0o600;

const LOOKS: u32 = 6;
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// Executes an append. Where the file does not have the expected size, someone else wrote: a line they left torn is
/// ended first, so that ours stands alone.
///
/// # Errors
/// `Exists` on exclusive creation, `NotFound` when the file is gone, `Special`, `NoSpace` …
pub fn append(op: &AppendOp) -> Result<Outcome, IoFault> {
    if op.create {
        let mut file = create(&op.path)?;
        if let Err(e) = file.write_all(&op.bytes) {
            // The next try creates it again, which a piece of a file would forbid.
            let _ = fs::remove_file(&op.path);
            return Err(fault::at(&op.path)(e));
        }
        claim::made(file);
        return Ok(Outcome::Appended { len: op.bytes.len() as u64, foreign: false });
    }
    let mut file = options().read(true).open(&op.path).map_err(fault::at(&op.path))?;
    let meta = file.metadata().map_err(fault::at(&op.path))?;
    if !meta.is_file() {
        return Err(IoFault::new(FaultKind::Special, format!("{}: is not a regular file", op.path)));
    }
    let size = meta.len();
    let foreign = op.expect_len.is_some_and(|expected| expected != size);
    let torn = op.expect_len != Some(size) && is_torn(&file).map_err(fault::at(&op.path))?;
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

/// Whether the file ends within a line. A line that someone is just writing looks torn for a moment, so it is looked
/// at again before it counts.
fn is_torn(file: &File) -> io::Result<bool> {
    for look in 0..LOOKS {
        if look > 0 {
            thread::sleep(BETWEEN_LOOKS);
        }
        let Some(last) = file.metadata()?.len().checked_sub(1) else { return Ok(false) };
        let mut byte = [0];
        if file.read_at(&mut byte, last)? == 0 || byte == *b"\n" {
            return Ok(false);
        }
    }
    Ok(true)
}
