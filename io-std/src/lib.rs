//! Blocking backend of Tau.
//!
//! [`Agent`] is an agent inside another program, made from [`embed::Options`]; `docs/embedding.md` is a guided tour.
//! Below it, [`driver`] drives a machine with threads that block, and [`sys`] holds the blocking functions behind the
//! ops, which any backend can use from its own threads. Without the feature `driver` (default) only [`embed`],
//! [`machine`] and [`sys`] remain, which `tau-io-smol` shares.
//!
//! The backend is written for Unix. It keeps no process-wide state but the table of the process groups that a signal
//! handler may have to kill ([`sys::process::kill_all`]) and, once something is encrypted, the trusted authorities.
#![deny(unsafe_code)]
#![warn(missing_docs)]

#[cfg(feature = "driver")]
mod agent;
#[cfg(feature = "driver")]
pub mod driver;
pub mod embed;
#[cfg(feature = "driver")]
pub mod http;
pub mod machine;
pub mod sys;

#[cfg(feature = "driver")]
pub use agent::{Agent, Run};

/// The code blocks of the page work.
#[cfg(all(doctest, feature = "driver"))]
#[doc = include_str!("../../docs/embedding.md")]
struct Embedding;
