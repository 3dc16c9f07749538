//! A small facade: one agent, prompts that block until everything has settled.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tau_core::event::Event;
use tau_core::fault::Fault;
use tau_core::hub::{Boot, Hub};
use tau_core::input::Command;

use crate::driver::Engine;
use crate::machine::{Handlers, SinkFlow};
use crate::sys::clock::Clock;

/// How long closing waits for ops that are under way.
const CLOSING: Duration = Duration::from_secs(5);

type Events = Arc<Mutex<VecDeque<Event>>>;

/// An agent whose events are handed to the thread that prompts. For the shortest way from the socket to a surface,
/// give the [`Engine`] a sink of your own instead.
pub struct Agent {
    engine: Engine<Hub>,
    events: Events,
}

impl Agent {
    /// Starts from what the core needs and the callbacks for credentials and host tools.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn new(boot: Boot, handlers: Handlers) -> std::io::Result<Self> {
        let clock = Clock::start();
        let events = Events::default();
        let queue = Arc::clone(&events);
        let sink = move |event: &Event, _: &Hub| {
            queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(event.clone());
            SinkFlow::Wake
        };
        let hub = Hub::new(boot, clock.now());
        Ok(Self { engine: Engine::new(hub, clock, handlers, Box::new(sink))?, events })
    }

    /// The engine, for other commands from other threads (an abort, a steering message).
    #[must_use]
    pub fn engine(&self) -> Engine<Hub> {
        self.engine.clone()
    }

    /// Sends a user message and blocks until the agent has settled. Events arrive on this thread, in order.
    ///
    /// # Errors
    /// Why the message was refused.
    pub fn prompt(&self, text: &str, mut on_event: impl FnMut(&Event)) -> Result<(), Fault> {
        let command = Command::Prompt { text: text.to_owned(), images: Vec::new() };
        let now = self.engine.now();
        self.engine.with_mut(|hub| hub.command(now, command))?;
        loop {
            // In this order: what was idle before the events were taken has brought all of its events.
            let idle = self.engine.with(Hub::is_idle);
            let events = std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner));
            events.iter().for_each(&mut on_event);
            if idle {
                return Ok(());
            }
            self.engine.wait_unless(Hub::is_idle);
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.engine.command(Command::Shutdown);
        let _ = self.engine.shutdown(CLOSING);
    }
}
