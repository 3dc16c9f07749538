//! `--resume` without a terminal interface: a numbered list, and a question that takes a number or a search.

use super::list::Found;
use super::rows::{Line, Look, table};
use super::search::search;
use super::{Ask, Place, Refusal};
use crate::out::note;

/// Sessions offered at once.
const OFFERED: usize = 20;

/// What a person answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer<'a> {
    Nothing,
    Number(usize),
    Words(&'a str),
}

impl<'a> Answer<'a> {
    /// A number counts as one only if it was offered.
    fn of(line: &'a str, offered: usize) -> Self {
        match (line.trim(), line.trim().parse::<usize>()) {
            ("", _) => Self::Nothing,
            (_, Ok(number)) if (1..=offered).contains(&number) => Self::Number(number - 1),
            (words, _) => Self::Words(words),
        }
    }
}

/// Lets a person choose; the path of the session.
///
/// # Errors
/// `Declined` when nothing was chosen; `Failed` when there is nothing to choose from, or nobody who could.
pub(super) fn pick(place: &Place<'_>, all: Vec<Found>, ask: Ask<'_>) -> Result<String, Refusal> {
    if all.is_empty() {
        let text = "--resume: there are no sessions of this directory; `tau sessions list --all` names all";
        return Err(Refusal::Failed(text.into()));
    }
    let mut offered: Vec<Found> = all.iter().take(OFFERED).cloned().collect();
    let mut total = all.len();
    loop {
        show(place, &offered);
        if total > offered.len() {
            note(&format!("the newest {} of {total}; words find the others", offered.len()));
        }
        let Some(line) = ask("number, words to search for, or nothing to leave:") else {
            let text = "--resume asks, and nobody can answer here; choose with --session ID, or take the newest with --continue";
            return Err(Refusal::Failed(text.into()));
        };
        match Answer::of(&line, offered.len()) {
            Answer::Nothing => return Err(Refusal::Declined("no session was chosen".into())),
            Answer::Number(at) => {
                if let Some(chosen) = offered.get(at) {
                    return Ok(chosen.path.clone());
                }
            }
            Answer::Words(words) => match search(words, all.clone()) {
                Ok(hits) if hits.is_empty() => note("nothing was found"),
                Ok(hits) => {
                    total = hits.len();
                    offered = hits.into_iter().take(OFFERED).map(|hit| hit.found).collect();
                }
                Err(why) => note(&why),
            },
        }
    }
}

fn show(place: &Place<'_>, offered: &[Found]) {
    let numbered = (1..).zip(offered);
    let lines: Vec<Line<'_>> = numbered
        .map(|(number, found): (usize, _)| Line { mark: number.to_string(), found, excerpt: None })
        .collect();
    let look = Look { now: place.now, width: super::command::terminal_width(&std::io::stderr()), home: None };
    eprint!("{}", table(&lines, "", &look));
}

#[cfg(test)]
mod tests {
    use super::Answer::{Nothing, Number, Words};
    use super::*;

    #[test]
    fn numbers_that_were_offered_choose() {
        for (line, answer) in [
            ("\n", Nothing),
            (" 1 \n", Number(0)),
            ("3", Number(2)),
            ("4", Words("4")),
            ("0", Words("0")),
            ("fix the bug\n", Words("fix the bug")),
        ] {
            assert_eq!(Answer::of(line, 3), answer);
        }
    }
}
