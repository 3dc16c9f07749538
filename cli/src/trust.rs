//! Whether the files of a project count (spec 40 §4.4): looking at the disk, the store of decisions, the question.

use std::io::BufRead;
use std::path::Path;

use tau_core::settings::ProjectTrust;
use tau_core::settings::trust::{Answer, PROTECTED, TrustStore, Verdict, decide as verdict, protected};
use tau_io_std::sys::CancelToken;
use tau_io_std::sys::update::{How, update};

use crate::files::read_text;
use crate::out::note;
use crate::settings_store::{PATIENT, explain};
use crate::surroundings::{Listing, Surroundings};
use crate::visible::harmless;

/// Whether `.pi` holds anything that needs a decision. `project` lists it.
#[must_use]
pub fn is_protected(place: &Surroundings, project: &Listing) -> bool {
    let exists = |name: &str| Path::new(&format!("{}/.pi/{name}", place.cwd)).exists();
    PROTECTED.iter().any(|name| project.has(name) && exists(name))
}

/// All that a project brings and that needs a decision, shared skills in `.agents` too.
#[must_use]
pub fn brought(place: &Surroundings) -> Vec<String> {
    protected(&place.cwd, place.home.as_deref(), &mut |path| Path::new(path).exists())
}

/// The decision: the flag, a saved decision about the folder or the nearest one above, the setting.
///
/// # Errors
/// When the store of decisions cannot be understood.
pub fn decide(
    place: &Surroundings,
    flag: Option<bool>,
    default: ProjectTrust,
    needed: bool,
    agent: &Listing,
) -> Result<Verdict, String> {
    let saved = match flag {
        None if agent.has("trust.json") => saved(place)?.map(|(_, trusted)| trusted),
        _ => None,
    };
    Ok(verdict(flag, needed, saved, default))
}

/// The saved decision that counts here, and the folder it is about.
///
/// # Errors
/// When the store of decisions cannot be understood.
pub fn saved(place: &Surroundings) -> Result<Option<(String, bool)>, String> {
    let path = place.agent_file("trust.json");
    let explain = |why: &str| format!("{path}: {why}; correct the file, or move it away");
    let Some(text) = read_text(&path).map_err(|why| explain(&why))? else { return Ok(None) };
    let store = TrustStore::parse(&text).map_err(|why| explain(&why))?;
    Ok(store.find(&real(&place.cwd)).map(|(folder, trusted)| (folder.to_owned(), trusted)))
}

/// Stores an answer about the working directory.
///
/// # Errors
/// Why it could not be stored; the store is as it was then.
pub fn store(place: &Surroundings, answer: Answer) -> Result<(), String> {
    let folder = real(&place.cwd);
    change(place, &answer.changes(&folder))
}

/// Forgets a decision about the working directory; those about folders above stay.
///
/// # Errors
/// As [`store`].
pub fn forget(place: &Surroundings) -> Result<(), String> {
    change(place, &[(&real(&place.cwd), None)])
}

fn change(place: &Surroundings, changes: &[(&str, Option<bool>)]) -> Result<(), String> {
    if changes.is_empty() {
        return Ok(());
    }
    let how = How { mode: 0o600, folder_mode: 0o700, patience: PATIENT };
    let mut change = |text: Option<&str>| Ok(TrustStore::parse(text.unwrap_or_default())?.with(changes));
    update(&place.agent_file("trust.json"), how, &CancelToken::new(), &mut change).map_err(explain)
}

/// The folder as decisions name it.
fn real(folder: &str) -> String {
    let real = std::fs::canonicalize(folder).ok().and_then(|path| path.into_os_string().into_string().ok());
    real.unwrap_or_else(|| folder.to_owned())
}

/// Asks a person; no answer is [`Answer::DistrustOnce`].
pub fn ask(place: &Surroundings, brought: &[String], input: &mut dyn BufRead) -> Answer {
    let own = format!("{}/", place.cwd);
    let names: Vec<String> =
        brought.iter().map(|path| one_line(path.strip_prefix(&own).unwrap_or(path))).collect();
    let folder = real(&place.cwd);
    let parent = Path::new(&folder).parent().unwrap_or_else(|| Path::new("/")).to_string_lossy();
    let question = format!(
        "the project {} brings {}, which can make this program run commands. Do these files count?\n  \
         y  yes, from now on        p  yes, and those of every project in {parent}\n  \
         o  yes, only this time     n  no, from now on\n  \
         Enter  not this time",
        one_line(&folder),
        names.join(", "),
        parent = one_line(&parent),
    );
    note(&question);
    loop {
        let mut line = String::new();
        if !input.read_line(&mut line).is_ok_and(|count| count > 0) {
            return Answer::DistrustOnce;
        }
        match answer(&line) {
            Some(answer) => return answer,
            None => note("please answer y, p, o, n or only Enter"),
        }
    }
}

/// A name that cannot pretend to be more than one.
fn one_line(name: &str) -> String {
    harmless(name).replace('\n', "␊")
}

fn answer(line: &str) -> Option<Answer> {
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(Answer::Trust),
        "p" | "parent" => Some(Answer::TrustParent),
        "o" | "once" => Some(Answer::TrustOnce),
        "n" | "no" => Some(Answer::Distrust),
        "" => Some(Answer::DistrustOnce),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        let place = Surroundings { cwd: "/a/b".into(), ..Surroundings::default() };
        for (typed, wanted) in [
            ("y\n", Answer::Trust),
            ("what?\n P \n", Answer::TrustParent),
            ("once\n", Answer::TrustOnce),
            ("N\n", Answer::Distrust),
            ("\n", Answer::DistrustOnce),
            ("", Answer::DistrustOnce),
            ("maybe", Answer::DistrustOnce),
        ] {
            assert_eq!(ask(&place, &[], &mut typed.as_bytes()), wanted, "{typed:?}");
        }
    }
}
