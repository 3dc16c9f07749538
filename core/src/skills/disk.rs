//! The world as the search for skills and templates needs it.

use alloc::string::String;
use alloc::vec::Vec;

pub use crate::prompt::files::ReadFault;

/// What a name in a folder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A link, not followed yet; or unknown: [`Disk::follow`] tells.
    Link,
    /// Anything else, such as a socket.
    Other,
}

/// A name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// What it is, without following links.
    pub kind: EntryKind,
}

/// What is at the end of a path, links followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// Nothing, a broken link, or something that is neither.
    Absent,
}

/// Answers to the questions of the search. Every folder is listed once per place that names it, a file is read only
/// when it may count, and only links are resolved.
pub trait Disk {
    /// Names in a folder in any order; links to folders are followed. `None` when it cannot be listed.
    fn list(&mut self, folder: &str) -> Option<Vec<Entry>>;

    /// What a path leads to.
    fn follow(&mut self, path: &str) -> Target;

    /// The text of a regular file, at most about `most` bytes of it; links are followed, invalid UTF-8 is replaced.
    ///
    /// # Errors
    /// When there is no such file, or it cannot be read.
    fn read(&mut self, path: &str, most: usize) -> Result<String, ReadFault>;

    /// The path without links; `None` when there is nothing.
    fn real(&mut self, path: &str) -> Option<String>;
}
