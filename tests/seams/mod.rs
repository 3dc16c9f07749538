//! The pure seams of bug cases.

mod edit;
mod gemini;
mod history;
mod lines;
mod recovery;
mod replay;
mod session;
mod skills;
mod stream;
mod surrogates;
mod values;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Runs everything in a folder that has a pure seam; the number of files that were checked.
pub fn check(folder: &Path, case: &Value) -> Result<usize, String> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).map_err(|e| e.to_string())?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut checked = recovery::check(folder, case)?
        + replay::check(folder)?
        + surrogates::check(folder)?
        + stream::check_generated(folder, case)?
        + skills::check(&files, case)?;
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = fs::read(&file).unwrap_or_default();
        let extension = name.rsplit('.').next().unwrap_or_default();
        let count = match (name.as_str(), extension) {
            ("expected.json", _) => Ok(0),
            ("call.json", _) => edit::check(folder, case, &bytes),
            ("cwd.json", _) => values::working_directories(case, &bytes),
            ("settings.json", _) => values::settings(&bytes),
            ("stdin.jsonl", _) => lines::check(case, &bytes),
            (_, "sse" | "html") => stream::check(folder, case, &bytes),
            (_, "jsonl") if case["area"] == "session" => session::check(&name, case, &bytes),
            (_, "json") => history::check(folder, case, &bytes),
            _ => Ok(0),
        };
        checked += count.map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(checked)
}
