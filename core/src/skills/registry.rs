//! One list without doubles: the first of a name stays (spec 50 §9.4).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::diagnostic::{Diagnostic, Problem, Resource};
use super::places::Step;
use super::scan::Found;
use super::{Skill, SourceInfo};
use crate::prompt::templates::Template;

/// Something with a name that comes from a file.
pub(super) trait Named {
    /// The name.
    fn name(&self) -> &str;
    /// The file.
    fn path(&self) -> &str;
}

impl Named for Skill {
    fn name(&self) -> &str {
        &self.name
    }

    fn path(&self) -> &str {
        &self.file_path
    }
}

impl Named for Template {
    fn name(&self) -> &str {
        &self.name
    }

    fn path(&self) -> &str {
        &self.file_path
    }
}

/// Loads files one after the other. The same file again is passed over without a word; another one with a name that is
/// taken is reported, after everything else.
pub(super) fn register<T: Named>(
    steps: Vec<Step>,
    resource: Resource,
    mut load: impl FnMut(&Found, &SourceInfo) -> (Option<T>, Vec<Problem>),
) -> (Vec<T>, Vec<Diagnostic>) {
    let (mut items, mut diagnostics, mut collisions) = (Vec::<T>::new(), Vec::new(), Vec::new());
    let (mut seen, mut names) = (BTreeSet::new(), BTreeMap::<String, usize>::new());
    for step in steps {
        let (file, source) = match step {
            Step::File(file, source) => (file, source),
            Step::Problem(path, problem) => {
                diagnostics.push(Diagnostic { resource, path, problem });
                continue;
            }
        };
        // A link gives a template another name, and nothing else is its name.
        let name = if resource == Resource::Template { file.name.as_str() } else { "" };
        if !seen.insert([&file.real, "\0", name].concat()) {
            continue;
        }
        let (item, problems) = load(&file, &source);
        let about = |problem| Diagnostic { resource, path: file.path.clone(), problem };
        diagnostics.extend(problems.into_iter().map(about));
        let Some(item) = item else { continue };
        match names.get(item.name()).and_then(|at| items.get(*at)) {
            Some(first) => collisions
                .push(about(Problem::Collision { name: item.name().into(), winner: first.path().into() })),
            None => {
                names.insert(item.name().into(), items.len());
                items.push(item);
            }
        }
    }
    diagnostics.append(&mut collisions);
    (items, diagnostics)
}
