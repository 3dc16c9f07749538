//! A reply of `anthropic-messages`: the split never changes the outcome, there is one terminal event, every block that
//! was reported stands in the reply, and what arrived can be sent back.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tau_core::message::{AssistantMessage, Message, StopReason};
use tau_core::model::Model;
use tau_core::op::Credential;
use tau_core::provider::{BodyEnd, ModelRequest, RequestOptions, StreamEvent, encoder};

const API: &str = "anthropic-messages";

fn decode<'a>(
    model: &Arc<Model>,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> (Vec<StreamEvent>, AssistantMessage) {
    let mut decoder = encoder(API).expect("the protocol").decoder(model, 1);
    let mut events = Vec::new();
    for piece in pieces {
        decoder.on_bytes(piece, &mut events);
    }
    decoder.on_end(BodyEnd::Complete, &mut events);
    for index in 0..decoder.partial().content.len() {
        let _ = decoder.partial_arguments(index);
    }
    (events, decoder.take())
}

fuzz_target!(|data: &[u8]| {
    let Some((&seed, body)) = data.split_first() else { return };
    let model = Arc::new(Model { id: "m".into(), api: API.into(), max_tokens: 9, ..Model::default() });
    let (events, reply) = decode(&model, core::iter::once(body));
    let other = decode(&model, body.chunks(usize::from(seed) + 1));
    assert_eq!((&events, &reply), (&other.0, &other.1));

    let is_end = |event: &&StreamEvent| matches!(event, StreamEvent::Done | StreamEvent::Error);
    assert_eq!(events.iter().filter(is_end).count(), 1);
    let last = events.last().expect("a terminal event");
    assert_eq!(*last == StreamEvent::Error, reply.stop_reason == StopReason::Error);
    assert!(is_end(&last) && reply.stop_reason != StopReason::Pending);
    assert_eq!(reply.error_message.is_some(), reply.stop_reason.is_failure());
    let started = |event: &&StreamEvent| {
        use StreamEvent::{TextStart, ThinkingStart, ToolCallStart};
        matches!(event, TextStart { .. } | ThinkingStart { .. } | ToolCallStart { .. })
    };
    assert_eq!(events.iter().filter(started).count(), reply.content.len());

    let credential = Credential { api_key: Some("key".into()), ..Credential::default() };
    let messages = [Message::user("go", Vec::new(), 1), Message::Assistant(reply)].map(Arc::new);
    let options = RequestOptions::default();
    let request = ModelRequest {
        model: &model,
        messages: &messages,
        options: &options,
        credential: &credential,
        now_ms: 1,
    };
    let made = encoder(API).expect("the protocol").encode(&request).expect("a request");
    serde_json::from_slice::<serde_json::Value>(&made.body).expect("a JSON body");
});
