//! `read.json` and `image.json`.

use serde_json::{Value, json};
use tau_core::op::ImageLimits;
use tau_core::tools::image_rules::{coordinate_hint, detect, target_size};
use tau_core::tools::{ToolEnv, ToolOutput};
use tau_tests::compare::same;
use tau_tests::text_spec;
use tau_tests::tool_driver::{run, text_of};
use tau_tests::tool_files::OneFile;
use tau_tests::tree::from_hex;

/// Environment with a working directory.
pub fn env(cwd: &str) -> ToolEnv {
    ToolEnv { cwd: cwd.into(), images: ImageLimits::default(), ..ToolEnv::default() }
}

/// The read tool on a text file.
pub fn read(_: &Value, case: &Value) -> Result<(), String> {
    let (input, expected) = (&case["input"], &case["expected"]);
    let bytes = match input["fileHex"].as_str() {
        Some(hex) => from_hex(hex),
        None => text_spec::text(&input["file"]).into_bytes(),
    };
    let mut args = input["args"].clone();
    args["path"] = json!("f.txt");
    let output = run("read", &args, env("/w"), &mut OneFile::new("/w/f.txt", bytes), None).output;
    let text = text_of(&output);
    if expected["ok"] == json!(false) {
        let facts = &expected["error"];
        let wanted = [facts["offset"].to_string(), facts["totalLines"].to_string()];
        let named = output.is_error && numbers(&text) == wanted;
        return named
            .then_some(())
            .ok_or_else(|| format!("expected an error naming {wanted:?}, got {text:?}"));
    }
    if output.is_error {
        return Err(format!("failed: {text}"));
    }
    let (body, note) = split_note(&text, &expected["notice"])?;
    same(&expected["body"], &text_spec::like(&expected["body"], body))?;
    check_note(&expected["notice"], note)?;
    same_details(&expected["details"], &output)
}

/// Body and trailing note, when a note is expected.
fn split_note<'a>(text: &'a str, notice: &Value) -> Result<(&'a str, &'a str), String> {
    if notice.is_null() {
        return Ok((text, ""));
    }
    let at = text.rfind("\n\n[").map(|at| (at, at + 2)).or_else(|| text.starts_with('[').then_some((0, 0)));
    let (end, start) = at.ok_or_else(|| format!("no note in {text:?}"))?;
    Ok((&text[..end], &text[start..]))
}

/// Numbers in a text, in order.
pub fn numbers(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_ascii_digit()).filter(|n| !n.is_empty()).map(str::to_owned).collect()
}

fn check_note(notice: &Value, note: &str) -> Result<(), String> {
    let n = |key: &str| notice[key].to_string();
    let limit = notice["limit"].as_str().unwrap_or_default();
    let found = numbers(&note.replace(limit, ""));
    let wanted = match notice["kind"].as_str() {
        None => return Ok(()),
        Some("more_lines") => vec![n("remaining"), n("nextOffset")],
        Some("truncated_lines" | "truncated_bytes") => {
            vec![n("firstLine"), n("lastLine"), n("totalLines"), n("nextOffset")]
        }
        Some("line_too_long") => {
            let hint = &notice["shellHint"];
            let command = format!(
                "sed -n '{}p' {} | head -c {}",
                hint["line"],
                hint["path"].as_str().unwrap_or(""),
                hint["bytes"]
            );
            let size = notice["size"].as_str().unwrap_or_default();
            let all = [&n("line"), size, limit, &command].iter().all(|part| note.contains(*part));
            return all.then_some(()).ok_or_else(|| format!("expected {notice}, got {note}"));
        }
        Some(other) => return Err(format!("unknown notice {other}")),
    };
    let named = limit.is_empty() != note.contains("KB") && note.contains(limit) && found == wanted;
    named.then_some(()).ok_or_else(|| format!("expected {notice}, got {note}"))
}

/// Details as expected; a long `truncation.content` may be summarised.
pub fn same_details(expected: &Value, output: &ToolOutput) -> Result<(), String> {
    let mut got = output.details.clone().unwrap_or_default();
    if let Some(content) = got.pointer_mut("/truncation/content") {
        *content = text_spec::like(&expected["truncation"]["content"], content.as_str().unwrap_or_default());
    }
    let mut expected = expected.clone();
    if let Some(lines) = expected.pointer_mut("/truncation/maxLines")
        && *lines == json!("unlimited")
    {
        *lines = json!(9_007_199_254_740_991u64);
    }
    same(&expected, &got)
}

/// Image types, target sizes and the coordinate note.
pub fn image(_: &Value, case: &Value) -> Result<(), String> {
    let (input, expected) = (&case["input"], &case["expected"]);
    if case["fn"] == json!("detect") {
        let mime = detect(&from_hex(input["hex"].as_str().unwrap_or_default()));
        return same(&expected["mime"], &json!(mime));
    }
    let defaults = ImageLimits::default();
    let number = |value: &Value, or: u32| value.as_u64().map_or(or, |n| n as u32);
    let (width, height) = (number(&input["width"], 0), number(&input["height"], 0));
    let options = &input["options"];
    if input["content"] == json!("noise") || options["maxBytes"].as_u64().is_some() {
        // What an encoder makes of the picture decides; the contract tests of the backends look at it.
        return Ok(());
    }
    let limits = (
        number(&options["maxWidth"], defaults.max_width),
        number(&options["maxHeight"], defaults.max_height),
    );
    let (w, h) = target_size(width, height, limits.0, limits.1);
    same(&json!([expected["width"], expected["height"]]), &json!([w, h]))?;
    same(&expected["wasResized"], &json!((w, h) != (width, height)))?;
    let Some(hint) = expected["hints"].get(0) else { return Ok(()) };
    let note = coordinate_hint((width, height), (w, h));
    let factor = hint["factor"].as_str().unwrap_or_default();
    let pair = |v: &Value| format!("{}x{}", v[0], v[1]);
    let all = [pair(&hint["original"]), pair(&hint["displayed"]), factor.to_owned()];
    all.iter()
        .all(|part| note.contains(part))
        .then_some(())
        .ok_or_else(|| format!("{note} lacks one of {all:?}"))
}
