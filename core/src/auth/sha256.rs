//! SHA-256 (FIPS 180-4) and HMAC (RFC 2104), for signatures of requests.
//!
//! Written by hand: a hundred lines instead of seven crates below the core. Nothing here branches on, or indexes by,
//! what is hashed. `tests/text_properties.rs` compares it with the `sha2` crate.

use alloc::string::String;
use core::fmt::Write as _;

const BLOCK: usize = 64;

const ROUND: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];

const START: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// A hash in the making.
#[derive(Clone)]
struct Hasher {
    state: [u32; 8],
    /// The beginning of a block that is not complete.
    rest: [u8; BLOCK],
    length: u64,
}

impl Hasher {
    const fn new() -> Self {
        Self { state: START, rest: [0; BLOCK], length: 0 }
    }

    fn update(&mut self, mut bytes: &[u8]) {
        let held = (self.length % BLOCK as u64) as usize;
        self.length = self.length.wrapping_add(bytes.len() as u64);
        if held > 0 {
            let (head, tail) = bytes.split_at(bytes.len().min(BLOCK - held));
            if let Some(room) = self.rest.get_mut(held..held + head.len()) {
                room.copy_from_slice(head);
            }
            if held + head.len() < BLOCK {
                return;
            }
            compress(&mut self.state, &self.rest);
            bytes = tail;
        }
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        for block in blocks {
            compress(&mut self.state, block);
        }
        if let Some(room) = self.rest.get_mut(..rest.len()) {
            room.copy_from_slice(rest);
        }
    }

    fn finish(mut self) -> [u8; 32] {
        let bits = self.length.wrapping_mul(8);
        self.update(&[0x80]);
        while self.length % BLOCK as u64 != 56 {
            self.update(&[0]);
        }
        self.update(&bits.to_be_bytes());
        let mut out = [0; 32];
        for (place, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(self.state) {
            *place = word.to_be_bytes();
        }
        out
    }
}

#[allow(
    clippy::many_single_char_names,
    clippy::indexing_slicing,
    reason = "the standard's names; places below 64"
)]
fn compress(state: &mut [u32; 8], block: &[u8; BLOCK]) {
    let mut w = [0u32; 64];
    for (word, bytes) in w.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for i in 16..64 {
        let s0 = w[i - 15].rotate_right(7) ^ w[i - 15].rotate_right(18) ^ (w[i - 15] >> 3);
        let s1 = w[i - 2].rotate_right(17) ^ w[i - 2].rotate_right(19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16].wrapping_add(s0).wrapping_add(w[i - 7]).wrapping_add(s1);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for i in 0..64 {
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let t1 = h.wrapping_add(s1).wrapping_add(choice).wrapping_add(ROUND[i]).wrapping_add(w[i]);
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let t2 = s0.wrapping_add((a & b) ^ (a & c) ^ (b & c));
        (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(t1), c, b, a, t1.wrapping_add(t2));
    }
    for (word, more) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(more);
    }
}

/// The SHA-256 of some bytes.
#[must_use]
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hasher = Hasher::new();
    hasher.update(bytes);
    hasher.finish()
}

/// HMAC with SHA-256.
#[must_use]
pub fn hmac(key: &[u8], bytes: &[u8]) -> [u8; 32] {
    let mut block = [0u8; BLOCK];
    let short = if key.len() > BLOCK { &sha256(key)[..] } else { key };
    for (place, byte) in block.iter_mut().zip(short) {
        *place = *byte;
    }
    let [inner, outer] = [0x36, 0x5c].map(|pad| {
        let mut hasher = Hasher::new();
        hasher.update(&block.map(|byte| byte ^ pad));
        hasher
    });
    let seal = |mut hasher: Hasher, bytes: &[u8]| {
        hasher.update(bytes);
        hasher.finish()
    };
    seal(outer, &seal(inner, bytes))
}

/// Bytes as hexadecimal digits in lower case.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of FIPS 180-4 and RFC 4231.
    #[test]
    fn known_answers() {
        for (text, wanted) in [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            ),
        ] {
            assert_eq!(hex(&sha256(text.as_bytes())), wanted);
        }
        let million = alloc::vec![b'a'; 1_000_000];
        let wanted = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
        assert_eq!(hex(&sha256(&million)), wanted);
        for (key, text, wanted) in [
            (
                &b"Jefe"[..],
                &b"what do ya want for nothing?"[..],
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ] {
            assert_eq!(hex(&hmac(key, text)), wanted);
        }
    }
}
