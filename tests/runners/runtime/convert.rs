//! First conversion, pairing and replay of system messages.

use std::sync::Arc;

use serde_json::{Value, json};
use tau_core::convert::{self, Memo, NO_RESULT, Target};
use tau_core::message::{Block, Content, Message};
use tau_tests::compare::same;
use tau_tests::messages::{read, value, values};

/// `convert-to-llm`: texts of ours are compared by their structure.
pub fn to_llm(_: &Value, case: &Value) -> Result<(), String> {
    let messages = read(&case["input"]["messages"]);
    let mut memo = Memo::default();
    let converted = convert::to_llm(&messages, &mut memo);
    for (again, first) in convert::to_llm(&messages, &mut memo).iter().zip(&converted) {
        if !Arc::ptr_eq(again, first) {
            return Err("a second conversion made a new message".into());
        }
    }
    let mut got = values(&converted);
    let expected = &case["expected"]["messages"];
    for (at, message) in got.as_array_mut().into_iter().flatten().enumerate() {
        let Some(block) = message.pointer_mut("/content/0") else { continue };
        let wanted = &expected[at]["content"][0];
        if let Some(text) = block["text"].as_str().map(str::to_owned) {
            if wanted.get("bash").is_some() {
                let command = case["input"]["messages"].as_array().into_iter().flatten();
                let command =
                    command.filter(|m| m["role"] == "bashExecution" && m["excludeFromContext"] != true);
                let command =
                    command.map(|m| m["command"].as_str().unwrap_or_default()).next().unwrap_or_default();
                *block = json!({"type": "text", "bash": bash_structure(&text, command)});
            } else if wanted.get("wrapper").is_some() {
                *block = json!({"type": "text", "wrapper": summary_structure(&text)});
            }
        }
    }
    same(expected, &got)
}

fn summary_structure(text: &str) -> Value {
    let (intro, rest) = text.split_once("<summary>\n").unwrap_or_default();
    let body = rest.rsplit_once("</summary>").map(|(body, _)| body);
    json!({
        "tag": "summary",
        "introBeforeTag": !intro.trim().is_empty(),
        "introEndsWithBlankLine": intro.ends_with("\n\n"),
        "body": body,
        "textEndsWithCloseTag": text.ends_with("</summary>"),
    })
}

/// Splits our text of a command into the facts that the vectors name.
fn bash_parts<'a>(text: &'a str, command: &str) -> (bool, Option<&'a str>, Vec<&'a str>) {
    let head = format!("`{command}`\n");
    let (first, rest) = text.split_once(&head).unwrap_or(("", text));
    let in_backticks = rest.len() < text.len() && !first.contains('\n');
    let (fenced, tail) = match rest.strip_prefix("```\n").and_then(|inner| inner.rsplit_once("\n```")) {
        Some((output, tail)) => (Some(output), tail),
        None => (None, rest.split_once("\n\n").map_or("", |(marker, _)| &rest[marker.len()..])),
    };
    (in_backticks, fenced, tail.split("\n\n").skip(1).collect())
}

fn bash_structure(text: &str, command: &str) -> Value {
    let (in_backticks, fenced, tail) = bash_parts(text, command);
    let status = tail.iter().find_map(|part| {
        let code = part.strip_prefix("Exit code: ").map(|code| format!("exit {code}"));
        code.or_else(|| part.contains("cancelled").then(|| "cancelled".into()))
    });
    let path = tail.iter().find_map(|part| part.strip_suffix(']')?.rsplit_once(" in ")).map(|(_, path)| path);
    json!({
        "commandInBackticksOnFirstLine": in_backticks,
        "fencedOutput": fenced,
        "emptyOutputMarker": fenced.is_none() && text.contains("(no output)"),
        "status": status,
        "truncationNoticeWithPath": path,
        "blankLineSeparatedTailSegments": tail.len(),
    })
}

/// `tools/bash-execution-message`
pub fn bash_message(_: &Value, case: &Value) -> Result<(), String> {
    let mut record = case["input"]["message"].clone();
    record["role"] = "bashExecution".into();
    record["timestamp"] = 1.into();
    let command = record["command"].as_str().unwrap_or_default().to_owned();
    let sent = convert::to_llm(&read(&json!([record])), &mut Memo::default());
    // An excluded record is described, too: as it would look.
    record["excludeFromContext"] = false.into();
    let shown = convert::to_llm(&read(&json!([record])), &mut Memo::default());
    let Some(Message::User(user)) = shown.first().map(|m| &**m) else { return Err("no user message".into()) };
    let text = match &user.content {
        Content::Blocks(blocks) => blocks.iter().find_map(Block::as_text).unwrap_or_default(),
        Content::Text(text) => text,
    };
    let facts = bash_structure(text, &command);
    let mut notes = json!({});
    match facts["status"].as_str() {
        Some("cancelled") => notes["cancelled"] = true.into(),
        Some(exit) => notes["exitCode"] = exit.trim_start_matches("exit ").parse::<i64>().ok().into(),
        None => {}
    }
    if let Some(path) = facts["truncationNoticeWithPath"].as_str() {
        notes["fullOutput"] = path.into();
    }
    let output = match facts["fencedOutput"].as_str() {
        Some(output) => json!({"fenced": output}),
        None => json!({"noOutput": facts["emptyOutputMarker"]}),
    };
    let mut got = json!({"sentToModel": !sent.is_empty(), "outputPart": output, "notes": notes});
    if !sent.is_empty() {
        got["role"] = "user".into();
    }
    same(&case["expected"], &got)
}

/// `orphan-tool-calls`
pub fn orphans(_: &Value, case: &Value) -> Result<(), String> {
    let messages = read(&case["input"]["messages"]);
    let target = Target { provider: "faux", api: "faux", model: "m1", images: true, ids: None, max_id: 0 };
    let adapted = convert::transform(&messages, &target, 0, &mut Memo::default());
    let got: Value = adapted.iter().map(|message| outline(message)).collect();
    same(&case["expected"]["messages"], &got)
}

fn outline(message: &Message) -> Value {
    match message {
        Message::Assistant(reply) => {
            let kinds: Vec<Value> = value(message)["content"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|b| b["type"].clone())
                .collect();
            let calls: Vec<&str> = reply.tool_calls().map(|call| call.id.as_str()).collect();
            json!({"role": "assistant", "blocks": kinds, "calls": calls})
        }
        Message::ToolResult(result) => json!({
            "role": "toolResult",
            "toolCallId": result.tool_call_id,
            "toolName": result.tool_name,
            "isError": result.is_error,
            "synthetic": result.content == [Block::text(NO_RESULT)],
        }),
        other => json!({"role": other.role()}),
    }
}

/// `system-replay`
pub fn replay(_: &Value, case: &Value) -> Result<(), String> {
    let messages = read(&case["input"]["messages"]);
    let state = convert::fold(&messages);
    let message = state.message().map(|system| value(&Message::System(system)));
    let tools: Vec<&Value> = state.tools.iter().map(|tool| &tool["name"]).collect();
    same(&case["expected"], &json!({"systemMessage": message, "prompt": state.prompt(), "tools": tools}))
}

/// `tool-state-changes`
pub fn tool_changes(_: &Value, case: &Value) -> Result<(), String> {
    let list = |key: &str| case["input"][key].as_array().cloned().unwrap_or_default();
    let (previous, current) = (list("previous"), list("current"));
    let changes = convert::tool_changes(&previous, &current);
    let names = |tools: &[&Value]| tools.iter().map(|tool| tool["name"].clone()).collect::<Value>();
    same(
        &case["expected"],
        &json!({"toolsAdded": names(&changes.added), "toolsRemoved": names(&changes.removed)}),
    )
}
