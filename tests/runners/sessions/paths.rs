//! Session folders of working directories.

use serde_json::{Value, json};
use tau_core::path::{self, Style};
use tau_tests::compare::same;

/// Longest file name of the file systems that the vectors know, bytes.
const NAME_MAX: usize = 255;

/// `cwd-encoding.json`
pub fn posix(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let cwd = input["cwd"].as_str().ok_or("no cwd")?;
    let home = input["home"].as_str().ok_or("no home")?;
    let resolved = path::resolve(cwd, "/base/of/process", home, Style::Posix).map_err(|e| e.to_string())?;
    let name = path::session_folder(&resolved);
    let wanted = case["expected"]["dirName"].as_str().unwrap_or_default();
    let wanted = wanted.replace("{BASEPARENT}", "base-of").replace("{BASE}", "base-of-process");
    if name.len() > NAME_MAX {
        return same(&case["expected"], &json!({ "error": "ENAMETOOLONG" }));
    }
    same(
        &json!({ "dirName": wanted, "created": case["expected"]["created"] }),
        &json!({ "dirName": name, "created": true }),
    )
}

/// `cwd-encoding-windows.json`
pub fn windows(_: &Value, case: &Value) -> Result<(), String> {
    let cwd = case["input"]["cwd"].as_str().ok_or("no cwd")?;
    let cwd = path::windows_shell_path(cwd);
    let resolved =
        path::resolve(&cwd, "C:\\", "C:\\Users\\tester", Style::Windows).map_err(|e| e.to_string())?;
    same(&case["expected"], &json!({ "dirName": path::session_folder(&resolved) }))
}
