//! Deadlines of the machine.

use std::time::{Duration, Instant};

use crate::backend::{all, io_std};

#[test]
fn ticks_come_in_time() {
    for backend in all() {
        for late in backend.ticks(&[0, 20, 20, 60, 150]) {
            assert!(late < 500, "{}: {late} ms late", backend.name);
        }
    }
}

/// CPU time of this process, ms.
fn cpu_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    (fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()) * 10
}

#[test]
#[ignore = "measures the whole process; run it alone"]
fn idle_costs_nothing() {
    let backend = io_std();
    backend.ticks(&[0]);
    let (start, before) = (Instant::now(), cpu_ms());
    while start.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_secs(2));
    }
    assert_eq!(cpu_ms() - before, 0);
}
