//! `edit.json`, `edit-args.json`, `fuzzy-normalize.json`, `diff.json`.

use serde_json::{Value, json};
use tau_core::fault::FaultKind;
use tau_core::tools::diff::{Diff, Rows};
use tau_core::tools::edit_apply::apply;
use tau_core::tools::edit_match::EditError;
use tau_core::tools::{fuzzy, prepare_edit};
use tau_tests::compare::same;
use tau_tests::text_spec;
use tau_tests::tool_driver::{run, text_of};
use tau_tests::tool_files::OneFile;

use super::read::env;

/// Arguments before validation.
pub fn edit_args(_: &Value, case: &Value) -> Result<(), String> {
    same(&case["expected"]["args"], &prepare_edit(case["input"]["args"].clone()))
}

/// The folded form of a text.
pub fn fuzzy_normalize(_: &Value, case: &Value) -> Result<(), String> {
    let text = text_spec::text(&case["input"]["text"]);
    same(&case["expected"]["text"], &text_spec::like(&case["expected"]["text"], &fuzzy::fold(&text)))
}

/// Display diff and patch of two texts.
pub fn diff(_: &Value, case: &Value) -> Result<(), String> {
    let (old, new) = (text_spec::text(&case["input"]["old"]), text_spec::text(&case["input"]["new"]));
    let rows = Rows::between(&old, &new);
    let got = match case["input"]["context"].as_u64() {
        Some(context) => rows.render_with("dir/f.txt", context as usize),
        None => rows.render("dir/f.txt"),
    };
    same_diff(&case["expected"], &got)
}

fn same_diff(expected: &Value, got: &Diff) -> Result<(), String> {
    same(&expected["diff"], &text_spec::like(&expected["diff"], &got.display))?;
    same(&expected["patch"], &text_spec::like(&expected["patch"], &got.patch))?;
    same(&expected["firstChangedLine"], &json!(got.first_changed_line))
}

/// The edit tool from file to file: the pure function and the whole call.
pub fn edit(_: &Value, case: &Value) -> Result<(), String> {
    let (input, expected) = (&case["input"], &case["expected"]);
    let file = text_spec::text(&input["file"]);
    let list = input["edits"].as_array().cloned();
    let pairs: Vec<(String, String)> = list
        .iter()
        .flatten()
        .map(|edit| (text_spec::text(&edit["oldText"]), text_spec::text(&edit["newText"])))
        .collect();
    let edits = list.map_or_else(
        || input["edits"].clone(),
        |_| pairs.iter().map(|(old, new)| json!({ "oldText": old, "newText": new })).collect(),
    );
    let mut world = OneFile::new("/w/f.txt", file.clone());
    world.fault = match input["accessError"].as_str() {
        Some("ENOENT") => Some(FaultKind::NotFound),
        Some("EACCES") => Some(FaultKind::Denied),
        _ => None,
    };
    // The reference's vectors meet the tool behind its argument preparation, which would wrap a single object.
    let output = match input["edits"].is_array() {
        true => run("edit", &json!({ "path": "f.txt", "edits": edits }), env("/w"), &mut world, None).output,
        false => run("edit", &json!({ "path": "f.txt", "edits": 5 }), env("/w"), &mut world, None).output,
    };
    let text = text_of(&output);
    if expected["ok"] == json!(true) {
        if output.is_error {
            return Err(format!("failed: {text}"));
        }
        let after = String::from_utf8(world.bytes).map_err(|e| e.to_string())?;
        same(&expected["file"], &text_spec::like(&expected["file"], &after))?;
        let count = expected["count"].to_string();
        if !text.contains(&count) || !text.contains("f.txt") {
            return Err(format!("{text:?} lacks {count} or the path"));
        }
        let details = output.details.unwrap_or_default();
        let got = |key: &str| details[key].as_str().unwrap_or_default().to_owned();
        let first_changed_line = details["firstChangedLine"].as_u64();
        return same_diff(expected, &Diff { display: got("diff"), patch: got("patch"), first_changed_line });
    }
    if !output.is_error || world.written {
        return Err(format!("expected {}, got {text:?} (written: {})", expected["error"], world.written));
    }
    check_error(&expected["error"], &file, &pairs, &text)
}

fn check_error(expected: &Value, file: &str, pairs: &[(String, String)], text: &str) -> Result<(), String> {
    let index = |key: &str| expected[key].as_u64().unwrap_or_default() as usize;
    let at = index("editIndex");
    let wanted = match expected["kind"].as_str().unwrap_or_default() {
        "access" => {
            let code = if expected["code"] == json!("ENOENT") { "not_found" } else { "denied" };
            return (text.contains("f.txt") && text.contains(code))
                .then_some(())
                .ok_or_else(|| text.to_owned());
        }
        "invalid_input" => EditError::NoEdits,
        "empty_old_text" => EditError::EmptyOld(at),
        "not_found" => EditError::NotFound(at),
        "not_unique" => EditError::NotUnique(at, index("occurrences")),
        "overlap" => EditError::Overlap(index("first"), index("second")),
        "no_change" => EditError::NoChange,
        other => return Err(format!("unknown kind {other}")),
    };
    let borrowed: Vec<(&str, &str)> = pairs.iter().map(|(old, new)| (old.as_str(), new.as_str())).collect();
    let got = apply(file.into(), &borrowed, "f.txt").expect_err("the call failed");
    if got != wanted {
        return Err(format!("expected {wanted:?}, got {got:?}"));
    }
    let names_index = text.contains(&format!("edits[{at}]"));
    match expected["singular"].as_bool() {
        Some(true) if text.contains("edits[") => Err(format!("{text:?} names an index")),
        Some(false) if wanted != EditError::NoChange && !names_index => {
            Err(format!("{text:?} names no index"))
        }
        _ => Ok(()),
    }
}
