//! Files and folders. Links are followed and stay links; nothing but a regular file is ever opened for its content.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::OFlags;
use tau_core::fault::{FaultKind, IoFault};
use tau_core::op::{EntryKind, FsOp, Meta, Outcome, ReadText, WriteHow};
use tau_core::tools::LineSelect;

use super::{CancelToken, atomic, fault, image};

/// Largest piece read at once.
const READ_BYTES: usize = 256 << 10;

/// Executes one file operation.
///
/// # Errors
/// The fault, naming the path.
pub fn run(op: &FsOp, cancel: &CancelToken) -> Result<Outcome, IoFault> {
    match op {
        FsOp::Stat { path } => stat(path).map(Outcome::Meta),
        FsOp::Read { path, limit } => read(path, *limit).map(Outcome::Bytes),
        FsOp::ReadText(wanted) => read_text(wanted, cancel),
        FsOp::ReadImage { path, limits } => {
            let bytes = read(path, image::MOST_BYTES)?;
            Ok(Outcome::Image(image::fit_bytes(bytes, limits)))
        }
        FsOp::Write { path, bytes, how } => write(path, bytes, how).map(|()| Outcome::Unit),
        FsOp::MkdirAll { path } => fs::create_dir_all(path).map_err(fault::at(path)).map(|()| Outcome::Unit),
        FsOp::ReadDir { path } => read_dir(path).map(Outcome::Entries),
        FsOp::FitImage { data, mime_type, limits } => {
            Ok(Outcome::Image(image::fit_base64(data, mime_type, limits)))
        }
    }
}

/// Facts about a path, links followed.
///
/// # Errors
/// As the operating system says: `NotFound`, `Denied`, `NotDir`, a loop of links …
pub fn stat(path: &str) -> Result<Meta, IoFault> {
    let (meta, real) = stat_real(path).map_err(fault::at(path))?;
    Ok(Meta {
        kind: entry_kind(meta.file_type()),
        size: meta.len(),
        mode: meta.mode() & 0o7777,
        mtime_ms: meta.mtime().saturating_mul(1000).saturating_add(meta.mtime_nsec() / 1_000_000),
        real,
    })
}

/// On Linux the kernel tells the real path of an open handle: four calls, however deep the path is.
#[cfg(target_os = "linux")]
fn stat_real(path: &str) -> io::Result<(fs::Metadata, String)> {
    use std::os::fd::AsRawFd;
    let handle =
        File::from(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, rustix::fs::Mode::empty())?);
    let meta = handle.metadata()?;
    let link = fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd()));
    let real = match link {
        Ok(real) if real.is_absolute() && !real.as_os_str().as_encoded_bytes().ends_with(b" (deleted)") => {
            real
        }
        _ => fs::canonicalize(path)?,
    };
    Ok((meta, real.to_string_lossy().into_owned()))
}

#[cfg(not(target_os = "linux"))]
fn stat_real(path: &str) -> io::Result<(fs::Metadata, String)> {
    Ok((fs::metadata(path)?, fs::canonicalize(path)?.to_string_lossy().into_owned()))
}

fn entry_kind(kind: FileType) -> EntryKind {
    if kind.is_file() {
        EntryKind::File
    } else if kind.is_dir() {
        EntryKind::Dir
    } else {
        EntryKind::Other
    }
}

/// The fault for anything but a regular file; `None` for one.
fn refusal(path: &str, kind: FileType) -> Option<IoFault> {
    if kind.is_file() {
        return None;
    }
    if kind.is_dir() {
        return Some(IoFault::new(FaultKind::IsDir, format!("{path}: is a folder")));
    }
    let what = if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_char_device() {
        "a character device"
    } else if kind.is_block_device() {
        "a block device"
    } else {
        "something else"
    };
    Some(IoFault::new(FaultKind::Special, format!("{path}: is {what}, not a regular file")))
}

/// Opens a regular file for reading after one look at what the path leads to; gives its size at that time.
///
/// Devices and pipes are not opened at all: opening some of them does something.
///
/// # Errors
/// `IsDir`, `Special` and what the operating system says.
pub fn open_regular(path: &str) -> Result<(File, u64), IoFault> {
    let meta = fs::metadata(path).map_err(fault::at(path))?;
    if let Some(refused) = refusal(path, meta.file_type()) {
        return Err(refused);
    }
    let file = options().read(true).open(path).map_err(fault::at(path))?;
    Ok((file, meta.len()))
}

/// Options under which no open can block, whatever took the place of the file meanwhile.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed());
    options
}

/// The whole file.
///
/// # Errors
/// `TooBig` above `limit`, `IsDir`, `Special` and what the operating system says.
pub fn read(path: &str, limit: u64) -> Result<Vec<u8>, IoFault> {
    let (file, size) = open_regular(path)?;
    let too_big = |size: String| {
        IoFault::new(FaultKind::TooBig, format!("{path}: {size} bytes, the limit is {limit} bytes"))
    };
    if size > limit {
        return Err(too_big(size.to_string()));
    }
    // Files of the kernel (`/proc`) say 0 and have content.
    let expected = usize::try_from(size).unwrap_or_default();
    let mut bytes = Vec::with_capacity(expected + 1);
    // A read that gives the size at opening and leaves room is the whole file: its end need not be asked for.
    if size > 0 && rustix::io::read(&file, spare_capacity(&mut bytes)) == Ok(expected) {
        return Ok(bytes);
    }
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(fault::at(path))?;
    if bytes.len() as u64 > limit {
        return Err(too_big(format!("more than {limit}")));
    }
    Ok(bytes)
}

fn read_text(wanted: &ReadText, cancel: &CancelToken) -> Result<Outcome, IoFault> {
    let path = wanted.path.as_str();
    let (mut file, size) = open_regular(path)?;
    let mut select = LineSelect::new(wanted);
    // A file is read up to its size at opening, so that one that grows all the time ends; size 0 is read to its end.
    let mut left = if size == 0 { u64::MAX } else { size };
    let mut buffer = vec![0; usize::try_from(left).unwrap_or(READ_BYTES).min(READ_BYTES)];
    while left > 0 {
        cancel.check()?;
        let room = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let piece = buffer.get_mut(..room).unwrap_or_default();
        match file.read(piece) {
            Ok(0) => break,
            Ok(n) => {
                select.push(piece.get(..n).unwrap_or_default());
                left = left.saturating_sub(n as u64);
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(fault::of(&e, path)),
        }
    }
    Ok(Outcome::Text(select.finish()))
}

fn read_dir(path: &str) -> Result<Vec<(String, EntryKind)>, IoFault> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).map_err(fault::at(path))? {
        let entry = entry.map_err(fault::at(path))?;
        let kind = entry.file_type().map_err(fault::at(path))?;
        let kind = if kind.is_symlink() {
            fs::metadata(entry.path()).map_or(EntryKind::Broken, |meta| entry_kind(meta.file_type()))
        } else {
            entry_kind(kind)
        };
        entries.push((entry.file_name().to_string_lossy().into_owned(), kind));
    }
    Ok(entries)
}

/// Writes a file.
///
/// # Errors
/// `Exists`, `IsDir`, `Special`, `NoSpace` and what the operating system says.
pub fn write(path: &str, bytes: &[u8], how: &WriteHow) -> Result<(), IoFault> {
    match how {
        WriteHow::Through => write_through(path, bytes),
        WriteHow::Create { mode } => {
            let mut file =
                options().write(true).create_new(true).mode(*mode).open(path).map_err(fault::at(path))?;
            file.write_all(bytes).map_err(fault::at(path))
        }
        WriteHow::Replace { mode } => atomic::replace(Path::new(path), bytes, *mode),
    }
}

/// Truncates and writes what the path leads to; the file behind a dangling link is created.
fn write_through(path: &str, bytes: &[u8]) -> Result<(), IoFault> {
    open_through(path)?.write_all(bytes).map_err(fault::at(path))
}

/// What the path leads to, emptied; the file behind a dangling link is created.
pub(super) fn open_through(path: &str) -> Result<File, IoFault> {
    match fs::metadata(path) {
        Ok(meta) => {
            if let Some(refused) = refusal(path, meta.file_type()) {
                return Err(refused);
            }
        }
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        Err(e) => return Err(fault::of(&e, path)),
    }
    options().write(true).create(true).truncate(true).open(path).map_err(fault::at(path))
}

/// Creates a folder for private files (mode 0700) and its parents; one that exists is left as it is.
///
/// # Errors
/// What the operating system says.
pub fn private_dir(path: &str) -> Result<(), IoFault> {
    create_dirs(path, 0o700)
}

/// Creates a folder and its parents; one that exists is left as it is.
///
/// # Errors
/// What the operating system says.
pub fn create_dirs(path: &str, mode: u32) -> Result<(), IoFault> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(mode).create(path).map_err(fault::at(path))
}

/// Mode bits of a file, links followed.
pub(crate) fn mode_of(meta: &fs::Metadata) -> u32 {
    meta.permissions().mode() & 0o7777
}
