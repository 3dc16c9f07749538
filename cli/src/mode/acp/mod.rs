//! `tau acp`: the Agent Client Protocol, version 1, over standard input and output. An editor is the client; several
//! sessions may be open, each with its own working directory.
//!
//! The main thread follows requests in order; runs go on beside it. A prompt is answered by the event that ends it.

mod calls;
mod client;
mod content;
mod history;
mod message;
mod options;
mod permission;
mod seat;
mod updates;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{ExitCode, exit};
use std::sync::Arc;
use std::sync::mpsc::TryRecvError;

use tau_core::input::Command;
use tau_core::json::{Value, Writer};
use tau_core::now::Wall;
use tau_core::permissions::PermissionMode;
use tau_io_std::sys::clock;
use tau_io_std::sys::wake::Wake;

use crate::args::{Args, ModeArg, help};
use crate::bootstrap::{Base, Stored, prepare_at};
use crate::mode::pipe::input::{self, Inbox, Incoming};
use crate::mode::pipe::patience::Patience;
use crate::out::note;
use crate::sessions::Place;
use crate::signals::Signals;
use crate::surroundings::Surroundings;
use crate::{outputs, run};
use client::Client;
use message::{Message, Params, Refusal, text};
use seat::Seat;

/// The version of the protocol.
const VERSION: u64 = 1;

/// Exit code when nobody takes the messages.
const NO_READER: u8 = 1;

/// Most sessions of one page of a list.
const PAGE: usize = 100;

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
                Ok(Incoming::Line(line)) => self.line(&line),
                Ok(Incoming::TooLong) => self.refuse(&Value::Null, Refusal::request("the line is too long")),
                Ok(Incoming::End) | Err(TryRecvError::Disconnected) => return self.wind_down(0, 1),
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

    /// The only notification that means something; others are ignored.
    fn notified(&self, method: &str, params: &Params) {
        let named = params.get("sessionId").and_then(Value::as_str);
        if method == "session/cancel"
            && let Some(seat) = named.and_then(|id| self.seats.get(id))
        {
            seat.cancel();
        }
    }

    fn initialize(&mut self, id: &Value, _: &Params) -> Result<(), Refusal> {
        self.client.result(id, |w| {
            w.begin_object();
            w.field_u64("protocolVersion", VERSION);
            w.key("agentCapabilities");
            w.begin_object();
            w.field_bool("loadSession", true);
            w.key("promptCapabilities");
            w.begin_object();
            w.field_bool("image", true);
            w.field_bool("audio", false);
            w.field_bool("embeddedContext", true);
            w.end_object();
            w.key("sessionCapabilities");
            w.begin_object();
            for name in ["list", "resume", "close"] {
                w.name(name);
                w.begin_object();
                w.end_object();
            }
            w.end_object();
            w.end_object();
            w.key("agentInfo");
            w.begin_object();
            w.field_str("name", "tau");
            w.field_str("title", "Tau");
            w.field_str("version", help::VERSION);
            w.end_object();
            w.key("authMethods");
            w.begin_array();
            w.end_array();
            w.end_object();
        });
        Ok(())
    }

    /// Credentials come from the configuration: nothing can be done here.
    fn authenticate(&mut self, _: &Value, _: &Params) -> Result<(), Refusal> {
        Err(Refusal::params("sign in with `tau auth login`, or set a key; there is no other way"))
    }

    fn new_session(&mut self, id: &Value, params: &Params) -> Result<(), Refusal> {
        let seat = self.open(params, None)?;
        let client = Arc::clone(&self.client);
        let session = self.seat_in(seat);
        client.result(id, |w| {
            w.begin_object();
            w.field_str("sessionId", &session.id);
            state(session, w);
            w.end_object();
        });
        session.announce_commands();
        Ok(())
    }

    fn load_session(&mut self, id: &Value, params: &Params) -> Result<(), Refusal> {
        self.reopen(id, params, true)
    }

    fn resume_session(&mut self, id: &Value, params: &Params) -> Result<(), Refusal> {
        self.reopen(id, params, false)
    }

    fn reopen(&mut self, id: &Value, params: &Params, tell: bool) -> Result<(), Refusal> {
        let name = text(params, "sessionId")?.to_owned();
        if let Some(seat) = self.seats.remove(&name) {
            seat.close();
        }
        let seat = self.open(params, Some(&name))?;
        let client = Arc::clone(&self.client);
        if tell {
            let place = seat.gate.place();
            seat.engine.with(|hub| history::tell(&client, place, hub.desk().session()));
        }
        let session = self.seat_in(seat);
        client.result(id, |w| {
            w.begin_object();
            state(session, w);
            w.end_object();
        });
        session.announce_commands();
        Ok(())
    }

    /// Opens a session in the working directory that the client names.
    fn open(&self, params: &Params, stored: Option<&str>) -> Result<Seat, Refusal> {
        let cwd = text(params, "cwd")?;
        if !Path::new(cwd).is_absolute() {
            return Err(Refusal::params("the parameter \"cwd\" must be an absolute path"));
        }
        if !Path::new(cwd).is_dir() {
            return Err(Refusal::params(format!("{cwd} is not a folder")));
        }
        if params.get("mcpServers").and_then(Value::as_array).is_some_and(|servers| !servers.is_empty()) {
            note("MCP servers are not part of this version; the session goes on without them");
        }
        let mut warnings = Vec::new();
        let which = stored.map_or(Stored::New, Stored::Id);
        let ready = prepare_at(&self.args, cwd, which, &[], None, &mut warnings);
        warnings.iter().for_each(|warning| note(warning));
        let refused = |why: String| match stored {
            Some(id) if why.starts_with("there is no session") => Refusal::no_session(id),
            _ => Refusal::internal(why),
        };
        Seat::open(ready.map_err(refused)?, &self.client).map_err(Refusal::internal)
    }

    fn seat_in(&mut self, seat: Seat) -> &mut Seat {
        self.seats.entry(seat.id.clone()).insert_entry(seat).into_mut()
    }

    fn seat(&mut self, params: &Params) -> Result<&mut Seat, Refusal> {
        let id = text(params, "sessionId")?;
        self.seats.get_mut(id).ok_or_else(|| Refusal::no_session(id))
    }

    fn list_sessions(&mut self, id: &Value, params: &Params) -> Result<(), Refusal> {
        let place = Surroundings::gather().map_err(Refusal::internal)?;
        let cwd = params.get("cwd").and_then(Value::as_str);
        let place = Surroundings { cwd: cwd.map_or_else(|| place.cwd.clone(), str::to_owned), ..place };
        let mut warnings = Vec::new();
        let base = Base::read(place, &self.args, &mut warnings).map_err(Refusal::internal)?;
        let setting = base.session_dir();
        let at = Place { surroundings: &base.place, setting: setting.as_deref(), now: clock::wall() };
        let folder = at.folder(&self.args).map_err(Refusal::internal)?;
        let found = if cwd.is_some() { at.list(&folder) } else { at.list_all(&folder) };
        let from = match params.get("cursor").and_then(Value::as_str) {
            None => 0,
            Some(cursor) => {
                cursor.parse().map_err(|_| Refusal::params("the cursor is none of this agent"))?
            }
        };
        let page = found.get(from..).unwrap_or_default();
        self.client.result(id, |w| {
            w.begin_object();
            w.key("sessions");
            w.begin_array();
            for found in page.iter().take(PAGE).filter(|found| !found.info.cwd.is_empty()) {
                listed(
                    &found.info.id,
                    &found.info.cwd,
                    found.info.name.as_deref().or(found.info.first_message.as_deref()),
                    found.info.modified,
                    w,
                );
            }
            w.end_array();
            if page.len() > PAGE {
                w.field_str("nextCursor", &(from + PAGE).to_string());
            }
            w.end_object();
        });
        Ok(())
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
        let mode = PermissionMode::parse(name);
        seat.gate.rules().set_mode(mode.ok_or_else(|| Refusal::params(format!("there is no mode {name}")))?);
        self.client.result(id, empty);
        Ok(())
    }

    fn set_option(&mut self, id: &Value, params: &Params) -> Result<(), Refusal> {
        let (option, value) = (text(params, "configId")?, text(params, "value")?);
        let client = Arc::clone(&self.client);
        let seat = self.seat(params)?;
        seat.choose(option, value)?;
        client.result(id, |w| {
            w.begin_object();
            w.key("configOptions");
            seat.write_options(w);
            w.end_object();
        });
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
fn state(seat: &mut Seat, w: &mut Writer) {
    w.key("modes");
    options::modes(seat.gate.rules().mode(), w);
    w.key("configOptions");
    seat.write_options(w);
}

fn listed(id: &str, cwd: &str, title: Option<&str>, modified: Wall, w: &mut Writer) {
    w.begin_object();
    w.field_str("sessionId", id);
    w.field_str("cwd", cwd);
    w.field_opt_str("title", title);
    w.field_str("updatedAt", &modified.to_iso());
    w.end_object();
}

fn empty(w: &mut Writer) {
    w.begin_object();
    w.end_object();
}
