//! One open session: its engine, and the thread that keeps its time.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::backend::{Engine, Handlers, Machine};
use tau_core::hub::Hub;
use tau_core::input::Command;
use tau_core::json::{Value, Writer};
use tau_core::op::Outcome;
use tau_core::skills::Resources;
use tau_io_std::sys::claim;
use tau_io_std::sys::clock::Clock;

use super::client::Client;
use super::content::Content;
use super::message::Refusal;
use super::permission::Gate;
use super::updates::{Turn, Updates};
use crate::bootstrap::{Ready, Workshop, image_limits};
use crate::choose::choose;
use crate::mode::pipe::seat::{change_model, close, fit_images, model, tell, why_no_prompt};
use crate::permission::Rules;
use crate::{recording, resources, run};

/// A session.
pub(super) struct Seat {
    pub(super) id: String,
    pub(super) engine: Engine<Hub>,
    pub(super) workshop: Workshop,
    pub(super) gate: Arc<Gate>,
    resources: Resources,
    pub(super) client: Arc<Client>,
    turn: Arc<Turn>,
    clock: Timekeeper,
}

/// The thread that waits for the deadlines of an engine.
struct Timekeeper {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Seat {
    /// Opens a session that was prepared.
    ///
    /// # Errors
    /// When the operating system has no thread or descriptor left.
    pub(super) fn open(ready: Ready, client: &Arc<Client>) -> Result<Self, String> {
        let Ready { mut boot, credentials, workshop, resources, .. } = ready;
        let id = boot.desk.session.id().to_owned();
        boot.desk.config.hooks.before_tool_call = true;
        // It is told when it is opened; later nobody asks for what a compaction left behind.
        boot.desk.session = boot.desk.session.frugal();
        let outputs = boot.env.output_dir.clone();
        let place = workshop.base.place.clone();
        let rules = Rules::new(workshop.args.permission.unwrap_or_default(), place, outputs);
        let gate = Arc::new(Gate::new(id.clone(), Arc::clone(client), rules));
        let turn = Arc::new(Turn::default());
        let asked = Arc::clone(&gate);
        let handlers = Handlers {
            secret: Box::new(move |op| Outcome::Secret(credentials.resolve(&op))),
            hook: Box::new(move |hook, cancel| asked.answer(hook, cancel)),
            ..Handlers::default()
        };
        let updates = Updates {
            session: id.clone(),
            client: Arc::clone(client),
            turn: Arc::clone(&turn),
            gate: Arc::clone(&gate),
            running: HashMap::new(),
            compactions: 0,
            compacting: false,
        };
        let clock = Clock::start();
        // Each session has a record of its own, a session that is opened again another one.
        let record = workshop.args.record.as_ref().map(|file| recording::name_of(file, &id));
        let bodies = workshop.args.record_bodies.as_deref();
        let hub = recording::hub(boot, clock.now(), record.as_deref(), bodies)?;
        let engine = Engine::new(hub, clock, handlers, Box::new(updates))
            .map_err(|e| format!("the session cannot begin: {e}"))?;
        // What is due at once (the header of an empty file) is written.
        engine.with_mut(|_| {});
        let clock = Timekeeper::start(&engine)?;
        Ok(Self { id, engine, workshop, gate, resources, client: Arc::clone(client), turn, clock })
    }

    /// Follows a prompt; it is answered when everything has ended.
    ///
    /// # Errors
    /// Why it is not followed.
    pub(super) fn prompt(&mut self, request: &Value, content: Content) -> Result<(), Refusal> {
        if content.is_empty() {
            return Err(Refusal::params("the prompt is empty"));
        }
        let Content { text, mut images } = content;
        let command = run::compaction(&text);
        self.adopt_model();
        if command.is_none()
            && let Some(why) = why_no_prompt(&mut self.workshop, &model(&self.engine))
        {
            return Err(Refusal::auth(why));
        }
        let compacts = command.is_some();
        let command = match command {
            Some(command) => command,
            None => {
                let mut text = resources::expand(text, &self.resources);
                let limits = image_limits(&self.workshop.base.settings);
                fit_images(&mut text, &mut images, &limits).map_err(Refusal::params)?;
                Command::Prompt { text, images }
            }
        };
        if !self.turn.begin(request, compacts) {
            return Err(Refusal::request("a turn is active; wait for its end, or cancel it"));
        }
        tell(&self.engine, command).map_err(|why| {
            self.turn.forget();
            Refusal::request(why)
        })
    }

    /// Someone may have signed in since the session was opened without a model.
    fn adopt_model(&mut self) {
        if !model(&self.engine).is_placeholder() {
            return;
        }
        let Workshop { access, args, base, .. } = &mut self.workshop;
        access.refresh();
        let mut remarks = Vec::new();
        let chosen =
            self.engine.with(|hub| choose(args, access, &base.settings, hub.desk().session(), &mut remarks));
        if let Ok(Some(chosen)) = chosen {
            access.bind_key(&chosen.model.provider);
            if change_model(&self.engine, &base.settings, chosen.model, Some(chosen.level)).is_ok() {
                self.tell_options();
            }
        }
    }

    /// Ends what goes on; nothing when nothing does.
    pub(super) fn cancel(&self) {
        if !self.engine.with(Machine::is_idle) {
            self.engine.command(Command::Abort);
        }
    }

    /// Whether this request is the prompt of the moment.
    pub(super) fn works_on(&self, request: &Value) -> bool {
        self.turn.is_of(request)
    }

    /// Announces the commands that a prompt can begin with, and tells what people should know.
    pub(super) fn announce(&self, notes: &[String]) {
        self.announce_commands();
        notes.iter().for_each(|text| self.client.remark(&self.id, "warning", text));
        self.client.flush();
    }

    fn announce_commands(&self) {
        let builtin =
            [("compact", "Summarises the conversation so far", Some("what the summary is to look at"))];
        let templates = self.resources.templates.iter();
        let templates = templates.map(|t| (t.name.clone(), &*t.description, Some("arguments")));
        let skills = self.resources.skills.iter();
        let skills = skills.map(|s| (format!("skill:{}", s.name), &*s.description, Some("what to do")));
        let builtin = builtin.into_iter().map(|(name, about, hint)| (name.to_owned(), about, hint));
        self.client.update(&self.id, "available_commands_update", |w| {
            w.key("availableCommands");
            w.begin_array();
            for (name, description, hint) in builtin.chain(templates).chain(skills) {
                command(&name, description, hint, w);
            }
            w.end_array();
        });
    }

    /// No more deadlines: someone else waits for the end of what goes on.
    pub(super) fn stop_clock(&mut self) {
        self.clock.stop(&self.engine);
    }

    /// Ends what goes on, within a limit, and the session with it.
    pub(super) fn close(mut self) {
        self.stop_clock();
        close(&self.engine);
        if let Some(path) = self.engine.with(|hub| hub.desk().session().path().map(str::to_owned)) {
            claim::release(&path);
        }
    }
}

fn command(name: &str, description: &str, hint: Option<&str>, w: &mut Writer) {
    w.begin_object();
    w.field_str("name", name);
    w.field_str("description", description);
    if let Some(hint) = hint {
        w.key("input");
        w.begin_object();
        w.field_str("hint", hint);
        w.end_object();
    }
    w.end_object();
}

impl Timekeeper {
    fn start(engine: &Engine<Hub>) -> Result<Self, String> {
        let ended = Arc::new(AtomicBool::new(false));
        let (seen, engine) = (Arc::clone(&ended), engine.clone());
        let thread = thread::Builder::new().name("tau-session".into()).spawn(move || {
            while !seen.load(Ordering::SeqCst) {
                let _ = engine.wait_unless(|_| seen.load(Ordering::SeqCst));
            }
        });
        let thread = thread.map_err(|e| format!("the session cannot begin: {e}"))?;
        Ok(Self { ended, thread: Some(thread) })
    }

    fn stop(&mut self, engine: &Engine<Hub>) {
        self.ended.store(true, Ordering::SeqCst);
        engine.waker().wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
