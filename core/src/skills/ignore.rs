//! Ignore files in folders of skills and templates (spec 50 §9.2): the syntax of `.gitignore`, with two particulars.
//! A rule of a folder below the root of the search holds directly in that folder only, and a leading `/` says nothing.

use alloc::vec::Vec;

use super::glob::Glob;

/// Names of ignore files, in the order in which they are read.
pub(super) const FILES: [&str; 3] = [".gitignore", ".ignore", ".fdignore"];

#[derive(Debug)]
struct Rule {
    glob: Glob,
    negated: bool,
    folders_only: bool,
}

/// The rules of the folders from the root of a search to the present one.
#[derive(Debug, Default)]
pub(super) struct Rules {
    folders: Vec<Folder>,
}

#[derive(Debug)]
struct Folder {
    /// How much of a path from the root is this folder, with the last `/`.
    prefix: usize,
    rules: Vec<Rule>,
}

impl Rules {
    /// Goes into a folder, `prefix` bytes below the root; `texts` are its ignore files.
    pub(super) fn enter<'t>(&mut self, prefix: usize, texts: impl Iterator<Item = &'t str>) {
        let rules =
            texts.flat_map(|text| text.split('\n')).filter_map(|line| rule(line, prefix > 0)).collect();
        self.folders.push(Folder { prefix, rules });
    }

    /// Leaves the folder that was entered last.
    pub(super) fn leave(&mut self) {
        self.folders.pop();
    }

    /// Whether a path, given from the root with `/`, is to be left out. The last rule that means it decides.
    pub(super) fn ignore(&self, path: &str, is_folder: bool) -> bool {
        let mut rules = self.folders.iter().rev().flat_map(|folder| {
            let inner = path.get(folder.prefix..).unwrap_or_default();
            folder.rules.iter().rev().map(move |rule| (rule, inner))
        });
        let decisive =
            rules.find(|(rule, inner)| (is_folder || !rule.folders_only) && rule.glob.matches(inner));
        decisive.is_some_and(|(rule, _)| !rule.negated)
    }
}

fn rule(line: &str, nested: bool) -> Option<Rule> {
    let line = without_end(line.trim_end_matches('\r'));
    if line.trim_start().starts_with('#') {
        return None;
    }
    let positive = line.strip_prefix('!');
    let pattern = positive.unwrap_or(line);
    let pattern = pattern.strip_prefix('/').unwrap_or(pattern);
    let name = pattern.strip_suffix('/');
    let (folders_only, pattern) = (name.is_some(), name.unwrap_or(pattern));
    if pattern.trim().is_empty() {
        return None;
    }
    let glob = Glob::parse(pattern);
    let glob = if nested || pattern.contains('/') { glob } else { glob.at_any_depth() };
    Some(Rule { glob, negated: positive.is_some(), folders_only })
}

/// Blanks at the end do not count, except one that a backslash keeps.
fn without_end(line: &str) -> &str {
    let trimmed = line.trim_end_matches([' ', '\t']);
    let slashes = trimmed.len() - trimmed.trim_end_matches('\\').len();
    let kept = trimmed.len() + slashes % 2;
    line.get(..kept).unwrap_or(trimmed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ignored(texts: &[(usize, &str)], path: &str, is_folder: bool) -> bool {
        let mut rules = Rules::default();
        for (prefix, text) in texts {
            rules.enter(*prefix, [*text].into_iter());
        }
        rules.ignore(path, is_folder)
    }

    #[test]
    fn lines() {
        for (text, path, expected) in [
            ("x", "a/x", true),
            ("a/x", "b/a/x", false),
            ("x  \r\n", "x", true),
            ("x\\ ", "x ", true),
            ("x\\ ", "x", false),
            ("\\!x", "!x", true),
            ("\\#x", "#x", true),
            ("x/", "x", false),
            ("*\n!x", "x", false),
            ("!x\n*", "x", true),
            ("/x", "a/x", true),
            ("/", "x", false),
        ] {
            assert_eq!(ignored(&[(0, text)], path, false), expected, "{text:?} {path}");
        }
        assert!(ignored(&[(0, "x/")], "a/x", true));
    }

    #[test]
    fn inner_rules_win_and_are_anchored() {
        assert!(!ignored(&[(0, "x"), (2, "!x")], "g/x", true));
        assert!(ignored(&[(0, ""), (2, "x")], "g/x", true));
        assert!(!ignored(&[(0, ""), (2, "x"), (4, "")], "g/h/x", true));
    }
}
