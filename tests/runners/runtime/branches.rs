//! Leaving branches: what is left, its summary, moving the leaf.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tau_core::compaction::branch::collect;
use tau_core::compaction::{Summarizer, branch_budget, go, prepare_branch, prompts, step_to};
use tau_core::entropy::Entropy;
use tau_core::message::{Message, StopReason};
use tau_core::model::ThinkingLevel;
use tau_core::now::Wall;
use tau_core::session::entry::EntryLine;
use tau_core::session::tree::Slot;
use tau_core::session::{EntryBody, Header, Session, decode};
use tau_tests::compare::same;

use super::compaction::{files, session, sort_files, text_of};
use super::summaries::{described, model, reply};

/// `branch-collect`
pub fn collected(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let entry = |pair: &Value| {
        json!({"type": "session_info", "id": pair[0], "parentId": pair[1],
            "timestamp": "2025-01-01T00:00:00.000Z", "name": "n"})
    };
    let entries: Value = input["tree"].as_array().into_iter().flatten().map(entry).collect();
    let session = session(&entries)?;
    let tree = session.tree();
    let find = |key: &str| input[key].as_str().and_then(|id| tree.find(id));
    let left = collect(tree, find("oldLeafId"), find("targetId").ok_or("no target")?);
    let ids: Vec<&str> = left.entries.iter().map(|slot| tree.id(*slot)).collect();
    let ancestor = left.ancestor.map(|slot| tree.id(slot));
    same(&case["expected"], &json!({"entryIds": ids, "commonAncestorId": ancestor}))
}

fn all(session: &Session) -> Vec<Slot> {
    session.tree().slots().collect()
}

/// `branch-prepare`
pub fn prepared(_: &Value, case: &Value) -> Result<(), String> {
    let session = session(&case["input"]["entries"])?;
    let budget = case["input"]["tokenBudget"].as_u64().unwrap_or_default();
    let plan = prepare_branch(session.tree(), &all(&session), budget).map_err(|fault| fault.message)?;
    let outline = |message: &Message| {
        // The vectors show no text for commands.
        let text = if message.role() == "bashExecution" { String::new() } else { text_of(message) };
        json!({"role": message.role(), "text": text.chars().take(12).collect::<String>()})
    };
    let mut expected = case["expected"].clone();
    sort_files(&mut expected["fileOps"]);
    same(
        &expected,
        &json!({
            "messages": plan.messages.iter().map(|message| outline(message)).collect::<Value>(),
            "totalTokens": plan.tokens,
            "fileOps": files(&plan.files),
        }),
    )
}

/// `branch-summary-requests`
pub fn summary(_: &Value, case: &Value) -> Result<(), String> {
    let (input, options) = (&case["input"], &case["input"]["options"]);
    let session = session(&input["entries"])?;
    let reserve = options["reserveTokens"].as_u64().unwrap_or(16_384);
    let budget = branch_budget(input["contextWindow"].as_u64().unwrap_or_default(), reserve);
    let plan = prepare_branch(session.tree(), &all(&session), budget).map_err(|fault| fault.message)?;
    let thinking = options["thinkingLevel"].as_str().and_then(ThinkingLevel::parse).unwrap_or_default();
    let model = model(true);
    let by = Summarizer { model: &model, thinking, focus: options["customInstructions"].as_str() };
    let request = plan.request(&by, options["replaceInstructions"] == true);
    let mut sent = Vec::new();
    let mut answer = None;
    if let Some(request) = &request {
        sent.push(match by.focus.filter(|_| options["replaceInstructions"] == true) {
            Some(own) if !request.prompt.ends_with(own) => return Err("not our own instructions".into()),
            _ => described(request)?,
        });
        answer = Some(reply(case, 0)?);
    }
    let finished = plan.finish(answer.as_ref(), Some("leaf"));
    let outcome = match &finished {
        Ok(_) => "ok",
        Err(fault) if fault.code == "summary_cancelled" => "aborted",
        Err(_) => "error",
    };
    let entry = finished.ok();
    let shown = entry.as_ref().map(|entry| {
        if entry.summary.as_str() == prompts::EMPTY_BRANCH {
            return Value::from("<fixed placeholder text>");
        }
        let (before, after) = entry.summary.split_once("SUM").unwrap_or_default();
        json!({"preambleBeforeReply": before == prompts::BRANCH_PREAMBLE, "afterReply": after})
    });
    let details = entry.as_ref().and_then(|entry| entry.details.as_ref());
    same(
        &case["expected"],
        &json!({
            "requests": sent,
            "outcome": outcome,
            "summary": shown,
            "usagePresent": entry.as_ref().is_some_and(|entry| entry.usage.is_some()),
            "readFiles": details.map(|details| &details["readFiles"]),
            "modifiedFiles": details.map(|details| &details["modifiedFiles"]),
        }),
    )
}

/// The branch that every case of `tree-navigation` starts on.
fn start(rng: &mut Entropy) -> Result<(Session, BTreeMap<String, &'static str>), String> {
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let user = |content: Value| json!({"type": "message", "message": {"role": "user", "content": content, "timestamp": 1}});
    let model = |content: Value| {
        json!({"type": "message", "message": {"role": "assistant", "content": content, "provider": "faux",
            "model": "m1", "api": "faux", "stopReason": "stop", "timestamp": 2}})
    };
    let call = json!([{"type": "toolCall", "id": "1", "name": "read", "arguments": {"path": "f.txt"}}]);
    let two = json!([{"type": "text", "text": "second "}, {"type": "text", "text": "question"}]);
    let records = [
        ("", json!({"type": "model_change", "provider": "faux", "modelId": "m1"})),
        ("", json!({"type": "thinking_level_change", "thinkingLevel": "off"})),
        ("u1", user("first question".into())),
        ("a1", model(text("one"))),
        ("u2", user(two)),
        ("a2", model(call)),
        (
            "t2",
            json!({"type": "message", "message": {"role": "toolResult", "toolCallId": "1", "toolName": "read",
            "content": text("file"), "isError": false, "timestamp": 3}}),
        ),
        ("a3", model(text("three"))),
        (
            "c1",
            json!({"type": "custom_message", "customType": "note", "content": "custom text", "display": true}),
        ),
        ("a4", model(text("four"))),
    ];
    let mut session = Session::new(Header::new("s".into(), Wall(1), "/w".into(), None), None);
    let mut names = BTreeMap::new();
    for (name, record) in records {
        let body = decode::body_from_value(&record, &record.to_string());
        let plan = session.append(body, Wall(1), rng).map_err(|fault| fault.message)?;
        if !name.is_empty() {
            names.insert(plan.id.as_str().to_owned(), name);
        }
    }
    Ok((session, names))
}

/// What an appended entry says, with the names of the vectors.
fn added(session: &Session, slot: Slot, name: &dyn Fn(Option<&str>) -> Value) -> Result<Value, String> {
    let tree = session.tree();
    let node = tree.node(slot).ok_or("no entry")?;
    let parent = name(tree.parent_id(slot));
    match node.body() {
        Some(EntryBody::BranchSummary(entry)) => Ok(json!({
            "type": "branch_summary",
            "parent": parent,
            "fromId": name(Some(&entry.from_id)),
            "hasSummary": !entry.summary.is_empty(),
            "details": entry.details,
            "fromHook": entry.from_hook,
            "hasUsage": entry.usage.is_some(),
        })),
        Some(EntryBody::Label(entry)) => {
            let target = tree.find(&entry.target_id).and_then(|target| tree.node(target));
            let on_summary = matches!(target.and_then(|node| node.body()), Some(EntryBody::BranchSummary(_)));
            let target = Some(name(Some(&entry.target_id))).filter(|_| !on_summary);
            Ok(json!({"type": "label", "parent": parent, "label": entry.label, "onSummary": on_summary,
                "target": target}))
        }
        other => Err(format!("nobody appends {other:?}")),
    }
}

/// `tree-navigation`: the part of the session layer, with the replies of the case.
pub fn navigation(_: &Value, case: &Value) -> Result<(), String> {
    let (input, options) = (&case["input"], &case["input"]["options"]);
    let mut rng = Entropy::new([3; 32]);
    let (mut session, names) = start(&mut rng)?;
    let target = input["target"].as_str().unwrap_or_default();
    let target = names.iter().find(|(_, name)| **name == target).map_or(target, |(id, _)| id);
    let mut requests = 0;
    let mut appended = Vec::new();
    let mut run = || -> Result<Value, tau_core::fault::Fault> {
        let still = json!({"cancelled": false, "editorText": null, "hasSummaryEntry": false});
        let Some(step) = step_to(session.tree(), target)? else { return Ok(still) };
        let mut summary = None;
        if options["summarize"] == true {
            let plan = prepare_branch(session.tree(), &step.left.entries, branch_budget(0, 16_384))?;
            let model = model(false);
            let by = Summarizer { model: &model, thinking: ThinkingLevel::Off, focus: None };
            let answer = plan.request(&by, false).map(|_| {
                requests += 1;
                reply(case, 0).unwrap_or_default()
            });
            if answer.as_ref().is_some_and(|reply| reply.stop_reason == StopReason::Aborted) {
                return Ok(json!({"cancelled": true, "aborted": true, "editorText": null,
                    "hasSummaryEntry": false}));
            }
            summary = Some(plan.finish(answer.as_ref(), step.from_id.as_deref())?);
        }
        let has_summary = summary.is_some();
        let plans = go(&mut session, &step, summary, options["label"].as_str(), Wall(2), &mut rng)?;
        appended.extend(plans.iter().map(|plan| plan.slot));
        Ok(json!({"cancelled": false, "editorText": step.editor_text, "hasSummaryEntry": has_summary}))
    };
    let result = run();
    let name = |id: Option<&str>| -> Value {
        id.map_or(Value::Null, |id| names.get(id).copied().unwrap_or("(earlier)").into())
    };
    let tree = session.tree();
    let leaf = tree.leaf().ok_or("no leaf")?;
    let leaf = match names.get(tree.id(leaf)) {
        Some(name) => (*name).to_owned(),
        None => {
            let node = tree.node(leaf).ok_or("no leaf")?;
            let body = node.body().ok_or("no body")?;
            let line = EntryLine { id: "x", parent: None, time: Wall(1), body };
            let mut w = tau_core::json::Writer::new();
            line.write(&mut w);
            let record: Value = serde_json::from_str(w.as_str()).map_err(|e| e.to_string())?;
            format!("(new {})", record["type"].as_str().unwrap_or_default())
        }
    };
    let entries: Result<Vec<Value>, String> =
        appended.iter().map(|slot| added(&session, *slot, &name)).collect();
    let roles: Vec<&str> = session.context().messages.iter().map(|message| message.role()).collect();
    same(
        &case["expected"],
        &json!({
            "rejected": result.is_err(),
            "result": result.unwrap_or(Value::Null),
            "leaf": leaf,
            "addedEntries": entries?,
            "contextRoles": roles,
            "requests": requests,
        }),
    )
}
