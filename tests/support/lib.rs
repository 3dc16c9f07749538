//! Shared pieces of Tau's tests: the vector runner, comparisons of JSON documents, a scripted model server.

pub mod compare;
pub mod messages;
pub mod server;
pub mod vectors;
