//! **Wire**: the exchange with the model that is under way.
//!
//! A request that failed before its response was established may be sent again after a wait
//! ([`mod@crate::retry::request`]), with credentials that are looked up anew. Nobody sees that but the clock.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::convert::Public;
use crate::entropy::Entropy;
use crate::fault::{FaultKind, IoFault};
use crate::ids::OpId;
use crate::input::Reply;
use crate::json::Value;
use crate::message::{AssistantMessage, Message, StopReason};
use crate::model::{Model, ThinkingLevel};
use crate::now::{Mono, Now};
use crate::op::{Credential, Headers, HttpRequest, Op, Outcome, SecretOp, host_of};
use crate::provider::advice::{Trouble, locate};
use crate::provider::openai_responses::Dialect;
use crate::provider::{
    self, BodyEnd, Decoder, Encoder, ModelRequest, RequestOptions, StreamEvent, bedrock, error,
};
use crate::retry::ceil;
use crate::retry::request::{Failure, Limits, Next as Verdict, decide, decide_codex};
use crate::text::redact::Secrets;
use crate::wire::http_head::retry_after_ms;

/// Most bytes of an error body that are looked at.
const ERROR_BODY: usize = 64 * 1024;
/// How long a complete reply waits for the end of its body, so that the connection can be used again, ms.
const DRAIN_MS: u64 = 50;
/// How long the body of a refusal is waited for, ms: the status alone says enough.
const REFUSAL_MS: u64 = 5000;

/// Encoder, conversion memory and the exchange under way.
#[derive(Default)]
pub(super) struct Wire {
    encoder: Option<(String, Box<dyn Encoder>)>,
    public: Public,
    images_blocked: bool,
    exchange: Option<Exchange>,
    /// Decoded and not yet shown.
    events: VecDeque<StreamEvent>,
    scratch: Vec<StreamEvent>,
    asked_ms: Option<f64>,
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
    /// How often the request was sent again.
    retries: u64,
    aborted: bool,
    /// What identifies the last refusal, for questions to the service.
    note: Option<Value>,
    /// Not to be repeated in failures.
    secrets: Secrets,
    /// Where the request went; empty until it did.
    host: String,
    /// When the reply must be complete.
    until: Option<Mono>,
    /// What a failure would be.
    trouble: Trouble,
}

enum Stage {
    /// Credentials are looked up.
    Secret { op: OpId },
    /// The head has not arrived.
    Sent { op: OpId },
    /// The body of an error. It is not waited for any longer than `until`.
    Refused { op: OpId, status: u16, headers: Headers, body: Vec<u8>, until: Mono },
    /// It failed and is sent again then.
    Waiting { until: Mono },
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
        self.begin_with(model, base.at(thinking), context, now)
    }

    /// Begins a request with options that are complete.
    pub(super) fn begin_with(
        &mut self,
        model: &Arc<Model>,
        options: RequestOptions,
        context: &[Arc<Message>],
        now: Now,
    ) -> Next {
        self.events.clear();
        self.asked_ms = None;
        let stage = Stage::Waiting { until: now.mono };
        let model = model.clone();
        self.exchange = Some(Exchange {
            model,
            options,
            started: now,
            stage,
            retries: 0,
            aborted: false,
            note: None,
            secrets: Secrets::default(),
            host: String::new(),
            until: None,
            trouble: Trouble::Reply,
        });
        self.attempt(context, now)
    }

    /// One attempt: first its credentials, which may have changed since the last one; the demo needs none.
    fn attempt(&mut self, context: &[Arc<Message>], now: Now) -> Next {
        let Some(Exchange { model, stage, .. }) = &mut self.exchange else { return Next::Wait };
        if model.api == provider::demo::API {
            return self.send(&Credential::default(), context, now);
        }
        // The id is filled in by `sent`.
        *stage = Stage::Secret { op: OpId(u64::MAX) };
        Next::Start(Op::Secret(SecretOp {
            provider: model.provider.clone(),
            model: model.id.clone(),
            base_url: model.base_url.clone(),
        }))
    }

    /// Sends a request again whose wait is over.
    pub(super) fn resume(&mut self, context: &[Arc<Message>], now: Now) -> Next {
        match &self.exchange {
            Some(Exchange { stage: Stage::Waiting { until }, .. }) if *until <= now.mono => {
                self.attempt(context, now)
            }
            _ => Next::Wait,
        }
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
    pub(super) fn abort(&mut self, now: Now) -> Option<OpId> {
        let exchange = self.exchange.as_mut()?;
        exchange.aborted = true;
        match &exchange.stage {
            Stage::Secret { op } | Stage::Sent { op } | Stage::Refused { op, .. } => Some(*op),
            Stage::Body { op, .. } => *op,
            Stage::Waiting { .. } => {
                self.fail(error::ABORTED.into(), now);
                None
            }
            Stage::Failed(_) => None,
        }
    }

    /// Takes a reply of the op under way. `rng` spreads the waits of requests that are sent again.
    pub(super) fn on_reply(
        &mut self,
        id: OpId,
        reply: Reply,
        context: &[Arc<Message>],
        now: Now,
        rng: &mut Entropy,
    ) -> Next {
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
                Reply::Head { status, headers } => self.head(id, status, headers, now),
                Reply::Failed(fault) => self.lost(&fault, now, rng),
                Reply::Done(_) => {
                    let why = "the connection closed before an answer came";
                    self.lost(&IoFault::new(FaultKind::Reset, why), now, rng);
                }
                Reply::Chunk { .. } | Reply::Update(_) => {}
            },
            Stage::Refused { op, body, until, .. } if *op == id => match reply {
                Reply::Chunk { bytes, .. } => {
                    let room = ERROR_BODY.saturating_sub(body.len()).min(bytes.len());
                    body.extend_from_slice(bytes.get(..room).unwrap_or_default());
                    if body.len() >= ERROR_BODY {
                        *until = now.mono;
                    }
                }
                reply if reply.is_last() => self.end_refusal(now, rng),
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
        exchange.secrets = Secrets::from(credential);
        let messages = self.public.update(context, self.images_blocked);
        match encode(&mut self.encoder, exchange, credential, messages, now) {
            Ok(request) if request.url == provider::demo::URL => {
                self.play(&request, now);
                Next::Wait
            }
            Ok(request) => {
                exchange.stage = Stage::Sent { op: OpId(u64::MAX) };
                exchange.host = host_of(&request.url);
                // What is added to the address may hide where a value of its query ends.
                let secrets = core::mem::take(&mut exchange.secrets).and_of_address(&exchange.model.base_url);
                exchange.secrets = secrets.and_of_address(&request.url);
                exchange.until = exchange.options.total_timeout_ms.map(|ms| now.mono.plus(ms));
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

    fn head(&mut self, id: OpId, status: u16, headers: Headers, now: Now) {
        let Some(exchange) = &mut self.exchange else { return };
        exchange.trouble = if is_stream(&headers) { Trouble::Reply } else { Trouble::NoStream };
        exchange.stage = match &self.encoder {
            Some((_, encoder)) if (200..300).contains(&status) => {
                let mut decoder = encoder.decoder(&exchange.model, exchange.started.wall.0);
                decoder.on_head(&headers);
                Stage::Body { op: Some(id), decoder, ended: None }
            }
            _ => {
                let until = now.mono.plus(REFUSAL_MS);
                Stage::Refused { op: id, status, headers, body: Vec::new(), until }
            }
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
        if let Some(Exchange { stage: Stage::Body { op, decoder, .. }, trouble, .. }) = &mut self.exchange {
            *op = None;
            if let BodyEnd::Failed(fault) = &end {
                *trouble = Trouble::Lost(fault.kind);
            }
            decoder.on_end(end, &mut self.scratch);
            self.events.extend(self.scratch.drain(..));
            self.note_end(now);
        }
    }

    /// The body of a refusal is complete, or long enough.
    fn end_refusal(&mut self, now: Now, rng: &mut Entropy) {
        let Some(exchange) = &mut self.exchange else { return };
        let Stage::Refused { status, headers, body, .. } = &mut exchange.stage else { return };
        let text = error::http_error_message(&exchange.model, *status, headers, body, now.wall);
        let (status, headers) = (*status, core::mem::take(headers));
        exchange.trouble = Trouble::Status(status);
        let said = core::mem::take(body);
        let said = String::from_utf8_lossy(&said);
        if exchange.model.api == bedrock::API {
            let at = exchange.started.wall.0;
            exchange.note = Some(bedrock::failure::refusal(at, status, &headers));
        }
        self.refused(&Failure::Status { status, headers: &headers }, &said, text, now, rng);
    }

    /// The connection failed before a response was established.
    fn lost(&mut self, fault: &IoFault, now: Now, rng: &mut Entropy) {
        if let Some(exchange) = &mut self.exchange {
            exchange.trouble = Trouble::Lost(fault.kind);
            exchange.note = None;
        }
        let text = error::request_fault_message(fault);
        self.refused(&Failure::from(fault), &fault.detail, text, now, rng);
    }

    /// There is no response: the request is sent again later, or `text` is the failure. `said` are the words behind it.
    fn refused(&mut self, failure: &Failure<'_>, said: &str, text: String, now: Now, rng: &mut Entropy) {
        let Some(exchange) = &mut self.exchange else { return };
        let options = &exchange.options;
        let limits = Limits {
            max_retries: options.max_retries.max(provider::least_retries(&exchange.model.api)),
            max_delay_ms: options.max_retry_delay_ms,
            never: &[],
        };
        let verdict = if exchange.aborted {
            Verdict::Fail
        } else if Dialect::of(&exchange.model.api) == Some(Dialect::Codex) {
            decide_codex(&limits, exchange.retries, failure, said, now.wall)
        } else {
            decide(&limits, exchange.retries, failure, now.wall, rng.unit())
        };
        match verdict {
            Verdict::Again(wait_ms) => {
                exchange.retries += 1;
                exchange.stage = Stage::Waiting { until: now.mono.plus(ceil(wait_ms)) };
            }
            Verdict::TooLong(delay) => self.fail(delay.message(&text), now),
            Verdict::Fail => {
                if let Failure::Status { headers, .. } = failure {
                    self.asked_ms = retry_after_ms(headers, now.wall);
                }
                self.fail(text, now);
            }
        }
    }

    /// The wait, in ms, that the service asked for when it refused the last request; `None` when it named none, or
    /// one longer than the limit for requests (the failure says so, and our own schedule counts).
    pub(super) const fn asked_ms(&self) -> Option<f64> {
        self.asked_ms
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
            let failed = failure(&exchange.model, StopReason::Error, text, exchange.started);
            AssistantMessage { diagnostics: exchange.note.take().map(|note| alloc::vec![note]), ..failed }
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

    /// When a request is sent again, given up, or the rest of a body is not waited for any longer.
    pub(super) fn deadline(&self) -> Option<Mono> {
        let exchange = self.exchange.as_ref()?;
        match &exchange.stage {
            Stage::Body { op: Some(_), ended: Some(at), .. } => Some(at.plus(DRAIN_MS)),
            Stage::Waiting { until } | Stage::Refused { until, .. } => Some(*until),
            Stage::Sent { .. } | Stage::Body { op: Some(_), .. } if !exchange.aborted => exchange.until,
            _ => None,
        }
    }

    /// The op that is not waited for any longer.
    pub(super) fn overdue(&mut self, now: Now, rng: &mut Entropy) -> Option<OpId> {
        if self.deadline()? > now.mono {
            return None;
        }
        let exchange = self.exchange.as_mut()?;
        match &mut exchange.stage {
            Stage::Body { op, ended: Some(_), .. } => op.take(),
            Stage::Body { op, .. } => {
                let op = op.take();
                let fault = too_long(exchange);
                self.end_body(BodyEnd::Failed(fault), now);
                op
            }
            Stage::Sent { op } => {
                let op = *op;
                let fault = too_long(exchange);
                self.lost(&fault, now, rng);
                Some(op)
            }
            Stage::Refused { op, .. } => {
                let op = *op;
                self.end_refusal(now, rng);
                Some(op)
            }
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
        if let Some(mut text) = message.error_message.take() {
            if message.stop_reason == StopReason::Error && !exchange.host.is_empty() {
                let begun = exchange.trouble == Trouble::NoStream && !message.content.is_empty();
                let trouble = if begun { Trouble::Reply } else { exchange.trouble };
                locate(&mut text, &message, &exchange.host, trouble);
            }
            exchange.secrets.hide(&mut text);
            message.error_message = Some(text);
        }
        message.duration_ms.get_or_insert_with(|| now.mono.since(exchange.started.mono));
        Progress::Reply(Box::new(message))
    }
}

/// The fault of a reply that is not complete in time.
fn too_long(exchange: &Exchange) -> IoFault {
    let ms = exchange.options.total_timeout_ms.unwrap_or_default();
    let text = alloc::format!(
        "{}: no complete answer within {ms} ms (retry.provider.totalTimeoutMs)",
        exchange.host
    );
    IoFault::new(FaultKind::TimedOut, text)
}

/// Whether a head announces a stream, or at least nothing else.
fn is_stream(headers: &Headers) -> bool {
    let kind = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    kind.is_none_or(|(_, value)| value.contains("stream"))
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
            "Model {}/{} needs the wire protocol \"{}\", which this build does not speak. Choose another model, or correct \
             api of {0} in models.json; there are {}.",
            model.provider,
            model.id,
            model.api,
            provider::APIS.join(", ")
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
