//! The contract of backends: the same functions against each of them.

#![allow(unreachable_pub)]

mod backend;
mod files;
mod http;
mod locks;
mod processes;
mod proxy;
mod search;
mod server;
mod timers;
