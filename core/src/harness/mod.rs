//! **Desk**: what surfaces ask for, what is recorded, and when an activity is over.
//!
//! The Desk owns the agent, the session and the queue display. It turns commands into runs, stores each message when
//! it is complete, tells the model of changed prompt sections, and after a run decides what follows by itself before
//! everything is settled (spec 10 §8):
//!
//! | room | what |
//! |---|---|
//! | `desk` | the state, one run after the other, recording, the end of an activity |
//! | `commands` | what surfaces ask for |
//! | `recovery` | retries, overflow, the decision to compact |
//! | `summarizing` | a compaction or branch summary from its plan to its stored entry |
//! | `navigating` | moving to another entry, labels |
//! | `notes` | messages of a host, records that wait for the end of a run |
//! | `shell` | commands of the person, beside any run |

mod commands;
mod desk;
mod navigating;
mod notes;
mod prompt_state;
mod recovery;
pub mod shell;
mod summarizing;

pub use desk::{Cx, Desk, DeskBoot, Want};
pub use navigating::{Moved, SummaryWish};
pub use prompt_state::Sections;
pub use shell::{Heard, ShellLine, Shells};
pub use summarizing::{Compacted, Reason, SummarySource};
