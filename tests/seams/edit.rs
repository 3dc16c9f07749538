//! Edit calls: a file before, a call, and what must hold afterwards.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tau_core::tools::prepare_edit;
use tau_tests::tool_driver::{run, text_of};
use tau_tests::tool_files::OneFile;

/// Runs `call.json` on `before.bin`, or on each text file of the folder; the number of files checked.
pub fn check(folder: &Path, case: &Value, call: &[u8]) -> Result<usize, String> {
    let call: Value = serde_json::from_slice(call).map_err(|e| e.to_string())?;
    // Calls of other tools are tried on the real system.
    if call["edits"].is_null() && call["oldText"].is_null() {
        return Ok(0);
    }
    let mut checked = 0;
    for entry in fs::read_dir(folder).map_err(|e| e.to_string())?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "before.bin" || name.ends_with(".txt") {
            let before = fs::read(entry.path()).map_err(|e| e.to_string())?;
            one(&call, &case["expect"], &before).map_err(|why| format!("{name}: {why}"))?;
            checked += 1;
        }
    }
    Ok(checked)
}

fn one(call: &Value, expect: &Value, before: &[u8]) -> Result<(), String> {
    let mut args = prepare_edit(call.clone());
    args["path"] = "f.txt".into();
    let mut world = OneFile::new("/w/f.txt", before);
    let env = tau_core::tools::ToolEnv { cwd: "/w".into(), ..Default::default() };
    let output = run("edit", &args, env, &mut world, None).output;
    let (after, text) = (world.bytes, text_of(&output));
    if output.is_error && after != before {
        return Err(format!("failed, but changed the file: {text}"));
    }
    let shown = || format!("{:?} ({text})", String::from_utf8_lossy(&after));
    let demand = |holds: bool, what: &str| if holds { Ok(()) } else { Err(format!("{what}: {}", shown())) };
    let has = |part: &[u8]| after.windows(part.len()).any(|window| window == part);
    if expect["error"] == true {
        demand(output.is_error, "should fail")?;
    }
    if expect["unchanged"] == true {
        demand(after == before, "should change nothing")?;
    }
    if let Some(want) = expect["after"].as_str() {
        demand(after == want.as_bytes(), "should be different")?;
    }
    for part in expect["untouched"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        demand(has(part.as_bytes()), part)?;
    }
    if let Some(prefix) = expect["afterHexPrefix"].as_str() {
        demand(after.starts_with(&tau_tests::tree::from_hex(prefix)) && !output.is_error, prefix)?;
    }
    if expect["lines0and2Unchanged"] == true {
        let line = |bytes: &[u8], n: usize| bytes.split(|b| *b == b'\n').nth(n).map(<[u8]>::to_vec);
        demand((0..=2).step_by(2).all(|n| line(&after, n) == line(before, n)), "lines 0 and 2")?;
        demand(after != before, "line 1")?;
    }
    if let Some(bytes) = expect["unchangedBytes"].as_str() {
        // Either the bytes survive the edit, or nothing is written and the message tells where they are.
        let wanted = unescape(bytes);
        let had = before.windows(wanted.len()).any(|window| window == wanted);
        demand(!had || has(&wanted), bytes)?;
        demand(!output.is_error || text.contains("offset"), "offset of the invalid byte")?;
    }
    Ok(())
}

/// `\xNN` escapes as bytes.
fn unescape(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut out = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (hex, rest) = part.split_at(2);
        out.extend(tau_tests::tree::from_hex(hex));
        out.extend_from_slice(rest.as_bytes());
    }
    out
}
