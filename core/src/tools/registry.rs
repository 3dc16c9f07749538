//! The built-in tools: one table of name, texts and planner.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::texts::{self, ToolTexts};
use super::{ExecutionMode, Runner, Tool, ToolMachine, bash, edit, edit_args, find, grep, ls, read, write};
use crate::json::Value;

/// What the host decides about the built-in tools.
#[derive(Clone, Copy, Debug)]
pub struct BuiltinOptions {
    /// Commands see the session's `PI_*` variables, and the model is told so (spec 50 §5.1).
    pub session_variables: bool,
}

impl Default for BuiltinOptions {
    fn default() -> Self {
        Self { session_variables: true }
    }
}

struct Row {
    texts: ToolTexts,
    prepare: Option<fn(Value) -> Value>,
    machine: fn(Arc<Value>) -> Box<dyn ToolMachine>,
}

/// In the order in which lists of all tools show them.
const ROWS: [Row; 7] = [
    Row { texts: texts::READ, prepare: None, machine: read::machine },
    Row { texts: texts::BASH, prepare: None, machine: bash::machine },
    Row { texts: texts::EDIT, prepare: Some(edit_args::prepare), machine: edit::machine },
    Row { texts: texts::WRITE, prepare: None, machine: write::machine },
    Row { texts: texts::GREP, prepare: None, machine: grep::machine },
    Row { texts: texts::FIND, prepare: None, machine: find::machine },
    Row { texts: texts::LS, prepare: None, machine: ls::machine },
];

/// Names of all built-in tools.
pub const BUILTIN_NAMES: [&str; 7] = ["read", "bash", "edit", "write", "grep", "find", "ls"];

/// A built-in tool by name.
#[must_use]
pub fn builtin(name: &str, options: BuiltinOptions) -> Option<Tool> {
    let row = ROWS.iter().find(|row| row.texts.name == name)?;
    let texts = &row.texts;
    let extra = (name == "bash" && options.session_variables).then_some(texts::SESSION_VARIABLES_RULE);
    Some(Tool {
        name: texts.name.into(),
        label: texts.label.into(),
        description: texts.description.into(),
        prompt_snippet: Some(texts.snippet.into()),
        prompt_rules: texts.rules.iter().copied().chain(extra).map(Into::into).collect(),
        // The texts are constants of this crate; a test parses all of them.
        parameters: Arc::new(serde_json::from_str(texts.parameters).unwrap_or_default()),
        mode: ExecutionMode::Parallel,
        prepare: row.prepare,
        run: Runner::Machine(row.machine),
    })
}

/// Built-in tools by name, in the order given; other names are skipped.
pub fn builtins<'a>(names: impl IntoIterator<Item = &'a str>, options: BuiltinOptions) -> Vec<Tool> {
    names.into_iter().filter_map(|name| builtin(name, options)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_and_names_agree_and_schemas_parse() {
        let tools = builtins(BUILTIN_NAMES, BuiltinOptions::default());
        assert_eq!(tools.len(), ROWS.len());
        for tool in tools {
            let properties = tool.parameters.get("properties").and_then(Value::as_object);
            assert!(
                properties.is_some_and(|p| p.values().all(|v| v.get("description").is_some())),
                "{}",
                tool.name
            );
        }
    }

    #[test]
    fn the_variables_rule_can_be_switched_off() {
        let rules = |on| {
            builtin("bash", BuiltinOptions { session_variables: on }).map_or(9, |t| t.prompt_rules.len())
        };
        assert_eq!((rules(true), rules(false)), (1, 0));
    }
}
