//! Where the world's choices come from: given bytes first (a fuzzer's), then a seeded generator.

use std::collections::VecDeque;

use tau_core::entropy::Entropy;

pub(crate) struct Dice {
    bytes: VecDeque<u8>,
    rng: Entropy,
}

impl Dice {
    pub(crate) fn new(seed: [u8; 32], bytes: &[u8]) -> Self {
        Self { bytes: bytes.iter().copied().collect(), rng: Entropy::new(seed) }
    }

    /// A number in `0..n`; 0 when `n` is 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        if n == 0 {
            return 0;
        }
        match self.bytes.pop_front() {
            Some(byte) if n <= 256 => u64::from(byte) % n,
            Some(byte) => (u64::from(byte) * n) / 256,
            None => self.rng.below(n),
        }
    }
}
