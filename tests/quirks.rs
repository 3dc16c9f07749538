//! Peculiarities of servers that people run, one test each (spec 85 §4.2: Q1 to Q14). The bodies are answers of those
//! servers, from `vectors/eco`. Q12 is about MCP, which is no protocol of models.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};
use tau_core::event::Event;
use tau_core::hub::Output;
use tau_core::input::Reply;
use tau_core::message::{AssistantMessage, Block, Message, StopReason, ToolCall};
use tau_core::model::Model;
use tau_core::now::Wall;
use tau_core::op::{Credential, Op, Outcome};
use tau_core::overflow::is_overflow;
use tau_core::provider::error::http_error_message;
use tau_core::provider::{self, BodyEnd, ModelRequest, RequestOptions, StreamEvent};
use tau_core::retry::classify::{Class, classify};
use tau_core::tools::{BUILTIN_NAMES, BuiltinOptions, builtins};
use tau_tests::drive::{self, Driven};

/// The body of an answer, by the name of its case.
fn body(api: &str, name: &str) -> String {
    let path = format!("{}/vectors/eco/wire-{api}.json", env!("CARGO_MANIFEST_DIR"));
    let all: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let cases = all["cases"].as_array().unwrap();
    let case = cases.iter().find(|case| case["name"] == name).expect("the case");
    case["input"]["body"].as_str().unwrap().to_owned()
}

fn decode(api: &str, body: &str) -> (Vec<StreamEvent>, AssistantMessage) {
    let mut decoder = provider::encoder(api).unwrap().decoder(&Arc::new(drive::model(api)), 1);
    let mut events = Vec::new();
    decoder.on_bytes(body.as_bytes(), &mut events);
    decoder.on_end(BodyEnd::Complete, &mut events);
    (events, decoder.take())
}

fn calls(reply: &AssistantMessage) -> Vec<&ToolCall> {
    reply.tool_calls().collect()
}

/// Plays a reply into a session with all tools: the ops that were started, and the results of its calls.
fn played(api: &str, body: &str) -> (Vec<String>, Vec<Value>) {
    let mut driven = Driven::new(api, builtins(BUILTIN_NAMES, BuiltinOptions::default()), Vec::new());
    driven.chunk(body.as_bytes().to_vec());
    driven.reply(Reply::Done(Outcome::BodyEnd));
    let (mut ops, mut results) = (Vec::new(), Vec::new());
    while let Some(output) = driven.hub.poll() {
        match output {
            Output::Start { what: Op::Secret(_), .. } => break,
            Output::Start { what, .. } => ops.push(format!("{what:?}")),
            Output::Event(event) => {
                if let Event::MessageEnd(message) = &event
                    && let Message::ToolResult(result) = &**message
                {
                    results.push(json!({"id": result.tool_call_id, "error": result.is_error}));
                }
            }
            Output::Cancel { .. } => {}
        }
    }
    (ops, results)
}

#[test]
fn q1_an_unknown_finish_reason_with_a_call_is_tool_use() {
    let body = body("google-generative-ai", "aimock/google-generative-ai/eco-tool/0");
    assert!(body.contains("FUNCTION_CALL"));
    let (_, reply) = decode("google-generative-ai", &body);
    assert_eq!(reply.stop_reason, StopReason::ToolUse);
    assert_eq!(reply.raw_stop_reason.as_deref(), Some("FUNCTION_CALL"));
    assert_eq!(calls(&reply).len(), 1);
}

#[test]
fn q2_json_instead_of_a_stream_is_a_protocol_error() {
    let body = body("anthropic-messages", "litellm/mock/anthropic-messages/x/0");
    for api in ["anthropic-messages", "openai-completions", "openai-responses", "mistral-conversations"] {
        let (_, reply) = decode(api, &body);
        let error = reply.error_message.unwrap_or_default();
        assert_eq!(reply.stop_reason, StopReason::Error, "{api}");
        assert!(error.contains("application/json") && error.contains("mock.invalid"), "{api}: {error}");
        assert_eq!(classify(&error), Class::Final, "{api}: {error}");
    }
}

#[test]
fn q3_the_words_of_a_failure_that_is_told_as_events() {
    let body = body("openai-responses", "litellm/mock/openai-responses/x/0");
    let model = drive::model("openai-responses");
    let text = http_error_message(&model, 500, &Vec::new(), body.as_bytes(), Wall(0));
    assert_eq!(text, "500 Error processing stream start (internal_server_error) (500)");
    assert_eq!(classify(&text), Class::Transient);
}

#[test]
fn q4_data_lines_alone_are_enough() {
    let name = "litellm/up-anthropic/openai-responses/eco-tool/0";
    let body = body("openai-responses", name);
    assert!(!body.contains("event:") && body.contains("[DONE]"));
    let (_, reply) = decode("openai-responses", &body);
    assert_eq!(reply.stop_reason, StopReason::ToolUse);
    assert!(reply.response_id.as_ref().is_some_and(|id| id.len() > 200));
    assert_eq!(calls(&reply)[0].name, "bash");
    // The next request takes the reply with its long ids.
    assert!(sent_again("openai-responses", reply).contains("\"call_id\":\"call_eco_1\""));
}

/// The body of the next request, after a reply.
fn sent_again(api: &str, reply: AssistantMessage) -> String {
    let model = Model { reasoning: true, ..drive::model(api) };
    let messages = [Arc::new(Message::user("go", Vec::new(), 1)), Arc::new(Message::Assistant(reply))];
    let (options, credential) =
        (RequestOptions::default(), Credential { api_key: Some("k".into()), ..Credential::default() });
    let request = ModelRequest {
        model: &model,
        messages: &messages,
        options: &options,
        credential: &credential,
        now_ms: 9,
    };
    let made = provider::encoder(api).unwrap().encode(&request).unwrap();
    String::from_utf8(made.body.to_vec()).unwrap()
}

#[test]
fn q5_hidden_thinking_comes_first_and_goes_back() {
    let body = body("anthropic-messages", "litellm/up-openai/anthropic-messages/eco-tool/0");
    let (_, reply) = decode("anthropic-messages", &body);
    assert!(matches!(&reply.content[0], Block::Thinking(block) if block.redacted));
    assert!(matches!(&reply.content[1], Block::ToolCall(call) if call.name == "bash"));
    let again = sent_again("anthropic-messages", reply);
    assert!(again.contains(r#"{"type":"redacted_thinking","data":"litellm_encrypted_reasoning:"#), "{again}");
}

#[test]
fn q6_blocks_that_all_end_at_the_end() {
    let body = body("anthropic-messages", "llama-tool/anthropic-messages/1");
    let (events, reply) = decode("anthropic-messages", &body);
    let place = |wanted: &StreamEvent| events.iter().position(|event| event == wanted).unwrap();
    let (second, first_end) =
        (place(&StreamEvent::ToolCallStart { index: 1 }), place(&StreamEvent::ToolCallEnd { index: 0 }));
    assert!(second < first_end, "the blocks do not overlap");
    let calls = calls(&reply);
    assert_eq!(*calls[0].arguments, json!({"path": "", "content": ""}));
    assert_eq!(*calls[1].arguments, json!({"path": "", "content": ""}));
}

#[test]
fn q7_a_call_that_was_cut_is_not_run_though_the_reply_is_complete() {
    let body = body("openai-responses", "llama-tool/openai-responses/0");
    let (_, reply) = decode("openai-responses", &body);
    assert_eq!(reply.stop_reason, StopReason::ToolUse);
    let (cut, good): (Vec<&ToolCall>, Vec<&ToolCall>) =
        reply.tool_calls().partition(|call| call.arguments_error.is_some());
    assert_eq!((cut.len(), good.len()), (1, 2));
    assert_eq!(*cut[0].arguments, json!({}));
    // The same reply with the cut call alone: nothing is started, the call has its answer.
    let keys: Vec<&str> = good.iter().filter_map(|call| Some(call.id.split_once("|fc_")?.1)).collect();
    let about_good =
        |event: &&str| !event.contains("response.completed") && keys.iter().any(|key| event.contains(key));
    let rest: Vec<&str> = body.split("\n\n").filter(|event| !about_good(event)).collect();
    let (ops, results) = played("openai-responses", &rest.join("\n\n"));
    assert!(ops.is_empty(), "{ops:?}");
    assert_eq!(results, [json!({"id": cut[0].id, "error": true})]);
}

#[test]
fn q8_calls_of_a_reply_at_its_limit_are_answered_and_not_run() {
    let body = body("anthropic-messages", "llama-tool/anthropic-messages/1");
    let (_, reply) = decode("anthropic-messages", &body);
    assert_eq!(reply.stop_reason, StopReason::Length);
    assert_eq!(*calls(&reply)[2].arguments, json!({}));
    let (ops, results) = played("anthropic-messages", &body);
    assert!(ops.is_empty(), "{ops:?}");
    assert_eq!(results.len(), 3);
    assert!(results.iter().all(|result| result["error"] == true), "{results:?}");
}

#[test]
fn q9_null_content_is_nothing() {
    let body = body("openai-completions", "llama-text/openai-completions/0");
    assert!(body.contains("\"content\":null"));
    let (events, reply) = decode("openai-completions", &body);
    assert_eq!(events[..2], [StreamEvent::Start, StreamEvent::TextStart { index: 0 }]);
    assert_eq!(reply.content, [Block::text("^q~f")]);
}

#[test]
fn q10_an_overflow_in_the_words_of_llama() {
    let body = json!({"error": {
        "code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 4096,
        "message": "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
    }});
    for api in ["openai-completions", "openai-responses", "anthropic-messages"] {
        let model = drive::model(api);
        let text = http_error_message(&model, 400, &Vec::new(), body.to_string().as_bytes(), Wall(0));
        assert!(text.starts_with("400 ") && text.contains("exceed_context_size_error"), "{text}");
        let reply = AssistantMessage {
            stop_reason: StopReason::Error,
            error_message: Some(text),
            ..AssistantMessage::default()
        };
        assert!(is_overflow(&reply, None), "{api}");
    }
}

#[test]
fn q11_cached_tokens_are_inside_the_prompt() {
    let body = body("openai-completions", "llama-text/openai-completions/0");
    let (_, reply) = decode("openai-completions", &body);
    let usage = &reply.usage;
    assert_eq!((usage.input, usage.cache_read, usage.output), (1583, 1, 5));
    assert_eq!(usage.total_tokens, 1589);
}

#[test]
fn q13_broken_json_in_a_ping_is_not_looked_at() {
    let body = body("anthropic-messages", "llmock/anthropic-messages/malformed/0");
    assert!(body.contains("event: ping"));
    let (_, reply) = decode("anthropic-messages", &body);
    assert_eq!(reply.stop_reason, StopReason::Stop);
    assert_eq!(reply.error_message, None);
}

#[test]
fn q14_the_wait_of_the_service_counts_when_it_is_longer_than_ours() {
    let apis = [
        "openai-completions",
        "openai-responses",
        "anthropic-messages",
        "google-generative-ai",
        "mistral-conversations",
    ];
    for api in apis {
        for (asked, waited) in [("4", 4_000), ("1", 2_000)] {
            let mut driven = Driven::asked(api, Vec::new(), Vec::new());
            let headers = vec![("Retry-After".into(), asked.into())];
            driven.reply(Reply::Head { status: 429, headers });
            driven.reply(Reply::Done(Outcome::BodyEnd));
            let mut waits = Vec::new();
            while let Some(output) = driven.hub.poll() {
                if let Output::Event(event) = output
                    && let Event::AutoRetryStart { delay_ms, .. } = event
                {
                    waits.push(delay_ms);
                }
            }
            assert_eq!(waits, [waited], "{api}, asked for {asked} s");
        }
    }
}
