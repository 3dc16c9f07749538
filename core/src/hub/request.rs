//! **Wire**: the exchange with the model that is under way.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::convert::{self, Memo};
use crate::fault::{FaultKind, IoFault};
use crate::ids::OpId;
use crate::input::Reply;
use crate::message::{AssistantMessage, Message, StopReason};
use crate::model::{Model, ThinkingLevel};
use crate::now::{Mono, Now};
use crate::op::{Credential, Headers, HttpRequest, Op, Outcome, SecretOp};
use crate::provider::{self, BodyEnd, Decoder, Encoder, ModelRequest, RequestOptions, StreamEvent, error};

/// Most bytes of an error body that are looked at.
const ERROR_BODY: usize = 64 * 1024;
/// How long a complete reply waits for the end of its body, so that the connection can be used again, ms.
const DRAIN_MS: u64 = 50;

/// Encoder, conversion memory and the exchange under way.
#[derive(Default)]
pub(super) struct Wire {
    encoder: Option<(String, Box<dyn Encoder>)>,
    memo: Memo,
    images_blocked: bool,
    exchange: Option<Exchange>,
    /// Decoded and not yet shown.
    events: VecDeque<StreamEvent>,
    scratch: Vec<StreamEvent>,
}

impl core::fmt::Debug for Wire {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Wire").field("active", &self.exchange.is_some()).finish_non_exhaustive()
    }
}

/// One request and its reply.
struct Exchange {
    model: Arc<Model>,
    options: RequestOptions,
    started: Now,
    stage: Stage,
    aborted: bool,
}

enum Stage {
    /// Credentials are looked up.
    Secret { op: OpId },
    /// The head has not arrived.
    Sent { op: OpId },
    /// The body of an error.
    Refused { op: OpId, status: u16, headers: Headers, body: Vec<u8> },
    /// The body of a reply.
    Body { op: Option<OpId>, decoder: Box<dyn Decoder>, ended: Option<Mono> },
    /// Failed before there was anything to decode.
    Failed(Box<AssistantMessage>),
}

/// What the Desk must do next.
pub(super) enum Next {
    /// Ask for this op; report its id with [`Wire::sent`].
    Start(Op),
    /// Nothing.
    Wait,
}

/// What the exchange gives when it is asked for more.
pub(super) enum Progress {
    /// An event of the stream.
    Event(StreamEvent),
    /// The final reply.
    Reply(Box<AssistantMessage>),
    /// Nothing yet.
    Nothing,
}

impl Wire {
    /// Whether images are withheld from every request.
    pub(super) const fn block_images(&mut self, on: bool) {
        self.images_blocked = on;
    }

    /// Begins a request: first its credentials; the demo needs none.
    pub(super) fn begin(
        &mut self,
        model: &Arc<Model>,
        thinking: ThinkingLevel,
        base: &RequestOptions,
        context: &[Arc<Message>],
        now: Now,
    ) -> Next {
        self.events.clear();
        let options = RequestOptions { reasoning: Some(thinking), ..base.clone() };
        // The id is filled in by `sent`.
        let stage = Stage::Secret { op: OpId(u64::MAX) };
        self.exchange = Some(Exchange { model: model.clone(), options, started: now, stage, aborted: false });
        if model.api == provider::demo::API {
            return self.send(&Credential::default(), context, now);
        }
        Next::Start(Op::Secret(SecretOp {
            provider: model.provider.clone(),
            model: model.id.clone(),
            base_url: model.base_url.clone(),
        }))
    }

    /// The run was aborted before the request could be made.
    pub(super) fn aborted(model: &Model, now: Now) -> AssistantMessage {
        failure(model, StopReason::Aborted, error::ABORTED.into(), now)
    }

    /// Notes the op that was started for [`Next::Start`].
    pub(super) fn sent(&mut self, id: OpId) {
        let stage = self.exchange.as_mut().map(|exchange| &mut exchange.stage);
        if let Some(Stage::Secret { op } | Stage::Sent { op }) = stage {
            *op = id;
        }
    }

    /// Gives up; the op to cancel, if one is under way.
    pub(super) fn abort(&mut self) -> Option<OpId> {
        let exchange = self.exchange.as_mut()?;
        exchange.aborted = true;
        match &exchange.stage {
            Stage::Secret { op } | Stage::Sent { op } | Stage::Refused { op, .. } => Some(*op),
            Stage::Body { op, .. } => *op,
            Stage::Failed(_) => None,
        }
    }

    /// Takes a reply of the op under way.
    pub(super) fn on_reply(&mut self, id: OpId, reply: Reply, context: &[Arc<Message>], now: Now) -> Next {
        let Some(exchange) = &mut self.exchange else { return Next::Wait };
        match &mut exchange.stage {
            Stage::Secret { op } if *op == id => match reply {
                Reply::Done(Outcome::Secret(Ok(credential))) => return self.send(&credential, context, now),
                Reply::Done(Outcome::Secret(Err(reason))) => self.fail(reason, now),
                Reply::Failed(fault) => self.fail_io(&fault, now),
                reply if reply.is_last() => self.fail("The credentials could not be looked up.".into(), now),
                _ => {}
            },
            Stage::Sent { op } if *op == id => match reply {
                Reply::Head { status, headers } => self.head(id, status, headers),
                Reply::Failed(fault) => self.fail_io(&fault, now),
                Reply::Done(_) => self.fail_io(
                    &IoFault::new(FaultKind::Reset, "the connection closed before an answer came"),
                    now,
                ),
                Reply::Chunk { .. } | Reply::Update(_) => {}
            },
            Stage::Refused { op, status, headers, body } if *op == id => match reply {
                Reply::Chunk { bytes, .. } => {
                    let room = ERROR_BODY.saturating_sub(body.len()).min(bytes.len());
                    body.extend_from_slice(bytes.get(..room).unwrap_or_default());
                }
                reply if reply.is_last() => {
                    let text = error::http_error_message(&exchange.model, *status, headers, body);
                    self.fail(text, now);
                }
                _ => {}
            },
            Stage::Body { op: Some(op), decoder, .. } if *op == id => match reply {
                Reply::Chunk { bytes, .. } => {
                    decoder.on_bytes(&bytes, &mut self.scratch);
                    self.events.extend(self.scratch.drain(..));
                    self.note_end(now);
                }
                Reply::Done(_) => self.end_body(BodyEnd::Complete, now),
                Reply::Failed(fault) if exchange.aborted || fault.kind == FaultKind::Cancelled => {
                    self.end_body(BodyEnd::Aborted, now);
                }
                Reply::Failed(fault) => self.end_body(BodyEnd::Failed(fault), now),
                Reply::Head { .. } | Reply::Update(_) => {}
            },
            _ => {}
        }
        Next::Wait
    }

    fn send(&mut self, credential: &Credential, context: &[Arc<Message>], now: Now) -> Next {
        let Some(exchange) = &mut self.exchange else { return Next::Wait };
        if exchange.aborted {
            self.fail(error::ABORTED.into(), now);
            return Next::Wait;
        }
        let mut messages = convert::to_llm(context, &mut self.memo);
        if self.images_blocked {
            messages = convert::block_images(&messages, &mut self.memo);
        }
        match encode(&mut self.encoder, exchange, credential, &messages, now) {
            Ok(request) if request.url == provider::demo::URL => {
                self.play(&request, now);
                Next::Wait
            }
            Ok(request) => {
                exchange.stage = Stage::Sent { op: OpId(u64::MAX) };
                Next::Start(Op::Http(request))
            }
            Err(text) => {
                self.fail(text, now);
                Next::Wait
            }
        }
    }

    /// The demo needs no op: its encoder wrote the reply.
    fn play(&mut self, request: &HttpRequest, now: Now) {
        let (Some(exchange), Some((_, encoder))) = (&mut self.exchange, &self.encoder) else { return };
        let mut decoder = encoder.decoder(&exchange.model, exchange.started.wall.0);
        decoder.on_bytes(&request.body, &mut self.scratch);
        exchange.stage = Stage::Body { op: None, decoder, ended: None };
        self.end_body(BodyEnd::Complete, now);
    }

    fn head(&mut self, id: OpId, status: u16, headers: Headers) {
        let Some(exchange) = &mut self.exchange else { return };
        exchange.stage = match &self.encoder {
            Some((_, encoder)) if (200..300).contains(&status) => {
                let decoder = encoder.decoder(&exchange.model, exchange.started.wall.0);
                Stage::Body { op: Some(id), decoder, ended: None }
            }
            _ => Stage::Refused { op: id, status, headers, body: Vec::new() },
        };
    }

    /// After the terminal event the rest of the body gets a moment to arrive.
    fn note_end(&mut self, now: Now) {
        let terminal = matches!(self.events.back(), Some(StreamEvent::Done | StreamEvent::Error));
        if let Some(Exchange { stage: Stage::Body { ended, .. }, .. }) = &mut self.exchange
            && terminal
            && ended.is_none()
        {
            *ended = Some(now.mono);
        }
    }

    fn end_body(&mut self, end: BodyEnd, now: Now) {
        if let Some(Exchange { stage: Stage::Body { op, decoder, .. }, .. }) = &mut self.exchange {
            *op = None;
            decoder.on_end(end, &mut self.scratch);
            self.events.extend(self.scratch.drain(..));
            self.note_end(now);
        }
    }

    fn fail_io(&mut self, fault: &IoFault, now: Now) {
        let text = match &self.exchange {
            Some(_) => error::request_fault_message(fault),
            None => return,
        };
        self.fail(text, now);
    }

    fn fail(&mut self, text: String, now: Now) {
        let Some(exchange) = &mut self.exchange else { return };
        let message = if exchange.aborted {
            Self::aborted(&exchange.model, now)
        } else {
            failure(&exchange.model, StopReason::Error, text, exchange.started)
        };
        exchange.stage = Stage::Failed(Box::new(message));
    }

    /// The reply so far.
    pub(super) fn partial(&self) -> Option<&AssistantMessage> {
        match &self.exchange.as_ref()?.stage {
            Stage::Body { decoder, .. } => Some(decoder.partial()),
            Stage::Failed(message) => Some(message),
            _ => None,
        }
    }

    /// When the body of a complete reply is not waited for any longer.
    pub(super) fn deadline(&self) -> Option<Mono> {
        match &self.exchange.as_ref()?.stage {
            Stage::Body { op: Some(_), ended: Some(at), .. } => Some(at.plus(DRAIN_MS)),
            _ => None,
        }
    }

    /// The op whose body is not waited for any longer.
    pub(super) fn overdue(&mut self, now: Mono) -> Option<OpId> {
        if self.deadline()? > now {
            return None;
        }
        match &mut self.exchange.as_mut()?.stage {
            Stage::Body { op, .. } => op.take(),
            _ => None,
        }
    }

    /// The next event, or the final reply once its body is read.
    pub(super) fn progress(&mut self, now: Now) -> Progress {
        match self.events.front() {
            Some(StreamEvent::Done | StreamEvent::Error) => {
                if matches!(&self.exchange, Some(Exchange { stage: Stage::Body { op: Some(_), .. }, .. })) {
                    return Progress::Nothing;
                }
                self.events.clear();
                self.finish(now)
            }
            Some(_) => self.events.pop_front().map_or(Progress::Nothing, Progress::Event),
            None if matches!(&self.exchange, Some(Exchange { stage: Stage::Failed(_), .. })) => {
                self.finish(now)
            }
            None => Progress::Nothing,
        }
    }

    fn finish(&mut self, now: Now) -> Progress {
        let Some(exchange) = self.exchange.take() else { return Progress::Nothing };
        let mut message = match exchange.stage {
            Stage::Body { mut decoder, .. } => decoder.take(),
            Stage::Failed(message) => *message,
            _ => return Progress::Nothing,
        };
        message.duration_ms.get_or_insert_with(|| now.mono.since(exchange.started.mono));
        Progress::Reply(Box::new(message))
    }
}

fn encode(
    kept: &mut Option<(String, Box<dyn Encoder>)>,
    exchange: &Exchange,
    credential: &Credential,
    messages: &[Arc<Message>],
    now: Now,
) -> Result<HttpRequest, String> {
    let model = &exchange.model;
    if !matches!(kept, Some((api, _)) if *api == model.api) {
        *kept = provider::encoder(&model.api).map(|encoder| (model.api.clone(), encoder));
    }
    let Some((_, encoder)) = kept else {
        return Err(alloc::format!(
            "Model {}/{} needs the wire protocol \"{}\", which this build does not speak.",
            model.provider,
            model.id,
            model.api
        ));
    };
    let request =
        ModelRequest { model, messages, options: &exchange.options, credential, now_ms: now.wall.0 };
    encoder.encode(&request).map_err(|fault| fault.message)
}

fn failure(model: &Model, reason: StopReason, text: String, at: Now) -> AssistantMessage {
    AssistantMessage {
        api: model.api.clone(),
        provider: model.provider.clone(),
        model: model.id.clone(),
        stop_reason: reason,
        error_message: Some(text),
        timestamp: at.wall.0,
        ..AssistantMessage::default()
    }
}
