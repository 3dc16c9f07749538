//! Several sessions in one process: commands name theirs by `sessionId`, and so do their responses and events. An
//! extension; without it everything is as if there were one session.
//!
//! Each session has a thread that follows its commands, a working directory and an environment of its own. It keeps the
//! id that it was opened with, whatever session takes its place there later.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use crate::backend::Engine;
use tau_core::hub::Hub;
use tau_core::json::Writer;

use super::Rpc;
use super::call::Call;
use super::commands::Answer;
use super::feed::{Feed, Order};
use super::records::Subject;
use crate::args::Args;
use crate::bootstrap::{Stored, prepare_at};
use crate::out::note;

/// The sessions beside the first one.
#[derive(Default)]
pub(super) struct Others {
    open: BTreeMap<String, Other>,
    /// Those that were told to close and may still be at it.
    closing: Vec<Ended>,
}

struct Other {
    orders: Sender<Order>,
    engine: Engine<Hub>,
    thread: JoinHandle<u8>,
}

impl Other {
    /// Hands over an order; `false` when the session has ended by itself.
    fn tell(&self, order: Order) -> bool {
        let told = self.orders.send(order).is_ok();
        self.engine.waker().wake();
        told
    }
}

impl Others {
    /// Ends all of them.
    pub(super) fn end(&mut self) -> Vec<Ended> {
        let end = |other: Other| {
            other.tell(Order::End);
            Ended(other.thread)
        };
        let mut ended = std::mem::take(&mut self.closing);
        ended.extend(std::mem::take(&mut self.open).into_values().map(end));
        ended
    }

    /// Closes one, which answers `subject` when it has ended; `false` when it had ended already, `None` when there is none
    /// of that id.
    fn close(&mut self, id: &str, subject: &Subject) -> Option<bool> {
        let other = self.open.remove(id)?;
        let told = other.tell(Order::Close(subject.clone()));
        self.closing.retain(|ended| !ended.0.is_finished());
        self.closing.push(Ended(other.thread));
        Some(told)
    }
}

/// A session that was told to end.
pub(super) struct Ended(JoinHandle<u8>);

impl Ended {
    /// Waits until it has.
    pub(super) fn wait(self) {
        let _ = self.0.join();
    }
}

impl Rpc {
    /// Hands a command to the session that it names; the command itself if that is this one.
    pub(super) fn elsewhere(&self, call: Call) -> Result<Option<Call>, String> {
        let Feed::Client { others, .. } = &self.feed else { return Ok(Some(call)) };
        let Some(id) = call.subject.session.as_deref() else { return Ok(Some(call)) };
        if call.name == "close_session" {
            return Ok(Some(call));
        }
        let gone = format!("there is no open session {id}");
        match others.open.get(id) {
            Some(other) => other.tell(Order::Follow(Ok(call))).then_some(None).ok_or(gone),
            None if self.engine.with(|hub| hub.desk().session().id() == id) => Ok(Some(call)),
            None => Err(gone),
        }
    }

    /// Opens a session beside the others: a new one, or a stored one by its file.
    pub(super) fn open_session(&mut self, call: &Call) -> Result<Answer, String> {
        let cwd =
            call.optional_text("cwd")?.map_or_else(|| self.workshop.base.place.cwd.clone(), str::to_owned);
        if !std::path::Path::new(&cwd).is_absolute() || !std::path::Path::new(&cwd).is_dir() {
            return Err("open_session: the field \"cwd\" must be the absolute path of a folder".to_owned());
        }
        let file = call.optional_text("sessionPath")?;
        let environment = call.texts("env")?;
        if let Some((name, _)) = environment.iter().find(|variable| !is_variable(variable)) {
            return Err(format!("open_session: \"env\" has something that is no variable: \"{name}\""));
        }
        let name = call.optional_text("name")?.map(str::to_owned);
        if name.as_deref().is_some_and(|name| name.trim().is_empty()) {
            return Err("open_session: the field \"name\" needs at least one visible character".to_owned());
        }
        // The flags were about the first session.
        let args = Args {
            session: None,
            session_id: None,
            continue_last: false,
            resume: false,
            fork: None,
            name,
            model: call
                .optional_text("model")?
                .map(str::to_owned)
                .or_else(|| self.workshop.args.model.clone()),
            ..self.workshop.args.clone()
        };
        let mut warnings = Vec::new();
        let stored = file.map_or(Stored::New, Stored::File);
        let owner = self.workshop.access.key_owner();
        let ready = prepare_at(&args, &cwd, stored, &environment, owner, &mut warnings);
        warnings.iter().for_each(|warning| note(warning));
        let ready = ready?;
        let Feed::Client { others, .. } = &mut self.feed else {
            return Err("open_session: only the first session opens others".to_owned());
        };
        let session = &ready.boot.desk.session;
        // Another session may have been opened by this id, and be elsewhere by now.
        let first = self.engine.with(|hub| hub.desk().session().id().to_owned());
        let is_free = |id: &String| *id != first && !others.open.contains_key(id);
        let mut names = (2..).map(|number| format!("{}-{number}", session.id()));
        let own = Some(session.id().to_owned()).filter(is_free);
        let Some(id) = own.or_else(|| names.find(is_free)) else {
            return Err("open_session: too many sessions".to_owned());
        };
        self.files.claim(Some(&id), session.path()).map_err(|why| format!("open_session: {why}"))?;
        let (orders, receiver) = channel();
        let records = self.records.of_session(&id);
        let rpc = Self::of(ready, records, Arc::clone(&self.signals), self.files.clone(), Some(receiver));
        let rpc = rpc.inspect_err(|_| self.files.release(Some(&id)))?;
        let engine = rpc.engine.clone();
        let mut w = Writer::new();
        describe(&id, &engine, &mut w);
        let thread = thread::Builder::new().name("tau-session".into()).spawn(move || {
            let mut rpc = rpc;
            rpc.serve()
        });
        let thread = thread.map_err(|e| {
            self.files.release(Some(&id));
            format!("open_session: {e}")
        })?;
        others.open.insert(id, Other { orders, engine, thread });
        Ok(Answer::Data(w.into_string()))
    }

    /// Ends a session; answered when what it did has ended and is stored.
    pub(super) fn close_session(&mut self, call: &Call) -> Result<Answer, String> {
        let id =
            call.subject.session.as_deref().ok_or("close_session needs the field \"sessionId\" (text)")?;
        let Feed::Client { others, .. } = &mut self.feed else {
            return Err("close_session: the session is closed from outside".to_owned());
        };
        match others.close(id, &call.subject) {
            Some(true) => Ok(Answer::Sent),
            Some(false) => Ok(Answer::Done),
            None => Err(format!("close_session: there is no session {id} beside the first one")),
        }
    }

    /// The sessions that are open, the first one first.
    pub(super) fn list_sessions(&mut self, _: &Call) -> Result<Answer, String> {
        let mut w = Writer::new();
        w.begin_object();
        w.key("sessions");
        w.begin_array();
        let own = self.engine.with(|hub| hub.desk().session().id().to_owned());
        describe(&own, &self.engine, &mut w);
        if let Feed::Client { others, .. } = &self.feed {
            others.open.iter().for_each(|(id, other)| describe(id, &other.engine, &mut w));
        }
        w.end_array();
        w.end_object();
        Ok(Answer::Data(w.into_string()))
    }
}

/// Whether the operating system takes it as a variable of an environment.
fn is_variable((name, value): &(String, String)) -> bool {
    !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0')
}

/// Writes what is known of a session.
fn describe(id: &str, engine: &Engine<Hub>, w: &mut Writer) {
    engine.with(|hub| {
        let (desk, session) = (hub.desk(), hub.desk().session());
        w.begin_object();
        w.field_str("sessionId", id);
        w.field_str("cwd", session.cwd());
        w.field_opt_str("sessionFile", session.path());
        w.field_opt_str("sessionName", session.name());
        w.field_bool("isStreaming", desk.is_active());
        w.end_object();
    });
}
