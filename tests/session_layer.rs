//! What follows runs by itself, and what a person does meanwhile: scripted cases that no recording holds.

#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};
use tau_tests::play::desk::{Played, play};

fn played(input: &Value) -> Played {
    play(input).unwrap_or_else(|why| panic!("{why}"))
}

/// The events of these types; with `reason` or `success` where they have one.
fn names(played: &Played, types: &[&str]) -> Vec<String> {
    let name = |event: &Value| {
        let kind = event["type"].as_str().unwrap_or_default();
        let more = event["reason"].as_str().map(str::to_owned);
        let more = more.or_else(|| event["success"].as_bool().map(|well| well.to_string()));
        types.contains(&kind).then(|| more.map_or_else(|| kind.to_owned(), |more| format!("{kind} {more}")))
    };
    played.events.iter().filter_map(name).collect()
}

fn kinds(played: &Played) -> Vec<&str> {
    let entries = played.last["entries"].as_array().map_or(&[][..], Vec::as_slice);
    entries.iter().filter_map(|entry| entry["role"].as_str().or_else(|| entry["type"].as_str())).collect()
}

fn says(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn fails(text: &str) -> Value {
    json!({"content": [], "stopReason": "error", "errorMessage": text, "noStart": true})
}

fn prompt(text: &str) -> Value {
    json!({"op": "prompt", "text": text})
}

const RETRIES: [&str; 4] = ["auto_retry_start", "auto_retry_end", "agent_end", "agent_settled"];
const COMPACTIONS: [&str; 3] = ["compaction_start", "compaction_end", "agent_settled"];

// ----- retries -----

/// A run ends with a failure that is to be tried again, and at that moment the user has had enough.
#[test]
fn an_abort_at_the_end_of_a_retried_run_ends_the_retries() {
    let played = played(&json!({
        "responses": [fails("overloaded"), fails("overloaded"), says("never")],
        "ops": [prompt("hi")],
        "when": [{"on": {"type": "agent_end", "nth": 2}, "do": [{"op": "abort"}]}],
    }));
    let wanted = ["agent_end", "auto_retry_start", "agent_end", "auto_retry_end false", "agent_settled"];
    assert_eq!(names(&played, &RETRIES), wanted);
}

#[test]
fn a_graceful_stop_ends_the_retries() {
    let played = played(&json!({
        "responses": [fails("overloaded"), fails("overloaded"), says("never")],
        "ops": [prompt("hi")],
        "when": [{"on": {"type": "turn_start", "nth": 2}, "do": [{"op": "gracefulStop"}]}],
    }));
    let wanted = ["agent_end", "auto_retry_start", "agent_end", "auto_retry_end false", "agent_settled"];
    assert_eq!(names(&played, &RETRIES), wanted);
}

/// The retries that an abort ended do not count for the next prompt.
#[test]
fn retries_begin_anew_after_an_abort() {
    let played = played(&json!({
        "settings": {"retry": {"maxRetries": 1}},
        "responses": [fails("overloaded"), fails("overloaded"), fails("overloaded"), says("well")],
        "ops": [prompt("hi"), prompt("again")],
        "when": [{"on": {"type": "message_end", "role": "assistant", "nth": 2}, "do": [{"op": "abort"}]}],
    }));
    let starts = played.events.iter().filter(|event| event["type"] == "auto_retry_start");
    assert_eq!(starts.map(|event| event["attempt"].clone()).collect::<Vec<_>>(), [1, 1]);
    let ends = names(&played, &["auto_retry_end"]);
    assert_eq!(ends, ["auto_retry_end false", "auto_retry_end true"]);
}

// ----- compaction without progress (bug 63) -----

/// A prompt and tools that fill most of a small window: a summary changes nothing.
fn crowded(responses: &[Value], prompts: u64) -> Value {
    let first = json!({
        "content": [{"type": "text", "text": "x".repeat(400)}],
        "usage": {"input": 30_000, "output": 100, "totalTokens": 30_100},
    });
    let mut all = vec![first];
    all.extend_from_slice(responses);
    let ops: Vec<Value> =
        (0..prompts).map(|number| prompt(&format!("{number} {}", "y".repeat(200)))).collect();
    json!({
        "contextWindow": 32_768,
        "settings": {"compaction": {"reserveTokens": 1_000, "keepRecentTokens": 120}},
        "responses": all,
        "ops": ops,
    })
}

const TOO_LONG: &str = "prompt is too long: 33000 tokens > 32768 maximum";

/// The scenario of the case: a system prompt that fills the window, and a server that refuses whatever is left.
#[test]
fn case_63_scenario() {
    let file = |name: &str| -> Value {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/bugs/63-compaction-without-progress/");
        serde_json::from_str(&std::fs::read_to_string(format!("{folder}{name}")).unwrap()).unwrap()
    };
    let (scenario, limits) = (file("scenario.json"), file("expected.json")["expect"].take());
    let answer = |step: &Value| if step == "overflow error" { fails(TOO_LONG) } else { says("SUM") };
    let script: Vec<Value> = scenario["script"].as_array().unwrap().iter().map(answer).collect();
    let tokens = scenario["systemPromptTokens"].as_u64().unwrap() as usize;
    let mut responses = vec![says(&"x".repeat(400))];
    responses.extend_from_slice(&script);
    let input = json!({
        "contextWindow": scenario["contextWindow"],
        "systemPrompt": "s".repeat(4 * tokens),
        "settings": {"compaction": {"reserveTokens": scenario["reserveTokens"], "keepRecentTokens": 120}},
        "responses": responses,
        // Compaction is off at first: else the size of the prompt alone calls for one before the overflow is met.
        "ops": [
            {"op": "setAutoCompaction", "enabled": false}, prompt(&"a".repeat(200)), prompt(&"b".repeat(200)),
        ],
        "when": [{"on": {"type": "message_start", "role": "user", "nth": 2},
            "do": [{"op": "setAutoCompaction", "enabled": true}]}],
    });
    let played = played(&input);
    let compactions = kinds(&played).iter().filter(|kind| **kind == "compaction").count() as u64;
    assert_eq!(compactions, limits["maxCompactions"].as_u64().unwrap(), "{:?}", names(&played, &COMPACTIONS));
    let retries = played.events.iter().filter(|event| event["willRetry"] == true).count() as u64;
    assert_eq!(retries, limits["maxRetries"].as_u64().unwrap(), "{:?}", names(&played, &COMPACTIONS));
}

#[test]
fn case_63_one_compaction_and_one_retry_then_the_overflow_is_final() {
    let responses = [fails(TOO_LONG), says("SUM"), fails(TOO_LONG), says("SUM")];
    let played = played(&crowded(&responses, 2));
    let wanted = [
        "agent_settled",
        "compaction_start overflow",
        "compaction_end overflow",
        // Told without another try.
        "compaction_end overflow",
        "agent_settled",
    ];
    assert_eq!(names(&played, &COMPACTIONS), wanted);
    assert_eq!(kinds(&played).iter().filter(|kind| **kind == "compaction").count(), 1);
    assert_eq!(played.last["requests"], 4);
}

/// Other prompts come, the window stays as small: no summary is paid for again before a good reply.
#[test]
fn case_63_later_prompts_do_not_compact_before_a_good_reply() {
    let responses = [
        fails(TOO_LONG),
        says("SUM"),
        fails(TOO_LONG),
        fails(TOO_LONG),
        fails("401 no"),
        fails(TOO_LONG),
        says("well"),
        fails(TOO_LONG),
        says("SUM"),
        says("well"),
    ];
    let played = played(&crowded(&responses, 7));
    let compactions = kinds(&played).iter().filter(|kind| **kind == "compaction").count();
    assert_eq!(compactions, 2, "{:?}", names(&played, &COMPACTIONS));
    assert_eq!(played.last["requests"], 11);
}

/// A failure of another kind after a compaction is no progress either, whatever the estimate of the context says.
#[test]
fn case_63_a_failure_after_a_compaction_compacts_nothing() {
    let played = played(&json!({
        "contextWindow": 1_000,
        "settings": {"compaction": {"reserveTokens": 900, "keepRecentTokens": 50}},
        "responses": [says(&"x".repeat(1_000)), says("SUM"), fails("blocked by a filter"), says("SUM")],
        "ops": [prompt("first"), prompt(&"y".repeat(1_000))],
    }));
    let wanted = ["compaction_start threshold", "compaction_end threshold", "agent_settled", "agent_settled"];
    assert_eq!(names(&played, &COMPACTIONS), wanted);
}

/// A cut reply between two turns is no progress; one that ended at the limit of the model is.
#[test]
fn case_63_between_turns_a_cut_reply_compacts_nothing_again() {
    let case = |output: u64| {
        let cut = json!({
            "content": [{"type": "text", "text": "half"}], "stopReason": "length",
            "usage": {"input": 950, "output": output, "totalTokens": 950 + output},
        });
        let full = json!({
            "content": [{"type": "text", "text": "z".repeat(400)}],
            "usage": {"input": 940, "output": 10, "totalTokens": 950},
        });
        let fine = json!({
            "content": [{"type": "text", "text": "fine"}],
            "usage": {"input": 200, "output": 10, "totalTokens": 210},
        });
        played(&json!({
            "contextWindow": 1_000, "maxTokens": 40,
            "settings": {"compaction": {"reserveTokens": 100, "keepRecentTokens": 20}},
            "responses": [full, says("SUM"), cut, fine.clone(), fine],
            "ops": [prompt("first"), prompt(&"y".repeat(400))],
            "when": [{"on": {"type": "message_update", "event": "text_delta", "nth": 2},
                "do": [{"op": "steer", "text": "go on"}]}],
        }))
    };
    let compactions = |played: &Played| names(played, &["compaction_end"]);
    assert_eq!(compactions(&case(20)), ["compaction_end threshold"]);
    assert_eq!(compactions(&case(40)), ["compaction_end threshold", "compaction_end threshold"]);
}

/// A failed summary leaves no record and does not end the run.
#[test]
fn case_63_a_failed_compaction_leaves_no_record() {
    let played = played(&crowded(&[fails(TOO_LONG), fails("400 no summary")], 2));
    assert!(!kinds(&played).contains(&"compaction"), "{:?}", kinds(&played));
    let end = played.events.iter().find(|event| event["type"] == "compaction_end");
    assert_eq!(
        end.map(|end| (&end["willRetry"], &end["hasErrorMessage"])),
        Some((&json!(false), &json!(true)))
    );
}

// ----- calls without results (bug 64) -----

fn calls(ids: &[&str], usage: u64) -> Value {
    let call = |id: &&str| json!({"type": "toolCall", "id": id, "name": "a", "arguments": {}});
    let content: Vec<Value> = ids.iter().map(call).collect();
    json!({"content": content, "usage": {"input": usage, "output": 10, "totalTokens": usage + 10}})
}

/// The context passes the threshold while two calls run: it is compacted when both results are there.
#[test]
fn case_64_compaction_waits_for_all_results() {
    let played = played(&json!({
        "contextWindow": 1_000,
        "settings": {"compaction": {"reserveTokens": 100, "keepRecentTokens": 20}},
        "tools": [{"name": "a", "result": "r".repeat(200)}],
        "responses": [says(&"x".repeat(400)), calls(&["c1", "c2"], 940), says("SUM"), says("SUM"), says("done")],
        "ops": [prompt("first"), prompt("second")],
    }));
    let types = ["tool_execution_end", "turn_end", "compaction_start", "compaction_end"];
    let wanted = [
        "turn_end",
        "tool_execution_end",
        "tool_execution_end",
        "turn_end",
        "compaction_start threshold",
        "compaction_end threshold",
        "turn_end",
    ];
    assert_eq!(names(&played, &types), wanted);
    let kinds = kinds(&played);
    let compaction = kinds.iter().position(|kind| *kind == "compaction");
    let last_result = kinds.iter().rposition(|kind| *kind == "toolResult");
    assert!(last_result < compaction, "{kinds:?}");
    check_pairs(&played);
}

/// Somebody asks for a compaction while calls run: the run is aborted first, and each call has its result.
#[test]
fn case_64_compact_during_calls_comes_after_their_results() {
    let played = played(&json!({
        "settings": {"compaction": {"keepRecentTokens": 20}},
        "tools": [{"name": "a", "rank": 1}],
        "responses": [says(&"x".repeat(400)), calls(&["c1", "c2"], 100), says("SUM"), says("SUM")],
        "ops": [prompt("first"), prompt("second")],
        "when": [{"on": {"type": "tool_execution_start"}, "do": [{"op": "compact"}]}],
    }));
    let types = ["agent_end", "compaction_start", "compaction_end", "agent_settled"];
    let wanted = [
        "agent_end",
        "agent_settled",
        "agent_end",
        "agent_settled",
        "compaction_start manual",
        "compaction_end manual",
    ];
    assert_eq!(names(&played, &types), wanted);
    check_pairs(&played);
}

/// No result stands in a context without its call.
fn check_pairs(played: &Played) {
    let roles = played.last["contextRoles"].as_array().map_or(&[][..], Vec::as_slice);
    for pair in roles.windows(2) {
        let is_after_call = pair[0] == "assistant:toolUse" || pair[0] == "toolResult";
        assert!(pair[1] != "toolResult" || is_after_call, "{roles:?}");
    }
}

// ----- words and waits of failures (bugs 62, 66, 67) -----

/// Each text of `messages.json` in a bug folder with what `expected.json` says of it; `null` leaves it open.
fn texts(folder: &str, verdicts: &str) -> Vec<(String, bool)> {
    let file = |name: &str| -> Value {
        let path = format!("{}/bugs/{folder}/{name}", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    let (messages, expected) = (file("messages.json"), file("expected.json"));
    let verdicts = expected.pointer(verdicts).unwrap().as_array().unwrap().clone();
    let text = |message: &Value| message["errorMessage"].as_str().unwrap().to_owned();
    let pairs = messages.as_array().unwrap().iter().map(text).zip(verdicts);
    pairs.filter_map(|(text, verdict)| Some((text, verdict.as_bool()?))).collect()
}

/// What overflows is compacted and never just tried again; what does not is not compacted.
#[test]
fn case_62_overflow_is_decided_before_retries() {
    let texts = texts("62-overflow-message-patterns", "/expect/wanted");
    assert!(texts.len() > 5);
    for (text, is_overflow) in texts {
        let responses = [fails(&text), says("SUM"), says("well"), says("well"), says("well")];
        let played = played(&crowded(&responses, 2));
        let starts = names(&played, &["compaction_start", "auto_retry_start"]);
        let is_compacted = starts == ["compaction_start overflow"];
        assert_eq!(is_compacted, is_overflow, "{text}: {starts:?}");
    }
}

#[test]
fn case_67_a_spent_quota_is_not_tried_again() {
    let texts = texts("67-retry-quota-is-final", "/pi16");
    assert!(texts.len() > 5);
    for (text, is_transient) in texts {
        let played = played(&json!({"responses": [fails(&text), says("well")], "ops": [prompt("hi")]}));
        assert_eq!(played.last["requests"] == 2, is_transient, "{text}");
    }
}

fn refused(asked_ms: u64) -> Value {
    let mut response = fails("429 too many requests");
    response["askedMs"] = asked_ms.into();
    json!({
        "responses": [response, says("well")], "ops": [prompt("hi")], "showErrors": true,
        "when": [],
    })
}

/// The wait of a service counts when it is longer than ours, and is not cut.
#[test]
fn case_66_the_wait_of_a_service_is_kept() {
    for (asked, waited) in [(0, 2_000), (1_500, 2_000), (30_000, 30_000), (60_000, 60_000)] {
        let played = played(&refused(asked));
        let start = played.events.iter().find(|event| event["type"] == "auto_retry_start").unwrap();
        assert_eq!(start["delayMs"], waited, "{asked}");
        assert_eq!(played.last["requests"], 2);
    }
}

/// A wait of hours is neither made nor shortened: it is told and the run ends.
#[test]
fn case_66_a_wait_of_hours_is_final() {
    let played = played(&refused(7_200_000));
    assert_eq!(
        names(&played, &["auto_retry_start", "(error)", "agent_settled"]),
        ["(error)", "agent_settled"]
    );
    assert!(played.events.iter().any(|event| event["code"] == "retry_too_long"));
    assert_eq!(played.last["requests"], 1);
}

#[test]
fn case_66_the_wait_can_be_cancelled() {
    for op in ["abort", "abortRetry"] {
        let mut input = refused(30_000);
        input["when"] = json!([{"on": {"type": "entry_appended"}, "do": [{"op": op}]}]);
        let played = played(&input);
        let wanted = ["agent_end", "auto_retry_start", "auto_retry_end false", "agent_settled"];
        assert_eq!(names(&played, &RETRIES), wanted);
        assert_eq!(played.last["requests"], 1);
    }
}

// ----- continuing -----

/// A session that begins with something else than a prompt is continued: the model is told what it is.
#[test]
fn continuing_tells_the_system_prompt() {
    let played = played(&json!({
        "responses": [says("ok")],
        "ops": [{"op": "bashResult", "command": "ls", "output": "f"}, {"op": "continue"}],
    }));
    let request =
        played.events.iter().find(|event| event["type"] == "(request)").map(|event| &event["roles"]);
    assert_eq!(request, Some(&json!(["user", "system"])));
    assert_eq!(kinds(&played)[2..], ["bashExecution", "system", "assistant"]);
}
