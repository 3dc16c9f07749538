//! Which files of a folder may be skills or templates (spec 50 §9.2, §10.1).

use alloc::string::String;
use alloc::vec::Vec;

use super::disk::{Disk, Entry, EntryKind, Target};
use super::ignore::{self, Rules};
use crate::path::{self, Style};

/// Name of a skill's file.
pub(super) const SKILL_FILE: &str = "SKILL.md";

/// Most folders and files of one search. Links can make a small tree endless.
const MOST: usize = 10_000;

/// Deepest folder below the root.
const DEEPEST: usize = 64;

/// Most bytes of an ignore file.
const IGNORE_BYTES: usize = 256 << 10;

/// How a folder is searched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mode {
    /// `SKILL.md` counts, and is all there is of its folder.
    skills: bool,
    /// Other Markdown directly in the root counts.
    in_root: bool,
    /// Other Markdown in subfolders counts.
    nested: bool,
    /// Subfolders are searched.
    descend: bool,
    /// Hidden names and what ignore files name are left out.
    rules: bool,
}

/// Folders of skills.
#[rustfmt::skip]
pub(super) const SKILLS: Mode = Mode { skills: true, in_root: true, nested: false, descend: true, rules: true };
/// `.agents/skills`.
#[rustfmt::skip]
pub(super) const AGENTS: Mode = Mode { skills: true, in_root: false, nested: true, descend: true, rules: true };
/// The folders where templates always are.
#[rustfmt::skip]
pub(super) const TEMPLATES: Mode = Mode { skills: false, in_root: true, nested: false, descend: false, rules: true };
/// Folders of templates that settings name.
#[rustfmt::skip]
pub(super) const TEMPLATE_TREE: Mode = Mode { skills: false, in_root: true, nested: true, descend: true, rules: true };
/// Folders of templates that a flag names.
#[rustfmt::skip]
pub(super) const TEMPLATE_FLAG: Mode = Mode { skills: false, in_root: true, nested: false, descend: false, rules: false };

/// A file that may count.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// Its path, as it was reached.
    pub path: String,
    /// Its folder, as it was reached.
    pub folder: String,
    /// Its name.
    pub name: String,
    /// Its path without links.
    pub real: String,
}

impl Found {
    /// Whether it is meant to be a skill.
    pub(super) fn is_skill_file(&self) -> bool {
        self.name == SKILL_FILE
    }
}

/// Files in the order in which they are registered.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The files.
    pub found: Vec<Found>,
    /// Whether there was too much.
    pub cut: bool,
}

/// Searches a folder; nothing when it is not there.
pub(super) fn scan(disk: &mut dyn Disk, root: &str, mode: Mode, style: Style) -> Scan {
    let mut walk = Walk {
        disk,
        mode,
        style,
        rules: Rules::default(),
        chain: Vec::new(),
        left: MOST,
        out: Scan::default(),
    };
    let root = path::normalize(root, style);
    if let Some(entries) = walk.disk.list(&root) {
        let real = walk.disk.real(&root).unwrap_or_else(|| root.clone());
        walk.folder(&root, String::new(), real, entries);
    }
    walk.out
}

struct Walk<'d> {
    disk: &'d mut dyn Disk,
    mode: Mode,
    style: Style,
    rules: Rules,
    /// Real paths of the folders that are open, outermost first.
    chain: Vec<String>,
    left: usize,
    out: Scan,
}

impl Walk<'_> {
    /// `inner` is the path from the root with `/`, empty or with a last `/`.
    fn folder(&mut self, folder: &str, inner: String, real: String, mut entries: Vec<Entry>) {
        crate::order::sort(&mut entries, |a, b| a.name.cmp(&b.name));
        if self.mode.rules {
            self.enter(folder, &inner, &entries);
        }
        self.chain.push(real);
        if !self.skill(folder, &inner, &entries) {
            for entry in &entries {
                self.entry(folder, &inner, entry);
            }
        }
        self.chain.pop();
        if self.mode.rules {
            self.rules.leave();
        }
    }

    fn enter(&mut self, folder: &str, inner: &str, entries: &[Entry]) {
        let there = ignore::FILES.into_iter().filter(|name| entries.iter().any(|entry| entry.name == *name));
        let texts: Vec<String> = there
            .filter_map(|name| self.disk.read(&path::child(folder, name, self.style), IGNORE_BYTES).ok())
            .collect();
        self.rules.enter(inner.len(), texts.iter().map(String::as_str));
    }

    /// Takes the skill that the folder is, if it is one.
    fn skill(&mut self, folder: &str, inner: &str, entries: &[Entry]) -> bool {
        let Some(entry) = entries.iter().find(|entry| self.mode.skills && entry.name == SKILL_FILE) else {
            return false;
        };
        let path = path::child(folder, SKILL_FILE, self.style);
        let counts = self.target(entry, &path) == Target::File && !self.ignored(inner, SKILL_FILE, false);
        if counts {
            self.take(folder, path, entry);
        }
        counts
    }

    fn entry(&mut self, folder: &str, inner: &str, entry: &Entry) {
        let name = entry.name.as_str();
        if self.mode.rules && (name.starts_with('.') || name == "node_modules") {
            return;
        }
        let wanted = if inner.is_empty() { self.mode.in_root } else { self.mode.nested };
        let may_be_file = wanted && is_markdown(name);
        if !may_be_file && !self.mode.descend {
            return;
        }
        let path = path::child(folder, name, self.style);
        match self.target(entry, &path) {
            Target::File if may_be_file && !self.ignored(inner, name, false) => {
                self.take(folder, path, entry)
            }
            Target::Folder if self.mode.descend && !self.ignored(inner, name, true) => {
                self.descend(&path, inner, entry);
            }
            _ => {}
        }
    }

    fn descend(&mut self, path: &str, inner: &str, entry: &Entry) {
        let real = self.real(path, entry);
        // A link back to a folder that is open leads nowhere new.
        if self.chain.contains(&real) {
            return;
        }
        if self.chain.len() > DEEPEST || !self.may_go_on() {
            self.out.cut = true;
            return;
        }
        if let Some(entries) = self.disk.list(path) {
            let inner = [inner, &entry.name, "/"].concat();
            self.folder(path, inner, real, entries);
        }
    }

    fn take(&mut self, folder: &str, path: String, entry: &Entry) {
        if !self.may_go_on() {
            self.out.cut = true;
            return;
        }
        let real = self.real(&path, entry);
        self.out.found.push(Found { path, folder: folder.into(), name: entry.name.clone(), real });
    }

    const fn may_go_on(&mut self) -> bool {
        let more = self.left.checked_sub(1);
        if let Some(left) = more {
            self.left = left;
        }
        more.is_some()
    }

    fn target(&mut self, entry: &Entry, path: &str) -> Target {
        match entry.kind {
            EntryKind::File => Target::File,
            EntryKind::Folder => Target::Folder,
            EntryKind::Link => self.disk.follow(path),
            EntryKind::Other => Target::Absent,
        }
    }

    /// The path of an entry of the innermost open folder without links; only links need to be asked for.
    fn real(&mut self, path: &str, entry: &Entry) -> String {
        match self.chain.last() {
            Some(folder) if entry.kind != EntryKind::Link => path::child(folder, &entry.name, self.style),
            _ => self.disk.real(path).unwrap_or_else(|| path.into()),
        }
    }

    fn ignored(&self, inner: &str, name: &str, is_folder: bool) -> bool {
        self.mode.rules && self.rules.ignore(&[inner, name].concat(), is_folder)
    }
}

/// Whether a name is that of a Markdown file; case counts.
pub(super) fn is_markdown(name: &str) -> bool {
    name.ends_with(".md")
}

#[cfg(test)]
mod tests {
    use super::super::disk::ReadFault;
    use super::*;

    /// A folder that holds a skill's folder and a link to itself, at any depth.
    struct Endless {
        /// What the link resolves to.
        cycle: bool,
        listed: usize,
    }

    impl Disk for Endless {
        fn list(&mut self, _: &str) -> Option<Vec<Entry>> {
            self.listed += 1;
            let entry = |name: &str, kind| Entry { name: name.into(), kind };
            Some(Vec::from([entry("x.md", EntryKind::File), entry("down", EntryKind::Link)]))
        }

        fn follow(&mut self, _: &str) -> Target {
            Target::Folder
        }

        fn read(&mut self, _: &str, _: usize) -> Result<String, ReadFault> {
            Err(ReadFault::Absent)
        }

        fn real(&mut self, path: &str) -> Option<String> {
            Some(if self.cycle { "/top".into() } else { path.into() })
        }
    }

    #[test]
    fn cycles_end() {
        let mut disk = Endless { cycle: true, listed: 0 };
        let scan = scan(&mut disk, "/top", TEMPLATE_TREE, Style::Posix);
        assert_eq!((scan.found.len(), scan.cut, disk.listed), (1, false, 1));
    }

    #[test]
    fn depth_is_bounded() {
        let mut disk = Endless { cycle: false, listed: 0 };
        let scan = scan(&mut disk, "/top", TEMPLATE_TREE, Style::Posix);
        assert!(scan.cut);
        assert_eq!(disk.listed, DEEPEST + 1);
    }
}
