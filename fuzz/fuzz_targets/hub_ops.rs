//! The hub in the simulated world of the tests: the input chooses schedules, faults, commands and what the model says;
//! the invariants of `docs/ARCHITECTURE.md` must hold in every run.

#![no_main]
#![allow(dead_code, reason = "the tests of the world look at more of it")]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/sim/world/mod.rs"]
mod world;

/// More choices make runs longer than the world waits for their end.
const MAX_CHOICES: usize = 512;

fuzz_target!(|data: &[u8]| {
    let Some((&seed, choices)) = data.split_first() else { return };
    let choices = choices.get(..MAX_CHOICES).unwrap_or(choices);
    let mut world = world::World::new(seed.into(), choices);
    world.run();
    assert!(world.failures().is_empty(), "{}", world.failures().join("\n"));
});
