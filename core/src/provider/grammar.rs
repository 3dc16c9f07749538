//! Free-form tools: the model writes text that follows a grammar instead of JSON arguments (spec 30 §3).
//!
//! For the rest of the program such a call is an ordinary one: its text is the only string of its arguments.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use super::strict::tool_name;
use crate::json::{Value, Writer};

/// Free-form tools of a request: name and property that takes the text.
pub(super) type FreeForm = Vec<(String, String)>;

/// A grammar that constrains the input of a tool.
pub(super) struct Grammar<'a> {
    pub(super) syntax: &'static str,
    pub(super) definition: &'a str,
    property: &'a str,
}

/// Free-form tools among the declared ones.
pub(super) fn free_form(tools: &[&Value]) -> FreeForm {
    let known = |tool: &&Value| Some((tool_name(tool).to_owned(), grammar(tool)?.property.to_owned()));
    tools.iter().filter_map(known).collect()
}

/// The grammar of a tool: Lark preferred; the tool must have exactly one required string property.
pub(super) fn grammar(tool: &Value) -> Option<Grammar<'_>> {
    let wish = tool.get("constrainedSampling")?;
    if wish.get("type").and_then(Value::as_str) != Some("grammar") {
        return None;
    }
    let variants = wish.get("variants")?;
    let (syntax, definition) = [("lark", "openai_lark"), ("regex", "openai_regex")]
        .into_iter()
        .find_map(|(syntax, key)| Some((syntax, variants.get(key)?.as_str()?)))?;
    let parameters = tool.get("parameters")?;
    let required = parameters.get("required")?.as_array()?;
    let [property] = required.as_slice() else { return None };
    let property = property.as_str()?;
    let kind = parameters.get("properties")?.get(property)?.get("type")?.as_str()?;
    (kind == "string").then_some(Grammar { syntax, definition, property })
}

/// The property of a free-form tool; `input` for one that the request did not declare.
pub(super) fn input_property<'a>(tools: &'a FreeForm, tool: &str) -> &'a str {
    tools.iter().find(|(name, _)| name == tool).map_or("input", |(_, property)| property)
}

/// The text of a call of a free-form tool; `None` for another tool.
pub(super) fn input_of<'a>(tools: &FreeForm, tool: &str, arguments: &'a Value) -> Option<&'a str> {
    let (_, property) = tools.iter().find(|(name, _)| name == tool)?;
    Some(arguments.get(property).and_then(Value::as_str).unwrap_or_default())
}

/// Arguments of a call whose text has not begun.
pub(super) fn empty_arguments(property: &str) -> Value {
    Value::Object([(property.to_owned(), Value::String(String::new()))].into_iter().collect())
}

/// A piece of the text as a part of JSON arguments; the first one also opens them.
pub(super) fn json_piece(property: &str, first: bool, piece: &str) -> String {
    let mut w = Writer::new();
    if first {
        w.begin_object();
        w.name(property);
        w.str(piece);
    } else {
        w.str(piece);
    }
    let mut text = w.into_string();
    // The closing quote comes with [`JSON_END`].
    text.pop();
    if !first {
        text.remove(0);
    }
    text
}

/// What closes the arguments.
pub(super) const JSON_END: &str = "\"}";
