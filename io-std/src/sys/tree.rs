//! Walking a tree in path order with ignore rules: each folder is listed once, and nothing is probed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{fs, io};

use tau_core::fault::{FaultKind, IoFault};

use super::ignore_rules::{Found, Rules};
use super::{CancelToken, fault};

/// What an entry is, links not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Dir,
    Link,
    Other,
}

/// An entry that the rules let through.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    /// Path below the root.
    pub(crate) rel: &'a [u8],
    /// The whole path.
    pub(crate) path: &'a Path,
    /// What it is.
    pub(crate) kind: Kind,
}

/// Whether a walk goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Go,
    Stop,
}

/// One folder that is being visited.
#[derive(Debug, Default)]
struct Frame {
    listing: Listing,
    next: usize,
    /// Length of the path of the folder, with its final `/`.
    base: usize,
    /// It brought rules.
    rules: bool,
}

/// Names of a folder, in one buffer.
#[derive(Debug, Default)]
struct Listing {
    bytes: Vec<u8>,
    items: Vec<Item>,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    start: u32,
    len: u32,
    kind: Kind,
}

/// Visits everything below `root` that the rules let through, in byte order of the relative paths (folders count
/// with their final `/`). `.git` folders are left out, links are not followed, folders that cannot be read are
/// skipped.
///
/// # Errors
/// When `root` itself cannot be read, on cancel, and what `each` gives.
pub(crate) fn visit(
    root: &Path,
    rules: &mut Rules,
    cancel: &CancelToken,
    each: &mut dyn FnMut(Entry<'_>) -> Result<Flow, IoFault>,
) -> Result<(), IoFault> {
    let mut path = root.as_os_str().as_bytes().to_vec();
    if path.last() != Some(&b'/') {
        path.push(b'/');
    }
    let root_len = path.len();
    let mut frame = Frame { base: root_len, ..Frame::default() };
    frame.open(&path, rules).map_err(fault::at(root.display()))?;
    let mut stack = vec![frame];
    let mut spare: Vec<Frame> = Vec::new();
    while let Some(frame) = stack.last_mut() {
        let Some(kind) = frame.step(&mut path) else {
            if frame.rules {
                rules.leave();
            }
            spare.extend(stack.pop());
            continue;
        };
        let rel = path.get(root_len..).unwrap_or_default();
        if each(Entry { rel, path: as_path(&path), kind })? == Flow::Stop {
            return Ok(());
        }
        if kind == Kind::Dir {
            cancel.check()?;
            path.push(b'/');
            let mut child = spare.pop().unwrap_or_default();
            child.base = path.len();
            if child.open(&path, rules).is_ok() {
                stack.push(child);
            } else {
                spare.push(child);
            }
        }
    }
    Ok(())
}

impl Frame {
    /// Lists the folder, takes in its rules, drops what they ignore and sorts the rest.
    fn open(&mut self, path: &[u8], rules: &mut Rules) -> io::Result<()> {
        self.next = 0;
        self.rules = false;
        let found = self.listing.read(as_path(path), rules.own_name())?;
        let folder = as_path(path.strip_suffix(b"/").unwrap_or(path));
        self.rules = rules.enter(folder, found);
        let mut full = path.to_vec();
        let Listing { bytes, items } = &mut self.listing;
        items.retain(|item| {
            full.truncate(path.len());
            full.extend_from_slice(name(bytes, *item));
            !rules.ignores(as_path(&full), item.kind == Kind::Dir)
        });
        items.sort_unstable_by(|a, b| order((name(bytes, *a), a.kind), (name(bytes, *b), b.kind)));
        Ok(())
    }

    /// Puts the path of the next entry in place; `None` at the end.
    fn step(&mut self, path: &mut Vec<u8>) -> Option<Kind> {
        let item = *self.listing.items.get(self.next)?;
        self.next += 1;
        path.truncate(self.base);
        path.extend_from_slice(name(&self.listing.bytes, item));
        Some(item.kind)
    }
}

impl Listing {
    fn read(&mut self, folder: &Path, own_name: &str) -> io::Result<Found> {
        self.bytes.clear();
        self.items.clear();
        let mut found = Found::default();
        list(folder, &mut |entry, kind| {
            match entry {
                b".git" => {
                    found.git = true;
                    if kind == Kind::Dir {
                        return;
                    }
                }
                b".gitignore" => found.gitignore = true,
                b".ignore" => found.ignore = true,
                other if other == own_name.as_bytes() => found.own = true,
                _ => {}
            }
            let (Ok(start), Ok(len)) = (u32::try_from(self.bytes.len()), u32::try_from(entry.len())) else {
                return;
            };
            self.bytes.extend_from_slice(entry);
            self.items.push(Item { start, len, kind });
        })?;
        Ok(found)
    }
}

fn name(bytes: &[u8], item: Item) -> &[u8] {
    let start = item.start as usize;
    bytes.get(start..start + item.len as usize).unwrap_or_default()
}

/// Byte order of the paths that the names begin, where a folder's name goes on with `/`.
fn order((a, a_kind): (&[u8], Kind), (b, b_kind): (&[u8], Kind)) -> core::cmp::Ordering {
    let common = a.len().min(b.len());
    let next = |x: &[u8], kind| x.get(common).copied().or_else(|| (kind == Kind::Dir).then_some(b'/'));
    a.get(..common).cmp(&b.get(..common)).then_with(|| next(a, a_kind).cmp(&next(b, b_kind)))
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Calls `each` with name and kind of the entries of a folder.
#[cfg(target_os = "linux")]
fn list(folder: &Path, each: &mut dyn FnMut(&[u8], Kind)) -> io::Result<()> {
    use rustix::fs::{FileType, Mode, OFlags, RawDir, open};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let fd = open(folder, flags, Mode::empty())?;
    let mut buffer = [core::mem::MaybeUninit::<u8>::uninit(); 16 << 10];
    let mut entries = RawDir::new(fd, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        let kind = match entry.file_type() {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Dir,
            FileType::Symlink => Kind::Link,
            FileType::Unknown => kind_of(&folder.join(OsStr::from_bytes(name))),
            _ => Kind::Other,
        };
        if name != b"." && name != b".." {
            each(name, kind);
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn list(folder: &Path, each: &mut dyn FnMut(&[u8], Kind)) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        each(entry.file_name().as_bytes(), kind_of(&entry.path()));
    }
    Ok(())
}

/// For file systems whose listings do not tell.
fn kind_of(path: &Path) -> Kind {
    match fs::symlink_metadata(path).map(|meta| meta.file_type()) {
        Ok(kind) if kind.is_file() => Kind::File,
        Ok(kind) if kind.is_dir() => Kind::Dir,
        Ok(kind) if kind.is_symlink() => Kind::Link,
        _ => Kind::Other,
    }
}

/// The fault for a search root that is not there or not a folder.
pub(crate) fn check_root(root: &str) -> Result<(), IoFault> {
    let meta = fs::metadata(root).map_err(fault::at(root))?;
    if meta.is_dir() { Ok(()) } else { Err(IoFault::new(FaultKind::NotDir, format!("{root}: not a folder"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_that_of_whole_paths() {
        let mut names = [
            ("a.b", Kind::File),
            ("a", Kind::Dir),
            ("a-b", Kind::File),
            ("B", Kind::File),
            ("a0", Kind::Dir),
        ];
        names.sort_by(|a, b| order((a.0.as_bytes(), a.1), (b.0.as_bytes(), b.1)));
        let names: Vec<_> = names.iter().map(|n| n.0).collect();
        assert_eq!(names, ["B", "a-b", "a.b", "a", "a0"]);
    }
}
