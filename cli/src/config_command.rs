//! `tau config`: reads and changes settings, and decides whether the files of a project count.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use tau_core::json::{Value, Writer, to_string};
use tau_core::settings::keys::{self, KEYS, Key, name_of, path_of};
use tau_core::settings::trust::{Answer, Verdict};
use tau_core::settings::{Change, Finding, Kind, ProjectTrust, Scope, problem};

use crate::args::{self, Args};
use crate::bootstrap::Base;
use crate::out::note;
use crate::settings_store::{self, PATIENT};
use crate::surroundings::Surroundings;
use crate::trust;
use crate::visible::harmless;

/// What follows `config` on the command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Line {
    words: Vec<String>,
    project: bool,
    json: bool,
    help: bool,
    approve: Option<bool>,
}

impl Line {
    fn parse(items: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let (mut line, mut only_words) = (Self::default(), false);
        for item in items {
            match item.as_str() {
                _ if only_words => line.words.push(item),
                "--" => only_words = true,
                "--project" | "-l" => line.project = true,
                "--json" => line.json = true,
                "--help" | "-h" => line.help = true,
                "--approve" | "-a" => line.approve = Some(true),
                "--no-approve" | "-na" => line.approve = Some(false),
                // A value may be a negative number, which is told to be wrong where the setting is known.
                _ if item.starts_with("--") || (item.starts_with('-') && item.parse::<f64>().is_err()) => {
                    return Err(format!("config: unknown option {item}; `tau config --help` tells more"));
                }
                _ => line.words.push(item),
            }
        }
        Ok(line)
    }
}

/// Runs the command: what goes to standard output.
///
/// # Errors
/// What went wrong and what to do, for standard error.
pub fn run(items: impl IntoIterator<Item = String>) -> Result<String, String> {
    let line = Line::parse(items)?;
    let words: Vec<&str> = line.words.iter().map(String::as_str).collect();
    if line.help {
        return Ok(args::help::config());
    }
    match words.as_slice() {
        ["get", name] => get(&line, name),
        ["set", name, values @ ..] if !values.is_empty() => set(&line, name, values),
        ["unset", name] => unset(&line, name),
        ["list"] => list(&line),
        ["trust"] => show_trust(&line),
        ["trust", answer] => decide_trust(&line, answer),
        _ => Err(format!("config: this is not a command\n{}", args::help::config().trim_end())),
    }
}

fn base(line: &Line) -> Result<Base, String> {
    let args = Args { approve: line.approve, ..Args::default() };
    let mut warnings = Vec::new();
    let base = Base::read(Surroundings::gather()?, &args, &mut warnings);
    warnings.iter().for_each(|warning| note(&harmless(warning)));
    base
}

fn get(line: &Line, name: &str) -> Result<String, String> {
    let path = path_of(name);
    if let Some(new) = keys::renamed(&path) {
        return Err(format!("{name} is called {new} now"));
    }
    let found = base(line)?.settings.finding(&path);
    tell_problem(&found);
    if line.json {
        let mut w = Writer::new();
        write_finding(&mut w, &found);
        return Ok(w.into_string() + "\n");
    }
    match &found.value {
        // A program gets it as it is.
        Some(Value::String(text)) if !std::io::stdout().is_terminal() => Ok(format!("{text}\n")),
        Some(Value::String(text)) => Ok(format!("{}\n", harmless(text))),
        Some(value) => Ok(to_string(value) + "\n"),
        None if is_known(&found.path) => Err(format!("{name} is not set and has no default")),
        None => Err(format!("{name} is not set{}", meant(name))),
    }
}

fn set(line: &Line, name: &str, values: &[&str]) -> Result<String, String> {
    let path = path_of(name);
    if let Some(new) = keys::renamed(&path) {
        return Err(format!("{name} is called {new} now"));
    }
    let key = keys::find(&path);
    let value = typed(key.map(|key| key.kind), values)?;
    if let Some(problem) = problem(&path, &value) {
        return Err(format!("{name} {problem}; nothing was written"));
    }
    match key {
        Some(key) if key.global_only && line.project => {
            return Err(format!("{name} counts in the global file only; leave --project out"));
        }
        Some(key) if !key.used => {
            note(&format!("{name} is kept for other programs; this one does not use it"))
        }
        None if !is_known(&path) => note(&format!("no setting is called {name}{}", meant(name))),
        _ => {}
    }
    write(line, Change { path, value: Some(value) })
}

fn unset(line: &Line, name: &str) -> Result<String, String> {
    let path = path_of(keys::renamed(&path_of(name)).unwrap_or(name));
    write(line, Change { path, value: None })
}

/// Several values, or one that is no JSON list, are a list where the setting is one.
fn typed(kind: Option<Kind>, values: &[&str]) -> Result<Value, String> {
    match (kind, values) {
        (Some(kind), [value]) => Ok(kind.typed(value)),
        (None, [value]) => Ok(tau_core::json::parse(value).unwrap_or_else(|_| (*value).into())),
        (Some(Kind::Texts | Kind::List), several) => {
            Ok(several.iter().map(|&text| Value::from(text)).collect())
        }
        _ => Err("config set: more than one value; put quotes around a value with blanks".into()),
    }
}

fn write(line: &Line, change: Change) -> Result<String, String> {
    let scope = if line.project { Scope::Project } else { Scope::Global };
    let base = base(line)?;
    let decided = if line.project { may_change_project(&base)? } else { true };
    settings_store::save(&base.place, scope, std::slice::from_ref(&change), PATIENT)?;
    if scope == Scope::Global && base.settings.sets(Scope::Project, &change.path) {
        note(&format!("in this project, the project's own {} counts", name_of(&change.path)));
    }
    if !decided && change.value.is_some() {
        note(
            "settings of a project count when it is trusted: `tau config trust yes`, or --approve for one run",
        );
    }
    Ok(String::new())
}

/// Whether someone decided about the project, or it was no question so far.
///
/// # Errors
/// When its files do not count, or that cannot be found out.
fn may_change_project(base: &Base) -> Result<bool, String> {
    let default = base.settings.default_project_trust();
    let verdict = trust::decide(&base.place, base.approve, default, base.protected, &base.agent)?;
    if verdict != Verdict::Trusted {
        return Err(format!(
            "the files in {}/.pi do not count, so they are not changed; `tau config trust yes` lets them count from \
             now on, --approve this time",
            base.place.cwd
        ));
    }
    Ok(base.protected || default == ProjectTrust::Always || trust::saved(&base.place)?.is_some())
}

fn list(line: &Line) -> Result<String, String> {
    let base = base(line)?;
    let found = base.settings.findings();
    if line.json {
        return Ok(list_json(&base, &found));
    }
    found.iter().for_each(tell_problem);
    if base.undecided {
        note("the settings of this project do not count; `tau config trust` tells more");
    }
    let rows = found.iter().map(|found| {
        let value = found.value.as_ref().map_or_else(|| "-".to_owned(), to_string);
        [name_of(&found.path), value, found.origin.name().to_owned()]
    });
    Ok(columns(&rows.collect::<Vec<_>>()))
}

fn list_json(base: &Base, found: &[Finding]) -> String {
    let mut w = Writer::new();
    w.begin_object();
    w.key("files");
    w.begin_object();
    w.field_str("global", &settings_store::path(&base.place, Scope::Global));
    w.field_str("project", &settings_store::path(&base.place, Scope::Project));
    w.end_object();
    w.field_bool("projectTrusted", base.trusted);
    w.key("settings");
    w.begin_array();
    found.iter().for_each(|found| write_finding(&mut w, found));
    w.end_array();
    w.end_object();
    w.into_string() + "\n"
}

fn write_finding(w: &mut Writer, found: &Finding) {
    w.begin_object();
    w.field_str("key", &name_of(&found.path));
    w.key("value");
    match &found.value {
        Some(value) => w.value(value),
        None => w.null(),
    }
    w.field_str("origin", found.origin.name());
    w.field_bool("known", is_known(&found.path));
    w.field_opt_str("problem", found.problem.as_deref());
    w.end_object();
}

fn tell_problem(found: &Finding) {
    if let Some(problem) = &found.problem {
        note(&harmless(&format!("{} in a settings file {problem}", name_of(&found.path))));
    }
}

fn show_trust(line: &Line) -> Result<String, String> {
    let base = base(line)?;
    let brought = trust::brought(&base.place);
    let saved = trust::saved(&base.place)?;
    let default = base.settings.default_project_trust();
    let verdict = trust::decide(&base.place, line.approve, default, !brought.is_empty(), &base.agent)?;
    if line.json {
        let mut w = Writer::new();
        w.begin_object();
        w.field_str("folder", &base.place.cwd);
        w.field_bool("trusted", verdict == Verdict::Trusted);
        w.field_bool("decided", verdict != Verdict::Ask);
        w.key("brings");
        w.begin_array();
        brought.iter().for_each(|path| w.str(path));
        w.end_array();
        if let Some((folder, decision)) = &saved {
            w.key("saved");
            w.begin_object();
            w.field_str("folder", folder);
            w.field_bool("trusted", *decision);
            w.end_object();
        }
        w.end_object();
        return Ok(w.into_string() + "\n");
    }
    let mut out = String::new();
    let state = match verdict {
        Verdict::Trusted if brought.is_empty() => "nothing here needs a decision",
        Verdict::Trusted => "the files of this project count",
        Verdict::Untrusted => "the files of this project do not count",
        Verdict::Ask => "nobody decided yet, so the files of this project do not count",
    };
    let _ = writeln!(out, "{}: {state}", harmless(&base.place.cwd));
    for path in &brought {
        let _ = writeln!(out, "  brings {}", harmless(path));
    }
    if let Some((folder, trusted)) = saved {
        let _ = writeln!(out, "  decided for {}: {}", harmless(&folder), if trusted { "yes" } else { "no" });
    }
    Ok(out)
}

fn decide_trust(line: &Line, answer: &str) -> Result<String, String> {
    let place = Surroundings::gather()?;
    match answer {
        "yes" => trust::store(&place, Answer::Trust)?,
        "no" => trust::store(&place, Answer::Distrust)?,
        "parent" => trust::store(&place, Answer::TrustParent)?,
        "forget" => trust::forget(&place)?,
        _ => return Err(format!("config trust {answer}: must be yes, no, parent or forget")),
    }
    show_trust(line)
}

fn is_known(path: &[String]) -> bool {
    keys::find(path).is_some() || KEYS.iter().any(|key| key.is_inside(path))
}

/// The setting that may have been meant.
fn meant(name: &str) -> String {
    let wanted = name.to_ascii_lowercase();
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let alike = KEYS.iter().find(|key| key.name.eq_ignore_ascii_case(&wanted));
    let alike = alike.or_else(|| KEYS.iter().find(|key| last(key.name) == last(&wanted)));
    alike.map_or_else(String::new, |Key { name, .. }| format!("; {name} is one"))
}

/// Lines of columns that stand below each other.
fn columns(rows: &[[String; 3]]) -> String {
    let width = |at: usize| {
        let widths = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
        widths.max().unwrap_or_default().min(48)
    };
    let (first, second) = (width(0), width(1));
    let mut out = String::new();
    for [name, value, origin] in rows {
        let _ = writeln!(out, "{:first$}  {:second$}  {origin}", harmless(name), harmless(value));
    }
    out
}
