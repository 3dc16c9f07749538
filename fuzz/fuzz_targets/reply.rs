//! What holds for a reply of any protocol: any bytes give a well-formed list of events, the split never changes them, and
//! what arrived can be sent back. The first byte chooses the split and the end of the body.

use std::sync::Arc;

use tau_core::fault::{FaultKind, IoFault};
use tau_core::message::{AssistantMessage, Block, Message, StopReason};
use tau_core::model::Model;
use tau_core::op::Credential;
use tau_core::provider::{BodyEnd, ModelRequest, RequestOptions, StreamEvent, encoder};

/// Checks one input for a model, which names the protocol.
pub fn check(model: Model, key: &str, data: &[u8]) {
    let Some((&seed, body)) = data.split_first() else { return };
    let end = match seed % 8 {
        0 => BodyEnd::Aborted,
        1 => BodyEnd::Failed(IoFault::new(FaultKind::Reset, "reset")),
        _ => BodyEnd::Complete,
    };
    let model = Arc::new(model);
    let whole = decode(&model, &end, core::iter::once(body));
    well_formed(&model.api, &whole.0, &whole.1);
    assert_eq!(whole, decode(&model, &end, body.chunks(1)), "byte by byte");
    assert_eq!(whole, decode(&model, &end, body.chunks(usize::from(seed) + 1)), "in pieces");

    let credential = Credential { api_key: Some(key.into()), ..Credential::default() };
    let messages = [Message::user("go", Vec::new(), 1), Message::Assistant(whole.1)].map(Arc::new);
    let options = RequestOptions::default();
    let request = ModelRequest {
        model: &model,
        messages: &messages,
        options: &options,
        credential: &credential,
        now_ms: 1,
    };
    let made = encoder(&model.api).expect("the protocol").encode(&request).expect("a request");
    serde_json::from_slice::<&serde_json::value::RawValue>(&made.body).expect("a JSON body");
}

fn decode<'a>(
    model: &Arc<Model>,
    end: &BodyEnd,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> (Vec<StreamEvent>, AssistantMessage) {
    let encoder = encoder(&model.api).expect("a protocol we speak");
    let mut decoder = encoder.decoder(model, 1);
    let mut events = Vec::new();
    for piece in pieces {
        decoder.on_bytes(piece, &mut events);
        for index in 0..decoder.partial().content.len() {
            if let Some(arguments) = decoder.partial_arguments(index) {
                assert!(arguments.is_object());
            }
        }
    }
    decoder.on_end(end.clone(), &mut events);
    (events, decoder.take())
}

/// Spec 30 §1.3.
fn well_formed(api: &str, events: &[StreamEvent], message: &AssistantMessage) {
    // There the end of an item has the last word about its text.
    let ends_decide = api.ends_with("responses");
    let (last, before) = events.split_last().expect("a terminal event");
    let failed = match last {
        StreamEvent::Done => false,
        StreamEvent::Error => true,
        other => panic!("{other:?} is the last event"),
    };
    assert_eq!(failed, message.stop_reason.is_failure());
    assert_eq!(failed, message.error_message.is_some());
    assert_ne!(message.stop_reason, StopReason::Pending);
    // One entry a block: text of its deltas, and whether it ended.
    let mut blocks: Vec<(String, bool)> = Vec::new();
    for event in before {
        match event {
            StreamEvent::Start => {}
            StreamEvent::TextStart { index }
            | StreamEvent::ThinkingStart { index }
            | StreamEvent::ToolCallStart { index } => {
                assert_eq!(*index, blocks.len());
                blocks.push((String::new(), false));
            }
            StreamEvent::TextDelta { index, delta }
            | StreamEvent::ThinkingDelta { index, delta }
            | StreamEvent::ToolCallDelta { index, delta } => {
                assert!(!blocks[*index].1, "a delta after the end");
                blocks[*index].0.push_str(delta);
            }
            StreamEvent::TextEnd { index }
            | StreamEvent::ThinkingEnd { index }
            | StreamEvent::ToolCallEnd { index } => {
                assert!(!blocks[*index].1, "two ends");
                blocks[*index].1 = true;
            }
            StreamEvent::Done | StreamEvent::Error => panic!("two terminal events"),
        }
    }
    assert_eq!(blocks.len(), message.content.len());
    for ((text, ended), block) in blocks.iter().zip(&message.content) {
        assert!(*ended || failed, "an open block in a good reply");
        match block {
            Block::Text(block) => assert!(*text == *block.text || *ended && ends_decide),
            Block::Thinking(block) => assert!(*text == *block.thinking || *ended && ends_decide),
            Block::ToolCall(call) => assert!(call.arguments.is_object()),
            other => panic!("{other:?} in a reply"),
        }
    }
}
