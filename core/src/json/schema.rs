//! JSON Schema (2020-12, the part that tool schemas use): check with errors by place (spec 10 §2.10).

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;
use core::mem;

use serde_json::{Map, Value};

use super::coerce::coerce;
use super::format::has_format;
use super::pattern::Pattern;
use super::{Writer, to_string};
use crate::text::truncate::excerpt;

/// Errors that are kept for one check.
const MAX_ERRORS: usize = 32;

/// Deepest nesting of schema nodes that is followed (recursive schemas, reference cycles).
pub(super) const MAX_NESTING: usize = 128;

/// Steps that one validation may take, and more for each node of the arguments: a schema that branches without end
/// is stopped, a large value is not.
const STEPS: u32 = 100_000;
const STEPS_PER_NODE: u32 = 64;

/// How much of the received arguments an error repeats, bytes.
const ECHO_BYTES: usize = 4000;

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// Where, as a JSON Pointer; empty for the whole value.
    pub path: String,
    /// The schema keyword that is violated.
    pub keyword: &'static str,
    /// What is wrong, for the model.
    pub message: String,
}

impl SchemaError {
    /// The place with dots, `root` for the whole value.
    #[must_use]
    pub fn dotted(&self) -> String {
        let Some(path) = self.path.strip_prefix('/') else { return "root".into() };
        path.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect::<Vec<_>>().join(".")
    }
}

/// Validates tool arguments; converts what does not fit where the rules of spec 10 §2.10 allow it.
///
/// Arguments that fit as they are come back as the same `Arc`, without a copy.
///
/// # Errors
/// Every violation that is left after conversion, in report order.
pub fn validate(schema: &Value, args: &Arc<Value>) -> Result<Arc<Value>, Vec<SchemaError>> {
    let fuel = Fuel::for_value(args);
    if fuel.accepts(schema, schema, args) {
        return Ok(Arc::clone(args));
    }
    let mut converted = (**args).clone();
    coerce(schema, &fuel, &mut converted);
    let mut check = Check::new(schema, &fuel);
    check.node(schema, &converted);
    if check.errors.is_empty() { Ok(Arc::new(converted)) } else { Err(check.errors) }
}

/// The text for the model: the tool, each violation with its dotted path, and the received arguments, a long one
/// abridged.
#[must_use]
pub fn error_text(tool: &str, errors: &[SchemaError], args: &Value) -> String {
    let mut text = format!("The arguments for tool \"{tool}\" do not fit its schema:\n");
    for error in errors {
        text.push_str(&format!("- {}: {}\n", error.dotted(), error.message));
    }
    text.push_str("Received arguments: ");
    text.push_str(&excerpt(&to_string(args), ECHO_BYTES));
    text
}

/// The steps left, shared by everything that one validation does.
pub(super) struct Fuel(Cell<u32>);

impl Fuel {
    fn for_value(value: &Value) -> Self {
        let (mut nodes, mut todo) = (0u32, alloc::vec![value]);
        while let Some(node) = todo.pop() {
            nodes = nodes.saturating_add(1);
            match node {
                Value::Array(items) => todo.extend(items),
                Value::Object(map) => todo.extend(map.values()),
                _ => {}
            }
        }
        Self(Cell::new(nodes.saturating_mul(STEPS_PER_NODE).saturating_add(STEPS)))
    }

    /// Takes one step; `false` when none is left.
    pub(super) fn burn(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left > 0
    }

    /// Whether a value fits a schema node. `root` is where `$ref` starts.
    pub(super) fn accepts(&self, root: &Value, schema: &Value, value: &Value) -> bool {
        let mut check = Check { quick: true, ..Check::new(root, self) };
        check.node(schema, value);
        check.errors.is_empty()
    }
}

/// The node a local reference points to.
pub(super) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.contains('%') {
        return None;
    }
    root.pointer(pointer)
}

/// Whether a value has a JSON type; an integer is any number without a fraction.
pub(super) fn has_type(name: &str, value: &Value) -> bool {
    match (name, value) {
        ("integer", Value::Number(n)) => {
            // Beyond 2^53 every double is whole.
            n.is_i64() || n.is_u64() || n.as_f64().is_some_and(|f| f.abs() >= 9e15 || f % 1.0 == 0.0)
        }
        ("string", Value::String(_))
        | ("number", Value::Number(_))
        | ("boolean", Value::Bool(_))
        | ("null", Value::Null)
        | ("array", Value::Array(_))
        | ("object", Value::Object(_)) => true,
        _ => false,
    }
}

/// Keywords that are checked with the type, or not at all. Most leaves of a schema have no others.
fn says_no_more(keyword: &str) -> bool {
    matches!(keyword, "type" | "description" | "title" | "default" | "examples")
}

/// Names of the `type` keyword, one or a list.
pub(super) fn type_names(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => alloc::vec![name.as_str()],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Whether a key is in `required`.
pub(super) fn is_required(schema: &Map<String, Value>, key: &str) -> bool {
    schema.get("required").and_then(Value::as_array).is_some_and(|keys| keys.iter().any(|k| k == key))
}

/// The schemas of one list keyword.
pub(super) fn list<'a>(schema: &'a Map<String, Value>, keyword: &str) -> Option<&'a [Value]> {
    schema.get(keyword).and_then(Value::as_array).map(Vec::as_slice)
}

/// Schemas for the first items of an array, and that for the others.
pub(super) fn item_schemas(schema: &Map<String, Value>) -> (&[Value], Option<&Value>) {
    match (list(schema, "prefixItems"), schema.get("items")) {
        (Some(first), rest) => (first, rest),
        (None, Some(Value::Array(first))) => (first, schema.get("additionalItems")),
        (None, rest) => (&[], rest),
    }
}

#[derive(Clone, Copy)]
enum Part<'a> {
    Key(&'a str),
    Index(usize),
}

struct Check<'a> {
    root: &'a Value,
    fuel: &'a Fuel,
    path: Vec<Part<'a>>,
    errors: Vec<SchemaError>,
    nesting: usize,
    /// Only whether there is an error counts: stop at the first.
    quick: bool,
}

impl<'a> Check<'a> {
    const fn new(root: &'a Value, fuel: &'a Fuel) -> Self {
        Self { root, fuel, path: Vec::new(), errors: Vec::new(), nesting: 0, quick: false }
    }

    fn fail(&mut self, keyword: &'static str, message: impl Into<String>) {
        if self.errors.len() < MAX_ERRORS {
            let path = pointer(&self.path);
            self.errors.push(SchemaError { path, keyword, message: message.into() });
        }
    }

    fn fail_at(&mut self, key: &'a str, keyword: &'static str, message: impl Into<String>) {
        self.path.push(Part::Key(key));
        self.fail(keyword, message);
        self.path.pop();
    }

    fn node(&mut self, schema: &'a Value, value: &'a Value) {
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(false) => return self.fail("false", "is not allowed"),
            _ => return,
        };
        if self.quick && !self.errors.is_empty() {
            return;
        }
        if self.nesting >= MAX_NESTING || !self.fuel.burn() {
            return self.fail("$ref", "is nested too deeply to be checked");
        }
        self.nesting += 1;
        self.keywords(schema, value);
        self.nesting -= 1;
    }

    fn keywords(&mut self, schema: &'a Map<String, Value>, value: &'a Value) {
        let fits = match schema.get("type") {
            Some(Value::String(name)) => has_type(name, value),
            Some(Value::Array(names)) => {
                names.iter().filter_map(Value::as_str).any(|name| has_type(name, value))
            }
            _ => true,
        };
        if !fits {
            let types = type_names(schema).join(" or ");
            return self.fail("type", format!("must be of type {types}, not {}", kind(value)));
        }
        if schema.keys().all(|keyword| says_no_more(keyword)) {
            return;
        }
        match value {
            Value::Object(map) => self.object(schema, map),
            Value::Array(items) => self.array(schema, items),
            Value::String(text) => self.text(schema, text),
            Value::Number(number) => self.number(schema, number.as_f64().unwrap_or(f64::NAN)),
            _ => {}
        }
        self.choices(schema, value);
        self.combined(schema, value);
    }

    fn choices(&mut self, schema: &'a Map<String, Value>, value: &Value) {
        if let Some(only) = schema.get("const")
            && !equal(only, value)
        {
            self.fail("const", format!("must be {}", excerpt(&to_string(only), 200)));
        }
        if let Some(members) = list(schema, "enum")
            && !members.iter().any(|member| equal(member, value))
        {
            let mut w = Writer::new();
            members.iter().for_each(|member| w.value(member));
            self.fail("enum", format!("must be one of {}", excerpt(w.as_str(), 500)));
        }
    }

    fn combined(&mut self, schema: &'a Map<String, Value>, value: &'a Value) {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            match resolve(self.root, reference) {
                Some(target) => self.node(target, value),
                None => self.fail("$ref", format!("cannot be checked, {reference} does not exist")),
            }
        }
        list(schema, "allOf").unwrap_or_default().iter().for_each(|part| self.node(part, value));
        if let Some(parts) = list(schema, "anyOf") {
            self.branches(parts, value);
        }
        if let Some(parts) = list(schema, "oneOf") {
            match parts.iter().filter(|part| self.fits(part, value)).count() {
                0 => self.branches(parts, value),
                1 => {}
                _ => self.fail("oneOf", "fits more than one of the alternatives"),
            }
        }
        if schema.get("not").is_some_and(|not| self.fits(not, value)) {
            self.fail("not", "is not allowed");
        }
        if let Some(test) = schema.get("if") {
            let branch = if self.fits(test, value) { "then" } else { "else" };
            if let Some(branch) = schema.get(branch) {
                self.node(branch, value);
            }
        }
    }

    /// Checks without reporting.
    fn fits(&mut self, schema: &'a Value, value: &'a Value) -> bool {
        let before = (mem::take(&mut self.errors), mem::replace(&mut self.quick, true));
        self.node(schema, value);
        self.quick = before.1;
        mem::replace(&mut self.errors, before.0).is_empty()
    }

    /// At least one alternative must fit; else the errors of all, each place and keyword once.
    fn branches(&mut self, parts: &'a [Value], value: &'a Value) {
        let before = mem::take(&mut self.errors);
        let mut all: Vec<SchemaError> = Vec::new();
        for part in parts {
            self.node(part, value);
            let errors = mem::take(&mut self.errors);
            if errors.is_empty() {
                self.errors = before;
                return;
            }
            for error in errors {
                match all.iter_mut().find(|e| e.path == error.path && e.keyword == error.keyword) {
                    Some(known) if known.message != error.message => {
                        known.message.push_str(" or ");
                        known.message.push_str(&error.message);
                    }
                    Some(_) => {}
                    None => all.push(error),
                }
            }
        }
        self.errors = before;
        all.truncate(MAX_ERRORS.saturating_sub(self.errors.len()));
        self.errors.append(&mut all);
    }

    fn object(&mut self, schema: &'a Map<String, Value>, map: &'a Map<String, Value>) {
        for key in list(schema, "required").unwrap_or_default().iter().filter_map(Value::as_str) {
            if !map.contains_key(key) {
                self.fail_at(key, "required", "is required");
            }
        }
        self.count(schema, map.len(), "minProperties", "maxProperties", "properties");
        self.members(schema, map);
        if let Some(names) = schema.get("propertyNames") {
            for key in map.keys() {
                let name = Value::String(key.to_owned());
                if !self.fuel.accepts(self.root, names, &name) {
                    self.fail_at(key, "propertyNames", "is not an allowed name");
                }
            }
        }
        if let Some(Value::Object(dependent)) = schema.get("dependentRequired") {
            for (key, needed) in dependent.iter().filter(|(key, _)| map.contains_key(*key)) {
                for needed in needed.as_array().into_iter().flatten().filter_map(Value::as_str) {
                    if !map.contains_key(needed) {
                        self.fail_at(needed, "dependentRequired", format!("is required together with {key}"));
                    }
                }
            }
        }
        if let Some(Value::Object(dependent)) = schema.get("dependentSchemas") {
            for (key, part) in dependent {
                if map.contains_key(key) && !self.fuel.accepts(self.root, part, &Value::Object(map.clone())) {
                    self.fail("dependentSchemas", format!("does not fit what {key} demands"));
                }
            }
        }
    }

    fn members(&mut self, schema: &'a Map<String, Value>, map: &'a Map<String, Value>) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let patterns = compiled(schema);
        let others = schema.get("additionalProperties");
        if properties.is_none() && patterns.is_empty() && others.is_none() {
            return;
        }
        for (key, value) in map {
            self.path.push(Part::Key(key));
            let mut known = false;
            if let Some(property) = properties.and_then(|p| p.get(key)) {
                known = true;
                self.node(property, value);
            }
            for (_, part) in patterns.iter().filter(|(pattern, _)| pattern.is_match(key)) {
                known = true;
                self.node(part, value);
            }
            match others {
                Some(Value::Bool(false)) if !known => {
                    self.fail("additionalProperties", "is not a known property")
                }
                Some(others) if !known => self.node(others, value),
                _ => {}
            }
            self.path.pop();
        }
    }

    fn array(&mut self, schema: &'a Map<String, Value>, items: &'a [Value]) {
        self.count(schema, items.len(), "minItems", "maxItems", "items");
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            let distinct: BTreeSet<String> = items.iter().map(to_string).collect();
            if distinct.len() < items.len() {
                self.fail("uniqueItems", "must not contain the same item twice");
            }
        }
        let (first, rest) = item_schemas(schema);
        for (index, item) in items.iter().enumerate() {
            let Some(part) = first.get(index).or(rest) else { continue };
            self.path.push(Part::Index(index));
            self.node(part, item);
            self.path.pop();
        }
        if let Some(wanted) = schema.get("contains") {
            let found = items.iter().filter(|item| self.fits(wanted, item)).count();
            let least = limit(schema, "minContains").unwrap_or(1.0);
            let most = limit(schema, "maxContains").unwrap_or(f64::INFINITY);
            if !(least..=most).contains(&as_f64(found)) {
                self.fail("contains", "does not contain the demanded items");
            }
        }
    }

    fn text(&mut self, schema: &Map<String, Value>, text: &str) {
        if schema.contains_key("minLength") || schema.contains_key("maxLength") {
            self.count(schema, text.chars().count(), "minLength", "maxLength", "characters");
        }
        if let Some(source) = schema.get("pattern").and_then(Value::as_str)
            && Pattern::new(source).is_some_and(|pattern| !pattern.is_match(text))
        {
            self.fail("pattern", format!("must match {source}"));
        }
        if let Some(name) = schema.get("format").and_then(Value::as_str)
            && !has_format(name, text)
        {
            self.fail("format", format!("must be a valid {name}"));
        }
    }

    fn number(&mut self, schema: &Map<String, Value>, number: f64) {
        let limits: [(&'static str, &str, fn(f64, f64) -> bool); 4] = [
            ("minimum", "must be at least", |n, limit| n >= limit),
            ("maximum", "must be at most", |n, limit| n <= limit),
            ("exclusiveMinimum", "must be greater than", |n, limit| n > limit),
            ("exclusiveMaximum", "must be less than", |n, limit| n < limit),
        ];
        for (keyword, words, fits) in limits {
            if let Some(limit) = limit(schema, keyword).filter(|limit| !fits(number, *limit)) {
                self.fail(keyword, format!("{words} {limit}"));
            }
        }
        if let Some(step) = limit(schema, "multipleOf").filter(|step| *step > 0.0) {
            let off = (number % step).abs();
            // Decimal steps are no exact doubles.
            if off.min(step - off) > step * 1e-9 {
                self.fail("multipleOf", format!("must be a multiple of {step}"));
            }
        }
    }

    fn count(
        &mut self,
        schema: &Map<String, Value>,
        count: usize,
        least: &'static str,
        most: &'static str,
        what: &str,
    ) {
        if let Some(limit) = limit(schema, least).filter(|limit| as_f64(count) < *limit) {
            self.fail(least, format!("must have at least {limit} {what}"));
        }
        if let Some(limit) = limit(schema, most).filter(|limit| as_f64(count) > *limit) {
            self.fail(most, format!("must have at most {limit} {what}"));
        }
    }
}

#[allow(clippy::cast_precision_loss)]
const fn as_f64(count: usize) -> f64 {
    count as f64
}

fn limit(schema: &Map<String, Value>, keyword: &str) -> Option<f64> {
    schema.get(keyword).and_then(Value::as_f64)
}

/// `patternProperties` whose pattern can be read.
pub(super) fn compiled(schema: &Map<String, Value>) -> Vec<(Pattern, &Value)> {
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    patterns.into_iter().flatten().filter_map(|(source, part)| Some((Pattern::new(source)?, part))).collect()
}

/// Equal as JSON values: `1` and `1.0` are the same number.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        _ => a == b,
    }
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn pointer(path: &[Part<'_>]) -> String {
    let mut out = String::new();
    for part in path {
        out.push('/');
        match part {
            Part::Key(key) => out.push_str(&key.replace('~', "~0").replace('/', "~1")),
            Part::Index(index) => out.push_str(&index.to_string()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_that_fit_are_not_copied() {
        let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        let args = Arc::new(json!({ "a": "x", "b": 1 }));
        assert!(Arc::ptr_eq(&validate(&schema, &args).unwrap(), &args));
    }

    #[test]
    fn endless_references_end() {
        let schema = json!({ "$ref": "#" });
        assert!(validate(&schema, &Arc::new(json!({}))).is_err());
        let tree = json!({ "type": "object", "additionalProperties": { "$ref": "#" } });
        let deep = crate::json::parse(&("{\"a\":".repeat(500) + "{}" + &"}".repeat(500))).unwrap();
        assert!(validate(&tree, &Arc::new(deep)).is_err());
        let wide = json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] });
        assert!(validate(&wide, &Arc::new(json!(1))).is_err());
    }

    #[test]
    fn keywords() {
        for (schema, good, bad, keyword) in [
            (json!({ "minimum": 2 }), json!(2), json!(1), "minimum"),
            (json!({ "exclusiveMaximum": 2 }), json!(1.9), json!(2), "exclusiveMaximum"),
            (json!({ "multipleOf": 0.1 }), json!(0.3), json!(0.35), "multipleOf"),
            (json!({ "uniqueItems": true }), json!([1, 2]), json!([1, 1]), "uniqueItems"),
            (json!({ "contains": { "const": 1 } }), json!([1]), json!([2]), "contains"),
            (json!({ "not": { "type": "string" } }), json!(1), json!("a"), "not"),
            (json!({ "oneOf": [{ "minimum": 1 }, { "maximum": 1 }] }), json!(0), json!(1), "oneOf"),
            (
                json!({ "propertyNames": { "maxLength": 1 } }),
                json!({ "a": 1 }),
                json!({ "ab": 1 }),
                "propertyNames",
            ),
            (
                json!({ "dependentRequired": { "a": ["b"] } }),
                json!({ "b": 1 }),
                json!({ "a": 1 }),
                "dependentRequired",
            ),
            (json!({ "if": { "const": 1 }, "else": { "maximum": 0 } }), json!(1), json!(2), "maximum"),
            (json!({ "maxProperties": 1 }), json!({}), json!({ "a": 1, "b": 1 }), "maxProperties"),
            (json!({ "const": 1 }), json!(1.0), json!(2), "const"),
            (json!(false), Value::Null, json!(1), "false"),
        ] {
            if schema != json!(false) {
                assert!(validate(&schema, &Arc::new(good)).is_ok(), "{schema}");
            }
            assert_eq!(validate(&schema, &Arc::new(bad)).unwrap_err()[0].keyword, keyword, "{schema}");
        }
    }

    #[test]
    fn the_text_names_tool_places_and_arguments() {
        let schema = json!({ "type": "object", "required": ["a/b"], "properties": { "l": { "items": { "type": "null" } } } });
        let args = Arc::new(json!({ "l": [[1]], "x": "y".repeat(1_000_000) }));
        let errors = validate(&schema, &args).unwrap_err();
        assert_eq!(errors[0].path, "/a~1b");
        let text = error_text("demo", &errors, &args);
        for part in
            ["\"demo\"", "- a/b: is required", "- l.0: must be of type null, not array", "\"l\":[[1]]"]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(text.len() < 6000);
    }
}
