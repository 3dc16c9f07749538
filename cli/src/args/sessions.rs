//! Arguments of `tau sessions`, and its help.

use std::fmt::Write as _;

/// What to do with sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verb {
    /// Names them.
    #[default]
    List,
    /// Tells about one.
    Show,
    /// Finds them by what was said.
    Search,
    /// Removes them.
    Delete,
}

/// `tau sessions VERB …`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionsArgs {
    /// What to do.
    pub verb: Verb,
    /// Sessions, or words to search for.
    pub words: Vec<String>,
    /// `--all`
    pub all: bool,
    /// `--named`
    pub named: bool,
    /// `--json`
    pub json: bool,
    /// `--yes`
    pub yes: bool,
    /// `--limit`
    pub limit: Option<usize>,
    /// `--session-dir`
    pub session_dir: Option<String>,
    /// `--help`
    pub help: bool,
}

/// Verb, its name, what follows it, what it does.
const VERBS: [(Verb, &str, &str, &str); 4] = [
    (Verb::List, "list", "", "the sessions of this directory, newest activity first"),
    (Verb::Show, "show", "FILE|ID", "one session: cost, branches, labels, last messages"),
    (Verb::Search, "search", "WORD …", "sessions in which all words (or \"phrases\", or re:PATTERN) occur"),
    (Verb::Delete, "delete", "FILE|ID …", "removes session files, after a question"),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    Named,
    Json,
    Yes,
    Limit,
    SessionDir,
    Help,
}

/// An option, its names, its value, the verbs that take it, what it does.
type Row = (Which, &'static str, Option<&'static str>, Option<&'static str>, &'static [Verb], &'static str);

const LISTS: &[Verb] = &[Verb::List, Verb::Search];
const EVERY: &[Verb] = &[Verb::List, Verb::Show, Verb::Search, Verb::Delete];

const OPTIONS: [Row; 7] = [
    (Which::All, "--all", Some("-a"), None, LISTS, "of every directory"),
    (Which::Named, "--named", None, None, LISTS, "only those that have a name"),
    (
        Which::Limit,
        "--limit",
        Some("-n"),
        Some("N"),
        &[Verb::List, Verb::Search, Verb::Show],
        "at most so many",
    ),
    (Which::Json, "--json", None, None, &[Verb::List, Verb::Search, Verb::Show], "JSON, one object a line"),
    (Which::Yes, "--yes", Some("-y"), None, &[Verb::Delete], "do not ask"),
    (Which::SessionDir, "--session-dir", None, Some("FOLDER"), EVERY, "where sessions are stored"),
    (Which::Help, "--help", Some("-h"), None, EVERY, "this text"),
];

/// Reads what follows `sessions`. Without a verb it is a request for help.
///
/// # Errors
/// What is wrong, and what there is instead.
pub fn parse(items: impl IntoIterator<Item = String>) -> Result<SessionsArgs, String> {
    let mut items = items.into_iter();
    let mut args = SessionsArgs::default();
    match items.next() {
        None => args.help = true,
        Some(word) if word == "--help" || word == "-h" => args.help = true,
        Some(word) => {
            args.verb = VERBS.iter().find(|(_, name, ..)| *name == word).map(|row| row.0).ok_or_else(|| {
                format!("tau sessions {word}: there are list, show, search and delete; a prompt goes in quotes")
            })?;
        }
    }
    let mut only_words = false;
    while let Some(item) = items.next() {
        if only_words || !item.starts_with('-') || item == "-" {
            args.words.push(item);
        } else if item == "--" {
            only_words = true;
        } else {
            option(&mut args, &item, &mut items)?;
        }
    }
    match (args.verb, args.words.len()) {
        _ if args.help => Ok(args),
        (Verb::List, 1..) => Err("tau sessions list takes no words; tau sessions search does".into()),
        (Verb::Show, 0 | 2..) => Err("tau sessions show takes one session: a file or an id".into()),
        (Verb::Search, 0) => Err("tau sessions search needs something to search for".into()),
        (Verb::Delete, 0) => Err("tau sessions delete needs sessions: files or ids".into()),
        _ => Ok(args),
    }
}

fn option(
    args: &mut SessionsArgs,
    item: &str,
    items: &mut impl Iterator<Item = String>,
) -> Result<(), String> {
    let row = OPTIONS.iter().find(|row| row.1 == item || row.2 == Some(item));
    let Some((which, .., value, verbs, _)) = row else {
        return Err(format!("unknown option {item}; `tau sessions --help` lists the options"));
    };
    if !verbs.contains(&args.verb) {
        return Err(format!("{item} means nothing here; `tau sessions --help` tells where it does"));
    }
    let value = match value {
        Some(name) => items.next().ok_or_else(|| format!("{item} needs {name}"))?,
        None => String::new(),
    };
    match which {
        Which::All => args.all = true,
        Which::Named => args.named = true,
        Which::Json => args.json = true,
        Which::Yes => args.yes = true,
        Which::Help => args.help = true,
        Which::SessionDir => args.session_dir = Some(value),
        Which::Limit => {
            args.limit = Some(value.parse().map_err(|_| format!("{item} {value}: must be a whole number"))?);
        }
    }
    Ok(())
}

/// The help text.
#[must_use]
pub fn help() -> String {
    let mut out = String::from("tau sessions: what is stored\n\n");
    for (_, name, value, help) in VERBS {
        let _ = writeln!(out, "  {:30}{help}", format!("tau sessions {name} {value}"));
    }
    out.push_str("\nOptions:\n");
    for (_, long, short, value, verbs, help) in OPTIONS {
        let short = short.map_or_else(String::new, |short| format!(", {short}"));
        let value = value.map_or_else(String::new, |value| format!(" {value}"));
        let names = VERBS.iter().filter(|(verb, ..)| verbs.contains(verb)).map(|row| row.1);
        let of = match verbs.len() {
            4 => String::new(),
            _ => format!(" ({})", names.collect::<Vec<_>>().join(", ")),
        };
        let _ = writeln!(out, "  {:30}{help}{of}", format!("{long}{short}{value}"));
    }
    out.push_str(
        "\nAn id may be shortened to a beginning that only one session has. Sessions are opened with\n\
         `tau --session ID`, `tau --continue` or `tau --resume`, and copied with `tau --fork ID`.\n",
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(items: &[&str]) -> Result<SessionsArgs, String> {
        parse(items.iter().map(|item| (*item).to_owned()))
    }

    #[test]
    fn verbs_words_and_options() {
        let args = read(&["search", "--all", "a b", "--limit", "3", "--", "--json"]).unwrap();
        assert_eq!((args.verb, args.all, args.limit, args.json), (Verb::Search, true, Some(3), false));
        assert_eq!(args.words, ["a b", "--json"]);
        let args = read(&["delete", "x", "y", "-y"]).unwrap();
        assert_eq!((args.verb, args.yes, args.words.len()), (Verb::Delete, true, 2));
        assert!(read(&[]).unwrap().help && read(&["-h"]).unwrap().help);
        assert!(read(&["show", "--help"]).unwrap().help);
    }

    #[test]
    fn refusals_say_why() {
        for (items, why) in [
            (&["are", "broken"][..], "in quotes"),
            (&["list", "x"], "search does"),
            (&["list", "--yes"], "--yes means nothing here"),
            (&["list", "--frob"], "unknown option --frob"),
            (&["list", "--limit"], "needs N"),
            (&["list", "--limit", "x"], "whole number"),
            (&["show"], "one session"),
            (&["show", "a", "b"], "one session"),
            (&["search"], "search for"),
            (&["delete"], "needs sessions"),
        ] {
            let text = read(items).unwrap_err();
            assert!(text.contains(why), "{text}");
        }
    }

    #[test]
    fn help_fits() {
        assert!(help().lines().all(|line| line.chars().count() <= 110));
        assert!(OPTIONS.iter().all(|row| help().contains(row.1)));
    }
}
