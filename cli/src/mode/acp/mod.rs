//! `tau acp`: the Agent Client Protocol, version 1, over standard input and output. An editor is the client; several
//! sessions may be open, each with its own working directory.
//!
//! The main thread follows requests in order; runs go on beside it. A prompt is answered by the event that ends it.

mod calls;
mod client;
mod content;
mod hello;
mod history;
mod message;
mod options;
mod permission;
mod seat;
pub mod sign_in;
mod stored;
mod updates;

use std::collections::BTreeMap;
use std::process::{ExitCode, exit};
use std::sync::Arc;
use std::sync::mpsc::TryRecvError;

use tau_core::input::Command;
use tau_core::json::{Value, Writer};
use tau_core::path::{Style, normalize};
use tau_io_std::sys::wake::Wake;

use crate::args::{Args, ModeArg};
use crate::bootstrap::{Stored, prepare_at};
use crate::mode::pipe::input::{self, Inbox, Incoming};
use crate::mode::pipe::patience::Patience;
use crate::out::note;
use crate::sessions::is_same_directory;
use crate::signals::Signals;
use crate::{outputs, run};
use client::Client;
use message::{Message, Params, Refusal, folder, text};
use seat::Seat;
use sign_in::Terminals;

/// Exit code when nobody takes the messages.
const NO_READER: u8 = 1;

/// Follows requests until input ends, a signal comes, or the client goes away; then ends the process.
#[must_use]
pub fn run(args: Args) -> ExitCode {
    // Every text may be a command: skills and templates are looked for.
    match Acp::start(Args { mode: Some(ModeArg::Rpc), ..args }) {
        Ok(mut acp) => exit(i32::from(acp.serve())),
        Err(why) => {
            note(&why);
            ExitCode::FAILURE
        }
    }
}

/// Whether a line is a message, with a prompt that can be taken if it has one.
///
/// # Errors
/// The code of the answer, and what the client is told.
pub fn check_line(line: &str) -> Result<(), (i64, String)> {
    let told = |why: Refusal| (why.code, why.text);
    match message::read(line).map_err(|(_, why)| told(why))? {
        Some(Message::Request { method, params, .. }) if method == "session/prompt" => {
            content::read(&params).map(drop).map_err(told)
        }
        _ => Ok(()),
    }
}

struct Acp {
    args: Args,
    client: Arc<Client>,
    patience: Arc<Patience>,
    signals: Arc<Signals>,
    waker: Arc<Wake>,
    input: Inbox,
    seats: BTreeMap<String, Seat>,
    swept: bool,
}

/// Follows a request, or says why not. Some answer themselves, later.
type Follow = fn(&mut Acp, &Value, &Params) -> Result<(), Refusal>;

const METHODS: &[(&str, Follow)] = &[
    ("initialize", Acp::initialize),
    ("authenticate", Acp::authenticate),
    ("session/new", Acp::new_session),
    ("session/load", Acp::load_session),
    ("session/resume", Acp::resume_session),
    ("session/list", Acp::list_sessions),
    ("session/close", Acp::close_session),
    ("session/delete", Acp::delete_session),
    ("session/prompt", Acp::prompt),
    ("session/set_mode", Acp::set_mode),
    ("session/set_config_option", Acp::set_option),
];

impl Acp {
    fn start(args: Args) -> Result<Self, String> {
        let none_left = |e: std::io::Error| format!("the client cannot be served: {e}");
        let waker = Arc::new(Wake::new().map_err(none_left)?);
        let signals = Arc::new(Signals::default());
        signals.listen(&waker).map_err(none_left)?;
        let patience = Arc::new(Patience::new(Arc::clone(&signals)));
        let client = Arc::new(Client::new(Arc::clone(&patience), Arc::clone(&waker)));
        let input = input::listen(Arc::clone(&waker), Arc::clone(&patience)).map_err(none_left)?;
        Ok(Self { args, client, patience, signals, waker, input, seats: BTreeMap::new(), swept: false })
    }

    /// The exit code.
    fn serve(&mut self) -> u8 {
        loop {
            if let Some(number) = self.signals.take() {
                self.patience.leave();
                return self.wind_down(128 + number, 0);
            }
            if self.client.is_closed() {
                return self.wind_down(NO_READER, 0);
            }
            match self.input.take() {
                Ok((Incoming::Line(line), _)) => self.line(&line),
                Ok((Incoming::Unfit(why), _)) => self.refuse(&Value::Null, Refusal::request(why)),
                Ok((Incoming::End, _)) | Err(TryRecvError::Disconnected) => return self.wind_down(0, 1),
                Err(TryRecvError::Empty) => {
                    self.waker.wait(None);
                    self.waker.clear();
                }
            }
        }
    }

    fn line(&mut self, line: &str) {
        match message::read(line) {
            Ok(None) => {}
            Ok(Some(Message::Answer { id, result })) => self.client.answered(&id, result),
            Ok(Some(Message::Notification { method, params })) => self.notified(&method, &params),
            Ok(Some(Message::Request { id, method, params })) => {
                let follow = METHODS.iter().find(|(name, _)| *name == method);
                let outcome = match follow {
                    Some((_, follow)) => follow(self, &id, &params),
                    None => Err(Refusal::method(&method)),
                };
                if let Err(why) = outcome {
                    self.refuse(&id, why);
                }
            }
            Err((id, why)) => self.refuse(&id, why),
        }
    }

    fn refuse(&self, id: &Value, why: Refusal) {
        self.client.refuse(id, &why);
    }

    /// Those that mean nothing here are ignored.
    fn notified(&self, method: &str, params: &Params) {
        let seat = match method {
            "session/cancel" => {
                params.get("sessionId").and_then(Value::as_str).and_then(|id| self.seats.get(id))
            }
            // Only prompts take their time.
            "$/cancel_request" => params
                .get("requestId")
                .and_then(|request| self.seats.values().find(|seat| seat.works_on(request))),
            _ => None,
        };
        if let Some(seat) = seat {
            seat.cancel();
        }
    }

    fn initialize(&mut self, id: &Value, params: &Params) -> Result<(), Refusal> {
        self.client.learn(hello::shows(params));
        let terminals = Terminals::of(params);
        self.client.result(id, |w| hello::write(terminals, w));
        Ok(())
    }

    fn new_session(&mut self, id: &Value, params: &Params) -> Result<(), Refusal> {
        let cwd = folder(params, "cwd")?;
        let (seat, notes) = self.open(cwd, params, Stored::New)?;
        let client = Arc::clone(&self.client);
        let session = self.seat_in(seat);
        let options = session.options();
        client.result(id, |w| {
            w.begin_object();
            w.field_str("sessionId", &session.id);
            state(session, &options, w);
            w.end_object();
        });
        session.announce(&notes);
        Ok(())
    }

    fn load_session(&mut self, id: &Value, params: &Params) -> Result<(), Refusal> {
        self.reopen(id, params, true)
    }

    fn resume_session(&mut self, id: &Value, params: &Params) -> Result<(), Refusal> {
        self.reopen(id, params, false)
    }

    fn reopen(&mut self, id: &Value, params: &Params, tell: bool) -> Result<(), Refusal> {
        let (name, cwd) = (text(params, "sessionId")?, folder(params, "cwd")?);
        // What is open is stored before it is read.
        if let Some(seat) = self.seats.remove(name) {
            seat.close();
        }
        let (seat, notes) = self.open(cwd, params, Stored::Id(name))?;
        let client = Arc::clone(&self.client);
        if tell {
            let place = seat.gate.place();
            seat.engine.with(|hub| history::tell(&client, place, hub.desk().session()));
        }
        let session = self.seat_in(seat);
        let options = session.options();
        client.result(id, |w| {
            w.begin_object();
            state(session, &options, w);
            w.end_object();
        });
        session.announce(&notes);
        Ok(())
    }

    /// Opens a session in the working directory that the client names; with what people should know.
    fn open(&self, cwd: &str, params: &Params, which: Stored<'_>) -> Result<(Seat, Vec<String>), Refusal> {
        let mut notes = Vec::new();
        let ready = prepare_at(&self.args, cwd, which, &[], None, &mut notes);
        notes.extend(unused_servers(params));
        let refused = |why: String| match which {
            Stored::Id(id) if why.starts_with("there is no session") => Refusal::no_session(id),
            _ => Refusal::internal(why),
        };
        let seat = Seat::open(ready.map_err(refused)?, &self.client).map_err(Refusal::internal)?;
        let own = &seat.gate.place().cwd;
        if !is_same_directory(own, &normalize(cwd, Style::Posix)) {
            notes.push(format!("this session belongs to {own} and goes on there, not in {cwd}"));
        }
        Ok((seat, notes))
    }

    fn seat_in(&mut self, seat: Seat) -> &mut Seat {
        self.seats.entry(seat.id.clone()).insert_entry(seat).into_mut()
    }

    fn seat(&mut self, params: &Params) -> Result<&mut Seat, Refusal> {
        let id = text(params, "sessionId")?;
        self.seats.get_mut(id).ok_or_else(|| Refusal::no_session(id))
    }

    fn close_session(&mut self, id: &Value, params: &Params) -> Result<(), Refusal> {
        let name = text(params, "sessionId")?;
        let seat = self.seats.remove(name).ok_or_else(|| Refusal::no_session(name))?;
        seat.close();
        self.client.result(id, empty);
        Ok(())
    }

    fn prompt(&mut self, id: &Value, params: &Params) -> Result<(), Refusal> {
        let content = content::read(params)?;
        self.seat(params)?.prompt(id, content)?;
        if !std::mem::replace(&mut self.swept, true) {
            // The answer is under way; there is time for housekeeping.
            outputs::sweep();
        }
        Ok(())
    }

    fn set_mode(&mut self, id: &Value, params: &Params) -> Result<(), Refusal> {
        let name = text(params, "modeId")?;
        let seat = self.seat(params)?;
        seat.choose_mode(name)?;
        let client = Arc::clone(&self.client);
        let seat = self.seat(params)?;
        client.result(id, empty);
        // Clients that know options look there.
        seat.tell_options();
        Ok(())
    }

    fn set_option(&mut self, id: &Value, params: &Params) -> Result<(), Refusal> {
        let (option, value) = (text(params, "configId")?, text(params, "value")?);
        let client = Arc::clone(&self.client);
        let seat = self.seat(params)?;
        seat.choose(option, value)?;
        let options = seat.options();
        client.result(id, |w| {
            w.begin_object();
            w.key("configOptions");
            w.raw(&options);
            w.end_object();
        });
        if option == options::MODE {
            seat.tell_mode();
        }
        Ok(())
    }

    /// Every run is aborted, and stored when this returns.
    fn wind_down(&mut self, code: u8, ignored_signals: u8) -> u8 {
        for seat in self.seats.values_mut() {
            seat.engine.command(Command::Abort);
            seat.stop_clock();
        }
        for seat in self.seats.values() {
            run::wind_down(&seat.engine, &self.signals, code, ignored_signals);
        }
        code
    }
}

/// Writes the modes and options of a session.
fn state(seat: &Seat, options: &str, w: &mut Writer) {
    w.key("modes");
    options::modes(seat.gate.rules().mode(), w);
    w.key("configOptions");
    w.raw(options);
}

/// That MCP servers of the client are left out, if it has any.
fn unused_servers(params: &Params) -> Option<String> {
    let servers = params.get("mcpServers")?.as_array()?;
    let names: Vec<&str> = servers.iter().filter_map(|server| server.get("name")?.as_str()).collect();
    let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    (!servers.is_empty()).then(|| {
        format!("MCP servers of the editor{names} are not used: tau does not speak MCP. The session goes on without their tools.")
    })
}

fn empty(w: &mut Writer) {
    w.begin_object();
    w.end_object();
}
