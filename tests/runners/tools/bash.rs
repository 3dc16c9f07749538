//! `bash.json`: commands run for real.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};
use tau_core::tools::{ToolEnv, ToolOutput};
use tau_io_std::sys::env::shell;
use tau_tests::compare::same;
use tau_tests::text_spec;
use tau_tests::tool_driver::text_of;
use tau_tests::tool_real::run;

use super::read::same_details;

/// One command.
pub fn bash(_: &Value, case: &Value) -> Result<(), String> {
    let (input, expected) = (&case["input"], &case["expected"]);
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let (cwd, outputs) = (folder.path().join("work"), folder.path().join("outputs"));
    fs::create_dir(&cwd).map_err(|e| e.to_string())?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let (argv, shell_error) = match shell(input["shellPath"].as_str()) {
        Ok(argv) => (argv, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    let env = ToolEnv {
        cwd: text(&input["cwd"].as_str().map_or_else(|| cwd.clone(), |name| cwd.join(name))),
        shell: argv,
        shell_error,
        command_prefix: input["commandPrefix"].as_str().map(str::to_owned),
        output_dir: text(&outputs),
        ..ToolEnv::default()
    };
    let mut args = json!({ "command": input["command"] });
    if !input["timeout"].is_null() {
        args["timeout"] = input["timeout"].clone();
    }
    let output = run("bash", &args, env, input["abortAfterMs"].as_u64()).output;
    if let Some(kind) = expected["error"].as_str() {
        return check_error(kind, input, &output);
    }
    let failed = expected["threw"] == json!(true) || expected["isError"] == json!(true);
    if output.is_error != failed {
        return Err(format!("is_error {}: {:?}", output.is_error, text_of(&output)));
    }
    check_text(expected, &text_of(&output))?;
    check_details(expected, output)
}

fn check_error(kind: &str, input: &Value, output: &ToolOutput) -> Result<(), String> {
    let text = text_of(output);
    let fact = |key: &str| input[key].as_str().unwrap_or("?").to_owned();
    let named = match kind {
        "shell_not_found" => text.contains(&fact("shellPath")),
        "cwd_missing" => text.contains(&fact("cwd")) && text.contains("bash"),
        "invalid_timeout" => text.contains("positive"),
        "timeout_too_large" => text.contains("2147483.647"),
        _ => false,
    };
    (output.is_error && named).then_some(()).ok_or_else(|| format!("expected {kind}, got {text}"))
}

/// Text = body, note, status: paragraphs.
fn check_text(expected: &Value, text: &str) -> Result<(), String> {
    let mut rest = text;
    let status = &expected["status"];
    if !status.is_null() {
        let at = rest.rfind("\n\n").map_or((0, 0), |at| (at, at + 2));
        let said = &rest[at.1..];
        let fact = match status["kind"].as_str().unwrap_or_default() {
            "exit" => format!("code {}.", status["code"]),
            "timeout" => format!("after {} seconds", status["seconds"].as_str().unwrap_or_default()),
            _ => "aborted".to_owned(),
        };
        if !said.contains(&fact) {
            return Err(format!("expected {status}, got {said:?}"));
        }
        rest = &rest[..at.0];
    }
    let notice = &expected["notice"];
    if !notice.is_null() {
        let at = rest.rfind("\n\n[").ok_or_else(|| format!("no note in {rest:?}"))?;
        check_note(notice, &rest[at + 2..])?;
        rest = &rest[..at];
    }
    match &expected["body"] {
        body if body == "informative" => Ok(()),
        body if body["noOutput"] == json!(true) => same(&json!("(no output)"), &json!(rest)),
        body => same(body, &text_spec::like(body, rest)),
    }
}

fn check_note(notice: &Value, note: &str) -> Result<(), String> {
    let n = |key: &str| notice[key].to_string();
    let text = |key: &str| notice[key].as_str().unwrap_or_default().to_owned();
    let mut facts = match notice["kind"].as_str().unwrap_or_default() {
        "partial_last_line" => vec![text("shown"), format!("line {} ", n("line")), text("lineSize")],
        _ => vec![format!("{}-{} of {}", n("firstLine"), n("lastLine"), n("totalLines")), text("limit")],
    };
    facts.push("/outputs/".to_owned());
    let all = facts.iter().all(|fact| note.contains(fact));
    all.then_some(()).ok_or_else(|| format!("expected {notice}, got {note}"))
}

/// Details of the reference; ours also carry how the command ended (D31).
fn check_details(expected: &Value, mut output: ToolOutput) -> Result<(), String> {
    let details = output.details.as_mut().and_then(Value::as_object_mut).ok_or("no details")?;
    let mut take = |key: &str| details.shift_remove(key).unwrap_or_default();
    let (exit, cancelled, truncated, timed_out) =
        (take("exitCode"), take("cancelled"), take("truncated"), take("timedOut"));
    let path = take("fullOutputPath");
    let kind = expected["status"]["kind"].as_str();
    same(&json!([kind == Some("aborted"), kind == Some("timeout")]), &json!([cancelled, timed_out]))?;
    same(&json!(!expected["notice"].is_null()), &truncated)?;
    if !expected["exitCode"].is_null() {
        same(&expected["exitCode"], &exit)?;
    }
    let mut wanted = expected["details"].clone();
    if let Some(map) = wanted.as_object_mut() {
        let path = path.as_str().ok_or("no fullOutputPath")?;
        let full = map.shift_remove("fullOutput").unwrap_or_default();
        map.shift_remove("fullOutputPath");
        check_full(&full, Path::new(path))?;
    }
    if wanted.is_null() {
        wanted = json!({});
    }
    same_details(&wanted, &output)
}

fn check_full(expected: &Value, path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mode = fs::metadata(path).map_err(|e| e.to_string())?.permissions().mode() & 0o777;
    let mut wanted = expected.clone();
    let wanted_mode = wanted.as_object_mut().and_then(|map| map.shift_remove("mode"));
    if let Some(wanted_mode) = wanted_mode {
        same(&wanted_mode, &json!(format!("{mode:o}")))?;
    }
    same(&wanted, &text_spec::like(&wanted, &text))
}
