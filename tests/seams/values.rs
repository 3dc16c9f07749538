//! Small inputs with a rule of their own: working directories and settings files.

use serde_json::{Value, json};
use tau_core::prompt::system::{self, Facts};
use tau_core::settings::jsonc;
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

/// A settings file is understood, or its fault names the line and nothing of the content.
pub fn settings(bytes: &[u8]) -> Result<usize, String> {
    let text = String::from_utf8_lossy(bytes);
    match jsonc::parse(&text) {
        Ok(Value::Object(_)) => Ok(1),
        Ok(other) => Err(format!("settings are an object, not {other}")),
        Err(fault) if fault.contains("line") => Ok(1),
        Err(fault) => Err(format!("no line in {fault:?}")),
    }
}
