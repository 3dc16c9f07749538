//! Agents inside an event loop of one's own: here tokio's, with one thread for all of them.
//!
//! The loop does nothing but carry outputs out and hand inputs in (`docs/driving.md`). Ops run on tokio's threads for
//! blocking work, with the functions of this backend; a program may answer any of them in its own way instead.
//!
//! `cargo run -p tau-io-std --example tokio_host`

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tau_core::event::{Event, MessageUpdate};
use tau_core::fault::Fault;
use tau_core::hub::{Hub, Output};
use tau_core::ids::OpId;
use tau_core::input::{Command, Input};
use tau_io_std::driver::perform;
use tau_io_std::embed::Options;
use tau_io_std::http::Client;
use tau_io_std::machine::Handlers;
use tau_io_std::sys::CancelToken;
use tau_io_std::sys::clock::Clock;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

fn main() -> Result<(), Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|e| Fault::new("no_runtime", e.to_string()))?;
    runtime.block_on(async {
        let http = Arc::new(Client::new());
        let mut agents = Vec::new();
        for name in ["one", "two", "three"] {
            let (agent, commands) = Host::new(name, Options::demo().tools(["read"]), Arc::clone(&http))?;
            let _ = commands
                .send(Input::Command(Command::Prompt { text: "Show me around.".into(), images: Vec::new() }));
            agents.push(tokio::spawn(agent.run()));
        }
        for agent in agents {
            let text = agent.await.map_err(|e| Fault::new("panicked", e.to_string()))?;
            println!("{text}");
        }
        Ok(())
    })
}

/// One agent in the loop.
struct Host {
    name: &'static str,
    hub: Hub,
    clock: Clock,
    handlers: Arc<Handlers>,
    http: Arc<Client>,
    /// Commands and replies.
    inbox: UnboundedReceiver<Input>,
    sender: UnboundedSender<Input>,
    open: BTreeMap<OpId, CancelToken>,
    said: String,
}

impl Host {
    fn new(
        name: &'static str,
        options: Options,
        http: Arc<Client>,
    ) -> Result<(Self, UnboundedSender<Input>), Fault> {
        let parts = options.into_parts()?;
        let clock = Clock::start();
        let (sender, inbox) = unbounded_channel();
        let host = Self {
            name,
            hub: Hub::new(parts.boot, clock.now()),
            clock,
            handlers: Arc::new(parts.handlers),
            http,
            inbox,
            sender: sender.clone(),
            open: BTreeMap::new(),
            said: String::new(),
        };
        Ok((host, sender))
    }

    /// Until a prompt was followed and everything has settled.
    async fn run(mut self) -> String {
        loop {
            let mut settled = false;
            while let Some(output) = self.hub.poll() {
                match output {
                    Output::Event(event) => settled |= self.show(&event),
                    Output::Start { op, what } => {
                        let cancel = CancelToken::new();
                        self.open.insert(op, cancel.clone());
                        let (handlers, http) = (Arc::clone(&self.handlers), Arc::clone(&self.http));
                        let sender = self.sender.clone();
                        spawn_blocking(move || {
                            let bring = |reply| drop(sender.send(Input::Reply { op, reply }));
                            bring(perform(&what, &handlers, &http, &mut |reply| bring(reply), &cancel));
                        });
                    }
                    Output::Cancel { op } => {
                        if let Some(cancel) = self.open.get(&op) {
                            cancel.cancel();
                        }
                    }
                }
            }
            if settled && self.hub.is_idle() {
                return format!("{}: {}", self.name, self.said.trim_end());
            }
            // A command, a reply, or the time the hub wants to hear of.
            let due = self.hub.poll_timeout().map_or(Duration::MAX, |at| self.clock.until(at));
            let input = match timeout(due, self.inbox.recv()).await {
                Ok(Some(input)) => input,
                Ok(None) | Err(_) => Input::Tick,
            };
            if let Input::Reply { op, reply } = &input
                && reply.is_last()
            {
                self.open.remove(op);
            }
            self.hub.handle(self.clock.now(), input);
        }
    }

    fn show(&mut self, event: &Event) -> bool {
        match event {
            Event::MessageUpdate { update: MessageUpdate::TextDelta { delta, .. }, .. } => {
                self.said.push_str(delta)
            }
            Event::ToolStart { name, .. } => println!("{} calls {name}", self.name),
            _ => {}
        }
        matches!(event, Event::AgentSettled { .. })
    }
}
