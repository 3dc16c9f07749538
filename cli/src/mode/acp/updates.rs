//! Events of a run as updates of its session, and the answer to the prompt that began it.

use std::collections::HashMap;
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::backend::{EventSink, SinkFlow};
use tau_core::event::{Event, MessageUpdate};
use tau_core::harness::Compacted;
use tau_core::hub::Hub;
use tau_core::json::{Value, Writer};
use tau_core::message::{AssistantMessage, StopReason};

use super::calls::{self, CallView};
use super::client::Client;
use super::message::Refusal;
use super::permission::Gate;

/// What a model says that will not go on, whatever protocol it speaks.
const REFUSALS: [&str; 4] = ["refusal", "content_filter", "SAFETY", "PROHIBITED_CONTENT"];

/// The prompt that a session works on.
#[derive(Default)]
pub(super) struct Turn {
    state: Mutex<TurnState>,
}

#[derive(Default)]
struct TurnState {
    /// The request to answer.
    request: Option<Value>,
    /// It asked for a compaction, not for a run.
    compacts: bool,
    /// How the last reply ended.
    ending: Option<Ending>,
}

#[derive(Clone)]
enum Ending {
    Stop(&'static str),
    Failed(String),
}

impl Turn {
    /// Begins one; `false` when another one is under way.
    pub(super) fn begin(&self, request: &Value, compacts: bool) -> bool {
        let mut state = self.lock();
        if state.request.is_some() {
            return false;
        }
        *state = TurnState { request: Some(request.clone()), compacts, ending: None };
        true
    }

    /// Whether this request is the one to answer.
    pub(super) fn is_of(&self, request: &Value) -> bool {
        self.lock().request.as_ref() == Some(request)
    }

    /// It did not begin after all.
    pub(super) fn forget(&self) {
        *self.lock() = TurnState::default();
    }

    fn lock(&self) -> MutexGuard<'_, TurnState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_compaction(&self) -> bool {
        self.lock().compacts
    }

    /// Answers the request, if one waits.
    fn end(&self, client: &Client, ending: Option<Ending>) {
        let state = take(&mut *self.lock());
        let Some(request) = state.request else { return };
        match ending.or(state.ending) {
            Some(Ending::Failed(why)) => client.refuse(&request, &Refusal::internal(why)),
            ending => client.result(&request, |w| {
                let reason = match ending {
                    Some(Ending::Stop(reason)) => reason,
                    _ => "end_turn",
                };
                w.begin_object();
                w.field_str("stopReason", reason);
                w.end_object();
            }),
        }
    }
}

/// Tells a client of the events of a session.
pub(super) struct Updates {
    pub(super) session: String,
    pub(super) client: Arc<Client>,
    pub(super) turn: Arc<Turn>,
    pub(super) gate: Arc<Gate>,
    /// Arguments of the calls that did not end yet.
    pub(super) running: HashMap<String, Arc<Value>>,
    /// Compactions that began.
    pub(super) compactions: u32,
    /// One goes on.
    pub(super) compacting: bool,
}

impl Updates {
    fn tell(&self, kind: &str, update: impl FnOnce(&mut Writer)) {
        self.client.update(&self.session, kind, update);
    }

    /// A piece of what someone says.
    fn chunk(&self, kind: &str, text: &str) {
        if !text.is_empty() {
            self.tell(kind, |w| text_content(text, w));
        }
    }

    /// What became of a compaction, for clients that show it.
    fn compaction(&self, status: &str, error: Option<&str>) {
        if self.client.shows().compactions {
            self.tell("compaction_update", |w| {
                w.field_str("compactionId", &format!("compaction-{}", self.compactions));
                w.field_str("status", status);
                w.field_opt_str("error", error);
            });
        }
    }

    /// How much of the context is used.
    fn usage(&self, used: u64, hub: &Hub) {
        let window = hub.desk().agent().model().context_window;
        if window > 0 && used > 0 {
            self.tell("usage_update", |w| {
                w.field_u64("used", used);
                w.field_u64("size", window);
            });
        }
    }

    fn of_message(&self, update: &MessageUpdate) {
        match update {
            MessageUpdate::TextDelta { delta, .. } => self.chunk("agent_message_chunk", delta),
            MessageUpdate::ThinkingDelta { delta, .. } => self.chunk("agent_thought_chunk", delta),
            _ => {}
        }
    }
}

impl EventSink<Hub> for Updates {
    fn event(&mut self, event: &Event, hub: &Hub) -> SinkFlow {
        let place = self.gate.place();
        match event {
            Event::MessageUpdate { update, .. } => self.of_message(update),
            Event::ToolStart { call_id, name, args } => {
                self.running.insert(call_id.clone(), Arc::clone(args));
                self.tell("tool_call", |w| {
                    w.field_str("toolCallId", call_id);
                    w.field_str("status", "pending");
                    CallView { name, args, place }.announce(w);
                });
            }
            Event::ToolUpdate { call_id, name, partial, .. } => self.tell("tool_call_update", |w| {
                w.field_str("toolCallId", call_id);
                calls::partial(name, partial, w);
            }),
            Event::ToolEnd { call_id, name, result, .. } => {
                let before = self.gate.take_before(call_id);
                let args = self.running.remove(call_id).unwrap_or_default();
                let view = CallView { name, args: &args, place };
                let made = if result.is_error { Vec::new() } else { view.made(before) };
                self.tell("tool_call_update", |w| {
                    w.field_str("toolCallId", call_id);
                    calls::ended(name, result.is_error, &result.content, &made, result.details.as_ref(), w);
                });
            }
            Event::TurnEnd { message, .. } => {
                let used = message.as_assistant().map(|reply| reply.usage.total_tokens);
                self.usage(used.unwrap_or_default(), hub);
            }
            Event::AgentEnd { messages, .. } => {
                let reply = messages.iter().rev().find_map(|message| message.as_assistant());
                self.turn.lock().ending = reply.map(ending_of);
            }
            Event::AgentSettled { aborted } if !self.turn.is_compaction() => {
                self.turn.end(&self.client, aborted.then_some(Ending::Stop("cancelled")));
            }
            Event::CompactionStart(_) => {
                (self.compactions, self.compacting) = (self.compactions + 1, true);
                self.compaction("in_progress", None);
            }
            Event::CompactionEnd { aborted, error, result, .. } => {
                let (status, ending) = match error {
                    _ if *aborted => ("cancelled", Ending::Stop("cancelled")),
                    Some(why) => ("failed", Ending::Failed(why.clone())),
                    None => ("completed", Ending::Stop("end_turn")),
                };
                if take(&mut self.compacting) {
                    self.compaction(status, error.as_deref());
                }
                if let Some(done) = result {
                    self.usage(done.tokens_after, hub);
                }
                if self.turn.is_compaction() {
                    if let Some(done) = result {
                        self.chunk("agent_message_chunk", &compacted(done));
                    }
                    self.turn.end(&self.client, Some(ending));
                }
            }
            Event::SessionName(name) => self.tell("session_info_update", |w| {
                w.key("title");
                match name {
                    Some(name) => w.str(name),
                    None => w.null(),
                }
            }),
            Event::Error(fault) => self.client.remark(&self.session, "error", &fault.message),
            _ => {}
        }
        SinkFlow::Go
    }

    /// The run waits here while the client does not read.
    fn drained(&mut self) -> SinkFlow {
        self.client.flush();
        SinkFlow::Go
    }
}

/// Writes the field `content` with a text.
pub(super) fn text_content(text: &str, w: &mut Writer) {
    w.key("content");
    w.begin_object();
    w.field_str("type", "text");
    w.field_str("text", text);
    w.end_object();
}

/// What a compaction did, in words.
fn compacted(done: &Compacted) -> String {
    let Compacted { tokens_before, tokens_after, .. } = done;
    format!("The conversation so far was summarised: {tokens_before} tokens became about {tokens_after}.")
}

fn ending_of(reply: &AssistantMessage) -> Ending {
    let refused = reply.raw_stop_reason.as_deref().is_some_and(|raw| REFUSALS.contains(&raw));
    match reply.stop_reason {
        _ if refused => Ending::Stop("refusal"),
        StopReason::Length => Ending::Stop("max_tokens"),
        StopReason::Aborted => Ending::Stop("cancelled"),
        StopReason::Error => {
            Ending::Failed(reply.error_message.clone().unwrap_or_else(|| "the request failed".to_owned()))
        }
        _ => Ending::Stop("end_turn"),
    }
}
