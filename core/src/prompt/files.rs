//! Which files the prompt is made from: instruction files from the agent folder and from the root down to the
//! working directory, and `SYSTEM.md` / `APPEND_SYSTEM.md` (spec 50 §8.3–8.4).
//!
//! Each folder is listed once; only what is there is opened.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Names of instruction files; the first that is there counts.
pub const INSTRUCTIONS: [&str; 5] =
    ["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];

/// All names this module looks for; a listing may leave out every other.
pub const WANTED: [&str; 9] = [
    "AGENTS.override.md",
    "AGENTS.md",
    "AGENTS.MD",
    "CLAUDE.md",
    "CLAUDE.MD",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
    ".pi",
    ".git",
];

/// An instruction file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextFile {
    /// Absolute path.
    pub path: String,
    /// Its text without BOM, otherwise as it is.
    pub content: String,
}

/// A name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub name: String,
    /// Known to be a folder. Links are not followed for this.
    pub is_folder: bool,
}

/// Why a file has no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadFault {
    /// There is no regular file (nothing, a folder, a broken link).
    Absent,
    /// It could not be read; why.
    Failed(String),
}

/// The world as this module needs it.
pub trait Files {
    /// Names in a folder, at least those of [`WANTED`]; nothing for a folder that cannot be listed.
    fn list(&mut self, folder: &str) -> Vec<Name>;

    /// The text of a regular file; links are followed, invalid UTF-8 is replaced.
    ///
    /// # Errors
    /// When there is no such file, or it cannot be read.
    fn read(&mut self, path: &str) -> Result<String, ReadFault>;
}

/// What decides where to look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Where<'a> {
    /// Working directory, absolute.
    pub cwd: &'a str,
    /// The agent folder, absolute.
    pub agent_dir: &'a str,
    /// Whether the project's own system prompt files count.
    pub trusted: bool,
    /// `--no-context-files`.
    pub no_context_files: bool,
    /// `--system-prompt`: a file or the text itself.
    pub system_flag: Option<&'a str>,
    /// `--append-system-prompt`, each a file or the text itself.
    pub append_flags: &'a [String],
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptFiles {
    /// Instruction files, in the order of the prompt.
    pub context: Vec<ContextFile>,
    /// Text that replaces the built-in base.
    pub system: Option<String>,
    /// Texts to append.
    pub append: Vec<String>,
    /// Files that are there but could not be read.
    pub warnings: Vec<String>,
}

/// Looks for all of it.
pub fn gather(files: &mut dyn Files, place: &Where<'_>) -> PromptFiles {
    let mut look = Look { files, listings: BTreeMap::new(), warnings: Vec::new() };
    let context = if place.no_context_files { Vec::new() } else { instruction_files(&mut look, place) };
    let system = match place.system_flag {
        Some(flag) => Some(look.text_or_file(flag, place.cwd)),
        None => look.prompt_file("SYSTEM.md", place),
    };
    let append = if place.append_flags.is_empty() {
        look.prompt_file("APPEND_SYSTEM.md", place).into_iter().collect()
    } else {
        place.append_flags.iter().map(|flag| look.text_or_file(flag, place.cwd)).collect()
    };
    PromptFiles { context, system, append, warnings: look.warnings }
}

struct Look<'a> {
    files: &'a mut dyn Files,
    listings: BTreeMap<String, Vec<Name>>,
    warnings: Vec<String>,
}

impl Look<'_> {
    fn listing(&mut self, folder: &str) -> &[Name] {
        let Self { files, listings, .. } = self;
        listings.entry(folder.to_owned()).or_insert_with(|| files.list(folder))
    }

    fn has(&mut self, folder: &str, name: &str, is_folder: bool) -> bool {
        // A link may lead to a folder, which only opening it shows.
        self.listing(folder).iter().any(|own| own.name == name && (is_folder || !own.is_folder))
    }

    fn read(&mut self, path: &str) -> Option<String> {
        match self.files.read(path) {
            Ok(text) => Some(text.strip_prefix('\u{feff}').map(ToString::to_string).unwrap_or(text)),
            Err(ReadFault::Absent) => None,
            Err(ReadFault::Failed(why)) => {
                self.warnings.push(format!("{path} cannot be read: {why}"));
                None
            }
        }
    }

    /// The first instruction file of a folder, with its name.
    fn instructions(&mut self, folder: &str) -> Option<(&'static str, ContextFile)> {
        INSTRUCTIONS.into_iter().find_map(|name| {
            if !self.has(folder, name, false) {
                return None;
            }
            let path = join(folder, name);
            let content = self.read(&path)?;
            Some((name, ContextFile { path, content }))
        })
    }

    /// The project's file if it may be used, else that of the agent folder.
    fn prompt_file(&mut self, name: &str, place: &Where<'_>) -> Option<String> {
        let project = join(place.cwd, ".pi");
        let mut folders = Vec::new();
        if place.trusted && self.has(place.cwd, ".pi", true) {
            folders.push(project.as_str());
        }
        folders.push(place.agent_dir);
        folders.into_iter().find_map(|folder| {
            if self.has(folder, name, false) { self.read(&join(folder, name)) } else { None }
        })
    }

    /// The content of the file a flag names, else the flag's own text.
    fn text_or_file(&mut self, flag: &str, cwd: &str) -> String {
        // Nobody's path has several lines; a long text need not be tried.
        if flag.is_empty() || flag.contains('\n') || flag.len() > 4096 {
            return flag.to_owned();
        }
        let path = if is_absolute(flag) { flag.to_owned() } else { join(cwd, flag) };
        self.read(&path).unwrap_or_else(|| flag.to_owned())
    }
}

fn instruction_files(look: &mut Look<'_>, place: &Where<'_>) -> Vec<ContextFile> {
    let folders = ancestors(place.cwd);
    let mut found: Vec<(&str, &'static str, ContextFile)> = Vec::new();
    for folder in core::iter::once(place.agent_dir).chain(folders.iter().rev().map(String::as_str)) {
        if found.iter().any(|(own, ..)| *own == folder) {
            continue;
        }
        if let Some((name, file)) = look.instructions(folder) {
            found.push((folder, name, file));
        }
    }
    if let Some(shadowed) = shadowed_main_root(look, &found) {
        found.retain(|(folder, ..)| *folder != shadowed);
    }
    found.into_iter().map(|(_, _, file)| file).collect()
}

/// A linked worktree inside its main repository has its own copy of the file; the main one would be the same twice.
fn shadowed_main_root(look: &mut Look<'_>, found: &[(&str, &'static str, ContextFile)]) -> Option<String> {
    found.iter().find_map(|(folder, name, _)| {
        if !look.has(folder, ".git", false) {
            return None;
        }
        let link = look.read(&join(folder, ".git"))?;
        let target = link.trim().strip_prefix("gitdir:")?.trim().replace('\\', "/");
        let (main, _) = target.rsplit_once("/.git/worktrees/")?;
        let inside = folder.strip_prefix(main).is_some_and(|rest| rest.starts_with(['/', '\\']));
        let same_name = found.iter().any(|(other, own, _)| *other == main && own == name);
        (inside && same_name).then(|| main.to_owned())
    })
}

/// A folder and everything above it, innermost first.
fn ancestors(folder: &str) -> Vec<String> {
    let separators: &[char] = if folder.starts_with('/') { &['/'] } else { &['/', '\\'] };
    let mut list = Vec::new();
    let mut current = trim_end(folder, separators);
    loop {
        list.push(current.to_owned());
        match current.rfind(separators) {
            // The root keeps its separator.
            Some(0) if current.len() > 1 => current = current.split_at(1).0,
            Some(at) if at > 0 => {
                let parent = current.split_at(at).0;
                if parent.ends_with(':') {
                    list.push(current.split_at(at + 1).0.to_owned());
                    return list;
                }
                current = trim_end(parent, separators);
            }
            _ => return list,
        }
    }
}

fn trim_end<'a>(folder: &'a str, separators: &[char]) -> &'a str {
    let trimmed = folder.trim_end_matches(separators);
    if trimmed.is_empty() { folder.split_at(folder.len().min(1)).0 } else { trimmed }
}

fn join(folder: &str, name: &str) -> String {
    if folder.ends_with(['/', '\\']) { format!("{folder}{name}") } else { format!("{folder}/{name}") }
}

fn is_absolute(path: &str) -> bool {
    path.starts_with(['/', '\\']) || path.get(1..2) == Some(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_end_at_the_root() {
        assert_eq!(ancestors("/a/b"), ["/a/b", "/a", "/"]);
        assert_eq!(ancestors("/a/b/"), ["/a/b", "/a", "/"]);
        assert_eq!(ancestors("/"), ["/"]);
        assert_eq!(ancestors("C:\\u\\p"), ["C:\\u\\p", "C:\\u", "C:\\"]);
        assert_eq!(ancestors("/a\\b/c"), ["/a\\b/c", "/a\\b", "/"]);
    }

    /// A folder with two unreadable names.
    struct Locked;

    impl Files for Locked {
        fn list(&mut self, _: &str) -> Vec<Name> {
            ["AGENTS.md", "CLAUDE.md"].map(|name| Name { name: name.into(), is_folder: false }).into()
        }

        fn read(&mut self, path: &str) -> Result<String, ReadFault> {
            if path.ends_with("AGENTS.md") { Err(ReadFault::Failed("denied".into())) } else { Ok("c".into()) }
        }
    }

    #[test]
    fn an_unreadable_file_warns_and_the_next_one_counts() {
        let place = Where { cwd: "/", agent_dir: "/", ..Where::default() };
        let got = gather(&mut Locked, &place);
        assert_eq!(got.context, [ContextFile { path: "/CLAUDE.md".into(), content: "c".into() }]);
        assert_eq!(got.warnings, ["/AGENTS.md cannot be read: denied"]);
    }
}
