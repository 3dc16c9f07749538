//! The contract of backends: the same functions against each of them.

#![allow(unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

mod backend;
mod chaos;
mod dialing;
mod ends;
mod files;
mod framing;
mod handlers;
mod http;
mod locks;
mod pool;
mod pressure;
mod processes;
mod proxies;
mod proxy;
mod requests;
mod search;
mod server;
mod stress;
mod timers;
