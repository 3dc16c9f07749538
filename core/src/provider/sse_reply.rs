//! Replies that come as server-sent events. Framing, ends and limits are the same for all of them; what events mean is
//! said by each protocol.

use alloc::vec::Vec;

use super::assemble::Assembler;
use super::error::{ABORTED, stream_fault_message};
use super::{BodyEnd, Decoder, StreamEvent};
use crate::json::Value;
use crate::message::{AssistantMessage, StopReason};
use crate::wire::sse::{GaveUp, SseDecoder, SseEvent};

/// What the events of one protocol mean.
pub(super) trait Events: Send {
    /// The reply so far.
    fn assembler(&self) -> &Assembler;

    /// The reply, to go on with.
    fn assembler_mut(&mut self) -> &mut Assembler;

    /// Takes an event. The reply may have ended before.
    fn on_event(&mut self, event: SseEvent<'_>, out: &mut Vec<StreamEvent>);

    /// The body is complete, and no event has ended the reply. `stray` is the beginning of what was no event in it.
    fn on_complete(&mut self, stray: &str, out: &mut Vec<StreamEvent>);

    /// Ends what is open before an abort is told.
    fn before_abort(&mut self, _out: &mut Vec<StreamEvent>) {}
}

/// The decoder of such a reply.
#[derive(Debug)]
pub(super) struct SseReply<E> {
    sse: SseDecoder,
    events: E,
}

impl<E: Events> SseReply<E> {
    pub(super) fn of(events: E) -> Self {
        Self { sse: SseDecoder::new(), events }
    }
}

impl<E: Events> Decoder for SseReply<E> {
    fn on_bytes(&mut self, bytes: &[u8], out: &mut Vec<StreamEvent>) {
        let Self { sse, events } = self;
        if events.assembler().ended() {
            return;
        }
        events.assembler_mut().start(out);
        sse.feed(bytes, &mut |event| events.on_event(event, out));
        match sse.gave_up() {
            _ if events.assembler().ended() => {}
            None => {}
            Some(GaveUp::TooLarge) => {
                let text = "The reply holds an event that is larger than any answer may be.".into();
                events.assembler_mut().fail(StopReason::Error, text, out);
            }
            // A page, or whatever it is, may be endless: what is known of it by now is enough to tell.
            Some(GaveUp::Astray) => events.on_complete(&sse.stray(), out),
        }
    }

    fn on_end(&mut self, end: BodyEnd, out: &mut Vec<StreamEvent>) {
        let Self { sse, events } = self;
        if events.assembler().ended() {
            return;
        }
        events.assembler_mut().start(out);
        match end {
            BodyEnd::Complete => {
                sse.finish(&mut |event| events.on_event(event, out));
                if !events.assembler().ended() {
                    events.on_complete(&sse.stray(), out);
                }
            }
            BodyEnd::Failed(fault) => {
                events.assembler_mut().fail(StopReason::Error, stream_fault_message(&fault), out);
            }
            BodyEnd::Aborted => {
                events.before_abort(out);
                events.assembler_mut().fail(StopReason::Aborted, ABORTED.into(), out);
            }
        }
    }

    fn partial(&self) -> &AssistantMessage {
        self.events.assembler().message()
    }

    fn take(&mut self) -> AssistantMessage {
        self.events.assembler_mut().take()
    }

    fn partial_arguments(&mut self, index: usize) -> Option<Value> {
        self.events.assembler_mut().partial_arguments(index)
    }
}
