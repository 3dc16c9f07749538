//! Conversion of arguments towards their schema (spec 10 §2.10): optional nulls, conversion by type, leftovers.

use alloc::string::String;
use alloc::vec::Vec;
use core::mem;

use serde_json::{Map, Number, Value};

use super::number::write_number;
use super::schema::{
    Fuel, MAX_NESTING, compiled, equal, has_type, is_required, item_schemas, list, resolve, type_names,
};

/// Converts in place; what no rule touches stays as it is.
pub(super) fn coerce(schema: &Value, fuel: &Fuel, value: &mut Value) {
    let cx = Cx { root: schema, fuel, nesting: 0, required: false };
    cx.drop_optional_nulls(schema, value);
    cx.convert(schema, value);
    cx.convert_leftovers(schema, value);
}

/// Where a conversion is.
#[derive(Clone, Copy)]
struct Cx<'a> {
    root: &'a Value,
    fuel: &'a Fuel,
    nesting: usize,
    /// The value is a required property: its `null` never becomes a text (decision D35).
    required: bool,
}

type Pass<'a> = fn(&Cx<'a>, &'a Value, &mut Value);

impl<'a> Cx<'a> {
    fn deeper(&self, required: bool) -> Option<Self> {
        (self.nesting < MAX_NESTING && self.fuel.burn()).then_some(Self {
            nesting: self.nesting + 1,
            required,
            ..*self
        })
    }

    /// Runs a pass over the members and items of a value.
    fn children(&self, schema: &'a Map<String, Value>, value: &mut Value, pass: Pass<'a>) {
        match value {
            Value::Object(map) => self.members(schema, map, pass),
            Value::Array(items) => self.items(schema, items, pass),
            _ => {}
        }
    }

    fn members(&self, schema: &'a Map<String, Value>, map: &mut Map<String, Value>, pass: Pass<'a>) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let patterns = compiled(schema);
        let others = schema.get("additionalProperties").filter(|others| others.is_object());
        for (key, value) in map {
            let Some(cx) = self.deeper(is_required(schema, key)) else { return };
            let property = properties.and_then(|p| p.get(key));
            let mut known = property.is_some();
            if let Some(property) = property {
                pass(&cx, property, value);
            }
            for (_, part) in patterns.iter().filter(|(pattern, _)| pattern.is_match(key)) {
                known = true;
                pass(&cx, part, value);
            }
            if let Some(others) = others.filter(|_| !known) {
                pass(&cx, others, value);
            }
        }
    }

    fn items(&self, schema: &'a Map<String, Value>, items: &mut [Value], pass: Pass<'a>) {
        let Some(cx) = self.deeper(false) else { return };
        let (first, rest) = item_schemas(schema);
        for (index, item) in items.iter_mut().enumerate() {
            if let Some(part) = first.get(index).or(rest) {
                pass(&cx, part, item);
            }
        }
    }

    /// Pass 1: a `null` in a declared, optional property that rejects it is removed.
    fn drop_optional_nulls(&self, schema: &'a Value, value: &mut Value) {
        let Value::Object(schema) = schema else { return };
        if let (Value::Object(map), Some(Value::Object(properties))) = (&mut *value, schema.get("properties"))
        {
            map.retain(|key, value| {
                let Some(property) = properties.get(key).filter(|_| value.is_null()) else { return true };
                is_required(schema, key)
                    || property.get("$ref").is_some()
                    || self.fuel.accepts(self.root, property, &Value::Null)
            });
        }
        self.children(schema, value, Cx::drop_optional_nulls);
    }

    /// Pass 2: conversion by the first keyword of the node that applies.
    fn convert(&self, schema: &'a Value, value: &mut Value) {
        let (Value::Object(node), Some(inner)) = (schema, self.deeper(self.required)) else { return };
        if let Some(reference) = node.get("$ref").and_then(Value::as_str) {
            if let Some(target) = resolve(self.root, reference) {
                inner.convert(target, value);
            }
        } else if let Some(only) = node.get("const") {
            self.choose(core::slice::from_ref(only), value);
        } else if let Some(members) = list(node, "enum") {
            self.choose(members, value);
        } else if let Some(parts) = list(node, "anyOf").or_else(|| list(node, "oneOf")) {
            inner.convert_branch(schema, parts, value);
        } else if let Some(parts) = list(node, "allOf") {
            parts.iter().for_each(|part| inner.convert(part, value));
        } else {
            self.convert_type(node, value);
        }
    }

    /// A member stays; else the first member that the value converts to exactly.
    fn choose(&self, members: &[Value], value: &mut Value) {
        if members.iter().any(|member| equal(member, value)) {
            return;
        }
        let found = members.iter().find(|member| {
            let kind = match member {
                Value::Null => "null",
                Value::Bool(_) => "boolean",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                _ => return false,
            };
            self.as_type(kind, value).is_some_and(|converted| equal(&converted, member))
        });
        if let Some(member) = found {
            *value = member.clone();
        }
    }

    fn convert_branch(&self, whole: &'a Value, parts: &'a [Value], value: &mut Value) {
        if parts.iter().any(|part| self.fuel.accepts(self.root, part, value)) {
            return;
        }
        for part in parts {
            let mut attempt = value.clone();
            self.convert(part, &mut attempt);
            if self.fuel.accepts(self.root, whole, &attempt) {
                *value = attempt;
                return;
            }
        }
    }

    fn convert_type(&self, node: &'a Map<String, Value>, value: &mut Value) {
        match node.get("type").and_then(Value::as_str) {
            Some("array") => {
                let tuple = !item_schemas(node).0.is_empty();
                if !value.is_array() && !tuple {
                    *value = Value::Array([mem::take(value)].into());
                }
                self.children(node, value, Cx::convert);
            }
            Some("object") => {
                if value.is_object() {
                    self.children(node, value, Cx::convert);
                }
            }
            Some(name) => {
                if let Some(converted) = self.as_type(name, value) {
                    *value = converted;
                }
            }
            None if node.contains_key("type") => {}
            None => self.children(node, value, Cx::convert),
        }
    }

    /// The value as another primitive type, `None` when it does not convert or already fits.
    fn as_type(&self, name: &str, value: &Value) -> Option<Value> {
        if has_type(name, value) {
            return None;
        }
        match name {
            "string" if value.is_null() => (!self.required).then(|| "null".into()),
            "string" => text_of(value),
            "number" => number_of(value).map(from_f64),
            "integer" => number_of(value).map(trunc).map(from_f64),
            "boolean" => bool_of(value).map(Value::Bool),
            "null" => is_nothing(value).then_some(Value::Null),
            _ => None,
        }
    }

    /// Pass 3: primitives by the types of the node, mainly for lists of types.
    fn convert_leftovers(&self, schema: &'a Value, value: &mut Value) {
        let Value::Object(node) = schema else { return };
        for part in list(node, "allOf").unwrap_or_default() {
            if let Some(inner) = self.deeper(self.required) {
                inner.convert_leftovers(part, value);
            }
        }
        let types = type_names(node);
        if !types.iter().any(|name| has_type(name, value)) {
            let converted: Vec<Value> =
                types.iter().filter_map(|name| self.leftover(name, value)).take(1).collect();
            if let Some(first) = converted.into_iter().next() {
                *value = first;
            }
        }
        self.children(node, value, Cx::convert_leftovers);
    }

    fn leftover(&self, name: &str, value: &Value) -> Option<Value> {
        match (name, value) {
            ("number" | "integer", Value::Null) => Some(0.into()),
            ("number" | "integer", Value::Bool(b)) => Some(u8::from(*b).into()),
            ("number" | "integer", Value::String(text)) if !text.trim().is_empty() => {
                let number = from_f64(js_number(text)?);
                has_type(name, &number).then_some(number)
            }
            ("boolean", Value::Null) => Some(Value::Bool(false)),
            ("boolean", Value::String(text)) => match text.as_str() {
                "true" => Some(Value::Bool(true)),
                "false" => Some(Value::Bool(false)),
                _ => None,
            },
            ("boolean", Value::Number(_)) => bool_of(value).map(Value::Bool),
            ("string", Value::Null) => (!self.required).then(|| "".into()),
            ("string", value) => text_of(value),
            ("null", Value::String(text)) => text.is_empty().then_some(Value::Null),
            ("null", Value::Number(n)) => (n.as_f64() == Some(0.0)).then_some(Value::Null),
            ("null", Value::Bool(false)) => Some(Value::Null),
            _ => None,
        }
    }
}

fn text_of(value: &Value) -> Option<Value> {
    match value {
        Value::Bool(b) => Some(if *b { "true" } else { "false" }.into()),
        Value::Number(number) => {
            let mut text = String::new();
            write_number(&mut text, number);
            Some(text.into())
        }
        _ => None,
    }
}

fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Null | Value::Bool(false) => Some(0.0),
        Value::Bool(true) => Some(1.0),
        Value::Number(number) => number.as_f64(),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(1.0),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(0.0),
        Value::String(text) => match text.strip_suffix('n').filter(|digits| is_big_integer(digits)) {
            Some(digits) => digits.parse().ok(),
            None => js_number(text),
        },
        _ => None,
    }
}

/// Digits with a sign, as in `12n`.
fn is_big_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit())
}

fn bool_of(value: &Value) -> Option<bool> {
    match value {
        Value::Null => Some(false),
        Value::String(text) if text == "1" || text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text == "0" || text.eq_ignore_ascii_case("false") => Some(false),
        Value::Number(number) if number.as_f64() == Some(1.0) => Some(true),
        Value::Number(number) if number.as_f64() == Some(0.0) => Some(false),
        _ => None,
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Bool(b) => !b,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => {
            text.is_empty()
                || text == "0"
                || ["null", "undefined"].iter().any(|word| text.eq_ignore_ascii_case(word))
        }
        _ => false,
    }
}

/// A text as ECMAScript's `Number` reads it; `None` for what is no finite number.
fn js_number(text: &str) -> Option<f64> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    if text.is_empty() {
        return Some(0.0);
    }
    for (prefix, radix) in [("0x", 16), ("0X", 16), ("0o", 8), ("0O", 8), ("0b", 2), ("0B", 2)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let mut number = 0.0;
            for c in digits.chars() {
                number = number * f64::from(radix) + f64::from(c.to_digit(radix)?);
            }
            return (!digits.is_empty()).then_some(number).filter(|n: &f64| n.is_finite());
        }
    }
    // Rust also reads "inf" and "nan"; ECMAScript's only word is "Infinity", which is not finite.
    let plain = text.bytes().all(|c| c.is_ascii_digit() || matches!(c, b'+' | b'-' | b'.' | b'e' | b'E'));
    text.parse().ok().filter(|number: &f64| plain && number.is_finite())
}

/// Drops the fraction. (`f64::trunc` needs std.)
fn trunc(number: f64) -> f64 {
    number - number % 1.0
}

/// A number, as an integer where it is one.
fn from_f64(number: f64) -> Value {
    const SAFE: f64 = 9_007_199_254_740_992.0;
    if number % 1.0 == 0.0 && number.abs() <= SAFE {
        #[allow(clippy::cast_possible_truncation)]
        let whole = number as i64;
        return whole.into();
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_ecmascript_reads_them() {
        for (text, expected) in [
            ("", Some(0.0)),
            (" \u{a0}5\u{feff}", Some(5.0)),
            ("+.5e1", Some(5.0)),
            ("5.", Some(5.0)),
            ("0b11", Some(3.0)),
            ("0x", None),
            ("-0x1", None),
            ("inf", None),
            ("NaN", None),
            ("Infinity", None),
            ("1e999", None),
            ("1_000", None),
            (".", None),
            ("1 2", None),
        ] {
            assert_eq!(js_number(text), expected, "{text:?}");
        }
        assert_eq!(number_of(&"12n".into()), Some(12.0));
        assert_eq!(number_of(&"1.5n".into()), None);
    }
}
