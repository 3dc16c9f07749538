//! Folders that had another name in older versions (spec 40 §4.3).

use std::fs;

use crate::surroundings::Listing;

/// Prompt templates were called commands. The folder gets its new name, unless there is one of that name; `listing`
/// is that of the folder around it.
pub fn rename_commands(folder: &str, listing: &mut Listing, warnings: &mut Vec<String>) {
    if !listing.has("commands") || listing.has("prompts") {
        return;
    }
    let (old, new) = (format!("{folder}/commands"), format!("{folder}/prompts"));
    // A link stays where it is: what it leads to may have other readers.
    if !fs::symlink_metadata(&old).is_ok_and(|meta| meta.is_dir()) {
        return;
    }
    match fs::rename(&old, &new) {
        Ok(()) => {
            if let Listing::Names(names) = listing {
                names.remove("commands");
                names.insert("prompts".to_owned());
            }
            warnings.push(format!("{old} is called {new} now"));
        }
        Err(e) => warnings.push(format!("{old} should be called prompts, and cannot be renamed: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_and_never_over_another() {
        let root = std::env::temp_dir().join(format!("tau-layout-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("commands")).unwrap();
        fs::write(root.join("commands/a.md"), "A").unwrap();
        let folder = root.to_str().unwrap();
        let mut warnings = Vec::new();
        let mut listing = Listing::of(folder);
        rename_commands(folder, &mut listing, &mut warnings);
        assert!(listing.has("prompts") && !listing.has("commands"));
        assert_eq!(fs::read(root.join("prompts/a.md")).unwrap(), b"A");
        assert_eq!(warnings.len(), 1);

        fs::create_dir(root.join("commands")).unwrap();
        rename_commands(folder, &mut Listing::of(folder), &mut warnings);
        assert!(root.join("commands").exists() && warnings.len() == 1);
        fs::remove_dir_all(&root).unwrap();
    }
}
