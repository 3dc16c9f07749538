//! From a file to a skill or a template (spec 50 §9.4, §10.1).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::diagnostic::Problem;
use super::disk::{Disk, ReadFault};
use super::scan::Found;
use super::{Skill, SourceInfo, frontmatter};
use crate::json::Value;
use crate::path::{self, Style};
use crate::prompt::templates::{self, Template};
use crate::text::utf16::utf16_len;

/// Longest description, in UTF-16 units.
const DESCRIPTION_UNITS: usize = 1024;

/// Longest name, in UTF-16 units.
const NAME_UNITS: usize = 64;

/// How much of a skill's file is read for its front matter.
const HEAD_BYTES: usize = 64 << 10;

/// Largest file of a template.
const TEMPLATE_BYTES: usize = 1 << 20;

/// Reads a skill. A file that is not named as one has to look like one, else nothing is said about it.
pub(super) fn skill(
    disk: &mut dyn Disk,
    file: &Found,
    source: &SourceInfo,
    style: Style,
) -> (Option<Skill>, Vec<Problem>) {
    let front = read(disk, &file.path, HEAD_BYTES).and_then(|text| {
        let parsed = frontmatter::parse(&text);
        parsed.map(|document| document.front).map_err(|fault| Problem::FrontmatterInvalid(fault.to_string()))
    });
    let front = match front {
        Ok(front) => front,
        Err(problem) if file.is_skill_file() => return (None, Vec::from([problem])),
        Err(_) => return (None, Vec::new()),
    };
    let text = |key: &str| front.get(key).and_then(Value::as_str);
    let description = text("description").filter(|text| !text.trim().is_empty());
    if description.is_none() && !file.is_skill_file() {
        return (None, Vec::new());
    }
    let name = text("name").filter(|name| !name.is_empty());
    let name = name.map_or_else(|| path::file_name(&file.folder, style), Into::into);
    let mut problems = Vec::new();
    match description {
        None => problems.push(Problem::DescriptionMissing),
        Some(text) if utf16_len(text) > DESCRIPTION_UNITS => problems.push(Problem::DescriptionTooLong),
        Some(_) => {}
    }
    problems.extend(name_problems(&name));
    let skill = description.map(|description| Skill {
        name,
        description: description.into(),
        file_path: file.path.clone(),
        base_dir: file.folder.clone(),
        disable_model_invocation: front.get("disable-model-invocation") == Some(&Value::Bool(true)),
        source: source.clone(),
    });
    (skill, problems)
}

fn name_problems(name: &str) -> impl Iterator<Item = Problem> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    [
        (utf16_len(name) > NAME_UNITS, Problem::NameTooLong),
        (name.is_empty() || !name.chars().all(plain), Problem::NameInvalidChars),
        (name.starts_with('-') || name.ends_with('-'), Problem::NameEdgeHyphen),
        (name.contains("--"), Problem::NameDoubleHyphen),
    ]
    .into_iter()
    .filter_map(|(broken, problem)| broken.then_some(problem))
}

/// Reads a template.
pub(super) fn template(
    disk: &mut dyn Disk,
    file: &Found,
    source: &SourceInfo,
) -> (Option<Template>, Vec<Problem>) {
    let loaded = read(disk, &file.path, TEMPLATE_BYTES + 1).and_then(|text| {
        if text.len() > TEMPLATE_BYTES {
            return Err(Problem::Unreadable("it is larger than 1 MiB".into()));
        }
        templates::load(&file.name, &text).map_err(|fault| Problem::FrontmatterInvalid(fault.to_string()))
    });
    match loaded {
        Ok(template) => {
            let placed = template.map(|template| Template {
                file_path: file.path.clone(),
                source: source.clone(),
                ..template
            });
            (placed, Vec::new())
        }
        Err(problem) => (None, Vec::from([problem])),
    }
}

fn read(disk: &mut dyn Disk, path: &str, most: usize) -> Result<String, Problem> {
    disk.read(path, most).map_err(|fault| {
        Problem::Unreadable(match fault {
            ReadFault::Absent => "there is no file any more".into(),
            ReadFault::Failed(why) => why,
        })
    })
}
