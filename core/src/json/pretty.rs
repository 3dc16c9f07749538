//! JSON for people, two blanks for each level, as `JSON.stringify(value, null, 2)` writes it.

use alloc::string::{String, ToString};

use serde_json::Value;

use super::Writer;

const STEP: &str = "  ";

/// Indented text of a value, without a line end after it.
#[must_use]
pub fn to_pretty(value: &Value) -> String {
    let mut out = String::new();
    write_pretty(&mut out, value, "");
    out
}

/// Appends a value that begins in a line with this indentation.
pub(crate) fn write_pretty(out: &mut String, value: &Value, indent: &str) {
    let inner = [indent, STEP].concat();
    match value {
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                out.push(if at == 0 { '[' } else { ',' });
                begin_line(out, &inner);
                write_pretty(out, item, &inner);
            }
            begin_line(out, indent);
            out.push(']');
        }
        Value::Object(map) if !map.is_empty() => {
            for (at, (key, member)) in map.iter().enumerate() {
                out.push(if at == 0 { '{' } else { ',' });
                begin_line(out, &inner);
                write_key(out, key);
                write_pretty(out, member, &inner);
            }
            begin_line(out, indent);
            out.push('}');
        }
        // A whole number keeps all its digits, also those that a double has no room for.
        Value::Number(number) if !number.is_f64() => out.push_str(&number.to_string()),
        small => compact(out, small),
    }
}

fn begin_line(out: &mut String, indent: &str) {
    out.push('\n');
    out.push_str(indent);
}

/// Appends `"key": `.
pub(crate) fn write_key(out: &mut String, key: &str) {
    let mut w = Writer::append_to(core::mem::take(out));
    w.str(key);
    *out = w.into_string();
    out.push_str(": ");
}

fn compact(out: &mut String, value: &Value) {
    let mut w = Writer::append_to(core::mem::take(out));
    w.value(value);
    *out = w.into_string();
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn as_json_stringify() {
        let value = json!({"a": [1, {"b": "x\"y"}, []], "c": {}, "d": null, "e": {"f": 1.5}});
        assert_eq!(to_pretty(&value), serde_json::to_string_pretty(&value).unwrap());
        assert_eq!(to_pretty(&json!(1.0)), "1");
        assert_eq!(
            to_pretty(&json!([u64::MAX, i64::MIN])),
            "[\n  18446744073709551615,\n  -9223372036854775808\n]"
        );
    }
}
