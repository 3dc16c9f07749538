//! The system prompt and the files it is made from (spec 50 §8).
//!
//! Pure: facts in (tools, texts of files, flags), texts out. Which files to look at is decided here; looking is
//! done by whoever implements [`files::Files`].

pub mod files;
mod skills;
pub mod system;
pub mod templates;
