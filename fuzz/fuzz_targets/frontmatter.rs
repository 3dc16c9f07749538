//! Front matter: no panic, line ends and a byte order mark change nothing, the values stay in proportion to the text,
//! and values written as JSON, which is YAML, are read back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tau_core::json;
use tau_core::skills::frontmatter::parse;

/// What aliases may repeat in all.
const MAX_REPEATED: usize = 1 << 20;

/// Keys, values and characters of a value.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len(),
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(map) => 1 + map.iter().map(|(key, value)| key.len() + size(value)).sum::<usize>(),
        _ => 1,
    }
}

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let read = parse(&text);
    if !text.contains('\r') {
        assert_eq!(read, parse(&text.replace('\n', "\r\n")));
        assert_eq!(read, parse(&text.replace('\n', "\r")));
    }
    if !text.starts_with('\u{feff}') {
        assert_eq!(read, parse(&format!("\u{feff}{text}")));
    }
    let Ok(read) = read else { return };
    assert!(size(&read.front) <= MAX_REPEATED + 3 * text.len() + 64, "values grow out of proportion");
    assert!(read.body.len() <= text.len());
    let written = json::to_string(&read.front);
    let again = parse(&format!("---\n{written}\n---\n")).expect("JSON is YAML");
    assert_eq!(json::to_string(&again.front), written);
});
