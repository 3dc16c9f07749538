//! Summary requests, their retries and what comes out.
//!
//! The reference sends no output cap and other titles for the first half of a turn; the expectations are read with
//! the decisions of this project instead (D12, seed 000): caps, titles, `<conversation>` around both conversations, and
//! the instructions of a person only at the end of the history request, if there is one.

use serde_json::{Value, json};
use tau_core::compaction::{
    Plan, Summarizer, SummaryKind, SummaryRequest, check_reply, finish, prompts, requests,
};
use tau_core::fault::Fault;
use tau_core::json::Writer;
use tau_core::message::{AssistantMessage, Message, Usage};
use tau_core::model::{Model, ThinkingLevel};
use tau_core::now::Wall;
use tau_core::provider::{CacheRetention, RequestOptions};
use tau_core::retry::{Decision, decide};
use tau_core::session::EntryBody;
use tau_core::settings::Retry;
use tau_tests::compare::same;
use tau_tests::messages::read;

use super::compaction::{file_ops, settings};

/// What the vectors call a session id that is fresh.
const FRESH: &str = "fresh-uuidv7";
/// Sections of a turn's first half (seed 000).
const PREFIX_TITLES: [&str; 3] = ["Original Request", "Early Progress", "Context for Suffix"];

/// The n-th reply of a case (the last one repeats), with the usage that the reference's test provider reports.
pub fn reply(case: &Value, n: usize) -> Result<AssistantMessage, String> {
    let replies = case["input"]["replies"].as_array().ok_or("no replies")?;
    let given = replies.get(n).or_else(|| replies.last()).ok_or("no reply")?;
    let input = 10 * (n + 1);
    let mut message = json!({
        "role": "assistant", "provider": "faux", "model": "m1", "api": "faux", "timestamp": 1,
        "content": given.get("content").cloned().unwrap_or_else(|| match given["text"].as_str() {
            Some("") | None => json!([]),
            Some(text) => json!([{"type": "text", "text": text}]),
        }),
        "stopReason": given.get("stopReason").cloned().unwrap_or_else(|| "stop".into()),
        "usage": {"input": input, "output": 1, "cacheRead": 2, "cacheWrite": 3, "totalTokens": input + 6,
            "cost": {"input": 0.5, "output": 0.25, "cacheRead": 0, "cacheWrite": 0, "total": 0.75}},
    });
    if let Some(error) = given["errorMessage"].as_str() {
        message["errorMessage"] = error.into();
    }
    match Message::from_value(&message) {
        Some(Message::Assistant(reply)) => Ok(reply),
        _ => Err(format!("not a reply: {message}")),
    }
}

pub fn model(reasoning: bool) -> Model {
    Model { reasoning, max_tokens: 100_000, context_window: 200_000, ..Model::default() }
}

/// What the vectors say about a request.
pub fn described(request: &SummaryRequest) -> Result<Value, String> {
    let messages = request.messages(7);
    let roles: Value = messages.iter().map(|message| message.role()).collect();
    let (Some(Message::System(system)), Some(Message::User(user))) =
        (messages.first().map(|m| &**m), messages.get(1).map(|m| &**m))
    else {
        return Err("not a system and a user message".into());
    };
    let texts: Vec<&str> = user.content.texts().collect();
    let [prompt] = texts.as_slice() else { return Err("not one block".into()) };
    let rest = prompt.strip_prefix("<conversation>\n").ok_or("no conversation first")?;
    let (body, rest) = rest.split_once("\n</conversation>\n\n").ok_or("the conversation does not end")?;
    let (previous, rest) = match rest.strip_prefix("<previous-summary>\n") {
        Some(inner) => {
            let (text, rest) =
                inner.split_once("\n</previous-summary>\n\n").ok_or("no end of the summary")?;
            (Some(text), rest)
        }
        None => (None, rest),
    };
    let (task, focus) = match rest.split_once(prompts::FOCUS) {
        Some((task, focus)) => (task, Some(focus)),
        None => (rest, None),
    };
    let headings: Vec<&str> = task.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    if headings.contains(&"Progress") {
        for part in ["### Done\n- [x] ", "### In Progress\n- [ ] ", "### Blocked\n- "] {
            task.find(part).ok_or_else(|| format!("no {part:?}"))?;
        }
    }
    let tools = system.tools_added.as_ref().is_some_and(|tools| !tools.is_empty());
    let talk = RequestOptions { max_tokens: Some(1), session_id: Some("talk".into()), ..Default::default() };
    let options = request.options(&talk, FRESH.into());
    Ok(json!({
        "roles": roles,
        "systemHasText": !system.content.trim().is_empty(),
        "systemDeclaresTools": tools,
        "userBlocks": texts.len(),
        "conversation": {"form": "conversation-tag", "body": body},
        "previousSummary": previous,
        "additionalFocus": focus,
        "headings": headings,
        "options": {
            "maxTokens": options.max_tokens,
            "reasoning": options.reasoning.filter(|level| *level != ThinkingLevel::Off).map(ThinkingLevel::name),
            "cacheRetention": if options.cache == CacheRetention::None { "none" } else { "other" },
            "sessionIdGiven": options.session_id.is_some(),
            "sessionId": options.session_id,
            "hasTools": tools || options.tool_choice.is_some(),
        },
    }))
}

/// The expected requests as this project decided them.
fn decided(expected: &Value, reserve: u64) -> Value {
    let mut requests = expected.clone();
    let list = requests.as_array_mut().map(Vec::as_mut_slice).unwrap_or_default();
    let has_history = list.iter().any(|request| request["conversation"]["form"] == "conversation-tag");
    for request in list {
        let is_prefix = request["conversation"]["form"] == "headings";
        let share = if is_prefix { 0.5 } else { 0.8 };
        request["options"]["maxTokens"] = json!((share * reserve as f64).floor() as u64);
        if is_prefix {
            request["conversation"]["form"] = "conversation-tag".into();
            request["headings"] = json!(PREFIX_TITLES);
            if has_history {
                request["additionalFocus"] = Value::Null;
            }
        }
    }
    requests
}

fn plan_of(given: &Value) -> Plan {
    Plan {
        first_kept: given["firstKeptEntryId"].as_str().unwrap_or_default().into(),
        history: read(&given["messagesToSummarize"]),
        prefix: read(&given["turnPrefixMessages"]),
        is_split_turn: given["isSplitTurn"] == true,
        tokens_before: given["tokensBefore"].as_u64().unwrap_or_default(),
        previous_summary: given["previousSummary"].as_str().map(Into::into),
        files: file_ops(&given["fileOps"]),
        system: None,
        settings: settings(&given["settings"]),
    }
}

fn retry_of(given: &Value) -> Retry {
    Retry {
        enabled: given["enabled"] == true,
        max_retries: given["maxRetries"].as_u64().unwrap_or_default(),
        base_delay_ms: given["baseDelayMs"].as_u64().unwrap_or_default(),
        max_agent_delay_ms: 60_000,
    }
}

/// Sends requests as the session layer does: one after the other, each tried again by the policy of the session.
struct Sender<'a> {
    case: &'a Value,
    sent: Vec<Value>,
    callbacks: Vec<Value>,
}

impl Sender<'_> {
    fn send(&mut self, request: &SummaryRequest) -> Result<AssistantMessage, String> {
        let policy = retry_of(&self.case["input"]["retry"]);
        let mut made = 0;
        loop {
            let reply = reply(self.case, self.sent.len())?;
            self.sent.push(described(request)?);
            let Decision::Again { attempt, delay_ms } = decide(&policy, made, &reply, None, None) else {
                if made > 0 {
                    let finished = !reply.stop_reason.is_failure();
                    self.callbacks.push(json!({"finished": finished, "attempt": made}));
                }
                return Ok(reply);
            };
            made = attempt;
            self.callbacks
                .push(json!({"scheduled": attempt, "max": policy.max_retries, "delayMs": delay_ms}));
            self.callbacks.push(json!({"slept": delay_ms}));
            self.callbacks.push(json!({"attemptStart": true}));
        }
    }
}

fn failure(fault: &Fault) -> &str {
    match fault.code {
        "summary_failed" => "error",
        "summary_incomplete" => "length",
        "summary_tool_call" => "tool-call",
        other => other,
    }
}

pub fn usage_value(usage: &Usage) -> Value {
    let mut w = Writer::new();
    usage.write(&mut w);
    serde_json::from_str(w.as_str()).unwrap_or_default()
}

/// A merged summary as the vectors describe it.
fn summary_value(summary: &str) -> Value {
    let Some((history, rest)) = summary.split_once("\n\n---\n\n") else { return summary.into() };
    let (label, rest) = rest.split_once('\n').unwrap_or_default();
    let bold = label.len() > 4 && label.starts_with("**") && label.ends_with("**");
    json!({"merged": {
        "history": history,
        "separator": "\n\n---\n\n",
        "boldLabelLine": bold,
        "labelFollowedByBlankLine": rest.starts_with('\n'),
        "rest": rest.strip_prefix('\n').unwrap_or(rest),
    }})
}

/// `compaction-requests`
pub fn compaction(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let plan = plan_of(&input["preparation"]);
    let thinking = input["thinkingLevel"].as_str().and_then(ThinkingLevel::parse).unwrap_or_default();
    let model = model(input["modelReasoning"] == true);
    let by = Summarizer { model: &model, thinking, focus: input["customInstructions"].as_str() };
    let mut sender = Sender { case, sent: Vec::new(), callbacks: Vec::new() };
    let mut replies = Vec::new();
    let mut failed = None;
    for request in requests(&plan, &by) {
        let reply = sender.send(&request)?;
        failed = check_reply(&reply).err();
        replies.push(reply);
        if failed.is_some() {
            break;
        }
    }
    let finished = finish(&plan, &replies, Wall(1));
    let (result, failed) = match (finished, failed) {
        (Ok(EntryBody::Compaction(entry)), None) => {
            let result = json!({
                "summary": summary_value(&entry.summary),
                "firstKeptEntryId": entry.first_kept,
                "tokensBefore": entry.tokens_before,
                "usage": entry.usage.as_ref().map(usage_value),
                "details": entry.details,
            });
            (result, None)
        }
        (Err(fault), Some(first)) if fault == first => (Value::Null, Some(fault)),
        (finished, failed) => return Err(format!("{finished:?} does not fit to {failed:?}")),
    };
    let said = replies.last().and_then(|reply| reply.error_message.as_deref());
    let includes = said.and_then(|said| failed.as_ref().map(|fault| fault.message.contains(said)));
    let mut expected = case["expected"].clone();
    expected["requests"] = decided(&expected["requests"], plan.settings.reserve_tokens);
    same(
        &expected,
        &json!({
            "requests": sender.sent,
            "retryCallbacks": sender.callbacks,
            "result": result,
            "failure": failed.as_ref().map(failure),
            "failureIncludesProviderText": includes,
        }),
    )
}

#[test]
fn an_update_keeps_what_was_there() {
    let kept = |request: &SummaryRequest| request.kind == SummaryKind::History;
    let mut plan =
        plan_of(&json!({"messagesToSummarize": [{"role": "user", "content": "a", "timestamp": 1}],
        "previousSummary": "OLD", "settings": {"reserveTokens": 0}}));
    let model = model(false);
    let by = Summarizer { model: &model, thinking: ThinkingLevel::High, focus: Some(" ") };
    let update = requests(&plan, &by);
    plan.previous_summary = None;
    let first = requests(&plan, &by);
    assert!(update.len() == 1 && update.iter().all(kept) && first.iter().all(kept));
    assert!(
        update[0].prompt.contains("In Progress to Done") && !first[0].prompt.contains("In Progress to Done")
    );
    // No reserve: no cap of our own, which would be zero.
    assert_eq!((update[0].max_tokens, update[0].reasoning), (None, None));
    assert!(!update[0].prompt.contains(prompts::FOCUS), "blank instructions say nothing");
}
