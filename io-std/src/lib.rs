//! Blocking backend of Tau.
//!
//! [`sys`] holds the blocking functions behind the ops; any backend can use them from its own threads. With the
//! feature `driver` (default) come the HTTP client and the engine that drives a machine.
//!
//! The backend is written for Unix. It keeps no process-wide state but one table: the process groups that a signal
//! handler may have to kill ([`sys::process::kill_all`]).
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod sys;
