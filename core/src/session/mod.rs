//! The Archive: session files and what they mean (spec 60 §1).
//!
//! | room | what |
//! |---|---|
//! | [`entry`] | records and how they are written |
//! | [`decode`] | records back from their lines |
//! | [`tree`] | ids, parents, leaf, labels, name |
//! | [`context`] | what the model sees at a leaf |
//! | [`reader`] | a file in chunks, tolerant, only what is needed is decoded |
//! | [`store`] | a session and what must be written |
//! | [`fork`] | copies: a branch, a whole file, an export |
//! | [`info`] | what a list shows about a file; finding a header |
//! | [`search`] | finding sessions by what was said |
//! | [`stats`] | what a session cost and holds |
//! | [`migrate`] | files of older versions |

pub mod context;
pub mod decode;
pub mod entry;
pub mod fork;
mod head;
pub mod info;
pub mod migrate;
pub mod reader;
pub mod search;
pub mod stats;
pub mod store;
mod tail;
pub mod tree;
mod turn;

pub use context::Context;
pub use entry::{EntryBody, EntryKind, Header, ModelRef};
pub use info::{InfoReader, SessionInfo};
pub use reader::{FileRange, Loading, OpenError, Reader, Want, open};
pub use store::{AppendPlan, Session, file_name};
