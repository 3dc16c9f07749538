//! Settings text: no panic; comments and trailing commas change no value; plain JSON is what serde_json reads; an error
//! tells a line of the text and nothing of what stands there; a change of one setting keeps all others.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};
use tau_core::json;
use tau_core::settings::jsonc::{parse, strip, without_bom};
use tau_core::settings::{Change, migrate, rewrite};

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

/// Changes a setting and reads the file again.
fn change(text: &str, before: &Map<String, Value>, path: &[&str], value: Option<Value>) {
    let names = path.iter().map(|name| (*name).to_owned()).collect();
    let change = Change { path: names, value: value.clone() };
    let Ok(Some(new)) = rewrite(Some(text), std::slice::from_ref(&change)) else { return };
    let Ok(Value::Object(mut after)) = parse(&new) else { panic!("{new}") };
    let set = path.iter().try_fold(&Value::Object(after.clone()), |at, name| at.get(name)).cloned();
    assert!(set == value, "{new}");
    // Without the setting concerned, both say the same.
    let mut before = before.clone();
    migrate(&mut before);
    migrate(&mut after);
    for map in [&mut before, &mut after] {
        map.shift_remove(path[0]);
        for name in
            ["steeringMode", "transport", "queueMode", "websockets", "retry", "skills", "enableSkillCommands"]
        {
            map.shift_remove(name);
        }
    }
    // As text: a number may be written in another way, the order may not change.
    assert_eq!(json::to_pretty(&Value::Object(after)), json::to_pretty(&Value::Object(before)), "{new}");
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
            if let Value::Object(map) = &value {
                let first = map.keys().next().map_or("first", String::as_str);
                for path in
                    [&["retry", "enabled"] as &[&str], &["steeringMode"], &["mine", "a.b", "c"], &[first]]
                {
                    for set in [Some(Value::Bool(true)), Some(serde_json::json!({"x": ["// }"]})), None] {
                        change(&text, map, path, set);
                    }
                }
            }
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
