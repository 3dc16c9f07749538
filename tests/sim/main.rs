//! A simulated world around the hub: a map as disk, scripted processes and host tools, a model server that says
//! random things, a clock that jumps. Seeds choose schedules, faults and commands; the invariants of
//! `docs/ARCHITECTURE.md` must hold in every run.
//!
//! `TAU_SIM_RUNS` and `TAU_SIM_LONG` set how many worlds there are; with `TAU_SIM_SEED` and `TAU_SIM_LOG` one of them
//! tells everything. `TAU_SIM_RECORDS` names a folder for the records, such as the seeds of the fuzz target `replay_file`.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

mod world;

use std::path::Path;

use tau_core::record::{Replay, Step};
use world::{Coverage, World};

/// Runs one seed to its end.
fn run(seed: u64) -> World {
    let mut world = World::new(seed, &[]);
    world.run();
    world
}

/// A session of 500 turns.
fn run_long(seed: u64) -> World {
    let mut world = World::long(seed, 500);
    world.run();
    world
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|n| n.parse().ok())
}

/// Runs many seeds on two threads, one for each core the tests can count on.
fn run_all(seeds: std::ops::Range<u64>, run: fn(u64) -> World) -> Coverage {
    let seeds = number("TAU_SIM_SEED").map_or(seeds, |seed| seed..seed + 1);
    let (start, end) = (seeds.start, seeds.end);
    let half = move |first: u64| {
        let (mut failures, mut seen) = (Vec::new(), Coverage::default());
        for seed in (first..end).step_by(2) {
            match std::panic::catch_unwind(|| run(seed)) {
                Ok(world) => {
                    failures.extend(world.failures().iter().map(|f| format!("seed {seed}: {f}")));
                    seen.add(world.coverage());
                }
                Err(_) => failures.push(format!("seed {seed}: panicked")),
            }
            if failures.len() > 5 {
                break;
            }
        }
        (failures, seen)
    };
    let halves: Vec<(Vec<String>, Coverage)> = std::thread::scope(|scope| {
        let halves: Vec<_> = (0..2).map(|i| scope.spawn(move || half(start + i))).collect();
        halves.into_iter().map(|half| half.join().unwrap()).collect()
    });
    let (mut failures, mut seen) = (Vec::new(), Coverage::default());
    for (of_half, seen_by_half) in halves {
        failures.extend(of_half);
        seen.add(&seen_by_half);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    println!("{seen:?}");
    seen
}

/// The world is worth its name only if it reaches the places where things go wrong.
fn expect_seen(seen: &Coverage, wanted: &[(&str, u64)]) {
    // Other numbers of worlds see other numbers of things.
    if ["TAU_SIM_SEED", "TAU_SIM_RUNS", "TAU_SIM_LONG"].iter().any(|name| number(name).is_some()) {
        return;
    }
    for (what, least) in wanted {
        assert!(seen.count(what) >= *least, "{what}: {seen:?}");
    }
}

#[test]
fn invariants_hold_in_every_run() {
    let seen = run_all(0..number("TAU_SIM_RUNS").unwrap_or(3_000), run);
    let often =
        ["aborted", "failed replies", "failed appends", "tool calls", "tool errors", "queued", "shells"];
    expect_seen(&seen, &often.map(|what| (what, 300)));
    let sometimes =
        ["crashes", "retries", "good retries", "compactions", "failed compactions", "navigations"];
    expect_seen(&seen, &sometimes.map(|what| (what, 100)));
    let seldom = ["recoveries", "given up", "cancelled compactions", "summary retries"];
    expect_seen(&seen, &seldom.map(|what| (what, 10)));
}

/// Sessions of 500 turns with small windows, and a program that dies in the middle of writes.
#[test]
fn invariants_hold_in_long_sessions() {
    let seen = run_all(0..number("TAU_SIM_LONG").unwrap_or(8), run_long);
    let often = ["compactions", "failed compactions", "failed appends", "aborted", "retries"];
    expect_seen(&seen, &often.map(|what| (what, 100)));
    let sometimes =
        ["crashes", "recoveries", "given up", "cancelled compactions", "good retries", "summary retries"];
    expect_seen(&seen, &sometimes.map(|what| (what, 10)));
}

#[test]
fn a_seed_gives_the_same_bytes_every_time() {
    for seed in 0..50 {
        let (a, b) = (run(seed), run(seed));
        assert_eq!(a.digest(), b.digest(), "seed {seed}");
        assert_eq!(a.session_bytes(), b.session_bytes(), "seed {seed}");
    }
}

/// Runs a record again; where its inputs begin.
fn again(mut replay: Replay, record: &[u8], what: &str) -> Vec<usize> {
    let same = |step: Step| {
        if let Step::Different(difference) = step {
            panic!("{what}: {difference}");
        }
    };
    let (mut rest, mut inputs) = (record, Vec::new());
    while let Some((step, behind)) = replay.record(rest).unwrap_or_else(|e| panic!("{what}: {e}")) {
        same(step);
        if rest.starts_with(b"{\"m\"") {
            inputs.push(record.len() - rest.len());
        }
        rest = behind;
    }
    assert!(rest.is_empty(), "{what}: half a record is left");
    same(replay.end().unwrap_or_else(|e| panic!("{what}: {e}")));
    inputs
}

#[test]
fn a_recorded_run_is_the_same_again() {
    let (mut bodies, mut records) = (0, 0);
    for seed in 0..number("TAU_SIM_RUNS").unwrap_or(400) {
        let mut world = World::recorded(seed);
        world.run();
        bodies += world.bodies().len();
        for (life, record) in world.records().iter().enumerate() {
            records += 1;
            if let Some(folder) = std::env::var_os("TAU_SIM_RECORDS") {
                std::fs::write(Path::new(&folder).join(format!("{seed}-{life}")), record).unwrap();
            }
            let replay = || {
                let bodies = world.bodies();
                Replay::new().with_bodies(Box::new(move |name| bodies.get(name).cloned()))
            };
            let inputs = again(replay(), record, &format!("seed {seed}, life {life}"));
            // A machine that is restored in the middle goes on as the one that ran all the way.
            if let Some(at) = inputs.get(seed as usize % inputs.len().max(1)) {
                let (before, after) = record.split_at(*at);
                let what = format!("seed {seed}, life {life}, from byte {at}");
                let hub = replay().restore(before).unwrap_or_else(|e| panic!("{what}: {e}"));
                again(replay().going_on(hub), after, &what);
            }
            let secret = b"sk-very-secret-key";
            let all = world.bodies();
            for bytes in all.values().chain([record]) {
                assert!(!bytes.windows(secret.len()).any(|part| part == secret), "seed {seed}: a secret");
            }
        }
    }
    assert!(bodies > records, "{bodies} bodies of {records} records were kept apart");
}

#[test]
fn another_machine_is_told_from_the_first_difference_on() {
    let mut world = World::recorded(2);
    world.run();
    let record = world.records().remove(0);
    let mark = b"\"in\":\"prompt\",\"text\":\"";
    let at = record.windows(mark.len()).position(|part| part == mark).unwrap() + mark.len();
    let mut changed = record;
    changed.splice(at..at, *b"other ");
    let (mut replay, mut rest) = (Replay::new(), &changed[..]);
    let difference = loop {
        let (step, behind) = replay.record(rest).unwrap().unwrap();
        if let Step::Different(difference) = step {
            break difference;
        }
        rest = behind;
    };
    assert!(difference.now.unwrap().contains("other"));
}
