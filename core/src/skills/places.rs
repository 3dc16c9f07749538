//! The places where skills and templates are, and the files in them, in the order of rank.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::diagnostic::Problem;
use super::discover::Roots;
use super::disk::{Disk, Target};
use super::entries::{self, Filter};
use super::scan::{self, Found, Mode, is_markdown, scan};
use super::{SourceInfo, SourceKind, SourceScope};
use crate::path::{self, Style};

/// How the two kinds of resources differ.
#[derive(Debug)]
pub(super) struct Kind {
    /// Name of their folder in the agent folder and in `.pi`.
    folder: &'static str,
    /// How that folder is searched.
    own: Mode,
    /// How folders that settings name are searched.
    settings: Mode,
    /// How folders that flags name are searched.
    flag: Mode,
    /// Whether they are in `.agents` too.
    agents: bool,
}

/// Skills.
pub(super) const SKILLS: Kind =
    Kind { folder: "skills", own: scan::SKILLS, settings: scan::SKILLS, flag: scan::SKILLS, agents: true };

/// Templates.
pub(super) const TEMPLATES: Kind = Kind {
    folder: "prompts",
    own: scan::TEMPLATES,
    settings: scan::TEMPLATE_TREE,
    flag: scan::TEMPLATE_FLAG,
    agents: false,
};

/// What to do next.
#[derive(Debug)]
pub(super) enum Step {
    /// Load a file.
    File(Found, SourceInfo),
    /// Report something about a path.
    Problem(String, Problem),
}

/// Collects steps.
pub(super) struct Places<'d, 'r> {
    disk: &'d mut dyn Disk,
    kind: &'static Kind,
    roots: Roots<'r>,
    style: Style,
    /// What was collected.
    pub steps: Vec<Step>,
}

impl<'d, 'r> Places<'d, 'r> {
    /// Nothing yet.
    pub(super) fn new(disk: &'d mut dyn Disk, kind: &'static Kind, roots: Roots<'r>) -> Self {
        Self { disk, kind, roots, style: Style::of(roots.cwd), steps: Vec::new() }
    }

    /// The project's settings, `.pi`, and `.agents` from the working directory up to the repository's root.
    pub(super) fn project(&mut self, settings: &[&str]) {
        let base = self.join(self.roots.cwd, ".pi");
        self.scope(settings, base, SourceScope::Project);
        if self.kind.agents {
            for agents in self.project_agents() {
                self.folder(settings, &agents, scan::AGENTS, SourceScope::Project);
            }
        }
    }

    /// The user's settings, the agent folder, and `~/.agents`.
    pub(super) fn user(&mut self, settings: &[&str]) {
        self.scope(settings, self.roots.agent_dir.to_string(), SourceScope::User);
        if self.kind.agents {
            let agents = self.join(self.roots.home, ".agents");
            self.folder(settings, &agents, scan::AGENTS, SourceScope::User);
        }
    }

    /// Paths given for this run.
    pub(super) fn flags(&mut self, paths: &[String]) {
        for given in paths {
            self.path(given, self.roots.cwd, self.kind.flag, None, |places, path, is_folder| {
                places.flag_source(path, is_folder)
            });
        }
    }

    /// The folders of the agent folder and of `.pi`, as if they had been given.
    pub(super) fn defaults(&mut self) {
        for base in [self.roots.agent_dir.to_string(), self.join(self.roots.cwd, ".pi")] {
            let folder = self.join(&base, self.kind.folder);
            let source = self.flag_source(&folder, true);
            self.search(&folder, self.kind.own, None, &source);
        }
    }

    fn scope(&mut self, settings: &[&str], base: String, scope: SourceScope) {
        let filter = Filter::new(settings, &base, self.roots.home, self.style);
        for given in entries::paths(settings) {
            let source = SourceInfo { kind: SourceKind::Local, scope, base_dir: base.clone() };
            self.path(given, &base, self.kind.settings, Some(&filter), |_, _, _| source);
        }
        self.folder(settings, &base, self.kind.own, scope);
    }

    /// The folder that is there without being named.
    fn folder(&mut self, settings: &[&str], base: &str, mode: Mode, scope: SourceScope) {
        let filter = Filter::new(settings, base, self.roots.home, self.style);
        let source = SourceInfo { kind: SourceKind::Auto, scope, base_dir: base.into() };
        self.search(&self.join(base, self.kind.folder), mode, Some(&filter), &source);
    }

    /// A path that somebody wrote down: a folder or a file.
    fn path(
        &mut self,
        given: &str,
        base: &str,
        mode: Mode,
        filter: Option<&Filter>,
        source: impl FnOnce(&Self, &str, bool) -> SourceInfo,
    ) {
        let given = given.trim();
        if given.is_empty() {
            return;
        }
        let Ok(path) = path::resolve(given, base, self.roots.home, self.style) else {
            self.steps.push(Step::Problem(given.into(), Problem::PathMissing));
            return;
        };
        match self.disk.follow(&path) {
            Target::Folder => {
                let source = source(self, &path, true);
                self.search(&path, mode, filter, &source);
            }
            Target::File if is_markdown(&path) => {
                let source = source(self, &path, false);
                let file = Found {
                    folder: path::parent(&path, self.style),
                    name: path::file_name(&path, self.style),
                    real: self.disk.real(&path).unwrap_or_else(|| path.clone()),
                    path,
                };
                if filter.is_none_or(|filter| filter.takes(&file)) {
                    self.steps.push(Step::File(file, source));
                }
            }
            Target::File => self.steps.push(Step::Problem(path, Problem::PathNotMarkdown)),
            Target::Absent => self.steps.push(Step::Problem(path, Problem::PathMissing)),
        }
    }

    fn search(&mut self, folder: &str, mode: Mode, filter: Option<&Filter>, source: &SourceInfo) {
        let scan = scan(self.disk, folder, mode, self.style);
        let taken = scan.found.into_iter().filter(|file| filter.is_none_or(|filter| filter.takes(file)));
        self.steps.extend(taken.map(|file| Step::File(file, source.clone())));
        if scan.cut {
            self.steps.push(Step::Problem(folder.into(), Problem::TooMuch));
        }
    }

    /// A path inside a folder that counts anyway belongs to whom that folder belongs.
    fn flag_source(&self, path: &str, is_folder: bool) -> SourceInfo {
        let user = self.join(self.roots.agent_dir, self.kind.folder);
        let project = self.join(&self.join(self.roots.cwd, ".pi"), self.kind.folder);
        let (scope, base_dir) = if path::is_within(&user, path, self.style) {
            (SourceScope::User, user)
        } else if path::is_within(&project, path, self.style) {
            (SourceScope::Project, project)
        } else if is_folder {
            (SourceScope::Temporary, path.into())
        } else {
            (SourceScope::Temporary, path::parent(path, self.style))
        };
        SourceInfo { kind: SourceKind::Local, scope, base_dir }
    }

    /// `.agents` of the working directory and of the folders above it, up to the repository's root; the user's own is
    /// not the project's.
    fn project_agents(&mut self) -> Vec<String> {
        let own = self.join(self.roots.home, ".agents");
        let (mut list, mut folder) = (Vec::new(), path::normalize(self.roots.cwd, self.style));
        loop {
            let agents = self.join(&folder, ".agents");
            if agents != own {
                list.push(agents);
            }
            let above = path::parent(&folder, self.style);
            if above == folder || self.disk.follow(&self.join(&folder, ".git")) != Target::Absent {
                return list;
            }
            folder = above;
        }
    }

    fn join(&self, folder: &str, name: &str) -> String {
        path::join(folder, name, self.style)
    }
}
