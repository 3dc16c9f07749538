//! A session in the world of the tests: the input chooses operations, failures of writes and crashes; tree, labels, name,
//! context, file and copies must be what a plain model says.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/sim/dice.rs"]
mod dice;
#[path = "../../tests/session_ops/naive.rs"]
mod naive;
#[path = "../../tests/session_ops/world.rs"]
mod world;

/// Operations take some three bytes each.
const MAX_CHOICES: usize = 512;

fuzz_target!(|data: &[u8]| {
    let Some((&seed, choices)) = data.split_first() else { return };
    let choices = choices.get(..MAX_CHOICES).unwrap_or(choices);
    world::World::new(seed, choices).run(choices.len() / 3 + 1);
});
