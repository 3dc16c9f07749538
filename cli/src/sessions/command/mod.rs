//! `tau sessions`: list, show, search, delete.

mod delete;
mod resolve;
mod show;

use std::io::{IsTerminal, stdout};
use std::os::fd::AsFd;

use tau_core::json::Writer;
use tau_io_std::sys::clock;

use super::list::Found;
use super::rows::{Line, Look, short_ids, table, write_fields};
use super::search::{Hit, search};
use super::{Folder, Place};
use crate::args::Args;
use crate::args::sessions::{SessionsArgs, Verb};
use crate::bootstrap::Base;
use crate::out::note;
use crate::surroundings::Surroundings;
use crate::visible::harmless_json;

/// Lines of a list on a terminal, unless `--limit` says otherwise.
const ON_TERMINAL: usize = 30;

/// How a command ended well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// For standard output.
    pub text: String,
    /// Whether what was asked for is there.
    pub success: bool,
}

impl Done {
    fn with(text: String) -> Self {
        Self { text, success: true }
    }
}

/// Does what was asked.
///
/// # Errors
/// What cannot be done, and what to do instead.
pub fn run(args: &SessionsArgs) -> Result<Done, String> {
    let mut warnings = Vec::new();
    // Nothing that a project brings is used besides the place of its sessions, so trust is no question.
    let run_args = Args { session_dir: args.session_dir.clone(), approve: Some(false), ..Args::default() };
    let base = Base::read(Surroundings::gather()?, &run_args, &mut warnings)?;
    warnings.iter().for_each(|warning| note(warning));
    let setting = base.session_dir();
    let place = Place { surroundings: &base.place, setting: setting.as_deref(), now: clock::wall() };
    let folder = place.folder(&run_args)?;
    let task = Task { args, place: &place, folder };
    match args.verb {
        Verb::List => Ok(task.list()),
        Verb::Search => task.search(),
        Verb::Show => task.show(),
        Verb::Delete => task.delete(),
    }
}

struct Task<'a> {
    args: &'a SessionsArgs,
    place: &'a Place<'a>,
    folder: Folder,
}

impl Task<'_> {
    fn list(&self) -> Done {
        let found = self.in_scope();
        if found.is_empty() && !self.args.json {
            note(self.nothing_here());
        }
        let hits = found.into_iter().map(|found| Hit { found, excerpt: None }).collect();
        Done::with(self.rows(hits))
    }

    fn search(&self) -> Result<Done, String> {
        let query = self.args.words.join(" ");
        let hits = search(&query, self.in_scope())?;
        let success = !hits.is_empty();
        if !success && !self.args.json {
            note(if self.args.all {
                "nothing was found"
            } else {
                "nothing was found here; --all searches everywhere"
            });
        }
        Ok(Done { text: self.rows(hits), success })
    }

    fn nothing_here(&self) -> &'static str {
        if self.args.all {
            "there are no sessions yet"
        } else {
            "no sessions here; --all lists those of every directory"
        }
    }

    /// The sessions that are looked at, newest activity first.
    fn in_scope(&self) -> Vec<Found> {
        let mut found =
            if self.args.all { self.place.list_all(&self.folder) } else { self.place.list(&self.folder) };
        if self.args.named {
            found.retain(|found| found.info.name.is_some());
        }
        found
    }

    /// As a table, or an object a line.
    fn rows(&self, mut hits: Vec<Hit>) -> String {
        let ids: Vec<String> = hits.iter().map(|hit| hit.found.info.id.clone()).collect();
        let total = hits.len();
        let terminal = terminal_width(&stdout());
        let default = if terminal.is_some() && !self.args.json { ON_TERMINAL } else { usize::MAX };
        let limit = self.args.limit.unwrap_or(default);
        hits.truncate(limit);
        if self.args.json {
            return hits.iter().map(json).collect();
        }
        if hits.is_empty() {
            return String::new();
        }
        if total > limit && self.args.limit.is_none() {
            note(&format!("the first {limit} of {total}; --limit {total} shows all"));
        }
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let line = |(hit, id): (&'_ Hit, &str)| (id.to_owned(), hit.excerpt.clone());
        let marks: Vec<(String, Option<String>)> = hits.iter().zip(short_ids(&ids)).map(line).collect();
        let lines: Vec<Line<'_>> = hits
            .iter()
            .zip(&marks)
            .map(|(hit, (id, excerpt))| Line {
                mark: id.clone(),
                found: &hit.found,
                excerpt: excerpt.as_deref(),
            })
            .collect();
        let home = self.args.all.then(|| self.place.surroundings.home_or_root());
        table(&lines, "id", &Look { now: self.place.now, width: terminal, home })
    }
}

fn json(hit: &Hit) -> String {
    let mut w = Writer::new();
    w.begin_object();
    write_fields(&mut w, &hit.found);
    w.field_opt_str("excerpt", hit.excerpt.as_deref());
    w.end_object();
    harmless_json(w.as_str()).into_owned() + "\n"
}

/// Columns of a terminal; `None` when it is none.
pub(super) fn terminal_width(of: &(impl AsFd + IsTerminal)) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(of).ok().filter(|_| of.is_terminal())?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
