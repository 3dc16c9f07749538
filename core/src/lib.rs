//! Tau's core: an agent runtime as a **sans-IO state machine**.
//!
//! Nothing in this crate reads a clock, opens a file, starts a thread or asks for randomness. Whatever the
//! machine wants from the world is an [`op::Op`] with an [`ids::OpId`]; whatever the world says comes back as an
//! [`input::Input`] together with the time. A backend is a short loop around [`hub`].
//!
//! Rooms, each the only owner of its state: **Desk** ([`harness`]), **Loop** ([`agent`]), **Wire**
//! ([`provider`]), **Bench** ([`tools`]), **Archive** ([`session`]), **Vault** ([`auth`]), **Press**
//! ([`compaction`]).
#![no_std]
#![forbid(unsafe_code)]
#![warn(
    missing_docs,
    clippy::alloc_instead_of_core,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core
)]

extern crate alloc;

pub mod agent;
pub mod auth;
pub mod compaction;
pub mod convert;
pub mod entropy;
pub mod event;
pub mod event_json;
pub mod fault;
pub mod harness;
pub mod hub;
pub mod ids;
pub mod input;
pub mod json;
pub mod message;
pub mod model;
pub mod now;
pub mod op;
pub mod order;
pub mod overflow;
pub mod path;
pub mod permissions;
pub mod prompt;
pub mod provider;
pub mod record;
pub mod retry;
pub mod session;
pub mod settings;
pub mod skills;
pub mod text;
pub mod tokens;
pub mod tools;
pub mod wire;
