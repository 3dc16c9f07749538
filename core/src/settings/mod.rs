//! Settings: tolerant reading, migration and merging of the two files, typed access (spec 40 §4).
//!
//! Everything here is pure: texts of files in, values and [`ConfigFault`]s out. A file that cannot be read counts
//! as empty and is reported; nothing in this module ever leads to it being overwritten.

mod compaction;
mod document;
pub mod jsonc;
pub mod keys;
mod kind;
mod merge;
mod patch;
mod report;
mod schema;
mod terminal;
pub mod trust;

pub use compaction::{BranchSummarySettings, CompactionSettings};
pub use document::{Change, rewrite};
pub use kind::Kind;
pub use merge::{Scope, Source, load, migrate};
pub use report::{Finding, Origin, problem};
pub use schema::{DEFAULT_TOOLS, ImageSettings, ProjectTrust, ProviderRetry, Retry, Settings};

use alloc::string::String;
use core::fmt;

/// What is wrong in a configuration file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFault {
    /// The file.
    pub file: String,
    /// Place inside the file, dotted (`providers.x.baseUrl`); empty = the whole file.
    pub at: String,
    /// What is wrong. Holds no value of the file, which may be secret.
    pub reason: String,
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.at.is_empty() {
            write!(f, "{}: {}", self.file, self.reason)
        } else {
            write!(f, "{}: {}: {}", self.file, self.at, self.reason)
        }
    }
}
