//! Shared pieces of Tau's tests: the vector runner and comparisons of JSON documents.

pub mod compare;
pub mod vectors;
