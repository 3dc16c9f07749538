//! The folders around a run: each is listed once, only wanted names are kept, and all who look for files there share
//! the answers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tau_core::prompt::files::{Files, Name, ReadFault, WANTED};

use crate::files::read_text;
use crate::surroundings::Listing;

/// Entries of a large folder that are looked at before single names are tried instead.
const MOST_ENTRIES: usize = 2048;

/// Folder of skills that many programs share.
pub const AGENTS: &str = ".agents";

/// What is known about folders.
#[derive(Debug)]
pub struct Folders<'a> {
    /// Folders that were listed in full before.
    full: [(String, &'a Listing); 2],
    /// The wanted names of others.
    wanted: BTreeMap<String, Vec<Name>>,
}

impl<'a> Folders<'a> {
    /// Begins with two folders that were listed before.
    #[must_use]
    pub const fn new(full: [(String, &'a Listing); 2]) -> Self {
        Self { full, wanted: BTreeMap::new() }
    }

    /// Whether a folder holds a wanted name.
    pub fn has(&mut self, folder: &str, name: &str) -> bool {
        self.list(folder).iter().any(|own| own.name == name)
    }

    /// Whether it is known without a look that there is nothing at a path.
    #[must_use]
    pub fn lacks(&self, path: &str) -> bool {
        Path::new(path).ancestors().skip(1).filter_map(Path::to_str).any(|folder| {
            let inner = path.strip_prefix(folder).unwrap_or_default().trim_start_matches('/');
            let name = inner.split('/').next().unwrap_or_default();
            if let Some(listing) = self.full(folder) {
                return !listing.has(name);
            }
            let listing = self.wanted.get(folder).filter(|_| is_wanted(name));
            listing.is_some_and(|names| names.iter().all(|own| own.name != name))
        })
    }

    fn full(&self, folder: &str) -> Option<&'a Listing> {
        self.full.iter().find(|(own, _)| own == folder).map(|(_, listing)| *listing)
    }
}

impl Files for Folders<'_> {
    fn list(&mut self, folder: &str) -> Vec<Name> {
        if let Some(listing) = self.full(folder) {
            // Whether a name is a folder shows when it is opened.
            let names = WANTED.iter().filter(|name| listing.has(name));
            return names.map(|name| Name { name: (*name).to_owned(), is_folder: false }).collect();
        }
        if let Some(names) = self.wanted.get(folder) {
            return names.clone();
        }
        let names = look(folder);
        self.wanted.insert(folder.to_owned(), names.clone());
        names
    }

    fn read(&mut self, path: &str) -> Result<String, ReadFault> {
        match read_text(path) {
            Ok(Some(text)) => Ok(text),
            Ok(None) => Err(ReadFault::Absent),
            Err(why) => Err(ReadFault::Failed(why)),
        }
    }
}

fn is_wanted(name: &str) -> bool {
    name == AGENTS || WANTED.contains(&name)
}

fn look(folder: &str) -> Vec<Name> {
    let mut found = Vec::new();
    for (seen, entry) in fs::read_dir(folder).into_iter().flatten().flatten().enumerate() {
        if seen == MOST_ENTRIES {
            return try_names(folder);
        }
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| is_wanted(name)) else { continue };
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        found.push(Name { name: name.to_owned(), is_folder });
    }
    found
}

fn try_names(folder: &str) -> Vec<Name> {
    let look = |name: &str| {
        let meta = Path::new(folder).join(name).symlink_metadata().ok()?;
        Some(Name { name: name.to_owned(), is_folder: meta.is_dir() })
    };
    WANTED.into_iter().chain([AGENTS]).filter_map(look).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_listed_is_known() {
        let agent = Listing::Names(["skills".to_owned()].into());
        let mut folders = Folders::new([("/a".to_owned(), &agent), ("/p/.pi".to_owned(), &agent)]);
        let git = Name { name: ".git".into(), is_folder: true };
        folders.wanted.insert("/".into(), Vec::from([git]));
        assert!(!folders.lacks("/a/skills/x/SKILL.md") && folders.lacks("/a/prompts"));
        assert!(!folders.lacks("/.git") && folders.lacks("/.agents/skills"));
        assert!(!folders.lacks("/other") && !folders.lacks("/p/.agents/skills"));
        assert!(folders.lacks("/p/.pi/prompts/x.md") && !folders.lacks("/"));
        assert!(folders.has("/", ".git") && !folders.has("/", AGENTS));
    }
}
