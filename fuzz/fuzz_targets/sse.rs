//! Server-sent events: the split of the bytes never changes the events, and memory follows the input.
//! The first byte chooses the split.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tau_core::wire::sse::{GaveUp, SseDecoder, SseEvent};

/// Events as `(name, named, data)`, and why nothing more was read.
type Outcome = (Vec<(String, bool, String)>, Option<GaveUp>, String);

fn decode<'a>(limit: usize, pieces: impl Iterator<Item = &'a [u8]>) -> Outcome {
    let (mut decoder, mut events) = (SseDecoder::with_limit(limit), Vec::new());
    let mut sink = |e: SseEvent<'_>| events.push((e.event.to_owned(), e.named, e.data.to_owned()));
    pieces.for_each(|piece| decoder.feed(piece, &mut sink));
    decoder.finish(&mut sink);
    let stray = decoder.stray().into_owned();
    (events, decoder.gave_up(), stray)
}

fuzz_target!(|data: &[u8]| {
    let Some((&seed, body)) = data.split_first() else { return };
    for limit in [usize::MAX, 16] {
        let whole = decode(limit, core::iter::once(body));
        assert_eq!(whole, decode(limit, body.chunks(1)), "byte by byte, limit {limit}");
        assert_eq!(whole, decode(limit, body.chunks(usize::from(seed) + 1)), "in pieces, limit {limit}");
        let cut = usize::from(seed) % (body.len() + 1);
        let (head, tail) = body.split_at(cut);
        assert_eq!(whole, decode(limit, [head, tail].into_iter()), "cut at {cut}, limit {limit}");
        // An event never holds more than the bytes it came from (a broken byte becomes three).
        let total: usize = whole.0.iter().map(|(name, _, data)| name.len() + data.len()).sum();
        assert!(total <= 3 * body.len());
    }
});
