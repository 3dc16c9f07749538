//! Reading, trees, contexts and migration of session files.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tau_core::entropy::Entropy;
use tau_core::ids::is_valid_session_id;
use tau_core::json::{self, Writer};
use tau_core::message::Message;
use tau_core::model::Model;
use tau_core::now::Wall;
use tau_core::session::entry::EntryLine;
use tau_core::session::info::find_header;
use tau_core::session::stats::{Fill, Stats};
use tau_core::session::tree::{Slot, Tree};
use tau_core::session::{Context, InfoReader, OpenError, Reader, Session, Want, migrate, open};
use tau_tests::compare::same;
use tau_tests::masks::Bindings;
use tau_tests::messages::{value, values};

const HEADER: &str =
    r#"{"type":"session","version":3,"id":"sess-1","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/w"}"#;

/// The lines of a file.
pub fn lines(records: &Value) -> String {
    records.as_array().into_iter().flatten().map(|record| json::to_string(record) + "\n").collect()
}

/// Opens a file; one of an older version is migrated first. The second value is the file then.
pub fn open_all(bytes: &[u8], want: Want) -> Result<(Session, Vec<u8>), OpenError> {
    match open(bytes, "/s.jsonl".into(), "{PROCESS_CWD}", want) {
        Err(OpenError::Old) => {
            let bytes = migrate::rewrite(bytes, &mut Entropy::new([9; 32])).ok_or(OpenError::NotASession)?;
            let (session, _) = open(&bytes, "/s.jsonl".into(), "{PROCESS_CWD}", want)?;
            Ok((session, bytes))
        }
        other => other.map(|(session, _)| (session, bytes.to_vec())),
    }
}

fn ids(tree: &Tree, slots: impl IntoIterator<Item = Slot>) -> Value {
    slots.into_iter().map(|slot| tree.id(slot)).collect()
}

/// Messages of an expectation as they look after reading and writing.
fn normal(messages: &Value) -> Result<Value, String> {
    let items = messages.as_array().into_iter().flatten();
    items
        .map(|m| Message::from_value(m).map(|m| value(&m)).ok_or_else(|| format!("no message: {m}")))
        .collect()
}

/// `build-context` and `runtime/session-projection`: the same by reading everything, by reading only what the last
/// leaf needs, and by growing the context entry by entry.
pub fn context(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let text = format!("{HEADER}\n{}", lines(&input["entries"]));
    let (session, _) = open_all(text.as_bytes(), Want::Everything).map_err(|e| e.to_string())?;
    let tree = session.tree();
    let leaf = match input.get("leafId") {
        Some(Value::Null) => None,
        Some(Value::String(id)) if tree.find(id).is_some() => tree.find(id),
        _ => tree.slots().next_back(),
    };
    let context = Context::build(tree, leaf);
    check_context(&case["expected"], tree, &context)?;
    if leaf == tree.leaf() {
        let (lazy, _) = open_all(text.as_bytes(), Want::Context).map_err(|e| e.to_string())?;
        check_context(&case["expected"], lazy.tree(), lazy.context())?;
    }
    grown(tree, leaf, &context)
}

/// `runtime/session-stats`: entries without ids, one chain; the window is that of the reference's model.
pub fn stats(_: &Value, case: &Value) -> Result<(), String> {
    let mut entries = case["input"]["entries"].clone();
    for (at, entry) in entries.as_array_mut().into_iter().flatten().enumerate() {
        entry["id"] = json!(format!("e{at}"));
        entry["parentId"] = at.checked_sub(1).map_or(Value::Null, |before| json!(format!("e{before}")));
        entry["timestamp"] = json!("2025-01-01T00:00:00.000Z");
    }
    let text = format!("{HEADER}\n{}", lines(&entries));
    let (session, _) = open_all(text.as_bytes(), Want::Everything).map_err(|e| e.to_string())?;
    let mut stats = Stats::default();
    let bodies = session.tree().nodes().iter().filter_map(|node| node.body());
    bodies.for_each(|body| stats.add(body));
    let model = Model { context_window: 100_000, ..Model::default() };
    let mut w = Writer::new();
    w.begin_object();
    stats.write_fields(&mut w);
    if let Some(fill) = Fill::of(&session, &model) {
        w.key("contextUsage");
        fill.write(&mut w);
    }
    w.end_object();
    let got = serde_json::from_str(w.as_str()).map_err(|e| e.to_string())?;
    same(&case["expected"], &got)
}

/// `config/branch-selection`: entries with no more than what tells the model, one chain.
pub fn branch_model(_: &Value, case: &Value) -> Result<(), String> {
    let mut entries = case["input"]["branch"].clone();
    for (at, entry) in entries.as_array_mut().into_iter().flatten().enumerate() {
        entry["id"] = json!(format!("e{at}"));
        entry["parentId"] = at.checked_sub(1).map_or(Value::Null, |before| json!(format!("e{before}")));
        entry["timestamp"] = json!("2025-01-01T00:00:00.000Z");
        if entry["type"] == "message" {
            entry["message"]["content"] = json!([{ "type": "text", "text": "x" }]);
        }
    }
    let text = format!("{HEADER}\n{}", lines(&entries));
    let model = |want| {
        let (session, _) = open_all(text.as_bytes(), want).map_err(|e| e.to_string())?;
        let model = session.context().model.as_ref();
        Ok::<_, String>(model.map(|model| json!({ "provider": model.provider, "modelId": model.model_id })))
    };
    same(&case["expected"], &json!(model(Want::Everything)?))?;
    same(&case["expected"], &json!(model(Want::Context)?))
}

fn check_context(expected: &Value, tree: &Tree, context: &Context) -> Result<(), String> {
    let model = context.model.as_ref().map(|m| json!({"provider": m.provider, "modelId": m.model_id}));
    let mut got = json!({
        "messages": values(&context.messages),
        "thinkingLevel": context.thinking_level.as_deref().unwrap_or("off"),
        "model": model,
        "contextEntryIds": ids(tree, context.entries.iter().map(|entry| entry.slot)),
    });
    if expected.get("messagesPerEntry").is_some() {
        got["messagesPerEntry"] = context.entries.iter().map(|entry| entry.messages).collect();
    }
    let mut expected = expected.clone();
    expected["messages"] = normal(&expected["messages"])?;
    // An assistant message without provider or model: absent fields are empty texts here.
    if let Some(model) = expected["model"].as_object_mut() {
        model.entry("provider").or_insert_with(|| "".into());
        model.entry("modelId").or_insert_with(|| "".into());
    }
    same(&expected, &got)
}

/// Appending one entry after the other ends at the same context as building it at once.
fn grown(tree: &Tree, leaf: Option<Slot>, whole: &Context) -> Result<(), String> {
    let path = tree.path(leaf);
    let Some((last, _)) = path.split_last() else { return Ok(()) };
    let parent = (path.len() > 1).then(|| path[path.len() - 2]);
    let mut context = Context::build(tree, parent);
    if !context.extend(tree, *last) {
        return Ok(());
    }
    let shape =
        |c: &Context| (c.messages.clone(), c.entries.clone(), c.thinking_level.clone(), c.model.clone());
    if shape(&context) == shape(whole) { Ok(()) } else { Err("extending differs from building".into()) }
}

/// `leaf-tree-labels`
pub fn leaf_tree(_: &Value, case: &Value) -> Result<(), String> {
    let text = lines(&case["input"]["fileEntries"]);
    let (session, _) = open_all(text.as_bytes(), Want::Context).map_err(|e| e.to_string())?;
    let tree = session.tree();
    let labels: Value = tree.labels().iter().map(|(id, note)| (id.clone(), json!(note.label))).collect();
    let got = json!({
        "sessionId": session.id(),
        "leafId": session.leaf_id(),
        "branchIds": ids(tree, tree.path(tree.leaf())),
        "sessionName": session.name(),
        "labels": labels,
        "tree": view(tree),
        "entryCount": tree.len(),
    });
    Bindings::default().check("$", &case["expected"], &got)
}

fn view(tree: &Tree) -> Value {
    let mut open: Vec<(u32, Value)> = vec![(0, json!({"children": []}))];
    let close = |open: &mut Vec<(u32, Value)>, depth: u32| {
        while open.len() > 1 && open.last().is_some_and(|(d, _)| *d > depth) {
            let Some((_, item)) = open.pop() else { break };
            if let Some(list) = open.last_mut().and_then(|(_, parent)| parent["children"].as_array_mut()) {
                list.push(item);
            }
        }
    };
    for item in tree.view() {
        close(&mut open, item.depth);
        let id = tree.id(item.slot);
        let mut node = json!({"id": id, "children": []});
        if let Some(note) = tree.labels().get(id) {
            node["label"] = json!(note.label);
            node["labelTimestamp"] = json!(note.time.map(|t| t.to_iso()));
        }
        open.push((item.depth + 1, node));
    }
    close(&mut open, 0);
    open.swap_remove(0).1["children"].take()
}

/// `migration`
pub fn migration(_: &Value, case: &Value) -> Result<(), String> {
    let mut records = case["input"].as_array().cloned().unwrap_or_default();
    migrate::migrate(&mut records, &mut Entropy::new([3; 32]));
    Bindings::default().check("$", &case["expected"], &Value::Array(records))
}

/// `session-id-validation`
pub fn session_id(_: &Value, case: &Value) -> Result<(), String> {
    let valid = is_valid_session_id(case["input"]["id"].as_str().unwrap_or_default());
    same(&case["expected"], &json!({"valid": valid}))
}

/// `malformed-files`
pub fn malformed(doc: &Value, case: &Value) -> Result<(), String> {
    let bytes = content(doc, case)?;
    let expected = &case["expected"];
    // Whole, byte by byte and in odd pieces: chunks change nothing.
    let whole = outcome(&bytes, bytes.len().max(1));
    let step = if bytes.len() > 10_000 { 65_537 } else { 1 };
    if whole != outcome(&bytes, step) || whole != outcome(&bytes, 7.max(step / 3)) {
        return Err("the result depends on the chunks".into());
    }
    same(&expected_outcome(expected)?, &whole)?;
    shown(expected, &bytes)?;
    let opened = open_all(&bytes, Want::Everything);
    match opened {
        Err(_) => same(&expected["open"], &json!({"ok": false, "error": "not-a-session"})),
        Ok((session, file)) => {
            let mut got = json!({
                "ok": true,
                "sessionId": session.id(),
                "cwd": session.cwd(),
                "leafId": session.leaf_id(),
                "entryCount": session.tree().len(),
                "fileAfter": match (file == bytes, whole["torn"] == true) {
                    (false, _) => "rewritten",
                    // The line feed comes with the next append.
                    (true, true) => "newline appended",
                    (true, false) => "unchanged",
                },
            });
            if expected["open"].get("fileAfterLines").is_some() {
                let text = String::from_utf8_lossy(&file).into_owned();
                let lines = text.lines().map(|l| serde_json::from_str::<Value>(l).map_err(|e| e.to_string()));
                got["fileAfterLines"] = lines.collect::<Result<_, _>>()?;
            }
            Bindings::default().check("$", &expected["open"], &got)
        }
    }
}

/// What lists and look-ups make of the file.
fn shown(expected: &Value, bytes: &[u8]) -> Result<(), String> {
    const LIMIT: usize = 1 << 20;
    let start = &bytes[..bytes.len().min(LIMIT)];
    let header = find_header(start, true).flatten();
    let mut list = InfoReader::default();
    list.feed(bytes);
    let info = list.finish(Wall(0));
    for (key, got) in [
        ("discoverableAsRecent", header.is_some()),
        ("listed", info.is_some()),
        ("listedForCwdW", info.is_some_and(|info| info.cwd == "/w")),
    ] {
        if expected[key] != got {
            return Err(format!("{key}: expected {}, got {got}", expected[key]));
        }
    }
    Ok(())
}

fn expected_outcome(expected: &Value) -> Result<Value, String> {
    let entries = expected["load"]["entries"].as_array().cloned().unwrap_or_default();
    let mut list = Vec::new();
    for (at, mut entry) in entries.into_iter().enumerate() {
        let kind = entry["type"].as_str().or_else(|| entry.as_str()).unwrap_or_default().to_owned();
        if at > 0 && kind == "session" {
            continue;
        }
        if let Some(message) = entry.get_mut("message") {
            *message = value(&Message::from_value(message).ok_or("not a message")?);
        }
        list.push(if entry.is_string() { json!(kind) } else { entry });
    }
    Ok(json!({"entries": list, "torn": expected["load"]["fileChange"] == "newline appended"}))
}

/// What reading gives; old versions and large files in short form.
fn outcome(bytes: &[u8], step: usize) -> Value {
    let mut reader = Reader::new(Want::Everything);
    bytes.chunks(step).for_each(|chunk| reader.feed(chunk));
    let mut loading = match reader.finish() {
        Ok(loading) => loading,
        Err(OpenError::Old) => {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let records = text.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok());
            return json!({"entries": records.collect::<Value>(), "torn": !bytes.ends_with(b"\n")});
        }
        Err(_) => return json!({"entries": [], "torn": false}),
    };
    while let Some(range) = loading.next_range() {
        let (start, len) = (range.offset as usize, range.len as usize);
        loading.give(&bytes[start..(start + len).min(bytes.len())]);
    }
    let torn = loading.is_torn();
    let session = loading.finish("/s.jsonl".into(), "/");
    let mut list =
        vec![if bytes.len() > 1_000_000 { json!("session") } else { written(|w| session.header().write(w)) }];
    let tree = session.tree();
    for (slot, node) in tree.slots().zip(tree.nodes()) {
        let Some(body) = node.body() else { continue };
        let line = EntryLine {
            id: tree.id(slot),
            parent: tree.parent_id(slot),
            time: node.time().unwrap_or_default(),
            body,
        };
        list.push(if bytes.len() > 1_000_000 { json!("message") } else { written(|w| line.write(w)) });
    }
    json!({"entries": list, "torn": torn})
}

fn written(write: impl FnOnce(&mut Writer)) -> Value {
    let mut w = Writer::new();
    write(&mut w);
    serde_json::from_str(w.as_str()).unwrap_or_default()
}

fn content(doc: &Value, case: &Value) -> Result<Vec<u8>, String> {
    let input = &case["input"];
    if let Some(text) = input["text"].as_str() {
        return Ok(text.into());
    }
    if let Some(data) = input["base64"].as_str() {
        return STANDARD.decode(data).map_err(|e| e.to_string());
    }
    let note = input["note"].as_str().unwrap_or_default();
    let well_formed = doc["cases"][0]["input"]["text"].as_str().unwrap_or_default();
    let long = "x".repeat(1_048_586);
    if note.starts_with("'#'") {
        return Ok(format!("#{long}\n{well_formed}").into_bytes());
    }
    let message = json!({"role": "user", "content": long, "timestamp": 1});
    let entry = json!({"type": "message", "id": "a", "parentId": null, "timestamp": "2025-01-01T00:00:01.000Z", "message": message});
    Ok(format!("{HEADER}\n{}\n", json::to_string(&entry)).into_bytes())
}
