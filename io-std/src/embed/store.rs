//! Where the session of an embedded agent is kept.

use std::sync::{Mutex, PoisonError};

use tau_core::entropy::Entropy;
use tau_core::fault::{Fault, FaultKind, IoFault};
use tau_core::ids::UuidV7;
use tau_core::json::Writer;
use tau_core::op::{AppendOp, Outcome};
use tau_core::session::entry::EntryLine;
use tau_core::session::stats::Stats;
use tau_core::session::tree::Node;
use tau_core::session::{Header, OpenError, Session, Want, open};

use super::guarded;
use crate::machine::Append;
use crate::sys::{clock, session};

/// Takes lines of a session.
pub(super) type Lines = Box<dyn FnMut(&[u8]) -> Result<(), String> + Send>;

/// What events call a store that is no file.
const OWN: &str = "the store of the program";

#[derive(Default)]
pub(super) enum Store {
    #[default]
    Memory,
    File(String),
    Own {
        stored: Vec<u8>,
        append: Lines,
    },
}

impl Store {
    /// The session, and who writes it.
    pub(super) fn open(self, cwd: &str, rng: &mut Entropy) -> Result<(Session, Option<Append>), Fault> {
        let now = clock::wall();
        let begin =
            |rng: &mut Entropy| Header::new(UuidV7::default().next(now, rng), now, cwd.to_owned(), None);
        let unreadable = |why: String| Fault::new("session_unreadable", why);
        match self {
            Self::Memory => Ok((Session::new(begin(rng), None), None)),
            Self::File(path) => {
                let opened = session::load(&path, cwd, Want::Everything, begin, rng);
                Ok((opened.map_err(unreadable)?, None))
            }
            Self::Own { stored, append } => {
                let session = match open(&stored, OWN.into(), cwd, Want::Everything) {
                    Ok((session, _)) => session,
                    Err(OpenError::Empty) => Session::new(begin(rng), Some(OWN.into())),
                    Err(why) => return Err(unreadable(format!("The stored session cannot be used: {why}."))),
                };
                Ok((session, Some(writer(append, stored.len() as u64))))
            }
        }
    }
}

fn writer(append: Lines, len: u64) -> Append {
    let state = Mutex::new((append, len));
    Box::new(move |op: &AppendOp| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let (append, len) = &mut *state;
        guarded(OWN, || append(&op.bytes))
            .and_then(|result| result)
            .map_err(|why| IoFault::new(FaultKind::Other, why))?;
        *len += op.bytes.len() as u64;
        Ok(Outcome::Appended { len: *len, foreign: false })
    })
}

/// All records of a session, header first; what is damaged in its file is left out.
#[must_use]
pub fn session_lines(session: &Session) -> Vec<String> {
    let tree = session.tree();
    let line = |write: &dyn Fn(&mut Writer)| {
        let mut w = Writer::new();
        write(&mut w);
        w.into_string()
    };
    let entries = tree.slots().filter_map(|slot| {
        let node = tree.node(slot)?;
        let entry = EntryLine {
            id: tree.id(slot),
            parent: tree.parent_id(slot),
            time: node.time()?,
            body: node.body()?,
        };
        Some(line(&|w| entry.write(w)))
    });
    std::iter::once(line(&|w| session.header().write(w))).chain(entries).collect()
}

/// What a session cost and holds, on every branch.
#[must_use]
pub fn session_stats(session: &Session) -> Stats {
    let mut stats = Stats::default();
    session.tree().nodes().iter().filter_map(Node::body).for_each(|body| stats.add(body));
    stats
}
