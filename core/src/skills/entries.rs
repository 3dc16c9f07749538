//! What settings say about skills and templates: paths to look at, and entries that leave files out or keep them
//! (spec 50 §9.1).

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use super::glob::Glob;
use super::scan::Found;
use crate::path::{self, Style};

/// The entries that are paths.
pub(super) fn paths<'a>(entries: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    entries.iter().copied().filter(|entry| !entry.trim_start().starts_with(['!', '+', '-']))
}

/// The other entries: `!glob` leaves files out, `+path` keeps one all the same, `-path` leaves one out whatever else
/// is said.
#[derive(Debug)]
pub(super) struct Filter {
    base: String,
    style: Style,
    out: Vec<Glob>,
    kept: Vec<String>,
    dropped: Vec<String>,
}

impl Filter {
    /// Reads the entries; paths are relative to `base`.
    pub(super) fn new(entries: &[&str], base: &str, home: &str, style: Style) -> Self {
        let exact = |mark: char| {
            let own = entries.iter().filter_map(move |entry| entry.trim().strip_prefix(mark));
            own.filter_map(|entry| path::resolve(entry, base, home, style).ok()).collect()
        };
        let out = entries.iter().filter_map(|entry| entry.trim().strip_prefix('!'));
        Self {
            base: base.into(),
            style,
            out: out.map(|glob| Glob::parse(glob.strip_prefix("./").unwrap_or(glob))).collect(),
            kept: exact('+'),
            dropped: exact('-'),
        }
    }

    /// Whether a file is to be registered.
    pub(super) fn takes(&self, file: &Found) -> bool {
        if self.is_named(&self.dropped, file) {
            return false;
        }
        self.is_named(&self.kept, file) || !self.is_out(file)
    }

    /// A skill's folder stands for its file.
    fn is_named(&self, list: &[String], file: &Found) -> bool {
        list.iter().any(|path| *path == file.path || (file.is_skill_file() && *path == file.folder))
    }

    fn is_out(&self, file: &Found) -> bool {
        if self.out.is_empty() {
            return false;
        }
        let folder = file.is_skill_file().then_some(&file.folder);
        let forms: Vec<String> = [Some(&file.path), folder]
            .into_iter()
            .flatten()
            .flat_map(|path| {
                let relative = path::relative(&self.base, path, self.style);
                [relative, Some(path::file_name(path, self.style)), Some(path.clone())]
            })
            .flatten()
            .map(|form| match path::forward_slashes(&form, self.style) {
                Cow::Borrowed(_) => form,
                Cow::Owned(form) => form,
            })
            .collect();
        self.out.iter().any(|glob| forms.iter().any(|form| glob.matches(form)))
    }
}
