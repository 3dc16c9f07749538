//! Prompts through the machine, one after the other, and an orderly end whatever happens.

use std::collections::VecDeque;
use std::process::{ExitCode, exit};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::backend::{Engine, EventSink, Handlers, Machine, SinkFlow};
use tau_core::agent::{HookCall, HookReply};
use tau_core::event::Event;
use tau_core::hub::Hub;
use tau_core::input::Command;
use tau_core::op::Outcome;
use tau_core::skills::Resources;
use tau_io_std::sys::clock::Clock;
use tau_io_std::sys::process::kill_all;

use crate::bootstrap::Ready;
use crate::mode::Surface;
use crate::out::note;
use crate::permission::{Rules, verdict};
use crate::prompts::Prompt;
use crate::signals::Signals;
use crate::{outputs, recording, resources};

/// How long an aborted run may take to end; then what it started is killed.
const ABORT_LIMIT: Duration = Duration::from_secs(4);

type Shown = Arc<Mutex<Box<dyn Surface + Send>>>;

/// Runs everything and ends the process: nothing is torn down that the operating system frees anyway.
pub fn run(ready: Ready, surface: Box<dyn Surface + Send>) -> ExitCode {
    let surface: Shown = Arc::new(Mutex::new(surface));
    let clock = Clock::start();
    let credentials = ready.credentials;
    let mut handlers = Handlers {
        secret: Box::new(move |op| Outcome::Secret(credentials.resolve(&op))),
        ..Handlers::default()
    };
    let boot = ready.boot;
    if let Some(mode) = ready.workshop.args.permission {
        // Nobody can be asked here.
        let rules = Rules::new(mode, ready.workshop.base.place.clone(), boot.env.output_dir.clone());
        handlers.hook = Box::new(move |hook, _| match hook {
            HookCall::BeforeToolCall { index, call, args } => {
                let outcome = rules.settle(&call.name, &args, || None);
                HookReply::BeforeToolCall { index, verdict: verdict(outcome) }
            }
            other => other.neutral(),
        });
    }
    let record = ready.workshop.args.record.as_deref();
    let bodies = ready.workshop.args.record_bodies.as_deref();
    let hub = match recording::hub(boot, clock.now(), record, bodies) {
        Ok(hub) => hub,
        Err(why) => return refuse(&why),
    };
    let sink = ToSurface(Arc::clone(&surface));
    let engine = match Engine::new(hub, clock, handlers, Box::new(sink)) {
        Ok(engine) => engine,
        Err(e) => return refuse(&format!("the run cannot begin: {e}")),
    };
    let signals = Signals::default();
    if let Err(e) = signals.listen(&engine.waker()) {
        return refuse(&format!("signals cannot be handled: {e}"));
    }
    let runner = Runner { engine, surface, signals, resources: ready.resources };
    if let Some(name) = ready.name {
        runner.engine.command(Command::SetName(name));
    }
    let signal = runner.prompts(ready.prompts);
    let good = lock(&runner.surface).finish();
    // One that comes now ends a write that nobody takes.
    match signal.or_else(|| runner.signals.take()) {
        Some(number) => exit(128 + i32::from(number)),
        None => exit(i32::from(!good)),
    }
}

/// The command `/compact [instructions]`.
#[must_use]
pub fn compaction(text: &str) -> Option<Command> {
    let rest = text.strip_prefix("/compact")?;
    let focus = match rest.split_once(char::is_whitespace) {
        Some(("", focus)) => Some(focus.trim().to_owned()).filter(|focus| !focus.is_empty()),
        None if rest.is_empty() => None,
        _ => return None,
    };
    Some(Command::Compact { focus })
}

/// Hands events to the surface, on the thread that made them.
struct ToSurface(Shown);

impl EventSink<Hub> for ToSurface {
    fn event(&mut self, event: &Event, _: &Hub) -> SinkFlow {
        lock(&self.0).on_event(event);
        SinkFlow::Go
    }

    fn drained(&mut self) -> SinkFlow {
        let mut surface = lock(&self.0);
        let was_closed = surface.is_closed();
        surface.flush();
        if surface.is_closed() && !was_closed { SinkFlow::Wake } else { SinkFlow::Go }
    }
}

struct Runner {
    engine: Engine<Hub>,
    surface: Shown,
    signals: Signals,
    resources: Resources,
}

impl Runner {
    /// One prompt after the other. The signal that ended them early, if one did.
    fn prompts(&self, prompts: VecDeque<Prompt>) -> Option<u8> {
        let mut first = true;
        for Prompt { text, images } in prompts {
            if lock(&self.surface).is_closed() {
                break;
            }
            self.engine.command(match compaction(&text) {
                Some(command) => command,
                None => Command::Prompt { text: resources::expand(text, &self.resources), images },
            });
            if std::mem::take(&mut first) {
                // The answer is under way; there is time for housekeeping.
                outputs::sweep();
            }
            if let Some(number) = self.settle() {
                return Some(number);
            }
        }
        None
    }

    /// Waits until the run has ended.
    fn settle(&self) -> Option<u8> {
        let mut stopping = false;
        loop {
            if let Some(number) = self.signals.take() {
                wind_down(&self.engine, &self.signals, 128 + number, 0);
                return Some(number);
            }
            if !stopping && lock(&self.surface).is_closed() {
                // Nobody reads any more: what is under way is completed and stored, nothing new is begun.
                stopping = true;
                self.engine.command(Command::GracefulStop);
            }
            if self.engine.wait_unless(Machine::is_idle) {
                return None;
            }
        }
    }
}

/// Aborts the run and waits until it has ended and is stored. When that takes too long, or a signal comes beyond
/// those to be ignored, what was started is killed and the process ends at once.
pub fn wind_down(engine: &Engine<Hub>, signals: &Signals, code: u8, ignored_signals: u8) {
    let watchdog = move || {
        thread::sleep(ABORT_LIMIT);
        leave(code);
    };
    // Without a thread for it only a further signal ends a run that hangs.
    let _ = thread::Builder::new().name("tau-abort".into()).spawn(watchdog);
    if !engine.command_within(Command::Abort, ABORT_LIMIT) {
        leave(code);
    }
    engine.command(Command::AbortShells);
    let mut ignored = ignored_signals;
    while !engine.wait_unless(Machine::is_idle) {
        match (signals.take(), ignored) {
            (None, _) => {}
            (Some(number), 0) => leave(128 + number),
            (Some(_), _) => ignored -= 1,
        }
    }
}

/// Kills what the tools started and is gone.
fn leave(code: u8) -> ! {
    kill_all();
    exit(code.into());
}

fn refuse(text: &str) -> ExitCode {
    note(text);
    ExitCode::FAILURE
}

fn lock(surface: &Shown) -> MutexGuard<'_, Box<dyn Surface + Send>> {
    surface.lock().unwrap_or_else(PoisonError::into_inner)
}
