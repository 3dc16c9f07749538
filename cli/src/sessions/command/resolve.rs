//! Which file a person means: a path, an id, or the beginning of one. Never one of several.

use tau_core::session::Header;

use super::Task;
use crate::sessions::find::{self, header, is_same_directory};
use crate::visible::one_line;

/// Sessions named in a refusal.
const NAMED: usize = 8;

impl Task<'_> {
    /// The file of a session: of this directory first, then of all.
    ///
    /// # Errors
    /// `nothing` and `several`, with what to do.
    pub(super) fn resolve(&self, wanted: &str) -> Result<String, String> {
        if wanted.contains(['/', '\\']) || wanted.ends_with(".jsonl") {
            let path = self.place.surroundings.resolve(wanted)?;
            find::open(&path).map_err(|e| format!("{path}: {}", tau_io_std::sys::fault::text(&e)))?;
            return match header(&path) {
                Some(_) => Ok(path),
                None => Err(format!("{path} is no session file; it was left alone")),
            };
        }
        let cwd = &self.place.surroundings.cwd;
        let all: Vec<(String, Header)> = self
            .place
            .everywhere(&self.folder)
            .flat_map(|folder| folder.files())
            .filter_map(|path| header(&path).map(|header| (path, header)))
            .filter(|(_, header)| header.id.starts_with(wanted))
            .collect();
        let here =
            |of: &&(String, Header)| of.1.cwd.as_deref().is_some_and(|own| is_same_directory(own, cwd));
        let exact = |of: &&(String, Header)| of.1.id == wanted;
        // A whole id beats the beginning of another, and what is here what is elsewhere.
        let steps: [&dyn Fn(&&(String, Header)) -> bool; 4] =
            [&|of| exact(of) && here(of), &exact, &here, &|_| true];
        for fits in steps {
            match all.iter().filter(|of| fits(of)).collect::<Vec<_>>()[..] {
                [] => {}
                [(path, _)] => return Ok(path.clone()),
                ref several => return Err(ambiguous(wanted, several)),
            }
        }
        Err(format!("no session {wanted}; `tau sessions list --all` names them"))
    }
}

fn ambiguous(wanted: &str, several: &[&(String, Header)]) -> String {
    let named = several
        .iter()
        .take(NAMED)
        .map(|(path, header)| format!("\n  {}  {}", one_line(&header.id), one_line(path)));
    let named: String = named.collect();
    let more = several.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    format!(
        "{wanted} may mean any of {} sessions; give more of the id, or the file:{named}{more}",
        several.len()
    )
}
