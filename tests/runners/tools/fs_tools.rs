//! `fs-tools.json`: grep, find and ls on real trees, planner and backend together.

use serde_json::{Value, json};
use tau_core::tools::ToolOutput;
use tau_tests::compare::same;
use tau_tests::text_spec;
use tau_tests::tool_driver::text_of;
use tau_tests::tool_real::run;
use tau_tests::tree;

use super::read::{env, numbers, same_details};

/// One call in the root of a tree.
pub fn fs_tools(doc: &Value, case: &Value) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let root = folder.path().canonicalize().map_err(|e| e.to_string())?;
    tree::lay_out(&root, &doc["trees"][case["tree"].as_str().unwrap_or_default()]);
    let root = root.to_string_lossy();
    let args = replace_root(&case["input"]["args"], &root);
    let tool = case["tool"].as_str().unwrap_or_default();
    let output = run(tool, &args, env(&root), None).output;
    let (text, expected) = (text_of(&output), &case["expected"]);
    if let Some(kind) = expected["error"].as_str() {
        return check_error(kind, &output, &text, &args, &root);
    }
    if output.is_error {
        return Err(format!("failed: {text}"));
    }
    let (body, note) = match text.rfind("\n\n[") {
        Some(at) if text.ends_with(']') => (&text[..at], &text[at + 2..]),
        _ => (text.as_str(), ""),
    };
    check_notes(&expected["notices"], note)?;
    same_details(&expected["details"], &output)?;
    let lines: Vec<&str> = body.split('\n').collect();
    match tool {
        "grep" => check_hits(expected, &lines),
        "find" => check_names(expected, "paths", &lines),
        _ => check_names(expected, "entries", &lines),
    }
}

fn replace_root(args: &Value, root: &str) -> Value {
    let mut args = args.clone();
    for value in args.as_object_mut().into_iter().flat_map(|map| map.values_mut()) {
        if let Value::String(text) = value {
            *text = text.replace("{ROOT}", root);
        }
    }
    args
}

fn check_error(kind: &str, output: &ToolOutput, text: &str, args: &Value, root: &str) -> Result<(), String> {
    let path = format!("{root}/{}", args["path"].as_str().unwrap_or_default());
    let named = match kind {
        "path_not_found" => text.contains(&path) && text.contains("not found"),
        "not_a_directory" | "search_path_not_a_directory" => {
            text.contains(&path) && text.contains("Not a folder")
        }
        "invalid_glob" => text.contains("glob"),
        "invalid_pattern" => text.contains("pattern"),
        _ => false,
    };
    (output.is_error && named).then_some(()).ok_or_else(|| format!("expected {kind}, got {text}"))
}

fn check_notes(notices: &Value, note: &str) -> Result<(), String> {
    let mut wanted = Vec::new();
    for notice in notices.as_array().into_iter().flatten() {
        match notice["kind"].as_str().unwrap_or_default() {
            "byte_limit" => wanted.extend(["50".to_owned(), "0".to_owned()]),
            "lines_clipped" => wanted.push(notice["chars"].to_string()),
            _ => wanted.extend([notice["limit"].to_string(), notice["suggest"].to_string()]),
        }
    }
    let got = numbers(note);
    (got == wanted).then_some(()).ok_or_else(|| format!("expected {notices}, got {note:?}"))
}

/// Entries that decision D32 leaves out.
fn in_git_folder(path: &str) -> bool {
    path.split('/').any(|part| part == ".git")
}

fn check_hits(expected: &Value, lines: &[&str]) -> Result<(), String> {
    let hits: Vec<Value> = lines.iter().filter_map(|line| parse_hit(line)).collect();
    if let Some(count) = expected["lineCount"].as_u64() {
        same(&json!(count), &json!(hits.len()))?;
        same(&expected["firstLine"], &hits[0])?;
        return same(&expected["lastLine"], &hits[hits.len() - 1]);
    }
    let mut wanted = expected["lines"].as_array().cloned().unwrap_or_default();
    wanted.retain(|hit| !hit["path"].as_str().is_some_and(in_git_folder));
    let got: Vec<Value> = hits
        .into_iter()
        .enumerate()
        .map(|(index, mut hit)| {
            let want = wanted.get(index).map_or(&Value::Null, |want| &want["text"]);
            hit["text"] = text_spec::like(want, hit["text"].as_str().unwrap_or_default());
            hit
        })
        .collect();
    same(&Value::Array(wanted), &Value::Array(got))
}

/// `path:n: text` or `path-n- text`.
fn parse_hit(line: &str) -> Option<Value> {
    let split = |mark: char| {
        line.match_indices(mark).find_map(|(at, _)| {
            let rest = &line[at + 1..];
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let text = rest[digits..].strip_prefix(mark)?.strip_prefix(' ')?;
            Some((at, rest[..digits].parse::<u64>().ok()?, text))
        })
    };
    let (found, kind) = match (split(':'), split('-')) {
        (Some(a), Some(b)) if b.0 < a.0 => (b, "context"),
        (Some(a), _) => (a, "match"),
        (None, b) => (b?, "context"),
    };
    let (at, number, text) = found;
    let (text, clipped) = text.strip_suffix(" [clipped]").map_or((text, false), |text| (text, true));
    let mut hit = json!({ "path": line[..at], "line": number, "kind": kind, "text": text });
    if clipped {
        hit["clipped"] = json!(true);
    }
    Some(hit)
}

fn check_names(expected: &Value, key: &str, lines: &[&str]) -> Result<(), String> {
    let mut got: Vec<&str> = lines.iter().copied().filter(|line| !line.is_empty()).collect();
    if let Some(count) = expected["count"].as_u64() {
        same(&json!(count), &json!(got.len()))?;
        for (key, name) in [("first", got.first()), ("last", got.last())] {
            if expected[key].is_string() {
                same(&expected[key], &json!(name))?;
            }
        }
        return Ok(());
    }
    if expected[key].is_null() {
        return Ok(());
    }
    let mut wanted: Vec<String> = expected[key]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .filter(|path| key == "entries" || !in_git_folder(path))
        .collect();
    if wanted.is_empty() {
        let said = got.len() == 1 && got[0].contains(' ');
        return said.then_some(()).ok_or_else(|| format!("expected nothing, got {got:?}"));
    }
    if key == "paths" {
        wanted.sort();
        got.sort_unstable();
    }
    same(&json!(wanted), &json!(got))
}
