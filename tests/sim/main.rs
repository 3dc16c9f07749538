//! A simulated world around the hub: a map as disk, scripted processes and host tools, a model server that says
//! random things, a clock that jumps. Seeds choose schedules, faults and commands; the invariants of
//! `docs/ARCHITECTURE.md` must hold in every run.
//!
//! `TAU_SIM_RUNS` and `TAU_SIM_LONG` set how many worlds there are; with `TAU_SIM_SEED` and `TAU_SIM_LOG` one of them
//! tells everything.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

mod world;

use tau_core::hub::Hub;
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

/// Runs the lines of a record again.
fn again(mut replay: Replay, lines: &[&str], what: &str) {
    for line in lines {
        match replay.line(line).unwrap_or_else(|e| panic!("{what}: {e}")) {
            Step::Same(_) => {}
            Step::Different(difference) => panic!("{what}: {difference}"),
        }
    }
    match replay.end().unwrap_or_else(|e| panic!("{what}: {e}")) {
        Step::Same(_) => {}
        Step::Different(difference) => panic!("{what}: {difference}"),
    }
}

#[test]
fn a_recorded_run_is_the_same_again() {
    let mut secrets = 0;
    for seed in 0..number("TAU_SIM_RUNS").unwrap_or(400) {
        let mut world = World::recorded(seed);
        world.run();
        for (life, record) in world.records().iter().enumerate() {
            let lines: Vec<&str> = record.lines().collect();
            again(Replay::new(), &lines, &format!("seed {seed}, life {life}"));
            // A machine that is restored in the middle goes on as the one that ran all the way.
            let inputs = lines.iter().enumerate().skip(1).filter(|(_, line)| !line.starts_with("{\"out\""));
            let places: Vec<usize> = inputs.map(|(at, _)| at).collect();
            if let Some(at) = places.get(seed as usize % places.len().max(1)) {
                let hub = Hub::restore(lines[..*at].iter().copied()).unwrap();
                again(Replay::going_on(hub), &lines[*at..], &format!("seed {seed}, from line {at}"));
            }
            secrets += usize::from(record.contains("sk-very-secret-key"));
        }
    }
    assert_eq!(secrets, 0);
}

#[test]
fn another_machine_is_told_from_the_first_difference_on() {
    let mut world = World::recorded(3);
    world.run();
    let record = world.records().remove(0);
    let lines: Vec<&str> = record.lines().collect();
    let at = lines.iter().position(|line| line.contains("\"in\":\"prompt\"")).unwrap();
    let changed = lines[at].replace("\"text\":\"", "\"text\":\"other ");
    let mut replay = Replay::new();
    let mut told = None;
    for (number, line) in lines.iter().enumerate() {
        let line = if number == at { changed.as_str() } else { line };
        if let Step::Different(difference) = replay.line(line).unwrap() {
            told = Some((number, difference));
            break;
        }
    }
    let (number, difference) = told.unwrap();
    assert!(number > at && difference.now.unwrap().contains("other"), "{number}");
}
