//! Skills and prompt templates of a run: looked for when something needs them, and put in place of the commands that
//! name them (spec 10 §8.1 step 5; spec 50 §9–§10).

use std::collections::VecDeque;
use std::path::Path;

use tau_core::prompt::templates;
use tau_core::settings::Scope;
use tau_core::settings::trust::Verdict;
use tau_core::skills::command::{self, Expansion};
use tau_core::skills::{Configured, Lookup, Resources, Roots, discover};

use crate::args::{Args, ModeArg};
use crate::bootstrap::Base;
use crate::files::read_text;
use crate::out::note;
use crate::prompt_files::{AGENTS, Folders};
use crate::prompts::Prompt;
use crate::resource_files::KnownDisk;
use crate::surroundings::Surroundings;
use crate::trust;
use crate::visible::harmless;

/// What a run has use for. Paths of the command line are looked at anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// Skills: the model can read them, or a prompt may name one.
    pub skills: bool,
    /// Templates: a prompt may name one.
    pub templates: bool,
}

impl Need {
    /// `can_read`: the model has the tool for skills.
    #[must_use]
    pub fn of(args: &Args, stdin_is_terminal: bool, prompts: &VecDeque<Prompt>, can_read: bool) -> Self {
        // Some modes take more prompts than those of the command line.
        let open = match args.mode {
            Some(ModeArg::Rpc) => true,
            Some(ModeArg::Json) => false,
            _ => stdin_is_terminal && !args.print,
        };
        let named = |mark: &str| open || prompts.iter().any(|prompt| prompt.text.starts_with(mark));
        Self { skills: can_read || named("/skill:"), templates: named("/") }
    }
}

/// Looks for what is needed. Paths of the command line start at `launch`, all others where the session belongs.
///
/// # Errors
/// When the store of trust decisions cannot be understood.
pub fn find(
    args: &Args,
    launch: &Surroundings,
    base: &Base,
    need: Need,
    folders: &mut Folders<'_>,
    warnings: &mut Vec<String>,
) -> Result<Resources, String> {
    let no_skills = args.no_skills || !need.skills;
    let trusted = match base.trusted || base.protected || no_skills {
        true => base.trusted,
        false => trusts_skills(base, folders, warnings)?,
    };
    let given = |paths: &[String]| -> Vec<String> {
        paths.iter().map(|path| launch.resolve(path.trim()).unwrap_or_else(|_| path.clone())).collect()
    };
    let settings = |list| [Scope::Global, Scope::Project].map(|scope| base.settings.resources(scope, list));
    let ([user_skills, project_skills], skills) = (settings("skills"), given(&args.skills));
    let ([user_templates, project_templates], templates) =
        (settings("prompts"), given(&args.prompt_templates));
    let found = discover(
        &mut KnownDisk(folders),
        &Lookup {
            roots: Roots {
                cwd: &base.place.cwd,
                home: base.place.home_or_root(),
                agent_dir: &base.place.agent_dir,
            },
            trusted,
            skills: Configured {
                user: &user_skills,
                project: &project_skills,
                flags: &skills,
                only_flags: no_skills,
            },
            templates: Configured {
                user: &user_templates,
                project: &project_templates,
                flags: &templates,
                only_flags: args.no_prompt_templates || !need.templates,
            },
        },
    );
    warnings
        .extend(found.diagnostics.iter().map(|diagnostic| harmless(&diagnostic.to_string()).into_owned()));
    Ok(found)
}

/// A project without `.pi` may still bring skills in `.agents`, which need a decision too.
fn trusts_skills(base: &Base, folders: &mut Folders<'_>, warnings: &mut Vec<String>) -> Result<bool, String> {
    let Some(skills) = shared_skills(&base.place, folders) else { return Ok(false) };
    let default = base.settings.default_project_trust();
    let verdict = trust::decide(&base.place, base.approve, default, true, &base.agent)?;
    if verdict == Verdict::Ask {
        warnings.push(format!(
            "the skills in {skills} do not count; --approve trusts them once, `tau config trust yes` from now on"
        ));
    }
    Ok(verdict == Verdict::Trusted)
}

/// The nearest `.agents/skills` up to the root of the repository; that in the user's home is not the project's.
fn shared_skills(place: &Surroundings, folders: &mut Folders<'_>) -> Option<String> {
    for folder in Path::new(&place.cwd).ancestors().filter_map(Path::to_str) {
        let skills = format!("{}/{AGENTS}/skills", folder.trim_end_matches('/'));
        let of_user = folder == place.home_or_root();
        if !of_user && folders.has(folder, AGENTS) && Path::new(&skills).is_dir() {
            return Some(skills);
        }
        if folders.has(folder, ".git") {
            break;
        }
    }
    None
}

/// The message that a text stands for: that of a skill, or of a template. Every other text stays as it is.
#[must_use]
pub fn expand(text: String, found: &Resources) -> String {
    if !text.starts_with('/') {
        return text;
    }
    let mut read = |path: &str| read_text(path)?.ok_or_else(|| "there is no file any more".to_owned());
    let text = match command::expand(&text, &found.skills, &mut read) {
        Expansion::Message(message) => return message,
        Expansion::None => text,
        Expansion::Failed { name, reason } => {
            note(&harmless(&format!(
                "the skill {name} cannot be used: {reason}; the prompt is sent as it is"
            )));
            text
        }
    };
    templates::expand(&text, &found.templates).unwrap_or(text)
}
