//! Tool declarations and how tools are to be called.

use alloc::format;

use super::family::strict_tools;
use crate::fault::Fault;
use crate::json::{Value, Writer};
use crate::provider::ModelRequest;
use crate::provider::strict::{strict_parameters, tool_name};

/// Writes `tools` and `toolConfig`; nothing without tools.
pub(super) fn write(tools: &[&Value], request: &ModelRequest<'_>, w: &mut Writer) -> Result<(), Fault> {
    if tools.is_empty() {
        return Ok(());
    }
    let supported = strict_tools(&request.model.id);
    let mut any_strict = false;
    w.key("tools");
    w.begin_array();
    w.begin_object();
    w.key("functionDeclarations");
    w.begin_array();
    for tool in tools {
        let strict = strict_parameters(tool, supported)?;
        any_strict |= strict.is_some();
        w.begin_object();
        w.field_str("name", tool_name(tool));
        w.field_opt_str("description", tool.get("description").and_then(Value::as_str));
        if let Some(schema) = strict.as_ref().or_else(|| tool.get("parameters")) {
            w.key("parametersJsonSchema");
            write_schema(schema, w);
        }
        w.end_object();
    }
    w.end_array();
    w.end_object();
    w.end_array();
    let choice = request.options.tool_choice.as_ref();
    if let Some(config @ Value::Object(_)) = choice {
        // A choice in the words of the service.
        w.key("toolConfig");
        w.begin_object();
        w.field_value("functionCallingConfig", config);
        w.end_object();
        return Ok(());
    }
    let mode = match choice.and_then(Value::as_str) {
        Some("none") => "NONE",
        Some("any" | "required") => "ANY",
        _ if any_strict => "VALIDATED",
        Some(_) => "AUTO",
        None => return Ok(()),
    };
    w.key("toolConfig");
    w.raw(&format!(r#"{{"functionCallingConfig":{{"mode":"{mode}"}}}}"#));
    Ok(())
}

/// Writes a schema with `const` as an `enum` of one value, which is all the service knows of it. Only keywords are
/// rewritten: not names of properties, not data.
fn write_schema(schema: &Value, w: &mut Writer) {
    let map = match schema {
        Value::Object(map) => map,
        Value::Array(list) => {
            w.begin_array();
            list.iter().for_each(|schema| write_schema(schema, w));
            return w.end_array();
        }
        other => return w.value(other),
    };
    w.begin_object();
    for (key, value) in map {
        match key.as_str() {
            "const" if (value.is_string() || value.is_number()) && !map.contains_key("enum") => {
                w.key("enum");
                w.begin_array();
                w.value(value);
                w.end_array();
            }
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                w.name(key);
                match value {
                    Value::Object(named) => {
                        w.begin_object();
                        for (name, schema) in named {
                            w.name(name);
                            write_schema(schema, w);
                        }
                        w.end_object();
                    }
                    other => w.value(other),
                }
            }
            "items"
            | "prefixItems"
            | "additionalItems"
            | "additionalProperties"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "contains"
            | "propertyNames"
            | "anyOf"
            | "oneOf"
            | "allOf"
            | "not"
            | "if"
            | "then"
            | "else" => {
                w.name(key);
                write_schema(value, w);
            }
            _ => w.member(key, value),
        }
    }
    w.end_object();
}
