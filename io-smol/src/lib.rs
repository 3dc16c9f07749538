//! Async backend of Tau on smol.
//!
//! State of this backend: files, appends, name and content search, images, timers, credentials and host tools work,
//! through the blocking functions of `tau-io-std` on smol's pool for blocking work. HTTP and processes are **not yet
//! in this backend**: their ops fail with a fault that says so. A cancel reaches searches and reads of large files;
//! every op answers exactly once.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod driver;

pub use driver::{Control, drive};
pub use smol::block_on;
pub use tau_io_std::machine::{Handlers, Machine, SinkFlow};
