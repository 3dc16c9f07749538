//! Settings text: no panic; comments and trailing commas change no value; plain JSON is what serde_json reads; an error
//! tells a line of the text and nothing of what stands there.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tau_core::json;
use tau_core::settings::jsonc::{parse, strip, without_bom};

/// The value with a trailing comma and a comment wherever one may stand.
fn decorate(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for item in items {
                decorate(item, out);
                out.push_str(", // ] \" }\n");
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push_str("{ // {\n");
            for (key, value) in map {
                out.push_str(&json::to_string(&Value::String(key.clone())));
                out.push_str(": // ,\r\n ");
                decorate(value, out);
                out.push_str(",\n// \\\"\n");
            }
            out.push('}');
        }
        leaf => out.push_str(&leaf.to_string()),
    }
}

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let stripped = strip(&text);
    assert!(stripped.len() <= text.len());
    assert_eq!(stripped.matches('\n').count(), text.matches('\n').count());
    let read = parse(&text);
    if let Ok(theirs) = serde_json::from_str::<Value>(without_bom(&text)) {
        assert_eq!(read.as_ref(), Ok(&theirs));
        // Line ends of plain JSON stand between values.
        assert_eq!(parse(&text.replace('\n', "// \" , ]\n")).as_ref(), Ok(&theirs));
    }
    match read {
        Ok(value) => {
            let mut decorated = String::new();
            decorate(&value, &mut decorated);
            if decorated.len() > 2 {
                assert_eq!(parse(&decorated), Ok(value));
            }
        }
        Err(error) => {
            let (_, place) = error.split_once("(line ").expect("a line");
            let line: usize = place.split(',').next().expect("a number").parse().expect("a number");
            assert!(line <= text.matches('\n').count() + 1, "{error}");
            assert!(error.len() < 100, "{error}");
        }
    }
});
