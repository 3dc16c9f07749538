//! **Desk**: what surfaces ask for, what is recorded, and when an activity is over.
//!
//! The Desk owns the agent, the session and the queue display. It turns commands into runs, stores each message when
//! it is complete, tells the model of changed prompt sections, and after a run decides whether another one follows
//! (queued messages) before everything is settled (spec 10 §8).

mod desk;
mod prompt_state;

pub use desk::{Cx, Desk, DeskBoot, Want};
pub use prompt_state::Sections;
