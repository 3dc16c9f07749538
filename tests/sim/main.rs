//! A simulated world around the hub: a map as disk, scripted processes and host tools, a model server that says
//! random things, a clock that jumps. Seeds choose schedules, faults and commands; the invariants of
//! `docs/ARCHITECTURE.md` must hold in every run.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

mod check;
mod dice;
mod disk;
mod model;
mod world;

use world::World;

/// Runs one seed to its end.
fn run(seed: u64) -> World {
    let mut world = World::new(seed, &[]);
    world.run();
    world
}

/// Number of seeds; `TAU_SIM_RUNS` overrides it.
fn runs() -> u64 {
    std::env::var("TAU_SIM_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000)
}

#[test]
fn invariants_hold_in_every_run() {
    // Two threads: one for each core the tests can count on.
    let failures: Vec<String> = std::thread::scope(|scope| {
        let halves: Vec<_> = (0..2u64)
            .map(|half| {
                scope.spawn(move || {
                    let mut failures = Vec::new();
                    for seed in (half..runs()).step_by(2) {
                        let world = std::panic::catch_unwind(|| run(seed));
                        match world {
                            Ok(world) => {
                                failures.extend(world.failures().iter().map(|f| format!("seed {seed}: {f}")))
                            }
                            Err(_) => failures.push(format!("seed {seed}: panicked")),
                        }
                        if failures.len() > 5 {
                            break;
                        }
                    }
                    failures
                })
            })
            .collect();
        halves.into_iter().flat_map(|half| half.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_seed_gives_the_same_bytes_every_time() {
    for seed in 0..50 {
        let (a, b) = (run(seed), run(seed));
        assert_eq!(a.transcript(), b.transcript(), "seed {seed}");
        assert_eq!(a.session_bytes(), b.session_bytes(), "seed {seed}");
    }
}

/// The world is worth its name only if it reaches the places where things go wrong.
#[test]
fn the_world_is_not_idle() {
    let mut seen = check::Coverage::default();
    for seed in 0..400 {
        seen.add(run(seed).coverage());
    }
    assert!(seen.aborted > 20, "{seen:?}");
    assert!(seen.failed_replies > 20, "{seen:?}");
    assert!(seen.failed_appends > 20, "{seen:?}");
    assert!(seen.tool_calls > 400, "{seen:?}");
    assert!(seen.tool_errors > 50, "{seen:?}");
    assert!(seen.queued > 20, "{seen:?}");
    assert!(seen.shells > 100, "{seen:?}");
}
