//! Lives of sessions against a plain model: whatever is done in whatever order, tree, labels, name, context and file are
//! what the rules say. The fuzz target `session_ops` runs the same world.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]
#![allow(unreachable_pub)]

#[path = "../sim/dice.rs"]
mod dice;
mod naive;
mod world;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_session_is_what_the_rules_say(
        seed in any::<u8>(),
        choices in prop::collection::vec(any::<u8>(), 0..400),
        steps in 1_usize..60,
    ) {
        world::World::new(seed, &choices).run(steps);
    }
}

/// Long lives, whose files outgrow what a reader keeps.
#[test]
fn long_lives() {
    for seed in 0..12 {
        world::World::new(seed, &[]).run(300);
    }
}
