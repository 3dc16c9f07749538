//! Tool schemas in the strict form some services enforce while sampling (spec 30 §3).
//!
//! Strict form: every object forbids other properties and requires all of its own; a property that was optional may be
//! null instead. Schemas that cannot say this are not representable.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use crate::fault::Fault;
use crate::json::{Map, Value};

/// Keywords that have no strict form.
const FOREIGN: &[&str] = &[
    "$ref",
    "$defs",
    "definitions",
    "allOf",
    "oneOf",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "propertyNames",
    "contains",
    "prefixItems",
    "not",
    "if",
    "then",
    "else",
];

/// How a tool asks to be sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constraint {
    /// Not at all.
    None,
    /// Strict if the service and the schema can.
    Prefer,
    /// Strict, or the request must not be sent.
    Require,
}

/// Name of a tool declaration.
#[must_use]
pub fn tool_name(tool: &Value) -> &str {
    tool.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// What a tool declaration says about strict sampling.
#[must_use]
pub fn constraint(tool: &Value) -> Constraint {
    let Some(wish) = tool.get("constrainedSampling") else { return Constraint::None };
    if wish.get("type").and_then(Value::as_str) != Some("json_schema") {
        return Constraint::None;
    }
    match wish.get("strict").and_then(Value::as_str) {
        Some("prefer") => Constraint::Prefer,
        Some("require") => Constraint::Require,
        _ => Constraint::None,
    }
}

/// The strict schema of a tool, or `None` when it is sent as it is.
///
/// # Errors
/// When the tool requires strict sampling and the service or the schema cannot give it.
pub fn strict_parameters(tool: &Value, supported: bool) -> Result<Option<Value>, Fault> {
    let wish = constraint(tool);
    if wish == Constraint::None {
        return Ok(None);
    }
    let schema = tool.get("parameters").filter(|_| supported).and_then(strict_schema);
    if schema.is_none() && wish == Constraint::Require {
        let why = if supported { "its schema has no strict form" } else { "this model does not support it" };
        let name = tool_name(tool);
        return Err(Fault::new(
            "strict_tool",
            alloc::format!("The tool \"{name}\" requires strict sampling, but {why}."),
        ));
    }
    Ok(schema)
}

/// The strict form of a tool schema; `None` when it has none.
#[must_use]
pub fn strict_schema(schema: &Value) -> Option<Value> {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return None;
    }
    strict_node(schema)
}

fn strict_node(schema: &Value) -> Option<Value> {
    let map = schema.as_object()?;
    let foreign = FOREIGN.iter().any(|key| map.contains_key(*key));
    let typed = ["type", "anyOf", "enum"].iter().any(|key| map.contains_key(*key));
    if foreign || !typed {
        return None;
    }
    let is_object = has_type(map, "object");
    if map.contains_key("properties") && !is_object {
        return None;
    }
    let mut out = Map::new();
    for (key, value) in map {
        let value = match key.as_str() {
            "anyOf" => strict_alternatives(value)?,
            "items" => strict_node(value)?,
            "properties" => Value::Object(strict_properties(value, map)?),
            "required" | "additionalProperties" if is_object => continue,
            _ => value.clone(),
        };
        out.insert(key.clone(), value);
    }
    if is_object {
        if !matches!(map.get("additionalProperties"), None | Some(Value::Bool(false))) {
            return None;
        }
        let names: Vec<Value> = match out.get("properties").and_then(Value::as_object) {
            Some(properties) => properties.keys().map(|name| Value::String(name.clone())).collect(),
            None => Vec::new(),
        };
        if required_names(map).iter().any(|name| !names.iter().any(|known| known.as_str() == Some(name))) {
            return None;
        }
        out.insert("required".to_owned(), Value::Array(names));
        out.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Some(Value::Object(out))
}

fn strict_properties(value: &Value, owner: &Map<String, Value>) -> Option<Map<String, Value>> {
    let required = required_names(owner);
    let mut out = Map::new();
    for (name, schema) in value.as_object()? {
        let strict = strict_node(schema)?;
        let optional = !required.contains(&name.as_str()) && !nullable(schema);
        let strict = if optional { serde_json::json!({"anyOf": [strict, {"type": "null"}]}) } else { strict };
        out.insert(name.clone(), strict);
    }
    Some(out)
}

/// Alternatives must be simple values.
fn strict_alternatives(value: &Value) -> Option<Value> {
    let list = value.as_array().filter(|list| !list.is_empty())?;
    let strict = |schema: &Value| {
        let map = schema.as_object()?;
        (!has_type(map, "object") && !has_type(map, "array")).then(|| strict_node(schema))?
    };
    list.iter().map(strict).collect::<Option<Vec<_>>>().map(Value::Array)
}

fn required_names(map: &Map<String, Value>) -> Vec<&str> {
    map.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn has_type(map: &Map<String, Value>, name: &str) -> bool {
    match map.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(list)) => list.iter().any(|one| one.as_str() == Some(name)),
        _ => false,
    }
}

fn nullable(schema: &Value) -> bool {
    let Some(map) = schema.as_object() else { return false };
    let list = |key: &str| map.get(key).and_then(Value::as_array).into_iter().flatten();
    has_type(map, "null") || list("enum").any(Value::is_null) || list("anyOf").any(nullable)
}
