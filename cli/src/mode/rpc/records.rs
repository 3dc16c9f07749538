//! The one writer of records: whole lines, in order, from whichever thread (spec 60 §3.1, §3.2).

use std::borrow::Cow;
use std::collections::HashMap;
use std::mem;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::backend::{EventSink, SinkFlow};
use tau_core::event::Event;
use tau_core::fault::Fault;
use tau_core::hub::Hub;
use tau_core::json::{Value, Writer};
use tau_core::message::Message;

use tau_io_std::sys::{CancelToken, random};

use super::bash;
use crate::mode::pipe::patience::Patience;
use crate::out::{Out, note};
use crate::visible::harmless;

/// Longest text of an error, characters.
const LONGEST_REASON: usize = 4000;

/// Writes records of a session. Clones write those of the same session, and all sessions to the same output.
#[derive(Clone)]
pub(super) struct Records {
    /// The session that its records name; `None` for the one that the program began with.
    session: Option<Arc<str>>,
    out: Arc<Mutex<Out>>,
    stream: Arc<Mutex<Stream>>,
    /// Questions of any session that wait for an answer, by their ids.
    questions: Arc<Mutex<HashMap<String, Sender<Option<Value>>>>>,
    patience: Arc<Patience>,
}

#[derive(Default)]
struct Stream {
    /// No more events.
    muted: bool,
    /// The end of the stream was reported.
    told: bool,
    /// Commands of the shell that are under way, and the number of the next one.
    shells: Vec<(u64, Subject)>,
    next_shell: u64,
    /// A command that is answered when retries are over.
    retry_end: Option<Subject>,
}

/// What a response answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Subject {
    /// The `id` of the command, whatever it is.
    pub(super) id: Option<Value>,
    /// The command; `None` when the record names none.
    pub(super) command: Option<Box<str>>,
    /// The session that the command names.
    pub(super) session: Option<Box<str>>,
}

impl Records {
    /// A stream to standard output.
    pub(super) fn new(patience: Arc<Patience>) -> Self {
        let (out, stream, questions) = Default::default();
        Self { session: None, out, stream, questions, patience }
    }

    /// Those of another session.
    pub(super) fn of_session(&self, id: &str) -> Self {
        Self { session: Some(id.into()), stream: Arc::default(), ..self.clone() }
    }

    /// The session that its records name; `None` for the one that the program began with.
    pub(super) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// A command was followed; `data` is JSON.
    pub(super) fn success(&self, subject: &Subject, data: Option<&str>) {
        self.write(|w| {
            begin(subject, true, w);
            if let Some(data) = data {
                w.key("data");
                w.raw(data);
            }
            w.end_object();
        });
    }

    /// A command was not followed, and why.
    pub(super) fn failure(&self, subject: &Subject, why: &str) {
        self.write(|w| {
            begin(subject, false, w);
            w.field_str("error", &shortened(why));
            w.end_object();
        });
    }

    /// A number for a command of the shell; its output and its end are written as those of this command.
    pub(super) fn expect_shell(&self, subject: &Subject) -> u64 {
        let mut stream = self.lock();
        let id = stream.next_shell;
        stream.next_shell += 1;
        stream.shells.push((id, subject.clone()));
        id
    }

    /// That command has ended, or did not begin.
    pub(super) fn take_shell(&self, id: u64) -> Option<Subject> {
        let shells = &mut self.lock().shells;
        let at = shells.iter().position(|(shell, _)| *shell == id)?;
        Some(shells.swap_remove(at).1)
    }

    /// The next event that tells of the end of retries answers this command.
    pub(super) fn expect_retry_end(&self, subject: &Subject) {
        self.lock().retry_end = Some(subject.clone());
    }

    /// Whether that event did not come; nothing waits for it any more.
    pub(super) fn take_retry_end(&self) -> bool {
        self.lock().retry_end.take().is_some()
    }

    fn shell_ended(&self, id: u64, outcome: &Result<Arc<Message>, Fault>) {
        let Some(subject) = self.take_shell(id) else { return };
        match bash::outcome_data(outcome) {
            Ok(data) => self.success(&subject, Some(&data)),
            Err(why) => self.failure(&subject, why),
        }
    }

    /// Asks the client to choose (spec 60 §3.7), and waits; `None` when nobody answers within `limit`, or nobody waits
    /// for the answer any more.
    pub(super) fn select(
        &self,
        title: &str,
        options: &[&str],
        limit: Duration,
        cancel: &CancelToken,
    ) -> Option<String> {
        let id = uuid()?;
        let (sender, receiver) = channel();
        self.questions().insert(id.clone(), sender.clone());
        self.write(|w| {
            w.begin_object();
            w.field_str("type", "extension_ui_request");
            w.field_str("id", &id);
            w.field_opt_str("sessionId", self.session.as_deref());
            w.field_str("method", "select");
            w.field_str("title", title);
            w.key("options");
            w.begin_array();
            options.iter().for_each(|option| w.str(option));
            w.end_array();
            w.field_u64("timeout", u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
            w.end_object();
        });
        let given_up = cancel.on_cancel(move || {
            let _ = sender.send(None);
        });
        let answer = receiver.recv_timeout(limit).ok().flatten();
        drop(given_up);
        self.questions().remove(&id);
        answer?.as_str().map(str::to_owned)
    }

    /// Takes the answer to a question; one to a question that is gone says nothing.
    pub(super) fn answered(&self, id: &Value, value: Option<Value>) {
        if let Some(sender) = id.as_str().and_then(|id| self.questions().remove(id)) {
            let _ = sender.send(value);
        }
    }

    fn questions(&self) -> MutexGuard<'_, HashMap<String, Sender<Option<Value>>>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No event is written from now on; responses are.
    pub(super) fn mute(&self) {
        self.lock().muted = true;
    }

    /// Whether the client went away.
    pub(super) fn is_closed(&self) -> bool {
        self.output().is_closed()
    }

    /// Tells on standard error why nothing can be written, if that is not the client's doing.
    pub(super) fn complain(&self) {
        let _ = self.output().complain();
    }

    fn write(&self, record: impl FnOnce(&mut Writer)) {
        let mut out = self.output();
        line(&mut out, |w| {
            record(w);
            true
        });
        self.flush(&mut out);
    }

    fn event_line(&self, event: &Event, stream: &Stream, out: &mut Out) {
        let start = out.buffer().len();
        match event {
            Event::ShellOutput { id, delta } => {
                let Some((_, subject)) = stream.shells.iter().find(|(shell, _)| shell == id) else { return };
                line(out, |w| {
                    w.begin_object();
                    w.field_str("type", event.type_name());
                    if let Some(id) = &subject.id {
                        w.field_value("id", id);
                    }
                    w.field_str("delta", delta);
                    w.end_object();
                    true
                });
            }
            _ => line(out, |w| event.write(w)),
        }
        if let (Some(session), true) = (&self.session, out.buffer().len() > start) {
            let mut tag = Writer::new();
            tag.str(session);
            out.buffer().insert_str(start + 1, &format!("\"sessionId\":{},", tag.into_string()));
        }
    }

    /// The writer waits here while the client does not read.
    fn flush(&self, out: &mut Out) {
        out.flush_unless(&|stuck| self.patience.is_over(stuck));
    }

    fn output(&self) -> MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Stream> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reason names what is wrong, which may be megabytes of a faulty field: its beginning does.
fn shortened(why: &str) -> Cow<'_, str> {
    match why.char_indices().nth(LONGEST_REASON) {
        Some((at, _)) => format!("{}…", why.get(..at).unwrap_or_default()).into(),
        None => why.into(),
    }
}

/// A random id for a question.
fn uuid() -> Option<String> {
    let mut bytes = [0; 16];
    random::fill(&mut bytes).ok()?;
    Some(crate::auth_login::uuid(bytes))
}

fn begin(subject: &Subject, success: bool, w: &mut Writer) {
    w.begin_object();
    if let Some(id) = &subject.id {
        w.field_value("id", id);
    }
    w.field_str("type", "response");
    w.field_opt_str("command", subject.command.as_deref());
    w.field_opt_str("sessionId", subject.session.as_deref());
    w.field_bool("success", success);
}

fn line(out: &mut Out, record: impl FnOnce(&mut Writer) -> bool) {
    if out.is_closed() {
        return;
    }
    let mut w = Writer::append_to(mem::take(out.buffer()));
    let written = record(&mut w);
    *out.buffer() = w.into_string();
    if written {
        out.buffer().push('\n');
    }
}

impl EventSink<Hub> for Records {
    fn event(&mut self, event: &Event, _: &Hub) -> SinkFlow {
        match event {
            Event::Error(fault) => note(&harmless(&fault.message)),
            Event::ShellEnd { id, outcome } => self.shell_ended(*id, outcome),
            _ => {}
        }
        let mut stream = self.lock();
        let mut out = self.output();
        if !stream.muted {
            self.event_line(event, &stream, &mut out);
        }
        if let Event::AutoRetryEnd { .. } = event
            && let Some(subject) = stream.retry_end.take()
        {
            line(&mut out, |w| {
                begin(&subject, true, w);
                w.end_object();
                true
            });
        }
        if out.is_full() {
            self.flush(&mut out);
        }
        SinkFlow::Go
    }

    /// The run waits here while the client does not read.
    fn drained(&mut self) -> SinkFlow {
        let mut out = self.output();
        self.flush(&mut out);
        let closed = out.is_closed();
        drop(out);
        if closed && !mem::replace(&mut self.lock().told, true) { SinkFlow::Wake } else { SinkFlow::Go }
    }
}
