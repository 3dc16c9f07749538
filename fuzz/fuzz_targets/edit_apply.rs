//! Edits of a file: no panic, all or nothing, and bytes that no edit names survive.
//! The input is the file and then old and new texts in turn, separated by 0x1e.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tau_core::tools::edit_apply::apply;
use tau_core::tools::fuzzy;

fn count(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).filter(|window| *window == part).count()
}

fuzz_target!(|data: &[u8]| {
    let mut parts = data.split(|b| *b == 0x1e);
    let Some(file) = parts.next() else { return };
    let texts: Vec<String> = parts.map(|part| String::from_utf8_lossy(part).into_owned()).collect();
    let edits: Vec<(&str, &str)> =
        texts.chunks(2).map(|pair| (pair[0].as_str(), pair.get(1).map_or("", String::as_str))).collect();
    let Ok(applied) = apply(file.to_vec(), &edits, "f") else { return };
    let bytes = applied.bytes;
    if core::str::from_utf8(file).is_ok() {
        assert!(core::str::from_utf8(&bytes).is_ok(), "text stays text");
    }
    let bom = "\u{feff}".as_bytes();
    assert!(!file.starts_with(bom) || bytes.starts_with(bom), "a byte order mark stays");
    if let Ok(text) = core::str::from_utf8(file) {
        // Folded once, folding again changes nothing.
        let folded = fuzzy::fold(text);
        assert_eq!(fuzzy::fold(&folded), folded);
    }
    let plain = |text: &str| !text.contains('\r');
    if let [(old, new)] = edits[..]
        && !file.contains(&b'\r')
        && plain(old)
        && plain(new)
        && !file.starts_with(bom)
        && count(file, old.as_bytes()) == 1
    {
        let at = file.windows(old.len()).position(|window| window == old.as_bytes()).unwrap_or_default();
        let want = [&file[..at], new.as_bytes(), &file[at + old.len()..]].concat();
        assert_eq!(bytes, want, "an exact, unique edit is a splice");
    }
});
