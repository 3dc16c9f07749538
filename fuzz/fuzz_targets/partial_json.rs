//! Streamed tool arguments: snapshots do not depend on the split or on earlier looks, a complete object is shown as it
//! will be run, and what does not parse is never run.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tau_core::json::{PartialArgs, finish_text, parse, repair, to_string};

fuzz_target!(|data: &[u8]| {
    let Some((&seed, rest)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    let step = usize::from(seed) % 7 + 1;

    let mut whole = PartialArgs::new();
    whole.push(&text);
    let mut split = PartialArgs::new();
    let mut piece = String::new();
    for (index, c) in text.chars().enumerate() {
        piece.push(c);
        if index % step == 0 {
            split.push(&piece);
            piece.clear();
            if text.len() < 2000 || index % 97 == 0 {
                split.snapshot();
            }
        }
    }
    split.push(&piece);
    assert_eq!(split.raw(), text);
    let shown = whole.value();
    assert_eq!(shown, split.value());

    let strict = parse(&text);
    if let Ok(value) = &strict {
        // A number at the very end may go on, and a long one is not shown until it ends.
        assert!(!value.is_object() || shown.as_ref() == Some(value), "a valid object is shown as it is");
        assert_eq!(repair(&text), text, "a valid text needs no repair");
    }
    let last = whole.finish();
    assert_eq!(last, finish_text(&text));
    match &last {
        Ok(value) => {
            assert!(value.is_object());
            let written = to_string(value);
            let again = parse(&written).expect("our own text");
            assert_eq!(to_string(&again), written, "what is run can be written and read");
        }
        Err(error) => assert!(!error.text.is_empty() && error.text.len() < 5000),
    }
});
