//! **Press**: keeps a context inside the window of its model (spec 10 §7).
//!
//! Everything here is a function of the session and of what a model replied: the Desk decides when, sends the
//! requests and appends the entries. The order of a compaction:
//!
//! 1. [`measure`]: how large the context is, and whether that is too large ([`should_compact`]).
//! 2. [`plan`](plan()): where to cut, what is summarised, what is kept.
//! 3. [`requests`]: one request for the history, one for the first half of a turn that the cut divides.
//! 4. [`check_reply`] after each of them, [`finish`] at the end: the entry to append.
//!
//! | room | what |
//! |---|---|
//! | [`measure`] | size of a context, stale numbers |
//! | [`cut`] | where a history may be cut |
//! | [`plan`](mod@plan) | what to summarise and what to keep |
//! | [`files`] | which files were read and changed |
//! | [`serialize`] | a conversation as plain text |
//! | [`summary`], [`prompts`] | requests, what is accepted as a summary |
//! | [`apply`] | the entry of a compaction, the size after it |
//! | [`branch`], [`navigate`] | branches that are left: summaries, moving the leaf |

pub mod apply;
pub mod branch;
pub mod cut;
pub mod files;
pub mod measure;
pub mod navigate;
pub mod plan;
pub mod prompts;
pub mod serialize;
pub mod summary;

pub use apply::{finish, tokens_after};
pub use branch::{BranchPlan, branch_budget, prepare_branch};
pub use files::FileOps;
pub use measure::should_compact;
pub use navigate::{Step, go, step_to};
pub use plan::{NoPlan, Plan, plan};
pub use serialize::conversation;
pub use summary::{Summarizer, SummaryKind, SummaryRequest, check_reply, requests};
