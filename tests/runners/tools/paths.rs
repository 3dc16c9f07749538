//! Path arguments.

use serde_json::{Value, json};
use tau_core::path::{self, PathError, Style};
use tau_tests::compare::same;

fn outcome(result: Result<String, PathError>) -> Value {
    match result {
        Ok(path) => json!({ "path": path }),
        Err(PathError::Host) => json!({ "error": "ERR_INVALID_FILE_URL_HOST" }),
        Err(PathError::UrlPath) => json!({ "error": "ERR_INVALID_FILE_URL_PATH" }),
        Err(PathError::Escape) => json!({ "error": "URIError" }),
    }
}

/// `paths.json`; `{ROOT}` is a folder with the listed files.
pub fn paths(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let text = |name: &str| input[name].as_str().unwrap_or_default().replace("{ROOT}", "/top-folder");
    let (given, cwd, home, style) = (text("path"), text("cwd"), text("home"), Style::Posix);
    let got = match case["fn"].as_str().unwrap_or_default() {
        "resolveToCwd" => outcome(path::argument(&given, &cwd, &home, style)),
        "resolveReadPath" => {
            let files: Vec<String> = input["files"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(|file| format!("{cwd}/{file}"))
                .collect();
            // A folder exists when a file below it does.
            let exists = |path: &String| files.iter().any(|file| path::is_within(path, file, style));
            let tried = path::candidates(&given, &cwd, &home, style).map_err(|e| e.to_string())?;
            let found = tried.iter().find(|path| exists(path)).cloned();
            outcome(found.map_or_else(|| path::argument(&given, &cwd, &home, style), Ok))
        }
        "normalizeWindowsShellPath" => json!({ "path": path::windows_shell_path(&given) }),
        "shortenHomePath" => json!({ "path": path::shorten_home(&given, &home, style) }),
        "formatPathRelativeToCwdOrAbsolute" => json!({ "path": path::display(&given, &cwd, style) }),
        "isPathWithin" => json!({ "within": path::is_within(&text("parent"), &text("child"), style) }),
        other => return Err(format!("unknown function {other}")),
    };
    let mut expected = case["expected"].clone();
    if let Some(path) = expected["path"].as_str() {
        expected["path"] = path.replace("{ROOT}", "/top-folder").into();
    }
    same(&expected, &got)
}
