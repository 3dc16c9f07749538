//! Tool declarations of chat completions.

use super::messages::Items;
use crate::fault::Fault;
use crate::json::{Value, Writer};
use crate::provider::grammar::{Grammar, grammar};
use crate::provider::strict::{strict_parameters, tool_name};

/// Writes the list of tools; the cache marker goes to the last one.
pub(super) fn write_tools(tools: &[&Value], items: &Items<'_>, w: &mut Writer) -> Result<(), Fault> {
    w.begin_array();
    for (at, tool) in tools.iter().enumerate() {
        w.begin_object();
        match grammar(tool).filter(|_| items.compat.grammar) {
            Some(grammar) => write_custom(tool, &grammar, w),
            None => write_function(tool, items.compat.strict, w)?,
        }
        if let Some(marker) = items.marker.filter(|_| at + 1 == tools.len()) {
            w.field_value("cache_control", marker);
        }
        w.end_object();
    }
    w.end_array();
    Ok(())
}

fn write_function(tool: &Value, supports_strict: bool, w: &mut Writer) -> Result<(), Fault> {
    let strict = strict_parameters(tool, supports_strict)?;
    w.field_str("type", "function");
    w.key("function");
    w.begin_object();
    write_name(tool, w);
    if let Some(parameters) = strict.as_ref().or_else(|| tool.get("parameters")) {
        w.field_value("parameters", parameters);
    }
    if supports_strict {
        w.field_bool("strict", strict.is_some());
    }
    w.end_object();
    Ok(())
}

fn write_custom(tool: &Value, grammar: &Grammar<'_>, w: &mut Writer) {
    w.field_str("type", "custom");
    w.key("custom");
    w.begin_object();
    write_name(tool, w);
    w.key("format");
    w.begin_object();
    w.field_str("type", "grammar");
    w.key("grammar");
    w.begin_object();
    w.field_str("syntax", grammar.syntax);
    w.field_str("definition", grammar.definition);
    w.end_object();
    w.end_object();
    w.end_object();
}

fn write_name(tool: &Value, w: &mut Writer) {
    w.field_str("name", tool_name(tool));
    w.field_opt_str("description", tool.get("description").and_then(Value::as_str));
}
