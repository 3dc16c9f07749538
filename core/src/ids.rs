//! Identifiers: ops, session entries, sessions.

use alloc::format;
use alloc::string::String;
use core::fmt;

use crate::entropy::Entropy;
use crate::now::Wall;

/// Names one effect the machine asked for. Dense, never reused within one hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "op{}", self.0)
    }
}

/// Id of a session entry: opaque text, unique inside one file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub alloc::sync::Arc<str>);

impl EntryId {
    /// Takes any text; ids read from files are opaque.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A new id: 8 hex digits, retried up to 100 times while `taken`, then a full UUID (spec 60 §1.3).
    pub fn fresh(rng: &mut Entropy, taken: impl Fn(&str) -> bool) -> Self {
        for _ in 0..100 {
            let id = format!("{:08x}", rng.next_u64() >> 32);
            if !taken(&id) {
                return Self::new(&id);
            }
        }
        Self::new(&uuid(rng.next_u64(), rng.next_u64(), 4))
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Makes UUIDv7 session ids: a millisecond time that never goes back, a 41-bit counter, random rest.
#[derive(Clone, Debug, Default)]
pub struct UuidV7 {
    last_ms: u64,
    counter: u64,
}

impl UuidV7 {
    /// The next id. Ids of one generator sort in the order in which they were made.
    pub fn next(&mut self, wall: Wall, rng: &mut Entropy) -> String {
        let ms = u64::try_from(wall.0).unwrap_or(0) & 0xffff_ffff_ffff;
        if ms > self.last_ms || self.counter == 0 {
            self.last_ms = ms.max(self.last_ms);
            // The top bit stays free, so that a burst of ids cannot wrap the counter.
            self.counter = (rng.next_u64() >> 24) & 0xff_ffff_ffff | 1;
        } else {
            self.counter += 1;
        }
        let c = self.counter & 0x1ff_ffff_ffff;
        let high = self.last_ms << 16 | (c >> 29);
        let low = ((c & 0x1fff_ffff) << 33) | (rng.next_u64() >> 31);
        uuid(high, low, 7)
    }
}

/// Writes 128 bits as a UUID of the given version, variant 10.
fn uuid(high: u64, low: u64, version: u64) -> String {
    let high = (high & !0xf000) | (version << 12);
    let low = (low & !(0b11 << 62)) | (0b10 << 62);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

/// A random UUID (version 4) from the seeded generator; for names, not for secrets.
pub fn uuid_v4(rng: &mut Entropy) -> String {
    uuid(rng.next_u64(), rng.next_u64(), 4)
}

/// The rule for session ids given by a caller: `^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`.
#[must_use]
pub fn is_valid_session_id(id: &str) -> bool {
    let b = id.as_bytes();
    let edge = |c: Option<&u8>| c.is_some_and(u8::is_ascii_alphanumeric);
    edge(b.first()) && edge(b.last()) && b.iter().all(|c| c.is_ascii_alphanumeric() || b"._-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuid_v7_is_ordered_and_well_formed() {
        let (mut ids, mut rng) = (UuidV7::default(), Entropy::new([3; 32]));
        let mut last = String::new();
        for ms in [5, 5, 5, 4, 6, 6] {
            let id = ids.next(Wall(1_788_315_987_000 + ms), &mut rng);
            assert!(id > last, "{id} after {last}");
            assert_eq!(id.len(), 36);
            assert_eq!(id.as_bytes()[14], b'7');
            assert!(b"89ab".contains(&id.as_bytes()[19]));
            last = id;
        }
    }

    #[test]
    fn entry_id_falls_back_to_uuid() {
        let mut rng = Entropy::new([0; 32]);
        assert_eq!(EntryId::fresh(&mut rng, |_| false).as_str().len(), 8);
        assert_eq!(EntryId::fresh(&mut rng, |_| true).as_str().len(), 36);
    }
}
