//! Deadlines of the machine.

use std::time::Duration;

use tau_tests::usage::ticks;

use crate::backend::{Backend, all, on_each_backend};

#[test]
fn ticks_come_in_time() {
    for backend in all() {
        for late in backend.ticks(&[0, 20, 20, 60, 150]) {
            assert!(late < 500, "{}: {late} ms late", backend.name);
        }
    }
}

on_each_backend!(idle_costs_nothing);
fn idle_costs_nothing(b: &Backend) {
    b.alone("timers::two_idle_seconds", &[]);
}

on_each_backend!(
    #[ignore = "run by `idle_costs_nothing` in a process of its own"]
    two_idle_seconds
);
fn two_idle_seconds(b: &Backend) {
    b.ticks(&[0]);
    std::thread::sleep(Duration::from_millis(200));
    let before = ticks(std::process::id());
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(ticks(std::process::id()) - before, 0);
}
