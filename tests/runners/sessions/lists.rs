//! Lists of sessions and the choice among them.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tau::sessions::Folder;
use tau_core::now::Wall;
use tau_core::path::{Style, normalize};
use tau_core::session::search::{IsMatch, Query, Search, Subject, Token};
use tau_core::session::{InfoReader, SessionInfo};
use tau_core::text::fuzzy;
use tau_io_std::sys::search::pattern;
use tau_tests::compare::same;

use super::store::lines;

fn content(case: &Value) -> String {
    case["text"].as_str().map_or_else(|| lines(&case["entries"]), str::to_owned)
}

fn info(text: &str, mtime: Wall) -> Option<SessionInfo> {
    let mut reader = InfoReader::default();
    text.as_bytes().chunks(13).for_each(|chunk| reader.feed(chunk));
    let info = reader.finish(mtime);
    // Without the text, everything else is the same.
    let mut brief = InfoReader::brief();
    text.as_bytes().chunks(101).for_each(|chunk| brief.feed(chunk));
    let textless = info.clone().map(|info| SessionInfo { text: String::new(), ..info });
    assert_eq!(brief.finish(mtime), textless);
    info
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

/// `session-search`: over the sessions that all cases share.
pub fn search(doc: &Value, case: &Value) -> Result<(), String> {
    let query = Query::parse(case["input"]["query"].as_str().unwrap_or_default());
    let compile = |text: &str| pattern(text).ok().map(|is_match| Box::new(is_match) as IsMatch);
    let search = Search::new(&query, compile);
    let broken = matches!(search, Search::Nothing);
    let parsed = match &query {
        Query::Tokens(tokens) => {
            let token = |token: &Token| match token {
                Token::Word(text) => json!({"kind": "fuzzy", "value": text}),
                Token::Phrase(text) => json!({"kind": "phrase", "value": text}),
            };
            let tokens: Vec<Value> = tokens.iter().map(token).collect();
            json!({"mode": "tokens", "tokens": tokens, "regex": null, "error": false})
        }
        Query::Pattern(text) => {
            let regex = (!broken).then_some(text);
            json!({"mode": "regex", "tokens": [], "regex": regex, "error": broken})
        }
    };
    let mut found = Vec::new();
    for session in doc["sessions"].as_array().into_iter().flatten() {
        let text = |key: &str| session[key].as_str().unwrap_or_default();
        let (id, name) = (text("id"), session["name"].as_str());
        let subject = Subject { id, name, cwd: text("cwd"), text: text("allMessagesText") };
        if let Some(score) = search.score(&subject) {
            let modified = Wall::from_iso(text("modified")).unwrap_or_default();
            found.push((id, name.is_some(), (score, modified)));
        }
    }
    let recent: Vec<&str> = found.iter().map(|found| found.0).collect();
    // Without a query the list stays as it is.
    if case["input"]["query"] != "" {
        found.sort_by(|a, b| Search::order(a.2, b.2));
    }
    let ids = |named: bool| -> Vec<&str> {
        found.iter().filter(|found| !named || found.1).map(|found| found.0).collect()
    };
    same(
        &case["expected"],
        &json!({"parsed": parsed, "recent": recent, "relevance": ids(false), "namedOnlyRelevance": ids(true)}),
    )
}

/// `fuzzy`: one text.
pub fn fuzzy_score(_: &Value, case: &Value) -> Result<(), String> {
    let text = |key: &str| case["input"][key].as_str().unwrap_or_default();
    let score = fuzzy::score(text("query"), text("text"));
    let wanted = case["expected"]["score"].as_f64().filter(|_| case["expected"]["matches"] == true);
    match (wanted, score) {
        (None, None) => Ok(()),
        (Some(wanted), Some(score)) if (wanted - score).abs() < 1e-9 => Ok(()),
        _ => Err(format!("expected {wanted:?}, got {score:?}")),
    }
}

/// `fuzzy`: the order of a list.
pub fn fuzzy_order(doc: &Value, case: &Value) -> Result<(), String> {
    let items: Vec<&str> =
        doc["filterItems"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let order = fuzzy::rank(case["input"]["query"].as_str().unwrap_or_default(), items.iter().copied());
    let order: Vec<&str> = order.into_iter().map(|at| items[at]).collect();
    same(&case["expected"]["order"], &json!(order))
}
