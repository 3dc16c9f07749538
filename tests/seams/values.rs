//! Small inputs with a rule of their own: working directories and settings files.

use serde_json::{Value, json};
use tau_core::prompt::system::{self, Facts};
use tau_core::settings::{Change, jsonc, rewrite};
use tau_tests::compare::same;

/// How the system prompt shows a working directory.
pub fn working_directories(case: &Value, bytes: &[u8]) -> Result<usize, String> {
    let cwds: Vec<String> = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    let mut shown = Vec::new();
    for cwd in &cwds {
        let made = system::sections(&Facts { cwd, ..Facts::default() }).map_err(|e| format!("{e:?}"))?;
        let (_, text) = made.into_iter().find(|(name, _)| name == "cwd").ok_or("no section about it")?;
        // Between the lines of its frame.
        shown.push(text.lines().nth(1).unwrap_or_default().to_owned());
    }
    same(&case["expect"]["shown"], &json!(shown))?;
    Ok(1)
}

/// A settings file is understood, or its fault names the line and nothing of the content. One that is understood keeps
/// everything when a setting is saved; one that is not is not written.
pub fn settings(bytes: &[u8]) -> Result<usize, String> {
    let text = String::from_utf8_lossy(bytes);
    let change = Change { path: vec!["mine".into(), "new".into()], value: Some(json!(true)) };
    let saved = rewrite(Some(&text), &[change]);
    match (jsonc::parse(&text), saved) {
        (Ok(Value::Object(mut map)), Ok(Some(new))) => {
            map.insert("mine".into(), json!({"new": true}));
            same(&Value::Object(map), &jsonc::parse(&new)?)?;
            Ok(1)
        }
        (Err(fault), Err(_)) if fault.contains("line") => Ok(1),
        (read, saved) => Err(format!("{read:?}, and saved as {saved:?}")),
    }
}
