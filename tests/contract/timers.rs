//! Deadlines of the machine.

use std::time::Duration;

use tau_tests::usage::ticks;

use crate::backend::{all, io_std};
use crate::http::alone;

#[test]
fn ticks_come_in_time() {
    for backend in all() {
        for late in backend.ticks(&[0, 20, 20, 60, 150]) {
            assert!(late < 500, "{}: {late} ms late", backend.name);
        }
    }
}

#[test]
fn idle_costs_nothing() {
    alone("timers::two_idle_seconds", &[]);
}

#[test]
#[ignore = "run by `idle_costs_nothing` in a process of its own"]
fn two_idle_seconds() {
    let backend = io_std();
    backend.ticks(&[0]);
    let before = ticks(std::process::id());
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(ticks(std::process::id()) - before, 0);
}
