//! The pure seams of bug cases.

mod edit;
mod history;
mod replay;
mod stream;
mod surrogates;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Runs everything in a folder that has a pure seam; the number of files that were checked.
pub fn check(folder: &Path, case: &Value) -> Result<usize, String> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).map_err(|e| e.to_string())?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut checked = replay::check(folder)? + surrogates::check(folder)?;
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = fs::read(&file).unwrap_or_default();
        let count = if name.ends_with(".sse") || name.ends_with(".html") {
            stream::check(folder, case, &bytes)
        } else if name == "call.json" {
            edit::check(folder, case, &bytes)
        } else if name.ends_with(".json") && name != "expected.json" {
            history::check(folder, case, &bytes)
        } else {
            Ok(0)
        };
        checked += count.map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(checked)
}
