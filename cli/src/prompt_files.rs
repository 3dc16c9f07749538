//! The file system as the prompt room wants to see it: each folder listed once, only wanted names.

use std::fs;
use std::path::Path;

use tau_core::prompt::files::{Files, Name, ReadFault, WANTED};

use crate::files::read_text;
use crate::surroundings::Listing;

/// Entries of a large folder that are looked at before single names are tried instead.
const MOST_ENTRIES: usize = 2048;

/// The real files, and a folder that was listed before.
#[derive(Debug)]
pub struct Disk<'a> {
    /// Its path.
    pub known: &'a str,
    /// What it holds.
    pub listing: &'a Listing,
}

impl Files for Disk<'_> {
    fn list(&mut self, folder: &str) -> Vec<Name> {
        if folder == self.known {
            // Whether a name is a folder shows when it is opened.
            let names = WANTED.iter().filter(|name| self.listing.has(name));
            return names.map(|name| Name { name: (*name).to_owned(), is_folder: false }).collect();
        }
        let mut found = Vec::new();
        for (seen, entry) in fs::read_dir(folder).into_iter().flatten().flatten().enumerate() {
            if seen == MOST_ENTRIES {
                return try_names(folder);
            }
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| WANTED.contains(name)) else { continue };
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            found.push(Name { name: name.to_owned(), is_folder });
        }
        found
    }

    fn read(&mut self, path: &str) -> Result<String, ReadFault> {
        match read_text(path) {
            Ok(Some(text)) => Ok(text),
            Ok(None) => Err(ReadFault::Absent),
            Err(why) => Err(ReadFault::Failed(why)),
        }
    }
}

fn try_names(folder: &str) -> Vec<Name> {
    let look = |name: &&str| {
        let meta = Path::new(folder).join(name).symlink_metadata().ok()?;
        Some(Name { name: (*name).to_owned(), is_folder: meta.is_dir() })
    };
    WANTED.iter().filter_map(look).collect()
}
