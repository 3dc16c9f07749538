//! RPC mode: commands as lines on standard input, responses and events as lines on standard output (spec 60 §3).
//!
//! Three parties: the thread that reads input hands lines over; the main thread follows one command after the other;
//! the engine's workers write events. [`Records`] is where both of the latter write, a whole record at a time. A
//! client that does not read makes whoever writes wait, and with it everything behind.
//!
//! Commands are followed in the order in which they came. One that must wait (for a run to end) answers later, and
//! those behind it go on; only the replacement of the session lets nothing pass.

mod asking;
mod bash;
mod call;
mod commands;
mod control;
mod entries;
mod feed;
mod models;
mod open_files;
mod others;
mod queries;
mod records;
mod replace;
mod session_layer;
mod slash;

use std::process::{ExitCode, exit};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use crate::backend::{Engine, Handlers, Machine};
use tau_core::entropy::Entropy;
use tau_core::fault::Fault;
use tau_core::hub::Hub;
use tau_core::input::Command;
use tau_core::json::Value;
use tau_core::op::Outcome;
use tau_core::settings::Scope;
use tau_core::skills::Resources;
use tau_io_std::sys::clock::Clock;
use tau_io_std::sys::random;

use crate::bootstrap::{Ready, Workshop};
use crate::mode::pipe::input;
use crate::mode::pipe::patience::Patience;
use crate::mode::pipe::seat;
use crate::out::note;
use crate::recording;
use crate::run;
use crate::settings_store;
use crate::signals::Signals;
use asking::Gate;
use call::{Call, Unusable};
use commands::{Answer, Outlook};
use entries::Counted;
use feed::{Feed, Order};
use open_files::OpenFiles;
use others::{Ended, Others};
use records::{Records, Subject};
use replace::Replacement;
use session_layer::Awaited;

/// Exit code when nobody takes the records.
const NO_READER: u8 = 1;

/// Follows commands until input ends, a signal comes, or the client goes away; then ends the process.
pub fn run(ready: Ready) -> ExitCode {
    match start(ready) {
        Ok(mut rpc) => exit(i32::from(rpc.serve())),
        Err(why) => {
            note(&why);
            ExitCode::FAILURE
        }
    }
}

/// Whether a line is a command.
///
/// # Errors
/// What the client is told instead.
pub fn check_line(line: &str) -> Result<(), String> {
    let call = Call::read(line).map_err(|unusable| unusable.why)?;
    call.images().map_err(|why| format!("{}: {why}", call.name))?;
    match commands::find(&call.name) {
        Outlook::Built(_) | Outlook::Ignored => Ok(()),
        Outlook::Unknown => Err(format!("there is no command \"{}\"", call.name)),
    }
}

/// The session that the program begins with.
fn start(ready: Ready) -> Result<Rpc, String> {
    let signals = Arc::new(Signals::default());
    let patience = Arc::new(Patience::new(Arc::clone(&signals)));
    let records = Records::new(Arc::clone(&patience));
    let files = OpenFiles::default();
    files.claim(None, ready.boot.desk.session.path())?;
    let rpc = Rpc::of(ready, records, Arc::clone(&signals), files, None)?;
    signals.listen(&rpc.engine.waker()).map_err(|e| format!("signals cannot be handled: {e}"))?;
    let input = input::listen(rpc.engine.waker(), Arc::clone(&patience))
        .map_err(|e| format!("standard input cannot be read: {e}"))?;
    Ok(Rpc { feed: Feed::Client { input, patience, others: Others::default() }, ..rpc })
}

/// The state of the thread that looks after a session.
struct Rpc {
    engine: Engine<Hub>,
    records: Records,
    signals: Arc<Signals>,
    feed: Feed,
    workshop: Workshop,
    rng: Entropy,
    /// Commands that are answered when no run is active any more.
    aborts: Vec<Subject>,
    /// A command that is answered with what came of it, when nothing goes on any more.
    outcome: Option<(Subject, Awaited)>,
    /// The session is to be replaced; commands wait.
    replacement: Option<(Subject, Replacement)>,
    swept: bool,
    /// Skills and templates of the session.
    resources: Resources,
    /// Which calls run, with `--permission`.
    gate: Option<Gate>,
    /// The session files that this process has open.
    files: OpenFiles,
    /// Entries of the session that were counted already.
    counted: Counted,
}

impl Rpc {
    /// Opens a session that was prepared. `orders` bring its commands; `None` = nothing brings any yet.
    fn of(
        ready: Ready,
        records: Records,
        signals: Arc<Signals>,
        files: OpenFiles,
        orders: Option<Receiver<Order>>,
    ) -> Result<Self, String> {
        let Ready { mut boot, credentials, name, workshop, resources, .. } = ready;
        // Whoever wants what a compaction left behind reads the file.
        boot.desk.session = boot.desk.session.frugal();
        let clock = Clock::start();
        let mut handlers = Handlers {
            secret: Box::new(move |op| Outcome::Secret(credentials.resolve(&op))),
            ..Handlers::default()
        };
        let gate = workshop.args.permission.map(|mode| Gate::new(mode, &workshop.base.place, &boot.env));
        if let Some(gate) = gate.clone() {
            let asker = records.clone();
            handlers.hook = Box::new(move |hook, cancel| gate.answer(&asker, hook, cancel));
        }
        // The sessions beside the first one have their ids in the names of their records.
        let named = |file: &String| match &orders {
            Some(_) => recording::name_of(file, boot.desk.session.id()),
            None => file.clone(),
        };
        let record = workshop.args.record.as_ref().map(named);
        let bodies = workshop.args.record_bodies.as_deref();
        let hub = recording::hub(boot, clock.now(), record.as_deref(), bodies)?;
        let engine = Engine::new(hub, clock, handlers, Box::new(records.clone()))
            .map_err(|e| format!("the engine cannot begin: {e}"))?;
        // What is due at once (the header of an empty file) is written.
        engine.with_mut(|_| {});
        if let Some(name) = name {
            engine.command(Command::SetName(name));
        }
        let rng = Entropy::new(random::seed().map_err(|fault| fault.to_string())?);
        Ok(Self {
            engine,
            records,
            signals,
            feed: orders.map_or(Feed::Nothing, Feed::Orders),
            workshop,
            rng,
            aborts: Vec::new(),
            outcome: None,
            replacement: None,
            swept: false,
            resources,
            gate,
            files,
            counted: Counted::default(),
        })
    }

    /// Follows commands. The exit code.
    fn serve(&mut self) -> u8 {
        loop {
            if let Some(number) = self.feed.signal(&self.signals) {
                return self.wind_down(128 + number, 0);
            }
            if self.records.is_closed() {
                if self.feed.is_of_client() {
                    self.records.complain();
                }
                // A signal makes a write that is stuck give up, too; it may have come since the look above.
                let signal = self.feed.signal(&self.signals);
                return self.end(signal.map_or(NO_READER, |number| 128 + number), 0);
            }
            if self.waits() && self.engine.with(Machine::is_settled) {
                self.settled();
            }
            if self.replacement.is_some() && self.engine.with(Machine::is_idle) {
                self.go_on_replacing();
            }
            if self.replacement.is_none() {
                match self.feed.take() {
                    Order::Follow(Ok(call)) => {
                        self.follow(call);
                        continue;
                    }
                    Order::Follow(Err(unusable)) => {
                        self.unusable(&unusable);
                        continue;
                    }
                    Order::Close(subject) => {
                        self.close();
                        self.records.success(&subject, None);
                        return 0;
                    }
                    Order::End => return self.end(0, 1),
                    Order::Wait => {}
                }
            }
            let (waits, replaces) = (self.waits(), self.replacement.is_some());
            let _ = self.engine.wait_unless(|hub| waits && hub.is_settled() || replaces && hub.is_idle());
        }
    }

    /// Whether a response waits for the end of what goes on.
    const fn waits(&self) -> bool {
        !self.aborts.is_empty() || self.outcome.is_some()
    }

    /// No run is active any more, and nothing else but the shell: what waited for that is answered.
    fn settled(&mut self) {
        self.answer_outcome();
        for subject in std::mem::take(&mut self.aborts) {
            self.records.success(&subject, None);
        }
    }

    /// Nothing goes on at all: another session takes the place of this one.
    fn go_on_replacing(&mut self) {
        match self.replacement.take() {
            None => {}
            Some((subject, Replacement::Made { data })) => self.records.success(&subject, Some(&data)),
            Some((subject, replacement)) => match self.replace(replacement) {
                Ok(data) => self.replacement = Some((subject, Replacement::Made { data })),
                Err(why) => self.records.failure(&subject, &why),
            },
        }
    }

    fn follow(&mut self, call: Call) {
        // Questions have ids of their own, whatever session they are about.
        if let Outlook::Ignored = commands::find(&call.name) {
            return self.records.answered(call.subject.id.as_ref().unwrap_or(&Value::Null), call.value());
        }
        let subject = call.subject.clone();
        let call = match self.elsewhere(call) {
            Ok(None) => return,
            Ok(Some(call)) => call,
            Err(why) => return self.respond(&subject, Err(why)),
        };
        let outcome = match commands::find(&call.name) {
            Outlook::Built(follow) => follow(self, &call),
            Outlook::Ignored => Ok(Answer::Sent),
            Outlook::Unknown => Err(format!("there is no command \"{}\"", call.name)),
        };
        self.respond(&subject, outcome);
    }

    fn unusable(&self, line: &Unusable) {
        self.records.failure(&line.subject, &line.why);
    }

    fn respond(&self, subject: &Subject, outcome: Result<Answer, String>) {
        match outcome {
            Ok(Answer::Done) => self.records.success(subject, None),
            Ok(Answer::Data(json)) => self.records.success(subject, Some(&json)),
            Ok(Answer::Sent) => {}
            Err(why) => self.records.failure(subject, &why),
        }
    }

    /// Hands a command to the hub. What follows from it has been written when this returns.
    fn tell(&self, command: Command) -> Result<(), String> {
        seat::tell(&self.engine, command)
    }

    /// Saves a setting of the user, and lets it count for the rest of the process. To be called when the command has
    /// been followed: what cannot be saved is told on standard error, and is no failure of the command.
    fn keep(&mut self, path: &[&str], value: Value) {
        let base = &mut self.workshop.base;
        base.settings.override_with(path, value.clone());
        let change = settings_store::change(path, Some(value));
        let saved = settings_store::save(&base.place, Scope::Global, &[change], settings_store::PASSING);
        if let Err(why) = saved {
            note(&format!("{} counts for this process only: {why}", path.join(".")));
        }
    }

    /// Nothing follows: the process ends with its first session, the others end by themselves.
    fn end(&mut self, code: u8, ignored_signals: u8) -> u8 {
        if self.feed.is_of_client() {
            return self.wind_down(code, ignored_signals);
        }
        self.close();
        code
    }

    /// The session ends, and the process goes on.
    fn close(&mut self) {
        self.records.mute();
        seat::close(&self.engine);
        self.files.release(self.records.session());
        self.settled();
    }

    /// No more events; the run is aborted, and stored when this returns (spec 60 §3.6). The process ends then.
    fn wind_down(&mut self, code: u8, ignored_signals: u8) -> u8 {
        self.records.mute();
        // All at once; whoever does not end in time is ended with the process.
        let others = self.feed.end_others();
        run::wind_down(&self.engine, &self.signals, code, ignored_signals);
        others.into_iter().for_each(Ended::wait);
        self.settled();
        code
    }
}

fn text_of(fault: Fault) -> String {
    fault.message
}
