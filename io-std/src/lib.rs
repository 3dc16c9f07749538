//! Blocking backend of Tau.
//!
//! [`sys`] holds the blocking functions behind the ops; any backend can use them from its own threads. With the
//! feature `driver` (default) come the HTTP client and the engine that drives a machine.
//!
//! The backend is written for Unix. It keeps no process-wide state but the table of the process groups that a signal
//! handler may have to kill ([`sys::process::kill_all`]) and, once something is encrypted, the trusted authorities.
#![deny(unsafe_code)]
#![warn(missing_docs)]

#[cfg(feature = "driver")]
pub mod blocking;
#[cfg(feature = "driver")]
pub mod driver;
#[cfg(feature = "driver")]
pub mod http;
pub mod machine;
pub mod sys;
