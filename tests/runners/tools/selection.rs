//! `tool-selection.json`, `shell-env.json`.

use serde_json::{Value, json};
use tau_core::tools::selection::ListFault;
use tau_core::tools::shell_env::{SessionFacts, session_variables};
use tau_core::tools::{BuiltinOptions, builtin, selection};
use tau_tests::compare::same;

fn names(list: &Value) -> Option<Vec<String>> {
    Some(list.as_array()?.iter().filter_map(|n| n.as_str().map(str::to_owned)).collect())
}

/// Lists of active tools.
pub fn tool_selection(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let list = |key: &str| names(&input[key]).unwrap_or_default();
    let got = match case["fn"].as_str().unwrap_or_default() {
        "applyToolModifiers" => {
            json!({ "tools": selection::apply_modifiers(&list("base"), &list("entries")) })
        }
        "checkToolList" => json!({ "valid": selection::check_list(&list("entries")).is_ok() }),
        "toolNameMatches" => {
            let matches: Vec<bool> =
                list("names").iter().map(|name| selection::matches_any(&list("entries"), name)).collect();
            json!({ "matches": matches })
        }
        "resolveDefaultTools" => {
            let (user, project) = (names(&input["user"]), names(&input["project"]));
            json!({ "tools": selection::default_tools(user.as_deref(), project.as_deref()) })
        }
        other => return Err(format!("unknown function {other}")),
    };
    same(&case["expected"], &got)
}

/// `config/tool-list`: the syntax of a list, and what its changes make of a base.
pub fn tool_list(_: &Value, case: &Value) -> Result<(), String> {
    let entries = names(&case["input"]["tools"]).unwrap_or_default();
    let error = selection::check_list(&entries).err().map(|fault| match fault {
        ListFault::Mixed => "mixed",
        ListFault::PatternModifier => "pattern-modifier",
    });
    let base = ["read", "bash"].map(str::to_owned);
    let applied = selection::apply_modifiers(&base, &entries);
    same(&case["expected"], &json!({ "error": error, "applied": applied }))
}

/// Variables that commands see.
pub fn shell_env(_: &Value, case: &Value) -> Result<(), String> {
    let (input, expected) = (&case["input"], &case["expected"]);
    let exposed = input["expose"].as_bool().unwrap_or(true);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let session = &input["session"];
    let facts = SessionFacts {
        id: text(&session["id"]),
        file: text(&session["file"]),
        provider: text(&session["model"]["provider"]),
        model: text(&session["model"]["id"]),
        thinking: text(&session["thinkingLevel"]),
    };
    let mut seen = input["inherited"].as_object().cloned().unwrap_or_default();
    seen.insert("OTHER".into(), json!("kept"));
    for (name, value) in session_variables(exposed.then_some(&facts)) {
        match value {
            Some(value) => seen.insert(name, json!(value)),
            None => seen.remove(&name),
        };
    }
    let other_kept = seen.remove("OTHER") == Some(json!("kept"));
    let bash = builtin("bash", BuiltinOptions { session_variables: exposed }).ok_or("no bash")?;
    let guideline = bash.prompt_rules.iter().any(|rule| rule.contains("PI_"));
    let got = json!({ "env": seen, "guidelinePresent": guideline, "otherInheritedKept": other_kept });
    same(expected, &got)
}
