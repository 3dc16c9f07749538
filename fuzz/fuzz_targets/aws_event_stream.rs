//! Frames of event streams: any bytes, in any split, give the same frames and the same verdict. With the first byte odd,
//! the checksum of the lengths is made right, so that the fuzzer gets behind it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tau_core::provider::event_stream::{Damage, EventStream, crc32};

type Seen = (Vec<(Vec<u8>, Option<String>)>, Result<(), Damage>, bool);

fuzz_target!(|data: &[u8]| {
    let Some((&seed, bytes)) = data.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if seed % 2 == 1 {
        mend(&mut bytes);
    }
    let whole = feed([&bytes[..]].into_iter());
    assert_eq!(whole, feed(bytes.chunks(1)));
    assert_eq!(whole, feed(bytes.chunks(usize::from(seed) + 1)));
});

fn feed<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Seen {
    let (mut stream, mut frames, mut verdict) = (EventStream::default(), Vec::new(), Ok(()));
    for piece in pieces {
        verdict = stream.feed(piece, &mut |frame| {
            frames.push((frame.payload.to_vec(), frame.header(":event-type").map(str::to_owned)));
        });
    }
    (frames, verdict, stream.is_cut())
}

/// Puts right checksums on frames whose lengths fit.
fn mend(bytes: &mut [u8]) {
    let mut rest = bytes;
    while rest.len() >= 16 {
        let sum = crc32(&rest[..8]);
        rest[8..12].copy_from_slice(&sum.to_be_bytes());
        let total = u32::from_be_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
        if !(16..=rest.len()).contains(&total) {
            return;
        }
        let sum = crc32(&rest[..total - 4]);
        rest[total - 4..total].copy_from_slice(&sum.to_be_bytes());
        rest = &mut rest[total..];
    }
}
