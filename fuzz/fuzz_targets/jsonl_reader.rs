//! Lines of JSON text: the split never changes the lines, their ranges cover the input without gaps, and every line is
//! what the bytes say.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tau_core::wire::jsonl::{JsonLine, JsonLines};

type Line = (Vec<u8>, u64, u64, bool, bool);

fn split<'a>(limit: usize, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Line> {
    let (mut lines, mut got) = (JsonLines::with_limit(limit), Vec::new());
    let mut sink = |line: JsonLine<'_>| {
        got.push((line.raw.to_vec(), line.offset, line.wire_len, line.terminated, line.too_long));
    };
    pieces.for_each(|piece| lines.feed(piece, &mut sink));
    lines.finish(&mut sink);
    got
}

fuzz_target!(|data: &[u8]| {
    let Some((&seed, body)) = data.split_first() else { return };
    for limit in [usize::MAX, 8] {
        let whole = split(limit, core::iter::once(body));
        assert_eq!(whole, split(limit, body.chunks(1)));
        assert_eq!(whole, split(limit, body.chunks(usize::from(seed) + 1)));
        let mut offset = 0;
        for (raw, start, len, terminated, too_long) in &whole {
            assert_eq!(*start, offset);
            offset += len;
            let (start, end) = (*start as usize, offset as usize);
            let wire = &body[start..end];
            let line = if *terminated { wire.strip_suffix(b"\n").expect("a line end") } else { wire };
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            assert!(!line.contains(&b'\n'));
            assert_eq!(*too_long, line.len() > limit);
            assert!(*too_long || raw == line);
        }
        assert_eq!(offset, body.len() as u64);
    }
    for (raw, ..) in split(usize::MAX, core::iter::once(body)) {
        let text = tau_core::text::utf8::lossy(&raw).into_owned();
        assert_eq!(text, String::from_utf8_lossy(&raw));
        if let Ok(value) = tau_core::json::parse(&text) {
            // What we write, we read again as the same value.
            let written = tau_core::json::to_string(&value);
            let again = tau_core::json::parse(&written).expect("our own text");
            assert_eq!(tau_core::json::to_string(&again), written);
        }
        // What serde_json reads, we read to the same value.
        if let Ok(theirs) = serde_json::from_str::<serde_json::Value>(&text) {
            assert_eq!(tau_core::json::parse(&text).expect("serde_json reads it"), theirs);
        }
    }
});
