//! A hash of words and texts.

/// A hash for telling differences, not for keeping secrets. A step takes two words, and folds their product of 128 bits.
pub(super) struct Hash(u64);

/// A block of a long text, for two lanes.
const BLOCK: usize = 32;

impl Hash {
    const A: u64 = 0x9e37_79b9_7f4a_7c15;
    const B: u64 = 0xc2b2_ae3d_27d4_eb4f;

    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    #[inline]
    pub(super) const fn pair(&mut self, a: u64, b: u64) {
        let product = (self.0 ^ a ^ Self::A) as u128 * (b ^ Self::B) as u128;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    #[inline]
    const fn word(&mut self, bytes: [u8; 16]) {
        let whole = u128::from_le_bytes(bytes);
        self.pair(whole as u64, (whole >> 64) as u64);
    }

    #[inline]
    pub(super) const fn number(&mut self, value: u64) {
        self.pair(value, 0);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// The last words may hold bytes that earlier ones held; the length tells texts apart.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        let length = bytes.len();
        self.0 ^= (length as u64).wrapping_mul(Self::B);
        let mut rest = bytes;
        if length > BLOCK {
            // A step waits for the one before: two lanes wait at the same time.
            let mut beside = Self(!self.0);
            while let Some((block, behind)) = rest.split_first_chunk::<BLOCK>() {
                let (words, _) = block.as_chunks::<16>();
                if let [one, two] = words {
                    self.word(*one);
                    beside.word(*two);
                }
                rest = behind;
            }
            self.number(beside.0);
        }
        if let Some((first, behind)) = rest.split_first_chunk::<16>() {
            self.word(*first);
            rest = behind;
        }
        match (bytes.last_chunk::<16>(), rest.first_chunk::<8>(), rest.last_chunk::<8>()) {
            (Some(last), ..) => self.word(*last),
            (None, Some(first), Some(last)) => {
                self.pair(u64::from_le_bytes(*first), u64::from_le_bytes(*last))
            }
            _ => self.number(rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))),
        }
    }

    /// The upper half mixed into the lower one.
    pub(super) const fn finish(self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    use super::*;

    fn of(parts: &[&[u8]]) -> u64 {
        let mut hash = Hash::new(1);
        parts.iter().for_each(|part| hash.bytes(part));
        hash.finish()
    }

    /// Every bit of every byte counts, for all lengths around the sizes of words and blocks.
    #[test]
    fn every_byte_counts() {
        for length in 0..70_u8 {
            let bytes: Vec<u8> = (0..length).map(|n| n.wrapping_mul(37)).collect();
            let mut seen = BTreeSet::from([of(&[&bytes])]);
            for at in 0..bytes.len() {
                for bit in 0..8 {
                    let mut other = bytes.clone();
                    other[at] ^= 1 << bit;
                    assert!(seen.insert(of(&[&other])), "length {length}, byte {at}, bit {bit}");
                }
            }
        }
    }

    /// Zeros of any length, and words moved from one text to the next, are different.
    #[test]
    fn lengths_and_borders_count() {
        let zeros = [0; 300];
        let seen: BTreeSet<u64> = (0..300).map(|length| of(&[&zeros[..length]])).collect();
        assert_eq!(seen.len(), 300);
        let text: Vec<u8> = (0..40).collect();
        let seen: BTreeSet<u64> = (0..=40).map(|at| of(&[&text[..at], &text[at..]])).collect();
        assert_eq!(seen.len(), 41);
        assert_ne!(of(&[&text, &[]]), of(&[&text]));
    }
}
