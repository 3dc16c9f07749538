//! Where skills and templates come from, and which of those with one name counts (spec 50 §9.1, §10.1).
//!
//! Places are visited in the order of their rank: the project's settings, the project's folders, the user's settings,
//! the user's folders, paths given for this run. What is registered first keeps its name.

use alloc::string::String;
use alloc::vec::Vec;

use super::diagnostic::{Diagnostic, Resource};
use super::disk::Disk;
use super::places::{self, Kind, Places, Step};
use super::registry::register;
use super::scan::{self, scan};
use super::{Skill, SourceInfo, load};
use crate::path::Style;
use crate::prompt::templates::Template;

/// Folders that decide where to look; all absolute and normalised.
#[derive(Clone, Copy, Debug, Default)]
pub struct Roots<'a> {
    /// Working directory.
    pub cwd: &'a str,
    /// The user's home.
    pub home: &'a str,
    /// The agent folder.
    pub agent_dir: &'a str,
}

/// What is configured about skills, or about templates.
#[derive(Clone, Copy, Debug, Default)]
pub struct Configured<'a> {
    /// The list in the user's settings.
    pub user: &'a [&'a str],
    /// The list in the project's settings.
    pub project: &'a [&'a str],
    /// Paths given for this run, relative to the working directory.
    pub flags: &'a [String],
    /// Only `flags` count (`--no-skills`, `--no-prompt-templates`).
    pub only_flags: bool,
}

/// What to look for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lookup<'a> {
    /// Where.
    pub roots: Roots<'a>,
    /// Whether the project's folders and settings count.
    pub trusted: bool,
    /// Skills.
    pub skills: Configured<'a>,
    /// Templates.
    pub templates: Configured<'a>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Skills, in the order in which they were registered.
    pub skills: Vec<Skill>,
    /// Templates, likewise.
    pub templates: Vec<Template>,
    /// What is wrong: skills before templates, each with its collisions last.
    pub diagnostics: Vec<Diagnostic>,
}

/// Looks everywhere.
pub fn discover(disk: &mut dyn Disk, lookup: &Lookup<'_>) -> Resources {
    let steps = everywhere(disk, &places::SKILLS, lookup, &lookup.skills);
    let (skills, mut diagnostics) = skills(disk, steps, Style::of(lookup.roots.cwd));
    let steps = everywhere(disk, &places::TEMPLATES, lookup, &lookup.templates);
    let (templates, more) =
        register(steps, Resource::Template, |file, source| load::template(disk, file, source));
    diagnostics.extend(more);
    Resources { skills, templates, diagnostics }
}

fn everywhere(
    disk: &mut dyn Disk,
    kind: &'static Kind,
    lookup: &Lookup<'_>,
    configured: &Configured<'_>,
) -> Vec<Step> {
    let mut places = Places::new(disk, kind, lookup.roots);
    if !configured.only_flags {
        if lookup.trusted {
            places.project(configured.project);
        }
        places.user(configured.user);
    }
    places.flags(configured.flags);
    places.steps
}

/// Skills of a list of paths and nothing else; with `defaults`, those of the agent folder and of the project's `.pi`
/// come first. For programs that bring their own list.
pub fn load_skills(
    disk: &mut dyn Disk,
    roots: Roots<'_>,
    paths: &[String],
    defaults: bool,
) -> (Vec<Skill>, Vec<Diagnostic>) {
    let mut places = Places::new(disk, &places::SKILLS, roots);
    if defaults {
        places.defaults();
    }
    places.flags(paths);
    let steps = places.steps;
    skills(disk, steps, Style::of(roots.cwd))
}

/// All skills of one folder, also those that are there twice.
pub fn scan_folder(disk: &mut dyn Disk, folder: &str) -> (Vec<Skill>, Vec<Diagnostic>) {
    let (style, source) = (Style::of(folder), SourceInfo::default());
    let (mut skills, mut diagnostics) = (Vec::new(), Vec::new());
    for file in scan(disk, folder, scan::SKILLS, style).found {
        let (skill, problems) = load::skill(disk, &file, &source, style);
        skills.extend(skill);
        let about = |problem| Diagnostic { resource: Resource::Skill, path: file.path.clone(), problem };
        diagnostics.extend(problems.into_iter().map(about));
    }
    (skills, diagnostics)
}

fn skills(disk: &mut dyn Disk, steps: Vec<Step>, style: Style) -> (Vec<Skill>, Vec<Diagnostic>) {
    register(steps, Resource::Skill, |file, source| load::skill(disk, file, source, style))
}
