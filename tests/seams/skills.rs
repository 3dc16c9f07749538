//! Folders with a `SKILL.md`.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tau_core::skills::frontmatter;
use tau_tests::compare::same;

/// Each skill has the name that is expected, a description, and a body without front matter.
pub fn check(files: &[PathBuf], case: &Value) -> Result<usize, String> {
    let mut names = Vec::new();
    for folder in files {
        let Ok(text) = fs::read_to_string(folder.join("SKILL.md")) else { continue };
        let document = frontmatter::parse(&text).map_err(|fault| format!("{}: {fault}", folder.display()))?;
        if !document.front["description"].is_string() {
            return Err(format!("{}: no description", folder.display()));
        }
        // A rule in the body is no second end of the front matter.
        let unix = text.replace("\r\n", "\n");
        let body = unix.splitn(3, "---\n").nth(2).unwrap_or_default();
        same(&json!(body.trim()), &json!(document.body))?;
        names.push(document.front["name"].clone());
    }
    if names.is_empty() {
        return Ok(0);
    }
    same(&case["expect"]["names"], &json!(names))?;
    Ok(names.len())
}
