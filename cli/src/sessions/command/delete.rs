//! `tau sessions delete`: removes files after a question. Nothing else is touched.

use std::io::IsTerminal;

use super::{Done, Task};
use crate::out::note;
use crate::sessions::find::header;
use crate::sessions::list::single;
use crate::sessions::rows::{ago, title};
use crate::visible::one_line;

impl Task<'_> {
    pub(super) fn delete(&self) -> Result<Done, String> {
        let mut paths: Vec<String> =
            self.args.words.iter().map(|word| self.resolve(word)).collect::<Result<_, _>>()?;
        tau_core::order::sort(&mut paths, Ord::cmp);
        paths.dedup();
        if !self.args.yes {
            if !std::io::stdin().is_terminal() {
                return Err(
                    "deleting asks first, and nobody can answer here; --yes deletes without a question"
                        .into(),
                );
            }
            paths.iter().for_each(|path| note(&self.about(path)));
            let what = if paths.len() == 1 {
                "this session".into()
            } else {
                format!("these {} sessions", paths.len())
            };
            if !confirmed(&format!("delete {what}?")) {
                return Ok(Done::with("nothing was deleted\n".into()));
            }
        }
        let mut text = String::new();
        for path in &paths {
            let id = header(path).map(|header| header.id).unwrap_or_default();
            self.place.remove(path).map_err(|why| format!("{text}{why}"))?;
            text.push_str(&format!("deleted {}\n", one_line(if id.is_empty() { path } else { &id })));
        }
        Ok(Done::with(text))
    }

    /// One line about a session.
    fn about(&self, path: &str) -> String {
        match single(path) {
            Some(found) => {
                let (messages, when) = (found.info.messages, ago(found.info.modified, self.place.now));
                format!("{}: {messages} messages, {when}, {}", title(&found), one_line(path))
            }
            None => one_line(path),
        }
    }
}

fn confirmed(question: &str) -> bool {
    note(&format!("{question} [y/N]"));
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).is_ok() && line.trim().eq_ignore_ascii_case("y")
}
