//! Blocking backend of Tau.
pub mod sys;
