//! The client at the other end of the pipes: what it is told, and what it is asked.

use std::collections::HashMap;
use std::mem;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tau_core::json::{Value, Writer};
use tau_io_std::sys::CancelToken;
use tau_io_std::sys::wake::Wake;

use super::message::Refusal;
use crate::mode::pipe::patience::Patience;
use crate::out::{Out, note};

/// What a client shows beside the conversation.
#[derive(Clone, Copy, Default)]
pub(super) struct Shows {
    /// Remarks for people.
    pub(super) notices: bool,
    /// That a context is being compacted.
    pub(super) compactions: bool,
}

/// Writes messages, whole lines, from whichever thread. What the closures write must be at hand: whoever tells of a
/// run holds the lock of its engine and waits for the one here, so none may be taken in the other order.
pub(super) struct Client {
    stream: Mutex<Stream>,
    shows: Mutex<Shows>,
    patience: Arc<Patience>,
    /// Wakes the thread that looks after the client.
    waker: Arc<Wake>,
}

#[derive(Default)]
struct Stream {
    out: Out,
    /// Requests of ours that wait for an answer.
    questions: HashMap<u64, Sender<Option<Value>>>,
    next: u64,
    told: bool,
}

impl Client {
    pub(super) fn new(patience: Arc<Patience>, waker: Arc<Wake>) -> Self {
        Self { stream: Mutex::default(), shows: Mutex::default(), patience, waker }
    }

    /// Whether it went away.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().out.is_closed()
    }

    /// Answers a request; `result` writes the value.
    pub(super) fn result(&self, id: &Value, result: impl FnOnce(&mut Writer)) {
        let mut stream = self.lock();
        stream.line(|w| {
            write_id(id, w);
            w.key("result");
            result(w);
        });
        self.write_out(&mut stream);
    }

    /// Answers a request that is not followed.
    pub(super) fn refuse(&self, id: &Value, why: &Refusal) {
        let mut stream = self.lock();
        stream.line(|w| {
            write_id(id, w);
            w.key("error");
            w.begin_object();
            w.field_i64("code", why.code);
            w.field_str("message", &why.text);
            w.end_object();
        });
        self.write_out(&mut stream);
    }

    /// Tells of a session; `update` writes the fields. It leaves with [`Self::flush`], or when much is to be told.
    pub(super) fn update(&self, session: &str, kind: &str, update: impl FnOnce(&mut Writer)) {
        let mut stream = self.lock();
        stream.line(|w| {
            w.field_str("method", "session/update");
            w.key("params");
            w.begin_object();
            w.field_str("sessionId", session);
            w.key("update");
            w.begin_object();
            w.field_str("sessionUpdate", kind);
            update(w);
            w.end_object();
            w.end_object();
        });
        if stream.out.is_full() {
            self.write_out(&mut stream);
        }
    }

    /// It said what it shows.
    pub(super) fn learn(&self, shows: Shows) {
        *self.shows.lock().unwrap_or_else(PoisonError::into_inner) = shows;
    }

    /// What it shows.
    pub(super) fn shows(&self) -> Shows {
        *self.shows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A remark for people: on standard error, and in the session of a client that shows it.
    pub(super) fn remark(&self, session: &str, severity: &str, text: &str) {
        note(text);
        if self.shows().notices {
            self.update(session, "notice", |w| {
                w.field_str("severity", severity);
                w.field_str("title", text);
            });
        }
    }

    /// Writes what was told.
    pub(super) fn flush(&self) {
        self.write_out(&mut self.lock());
    }

    /// Asks, and waits for the answer; `None` when there is none, or nobody waits for it any more.
    pub(super) fn ask(
        &self,
        method: &str,
        params: impl FnOnce(&mut Writer),
        cancel: &CancelToken,
    ) -> Option<Value> {
        let (sender, receiver) = channel();
        let id = {
            let mut stream = self.lock();
            // Clients that ask `if (id)` take 0 for none.
            stream.next += 1;
            let id = stream.next;
            stream.questions.insert(id, sender.clone());
            stream.line(|w| {
                w.field_u64("id", id);
                w.field_str("method", method);
                w.key("params");
                w.begin_object();
                params(w);
                w.end_object();
            });
            self.write_out(&mut stream);
            id
        };
        let given_up = cancel.on_cancel(move || {
            let _ = sender.send(None);
        });
        let answer = receiver.recv().ok().flatten();
        drop(given_up);
        self.lock().questions.remove(&id);
        answer
    }

    /// Takes an answer; one to a question that is gone says nothing.
    pub(super) fn answered(&self, id: &Value, result: Option<Value>) {
        if let Some(sender) = id.as_u64().and_then(|id| self.lock().questions.remove(&id)) {
            let _ = sender.send(result);
        }
    }

    /// A client that does not read makes whoever writes wait.
    fn write_out(&self, stream: &mut Stream) {
        stream.out.flush_unless(&|stuck| self.patience.is_over(stuck));
        if stream.out.is_closed() && !mem::replace(&mut stream.told, true) {
            self.waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Stream> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes an id as the client wrote it: numbers may be larger than those of JavaScript.
fn write_id(id: &Value, w: &mut Writer) {
    w.key("id");
    match id {
        Value::Number(number) => w.raw(&number.to_string()),
        id => w.value(id),
    }
}

impl Stream {
    fn line(&mut self, fields: impl FnOnce(&mut Writer)) {
        if self.out.is_closed() {
            return;
        }
        let mut w = Writer::append_to(mem::take(self.out.buffer()));
        w.begin_object();
        w.field_str("jsonrpc", "2.0");
        fields(&mut w);
        w.end_object();
        *self.out.buffer() = w.into_string();
        self.out.buffer().push('\n');
    }
}
