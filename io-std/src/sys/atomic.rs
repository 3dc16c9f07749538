//! Replacing a file as a whole: a reader sees the old or the new content, never a part.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use tau_core::fault::{FaultKind, IoFault};

use super::{fault, fs::mode_of, random};

/// Longest chain of links that is followed.
const MOST_LINKS: usize = 40;

/// Writes a temporary file beside the target and renames it over it. A link stays a link: what it leads to is
/// replaced. An existing file keeps its mode and owner; where the owner cannot be kept, the content is written in
/// place instead. A new file gets `mode`. Other hard links of the file keep the old content.
///
/// # Errors
/// `IsDir`, `Special`, `Denied`, `NoSpace` …; the old content is then untouched.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), IoFault> {
    replace_with(path, mode, &mut |file| file.write_all(bytes))
}

/// As [`replace`], with content that `write` makes piece by piece. It is called again where the content must be
/// written in place.
///
/// # Errors
/// As [`replace`], and what `write` gave back.
pub fn replace_with(path: &Path, mode: u32, write: Fill<'_>) -> Result<(), IoFault> {
    let shown = path.to_string_lossy();
    let target = target_of(path).map_err(fault::at(&shown))?;
    let old = match fs::metadata(&target) {
        Ok(meta) if meta.is_dir() => {
            return Err(IoFault::new(FaultKind::IsDir, format!("{shown}: is a folder")));
        }
        Ok(meta) if !meta.is_file() => {
            return Err(IoFault::new(FaultKind::Special, format!("{shown}: is not a regular file")));
        }
        Ok(meta) => Some(meta),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => return Err(fault::of(&e, &shown)),
    };
    let temp = temp_name(&target)?;
    let kept = match write_temp(&temp, write, mode, old.as_ref()) {
        Ok(kept) => kept,
        Err(e) => {
            let _ = fs::remove_file(&temp);
            return Err(fault::of(&e, &shown));
        }
    };
    if !kept {
        let _ = fs::remove_file(&temp);
        let mut file = super::fs::open_through(&target.to_string_lossy())?;
        return write(&mut file).map_err(fault::at(&shown));
    }
    fs::rename(&temp, &target).map_err(|e| {
        let _ = fs::remove_file(&temp);
        fault::of(&e, &shown)
    })
}

/// Writes the content of a file.
pub type Fill<'a> = &'a mut dyn FnMut(&mut File) -> io::Result<()>;

/// Where the path leads, also when nothing is there yet.
fn target_of(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&target) {
            Ok(next) => target = target.parent().unwrap_or(&target).join(next),
            // Not a link, or nothing there.
            Err(e) if matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::NotFound) => return Ok(target),
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::other("too many levels of links"))
}

fn temp_name(target: &Path) -> Result<PathBuf, IoFault> {
    let mut name = std::ffi::OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", random::hex16()?));
    Ok(target.with_file_name(name))
}

/// Whether the temporary file could take over mode and owner of the old one.
fn write_temp(temp: &Path, write: Fill<'_>, mode: u32, old: Option<&fs::Metadata>) -> io::Result<bool> {
    let first_mode = old.map_or(mode, |old| mode_of(old) & 0o600);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(first_mode).open(temp)?;
    write(&mut file)?;
    let Some(old) = old else { return Ok(true) };
    take_over(&file, old)
}

fn take_over(file: &File, old: &fs::Metadata) -> io::Result<bool> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid())
        && fchown(file, Some(old.uid()), Some(old.gid())).is_err()
    {
        return Ok(false);
    }
    file.set_permissions(Permissions::from_mode(mode_of(old)))?;
    Ok(true)
}
