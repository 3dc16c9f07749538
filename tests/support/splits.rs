//! Chunks of a body: whatever the split, the outcome is the same.

use std::fmt::Debug;

/// Bodies up to this size are cut in two at every place, larger ones at this many places.
const CUTS: usize = 1500;
/// Splits into pieces of random lengths.
const SEEDS: u64 = 20;

/// Decodes a body whole, byte by byte, cut in two everywhere and in random pieces; `decode` must always give the same.
///
/// # Errors
/// The first split that gave another outcome.
pub fn agree<T, F>(body: &[u8], decode: F) -> Result<T, String>
where
    T: PartialEq + Debug,
    F: Fn(&[&[u8]]) -> T,
{
    let whole = decode(&[body]);
    let check = |pieces: &[&[u8]], split: &dyn Fn() -> String| {
        if decode(pieces) == whole { Ok(()) } else { Err(format!("{} the outcome is another one", split())) }
    };
    check(&body.chunks(1).collect::<Vec<_>>(), &|| "byte by byte".into())?;
    let step = body.len() / CUTS + 1;
    for at in (0..=body.len()).step_by(step) {
        let (head, tail) = body.split_at(at);
        check(&[head, tail], &|| format!("cut at {at}"))?;
    }
    for seed in 1..=SEEDS {
        check(&pieces(body, seed), &|| format!("in random pieces (seed {seed})"))?;
    }
    Ok(whole)
}

/// Pieces of 1 to 40 bytes.
fn pieces(body: &[u8], seed: u64) -> Vec<&[u8]> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut rest = body;
    let mut list = Vec::new();
    while !rest.is_empty() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (piece, tail) = rest.split_at((1 + (state >> 33) as usize % 40).min(rest.len()));
        list.push(piece);
        rest = tail;
    }
    list
}
