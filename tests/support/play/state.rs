//! What a session holds at the end of a trace.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tau_core::json::Writer;
use tau_core::message::Message;
use tau_core::model::Model;
use tau_core::session::Session;
use tau_core::session::entry::EntryLine;
use tau_core::session::stats::Fill;

use super::show::Shower;

/// Entries in order, their ids as numbers.
pub(super) fn entries(session: &Session, show: &Shower) -> Value {
    let mut numbers = HashMap::new();
    let tree = session.tree();
    let mut shown = Vec::new();
    for slot in tree.slots() {
        let number = format!("#{}", shown.len() + 1);
        numbers.insert(tree.id(slot).to_owned(), number);
        let node = tree.node(slot).expect("a node");
        let line = EntryLine {
            id: tree.id(slot),
            parent: tree.parent_id(slot),
            time: node.time().expect("a time"),
            body: node.body().expect("a body"),
        };
        let mut w = Writer::new();
        line.write(&mut w);
        let stored: Value = serde_json::from_str(w.as_str()).expect("JSON");
        shown.push(entry(&stored, &numbers, show));
    }
    Value::Array(shown)
}

/// The fields of an entry that a trace looks at.
fn entry(stored: &Value, numbers: &HashMap<String, String>, show: &Shower) -> Value {
    let number = |id: &Value| json!(numbers.get(id.as_str().unwrap_or_default()));
    let kind = stored["type"].as_str().unwrap_or_default();
    let mut shown = Map::from_iter([("id".into(), number(&stored["id"])), ("type".into(), kind.into())]);
    let mut put = |key: &str, value: Value| drop(shown.insert(key.into(), value));
    let message = &stored["message"];
    match kind {
        "model_change" => put("modelId", stored["modelId"].clone()),
        "thinking_level_change" => put("thinkingLevel", stored["thinkingLevel"].clone()),
        "custom_message" => put("customType", stored["customType"].clone()),
        "context_edit" => {
            put("targetId", number(&stored["targetId"]));
            put("replacement", stored["replacement"].clone());
        }
        "message" => {
            put("role", message["role"].clone());
            if let Some(reason) = message.get("stopReason") {
                put("stopReason", reason.clone());
            }
            if message["role"] == "user" {
                put("text", show.start(said(&message["content"])).into());
            }
            if message["excludeFromContext"] == true {
                put("excludeFromContext", true.into());
            }
        }
        "compaction" => {
            put("firstKeptEntryId", number(&stored["firstKeptEntryId"]));
            put("tokensBefore", stored["tokensBefore"].clone());
            put("fromHook", (stored["fromHook"] == true).into());
            put("hasSystemMessage", stored["systemMessage"].is_object().into());
            put("hasUsage", stored["usage"].is_object().into());
            put("details", stored["details"].clone());
            put("summary", show.summary(stored["summary"].as_str().unwrap_or_default()).into());
        }
        _ => {}
    }
    Value::Object(shown)
}

fn said(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        blocks => {
            blocks.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()).collect()
        }
    }
}

/// Roles of a context, those of replies with how they ended.
pub(super) fn roles(context: &[Arc<Message>]) -> Value {
    let role = |message: &Arc<Message>| match message.as_assistant() {
        Some(reply) => format!("assistant:{}", reply.stop_reason.name()),
        None => message.role().to_owned(),
    };
    context.iter().map(role).collect()
}

/// How full the context is, as `get_session_stats` tells it.
pub(super) fn usage(session: &Session, model: &Model) -> Value {
    let mut w = Writer::new();
    match Fill::of(session, model) {
        Some(fill) => fill.write(&mut w),
        None => w.null(),
    }
    serde_json::from_str(w.as_str()).expect("JSON")
}
