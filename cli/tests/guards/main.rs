//! Budgets that hold on a loaded machine (spec 70 §6.1): system calls, growth, idleness. Ceilings of memory are in `memory.rs`,
//! a process of its own.
//!
//! They run against the binary that the tests build, without optimisation as a rule. Each limit leaves room for that
//! and names the target of the optimised binary.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

mod calls;
mod growth;
mod idle;

use tau_tests::program::Sandbox;
use tau_tests::server::{Reply, Server};

const TAU: &str = env!("CARGO_BIN_EXE_tau");

fn place(script: impl IntoIterator<Item = Reply>) -> (Sandbox, Server) {
    Sandbox::served(TAU, script)
}
