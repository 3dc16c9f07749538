//! Agents inside another program: what they are made of.
//!
//! [`Options`] say everything about an agent, by value: nothing is read from settings, `auth.json`, `models.json` or the
//! environment unless the program asks for it, and without [`Options::session_file`] nothing is written. The agents
//! themselves are `tau_io_std::Agent`, which blocks, and `tau_io_smol::Agent`, which is a future; both take the same
//! options. `docs/embedding.md` is a guided tour.

mod answer;
mod hooks;
mod options;
mod parts;
mod store;
mod tool;

pub use answer::answer_of;
pub use options::{Options, Prompt};
pub use parts::Parts;
pub use store::{session_lines, session_stats};
pub use tool::{Call, HostTool};

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls the embedding program. A panic there costs the agent one answer, not its life.
fn guarded<T>(what: &str, call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|cause| match message(&*cause) {
        Some(text) => format!("{what} panicked: {text}"),
        None => format!("{what} panicked"),
    })
}

fn message(cause: &(dyn Any + Send)) -> Option<&str> {
    cause.downcast_ref::<&str>().copied().or_else(|| cause.downcast_ref::<String>().map(String::as_str))
}
