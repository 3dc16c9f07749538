//! Planning a compaction.

use serde_json::{Value, json};
use tau_core::compaction::cut::{Part, choose, settle};
use tau_core::compaction::{FileOps, conversation, measure, plan, should_compact};
use tau_core::message::{Content, Message};
use tau_core::session::{Context, EntryKind, Session, Want, open};
use tau_core::settings::CompactionSettings;
use tau_core::tokens::{Estimator, message_tokens};
use tau_tests::compare::same;
use tau_tests::messages::read;

use super::tokens::shown;

const HEADER: &str =
    r#"{"type":"session","version":3,"id":"s","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/w"}"#;

/// The session of a list of entries.
pub fn session(entries: &Value) -> Result<Session, String> {
    let items = entries.as_array().into_iter().flatten();
    let lines: String = items.map(|entry| tau_core::json::to_string(entry) + "\n").collect();
    let text = format!("{HEADER}\n{lines}");
    let opened = open(text.as_bytes(), "/s.jsonl".into(), "/w", Want::Everything);
    opened.map(|(session, _)| session).map_err(|e| format!("{e:?}"))
}

pub fn settings(value: &Value) -> CompactionSettings {
    CompactionSettings {
        enabled: value["enabled"] != false,
        reserve_tokens: value["reserveTokens"].as_u64().unwrap_or_default(),
        keep_recent_tokens: value["keepRecentTokens"].as_u64().unwrap_or_default(),
    }
}

/// `context-usage-projected`
pub fn projected_usage(_: &Value, case: &Value) -> Result<(), String> {
    let session = session(&case["input"]["entries"])?;
    let usage = measure::projected(session.tree(), session.context(), &mut Estimator::default());
    same(&case["expected"], &shown(usage))
}

/// `should-compact`
pub fn threshold(_: &Value, case: &Value) -> Result<(), String> {
    let number = |key: &str| case["input"][key].as_u64().unwrap_or_default();
    let compact = should_compact(
        number("contextTokens"),
        number("contextWindow"),
        &settings(&case["input"]["settings"]),
    );
    same(&case["expected"], &json!({"compact": compact}))
}

/// `find-cut-point`: every entry for itself, as if nothing had been compacted or edited.
pub fn cut_point(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let mut parts = Vec::new();
    let mut tokens = Vec::new();
    for entry in input["entries"].as_array().into_iter().flatten() {
        let alone = session(&json!([entry]))?;
        let context = Context::build(alone.tree(), alone.tree().slots().next());
        let kind = alone.tree().node(0).map_or(EntryKind::Unknown, |node| node.kind());
        parts.push(Part::of(kind, context.messages.first().map(|message| &**message)));
        tokens.push(context.messages.iter().map(|message| message_tokens(message)).sum::<u64>());
    }
    let at = |key: &str| input[key].as_u64().unwrap_or_default() as usize;
    let (start, end) = (at("startIndex"), at("endIndex"));
    let keep = input["keepRecentTokens"].as_u64().unwrap_or_default();
    let choice = choose(&parts[start..end], keep, |at| tokens[start + at]);
    let cut = settle(&parts[start..end], choice.cut);
    let turn_start = cut.turn_start.map_or(-1, |at| (start + at) as i64);
    same(
        &case["expected"],
        &json!({
            "firstKeptEntryIndex": start + cut.first_kept,
            "turnStartIndex": turn_start,
            "isSplitTurn": cut.turn_start.is_some(),
        }),
    )
}

pub fn text_of(message: &Message) -> String {
    match message {
        Message::Assistant(reply) => Content::Blocks(reply.content.clone()).texts().collect(),
        Message::ToolResult(result) => Content::Blocks(result.content.clone()).texts().collect(),
        Message::User(user) => user.content.texts().collect(),
        Message::Custom(custom) => custom.content.texts().collect(),
        Message::BranchSummary(summary) => summary.summary.to_string(),
        Message::CompactionSummary(summary) => summary.summary.to_string(),
        Message::Bash(bash) => bash.command.clone(),
        Message::System(system) => system.content.to_string(),
        Message::Other(_) => String::new(),
    }
}

/// Role, length and start of a message.
fn outline(message: &Message) -> Value {
    let text = text_of(message);
    json!({
        "role": message.role(),
        "textLength": text.encode_utf16().count(),
        "textStart": text.chars().take(4).collect::<String>(),
        "timestamp": message.timestamp(),
    })
}

pub fn files(ops: &FileOps) -> Value {
    json!({"read": ops.read, "written": ops.written, "edited": ops.edited})
}

/// The lists of file operations have no order here: they are sorted before anybody sees them.
pub fn sort_files(files: &mut Value) {
    for (_, list) in files.as_object_mut().into_iter().flatten() {
        if let Some(list) = list.as_array_mut() {
            list.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
        }
    }
}

/// `prepare-compaction`
pub fn prepare(_: &Value, case: &Value) -> Result<(), String> {
    let session = session(&case["input"]["entries"])?;
    let settings = settings(&case["input"]["settings"]);
    let planned = plan(session.tree(), session.context(), settings, &mut Estimator::default());
    let got = planned.map_or(Value::Null, |plan| {
        json!({
            "firstKeptEntryId": plan.first_kept,
            "isSplitTurn": plan.is_split_turn,
            "tokensBefore": plan.tokens_before,
            "previousSummary": plan.previous_summary.map(|text| text.to_string()),
            "messagesToSummarize": plan.history.iter().map(|m| outline(m)).collect::<Value>(),
            "turnPrefixMessages": plan.prefix.iter().map(|m| outline(m)).collect::<Value>(),
            "fileOps": files(&plan.files),
        })
    });
    let mut expected = case["expected"].clone();
    if let Some(files) = expected.get_mut("fileOps") {
        sort_files(files);
    }
    same(&expected, &got)
}

pub fn file_ops(value: &Value) -> FileOps {
    let set = |key: &str| {
        value[key].as_array().into_iter().flatten().filter_map(Value::as_str).map(String::from).collect()
    };
    FileOps { read: set("read"), written: set("written"), edited: set("edited") }
}

/// `file-lists`
pub fn file_lists(_: &Value, case: &Value) -> Result<(), String> {
    let lists = file_ops(&case["input"]).lists();
    let mut appended = String::new();
    lists.append_to(&mut appended);
    let mut got = lists.details();
    got["appended"] = appended.into();
    same(&case["expected"], &got)
}

/// `serialize-conversation`: compared with what the description says, part by part.
pub fn serialize(_: &Value, case: &Value) -> Result<(), String> {
    let text = conversation(&read(&case["input"]["messages"]));
    let mut rest = text.as_str();
    let mut cut = false;
    for (at, part) in case["expected"]["parts"].as_array().into_iter().flatten().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix("\n\n").ok_or("no blank line between parts")?;
        }
        let label = format!("{} ", part["label"].as_str().unwrap_or_default());
        rest = rest.strip_prefix(&label).ok_or_else(|| format!("part {at} does not begin with {label:?}"))?;
        rest = match part["body"].as_str() {
            Some(body) => rest.strip_prefix(body).ok_or_else(|| format!("part {at} is not {body:?}"))?,
            None => {
                let units = part["bodyLength"].as_u64().unwrap_or_default() as usize;
                let body = tau_core::text::utf16::head(rest, units);
                let end = part["bodyEnd"].as_str().unwrap_or_default();
                if body.encode_utf16().count() != units || !body.ends_with(end) {
                    return Err(format!("part {at} is shorter than {units} or does not end with {end:?}"));
                }
                &rest[body.len()..]
            }
        };
        if let Some(more) = part["truncatedChars"].as_u64() {
            let marker = rest.strip_prefix("\n\n[").and_then(|m| m.split_once(']')).ok_or("no marker")?;
            if !marker.0.split(' ').any(|word| word == more.to_string()) {
                return Err(format!("the marker does not say {more}: {}", marker.0));
            }
            (cut, rest) = (true, marker.1);
        }
    }
    if !rest.is_empty() {
        return Err(format!("more than expected: {rest:?}"));
    }
    if !cut {
        same(&case["expected"]["totalLength"], &json!(text.encode_utf16().count()))?;
    }
    Ok(())
}
