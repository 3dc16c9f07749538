//! Copies of sessions and sequences of store operations.

use serde_json::{Value, json};
use tau_core::entropy::Entropy;
use tau_core::ids::{UuidV7, is_valid_session_id};
use tau_core::message::{Content, CustomMessage, Message};
use tau_core::model::ThinkingLevel;
use tau_core::now::Wall;
use tau_core::session::entry::{Compaction, Custom, UsageEntry};
use tau_core::session::fork::{self, Copy};
use tau_core::session::{EntryBody, Header, Session, Want, file_name, open};
use tau_tests::masks::Bindings;

use super::store::lines;

const NOW: Wall = Wall(1_750_000_000_123);

/// `fork-branch`
pub fn run(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let file = lines(&input["fileEntries"]);
    let got = match input["op"].as_str().unwrap_or_default() {
        "createBranchedSession" => branched(&file, input, true),
        "createBranchedSessionInMemory" => branched(&file, input, false),
        "forkFrom" => forked(&file, input),
        "exportBranch" => exported(&file, input),
        "ops" => operations(&file, input),
        other => return Err(format!("operation {other}")),
    };
    Bindings::default().check("$", &case["expected"], &got.unwrap_or_else(|_| json!({"error": true})))
}

fn read(file: &str) -> Result<Session, String> {
    let opened = open(file.as_bytes(), "{DIR}/orig.jsonl".into(), "{CWD}", Want::Everything);
    opened.map(|(session, _)| session).map_err(|e| e.to_string())
}

fn records(bytes: &[u8]) -> Value {
    String::from_utf8_lossy(bytes)
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap_or_default())
        .collect()
}

fn new_header(parent: Option<&str>) -> Header {
    let id = UuidV7::default().next(NOW, &mut Entropy::new([4; 32]));
    Header::new(id, NOW, "{CWD}".into(), parent.map(str::to_owned))
}

fn branched(file: &str, input: &Value, stored: bool) -> Result<Value, String> {
    let session = read(file)?;
    let header = new_header(stored.then_some("{DIR}/orig.jsonl"));
    let leaf = input["leafId"].as_str().unwrap_or_default();
    let mut rng = Entropy::new([6; 32]);
    let copy =
        fork::branch(file.as_bytes(), session.tree(), leaf, &header, &mut rng).map_err(|e| e.to_string())?;
    if !stored {
        return Ok(json!({"returnedPath": null, "entries": records(&copy.bytes), "leafId": copy.leaf}));
    }
    let text = String::from_utf8_lossy(&copy.bytes).into_owned();
    let labels = read(&text)?
        .tree()
        .labels()
        .iter()
        .map(|(id, note)| (id.clone(), json!(note.label)))
        .collect::<Value>();
    Ok(json!({
        "returnedPath": format!("{{DIR}}/{}", file_name(&header)),
        "newFileExists": copy.starts_file,
        "newFileEntries": copy.starts_file.then(|| records(&copy.bytes)),
        "leafId": copy.leaf,
        "originalUnchanged": true,
        "labels": labels,
    }))
}

fn forked(file: &str, input: &Value) -> Result<Value, String> {
    if input["id"].as_str().is_some_and(|id| !is_valid_session_id(id)) {
        return Err("invalid id".into());
    }
    let (session, header) = (read(file)?, new_header(Some("{DIR}/orig.jsonl")));
    let Copy { bytes, leaf, .. } = fork::whole(file.as_bytes(), session.tree(), &header);
    Ok(json!({
        "fileName": file_name(&header),
        "entries": records(&bytes),
        "leafId": leaf,
        "cwd": header.cwd,
        "originalUnchanged": true,
    }))
}

fn exported(file: &str, input: &Value) -> Result<Value, String> {
    let session = read(file)?;
    let leaf = input["leafId"].as_str().and_then(|id| session.tree().find(id));
    let bytes = fork::export(file.as_bytes(), session.tree(), leaf, session.header(), NOW);
    Ok(json!({"lines": records(&bytes)}))
}

fn operations(file: &str, input: &Value) -> Result<Value, String> {
    let (mut session, mut bytes) = (read(file)?, file.as_bytes().to_vec());
    let mut rng = Entropy::new([2; 32]);
    let mut results = Vec::new();
    for op in input["ops"].as_array().into_iter().flatten() {
        let result = operation(&mut session, op, &mut bytes, &mut rng);
        results.push(result.unwrap_or_else(|_| json!({"error": true})));
    }
    Ok(json!({"results": results, "leafId": session.leaf_id(), "fileEntriesAfter": records(&bytes)}))
}

fn operation(
    session: &mut Session,
    op: &Value,
    bytes: &mut Vec<u8>,
    rng: &mut Entropy,
) -> Result<Value, String> {
    let text = |at: usize| op[at].as_str().unwrap_or_default().to_owned();
    let optional = |at: usize| op.get(at).filter(|v| !v.is_null()).cloned();
    let body = match text(0).as_str() {
        "branch" => {
            session.branch(Some(&text(1))).map_err(|e| e.to_string())?;
            return Ok(Value::Null);
        }
        "resetLeaf" => {
            session.branch(None).map_err(|e| e.to_string())?;
            return Ok(Value::Null);
        }
        "getLeafId" => return Ok(json!(session.leaf_id())),
        "getLabel" => return Ok(json!(session.label(&text(1)))),
        "getSessionName" => return Ok(json!(session.name())),
        "getChildren" => {
            let tree = session.tree();
            let ids: Vec<&str> = tree.children(&text(1)).into_iter().map(|slot| tree.id(slot)).collect();
            let all = records(bytes);
            let of = |id: &&str| all.as_array().into_iter().flatten().find(|r| r["id"] == **id).cloned();
            return Ok(ids.iter().filter_map(of).collect());
        }
        "branchWithSummary" => {
            let mut entry = session.summary_of_leaf();
            session.branch(op[1].as_str()).map_err(|e| e.to_string())?;
            entry.summary = text(2).into();
            entry.details = optional(3);
            entry.from_hook = op[4].as_bool();
            EntryBody::BranchSummary(Box::new(entry))
        }
        "appendMessage" => EntryBody::message(Message::from_value(&op[1]).ok_or("not a message")?),
        "appendLabelChange" => session.label_entry(&text(1), op[2].as_str()).map_err(|e| e.to_string())?,
        "appendSessionInfo" => EntryBody::session_name(&text(1)),
        "appendCompaction" => EntryBody::Compaction(Box::new(Compaction {
            summary: text(1).into(),
            first_kept: op[2].as_str().map(str::to_owned),
            tokens_before: op[3].as_u64().unwrap_or_default(),
            ..Compaction::default()
        })),
        "appendContextEdit" => {
            let replacement = match &op[2] {
                Value::Null => None,
                edit => match edit.get("content") {
                    Some(content @ (Value::String(_) | Value::Array(_))) => {
                        Some(Content::from_value(content))
                    }
                    _ => return Err("no replacement".into()),
                },
            };
            session.edit_entry(&text(1), replacement).map_err(|e| e.to_string())?
        }
        "appendCustomEntry" => {
            EntryBody::Custom(Box::new(Custom { custom_type: text(1), data: optional(2) }))
        }
        "appendCustomMessageEntry" => EntryBody::CustomMessage(Box::new(CustomMessage {
            custom_type: text(1),
            content: Content::from_value(&op[2]),
            display: op[3] == true,
            details: optional(4),
            timestamp: NOW.0,
        })),
        "appendUsage" => EntryBody::Usage(Box::new(UsageEntry {
            kind: text(1),
            provider: text(2),
            model: text(3),
            usage: op[4].clone(),
            note: op[5].as_str().map(str::to_owned),
        })),
        "appendModelChange" => EntryBody::model(&text(1), &text(2)),
        "appendThinkingLevelChange" => {
            EntryBody::thinking(ThinkingLevel::parse(&text(1)).ok_or("no such level")?)
        }
        other => return Err(format!("operation {other}")),
    };
    let plan = session.append(body, NOW, rng).map_err(|e| e.to_string())?;
    let line = plan.op.map(|op| op.bytes).unwrap_or_default();
    bytes.extend_from_slice(&line);
    if op[0] == "appendUsage" {
        return serde_json::from_slice(&line).map_err(|e| e.to_string());
    }
    Ok(json!(plan.id.as_str()))
}
