//! The contract of backends: the same functions against each of them.

#![allow(unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

mod backend;
mod files;
mod handlers;
mod http;
mod locks;
mod processes;
mod proxy;
mod search;
mod server;
mod timers;
