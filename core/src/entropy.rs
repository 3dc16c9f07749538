//! Seeded pseudo-randomness for ids and jitter. Cryptographic bytes are an op, never this.

/// A small generator (xoshiro256++) seeded once per hub: the same seed gives the same run to the byte.
#[derive(Clone, Debug)]
pub struct Entropy {
    s: [u64; 4],
}

impl Entropy {
    /// Builds the generator from a 32-byte seed. Any seed is fine, all zeros too.
    #[must_use]
    pub fn new(seed: [u8; 32]) -> Self {
        let mut s = [0u64; 4];
        // splitmix64 over the seed words keeps weak seeds (zeros, small counters) apart.
        let mut x = 0x9e37_79b9_7f4a_7c15u64;
        for (word, bytes) in s.iter_mut().zip(seed.chunks_exact(8)) {
            let mut le = [0u8; 8];
            le.copy_from_slice(bytes);
            x = x.wrapping_add(u64::from_le_bytes(le)).wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = x;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            *word = z ^ (z >> 31);
        }
        if s == [0; 4] {
            s[0] = 1;
        }
        Self { s }
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        let s = &mut self.s;
        let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// A number in `0.0..1.0` with 53 random bits.
    pub const fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number in `0..n`; 0 when `n` is 0.
    pub const fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { ((self.next_u64() as u128 * n as u128) >> 64) as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_run() {
        let (mut a, mut b) = (Entropy::new([7; 32]), Entropy::new([7; 32]));
        assert!((0..100).all(|_| a.next_u64() == b.next_u64()));
        assert_ne!(Entropy::new([0; 32]).next_u64(), Entropy::new([1; 32]).next_u64());
    }

    #[test]
    fn ranges_hold() {
        let mut e = Entropy::new([0; 32]);
        for _ in 0..1000 {
            assert!((0.0..1.0).contains(&e.unit()));
            assert!(e.below(3) < 3);
        }
        assert_eq!(e.below(0), 0);
    }
}
