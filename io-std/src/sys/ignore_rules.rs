//! Ignore files (spec 50 §6.1, D32): `.gitignore` with and without a repository, `.git/info/exclude`, the user's
//! global excludes, `.ignore` and one file of the tool's own.
//!
//! Inner files win over outer ones, kinds win over each other in the order own, `.ignore`, `.gitignore`, exclude,
//! global. A folder that holds `.git` ends the reach of the git rules of the folders above it.

use std::fs;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder, gitconfig_excludes_path};
use ignore::overrides::Override;

/// Which ignore files a folder holds; known from its listing, so that nothing has to be probed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    pub(crate) git: bool,
    pub(crate) gitignore: bool,
    pub(crate) ignore: bool,
    pub(crate) own: bool,
}

/// The rules in force at one place of a walk.
#[derive(Debug)]
pub(crate) struct Rules {
    own_name: &'static str,
    overrides: Override,
    layers: Vec<Layer>,
    global: Option<Gitignore>,
}

/// The rules of one folder.
#[derive(Debug, Default)]
struct Layer {
    own: Option<Gitignore>,
    ignore: Option<Gitignore>,
    git: Option<Gitignore>,
    exclude: Option<Gitignore>,
    boundary: bool,
}

impl Rules {
    /// The rules that hold at `root` because of the folders above it. `own_name` is the tool's own ignore file.
    pub(crate) fn above(root: &Path, own_name: &'static str, overrides: Override) -> Self {
        let mut rules = Self { own_name, overrides, layers: Vec::new(), global: None };
        let mut repository = None;
        let mut above: Vec<&Path> = root.ancestors().skip(1).collect();
        if root.join(".git").exists() {
            repository = Some(root);
        }
        for (at, folder) in above.iter().enumerate() {
            if repository.is_none() && folder.join(".git").exists() {
                repository = Some(folder);
                // Above the repository only the rules that are not git's remain.
                for outer in above.iter().skip(at + 1).rev() {
                    rules.enter(outer, Found { git: false, gitignore: false, ignore: true, own: true });
                }
                above.truncate(at + 1);
                break;
            }
        }
        for folder in above.iter().rev() {
            let git = repository == Some(*folder);
            rules.enter(folder, Found { git, gitignore: true, ignore: true, own: true });
        }
        rules.global = gitconfig_excludes_path().and_then(|path| read(repository.unwrap_or(root), &path));
        rules
    }

    /// Name of the tool's own ignore file.
    pub(crate) const fn own_name(&self) -> &'static str {
        self.own_name
    }

    /// Adds the rules of a folder; tells whether there were any.
    pub(crate) fn enter(&mut self, folder: &Path, found: Found) -> bool {
        let file = |there: bool, name: &str| there.then(|| read(folder, &folder.join(name))).flatten();
        let layer = Layer {
            own: file(found.own, self.own_name),
            ignore: file(found.ignore, ".ignore"),
            git: file(found.gitignore, ".gitignore"),
            exclude: found.git.then(|| exclude_file(folder)).flatten().and_then(|path| read(folder, &path)),
            boundary: found.git,
        };
        let any = layer.boundary
            || [&layer.own, &layer.ignore, &layer.git, &layer.exclude].iter().any(|rules| rules.is_some());
        if any {
            self.layers.push(layer);
        }
        any
    }

    /// Drops the rules of the folder entered last.
    pub(crate) fn leave(&mut self) {
        self.layers.pop();
    }

    /// Whether a path is left out.
    pub(crate) fn ignores(&self, path: &Path, is_dir: bool) -> bool {
        match self.overrides.matched(path, is_dir) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => {}
        }
        let (mut ignore, mut git, mut exclude) = (None, None, None);
        let mut inside = true;
        for layer in self.layers.iter().rev() {
            if let Some(verdict) = verdict(&layer.own, path, is_dir) {
                return verdict;
            }
            ignore = ignore.or_else(|| verdict(&layer.ignore, path, is_dir));
            if inside {
                git = git.or_else(|| verdict(&layer.git, path, is_dir));
                exclude = exclude.or_else(|| verdict(&layer.exclude, path, is_dir));
                inside = !layer.boundary;
            }
        }
        let verdict = ignore.or(git).or(exclude).or_else(|| verdict(&self.global, path, is_dir));
        verdict.unwrap_or(false)
    }
}

/// Whether rules ignore a path (`true`), keep it (`false`) or do not speak of it.
fn verdict(rules: &Option<Gitignore>, path: &Path, is_dir: bool) -> Option<bool> {
    match rules.as_ref()?.matched(path, is_dir) {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    }
}

/// Rules of one file; lines that make no sense are skipped, as git does it.
fn read(root: &Path, file: &Path) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(root);
    builder.add(file);
    builder.build().ok().filter(|rules| !rules.is_empty())
}

/// `info/exclude` of the repository whose root is `folder`; work trees share that of the main one.
fn exclude_file(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    if git.is_dir() {
        return Some(git.join("info/exclude"));
    }
    let pointer = fs::read_to_string(&git).ok()?;
    let private = folder.join(pointer.strip_prefix("gitdir:")?.trim());
    let common = fs::read_to_string(private.join("commondir")).ok()?;
    Some(private.join(common.trim()).join("info/exclude"))
}
