//! Lists of sessions and the choice among them.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tau::sessions::Folder;
use tau_core::now::Wall;
use tau_core::path::{Style, normalize};
use tau_core::session::{InfoReader, SessionInfo};
use tau_tests::compare::same;

use super::store::lines;

fn content(case: &Value) -> String {
    case["text"].as_str().map_or_else(|| lines(&case["entries"]), str::to_owned)
}

fn info(text: &str, mtime: Wall) -> Option<SessionInfo> {
    let mut reader = InfoReader::default();
    text.as_bytes().chunks(13).for_each(|chunk| reader.feed(chunk));
    reader.finish(mtime)
}

/// `session-info`
pub fn picker_info(_: &Value, case: &Value) -> Result<(), String> {
    let mtime = Wall::from_iso("2025-01-01T08:20:00.000Z").unwrap_or_default();
    let got = info(&content(&case["input"]), mtime).map(|info| {
        json!({
            "id": info.id,
            "cwd": info.cwd,
            "name": info.name,
            "parentSessionPath": info.parent_session,
            "created": info.created.map_or_else(|| "invalid".into(), Wall::to_iso),
            "modified": info.modified.to_iso(),
            "messageCount": info.messages,
            "firstMessage": info.first_message,
            "allMessagesText": info.text,
        })
    });
    same(&case["expected"], &json!(got))
}

/// `session-selection`: real files in a folder. What `--continue` takes is always filtered by directory (D24), so
/// `mostRecentAny` has no counterpart.
pub fn selection(_: &Value, case: &Value) -> Result<(), String> {
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let input = &case["input"];
    let cwd = input["cwd"].as_str().unwrap_or_default();
    let mut listed = Vec::new();
    for file in input["files"].as_array().into_iter().flatten() {
        let name = file["name"].as_str().unwrap_or_default();
        let mtime = file["mtime"].as_str().and_then(Wall::from_iso).ok_or("no mtime")?;
        let (text, path) = (content(file), dir.path().join(name));
        fs::write(&path, &text).map_err(|e| e.to_string())?;
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(mtime.0.unsigned_abs());
        File::options()
            .write(true)
            .open(&path)
            .and_then(|f| f.set_modified(time))
            .map_err(|e| e.to_string())?;
        if name.ends_with(".jsonl")
            && let Some(info) = info(&text, mtime)
        {
            listed.push((info, name));
        }
    }
    listed.sort_by(|a, b| SessionInfo::order((&a.0, a.1), (&b.0, b.1)));
    let folder = Folder { path: dir.path().to_string_lossy().into_owned() };
    let base = |path: Option<String>| path.and_then(|p| p.rsplit('/').next().map(str::to_owned));
    let ids = input["ids"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let found: Value = ids.map(|id| (id.to_owned(), json!(base(folder.exact(id, cwd))))).collect();
    let here = listed.iter().filter(|(info, _)| normalize(&info.cwd, Style::Posix) == cwd);
    same(
        &case["expected"],
        &json!({
            "mostRecentAny": case["expected"]["mostRecentAny"],
            "mostRecentForCwd": base(folder.newest(cwd)),
            "listForCwd": here.map(|(_, name)| *name).collect::<Vec<_>>(),
            "listAll": listed.iter().map(|(_, name)| *name).collect::<Vec<_>>(),
            "findById": found,
        }),
    )
}
