//! The loop around a machine, as one future.

use std::collections::BTreeMap;
use std::sync::Arc;

use smol::Timer;
use smol::channel::{Receiver, Sender, unbounded};
use tau_core::agent::HookCall;
use tau_core::event::Event;
use tau_core::fault::{FaultKind, IoFault};
use tau_core::hub::Output;
use tau_core::ids::OpId;
use tau_core::input::{Command, Input, Reply};
use tau_core::op::{Op, Outcome};
use tau_io_std::machine::{Handlers, Machine, SinkFlow};
use tau_io_std::sys::clock::Clock;
use tau_io_std::sys::{self, CancelToken};

enum Message {
    Input(Input),
    Stop,
}

/// Speaks to a running driver, from any task or thread.
#[derive(Clone)]
pub struct Control {
    sender: Sender<Message>,
}

impl Control {
    /// Hands a command to the machine.
    pub fn command(&self, command: Command) {
        self.input(Input::Command(command));
    }

    /// Hands any input to the machine.
    pub fn input(&self, input: Input) {
        let _ = self.sender.try_send(Message::Input(input));
    }

    /// Ends the driver; ops that run are cancelled and their replies dropped.
    pub fn stop(&self) {
        let _ = self.sender.try_send(Message::Stop);
    }
}

/// Drives a machine until [`Control::stop`]; gives it back then. The future does nothing unless it is awaited.
pub fn drive<M: Machine>(
    machine: M,
    clock: Clock,
    handlers: Handlers,
    sink: impl FnMut(&Event, &M) -> SinkFlow + Send + 'static,
) -> (Control, impl Future<Output = M> + Send) {
    let (sender, inbox) = unbounded();
    let driver = Driver {
        machine,
        sink,
        clock,
        handlers: Arc::new(handlers),
        sender: sender.clone(),
        open: BTreeMap::new(),
    };
    (Control { sender }, driver.run(inbox))
}

struct Driver<M, S> {
    machine: M,
    sink: S,
    clock: Clock,
    handlers: Arc<Handlers>,
    sender: Sender<Message>,
    open: BTreeMap<OpId, CancelToken>,
}

impl<M: Machine, S: FnMut(&Event, &M) -> SinkFlow> Driver<M, S> {
    async fn run(mut self, inbox: Receiver<Message>) -> M {
        loop {
            while let Some(output) = self.machine.poll() {
                self.carry_out(output);
            }
            let message = async { inbox.recv().await.unwrap_or(Message::Stop) };
            let message = match self.machine.poll_timeout() {
                None => message.await,
                Some(deadline) => {
                    let tick = async {
                        Timer::after(self.clock.until(deadline)).await;
                        Message::Input(Input::Tick)
                    };
                    smol::future::or(message, tick).await
                }
            };
            match message {
                Message::Input(input) if self.accepts(&input) => self.machine.handle(self.clock.now(), input),
                Message::Input(_) => {}
                Message::Stop => break,
            }
        }
        self.open.values().for_each(CancelToken::cancel);
        self.machine
    }

    /// Replies count only while their op is open; the last one closes it.
    fn accepts(&mut self, input: &Input) -> bool {
        match input {
            Input::Reply { op, reply } if reply.is_last() => self.open.remove(op).is_some(),
            Input::Reply { op, .. } => self.open.contains_key(op),
            Input::Command(_) | Input::Tick => true,
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Start { op, what } => {
                let cancel = CancelToken::new();
                self.open.insert(op, cancel.clone());
                self.start(op, what, cancel);
            }
            Output::Cancel { op } => {
                if let Some(token) = self.open.get(&op) {
                    token.cancel();
                }
            }
            Output::Event(event) => {
                if (self.sink)(&event, &self.machine) == SinkFlow::Abort {
                    let _ = self.sender.try_send(Message::Input(Input::Command(Command::Abort)));
                }
            }
        }
    }

    fn start(&self, op: OpId, what: Op, cancel: CancelToken) {
        let sender = self.sender.clone();
        let handlers = Arc::clone(&self.handlers);
        let reply = move |reply| {
            let _ = sender.try_send(Message::Input(Input::Reply { op, reply }));
        };
        if let Op::Http(_) | Op::Proc(_) = what {
            let text = "HTTP requests and processes are not yet in this backend; use tau-io-std";
            return reply(Reply::Failed(IoFault::new(FaultKind::Other, text)));
        }
        smol::unblock(move || {
            let last = match &what {
                Op::Secret(secret) => Reply::Done((handlers.secret)(secret.clone())),
                Op::Host(call) => {
                    let mut update = |output| reply(Reply::Update(output));
                    Reply::Done((handlers.host)(call.clone(), &mut update, &cancel))
                }
                Op::Hook(call) => {
                    Reply::Done(Outcome::Hook(Box::new((handlers.hook)(HookCall::clone(call), &cancel))))
                }
                other => sys::last(sys::run(other, &mut |partial| reply(partial), &cancel)),
            };
            reply(last);
        })
        .detach();
    }
}
