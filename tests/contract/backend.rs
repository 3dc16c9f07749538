//! A backend under test: a driver around a machine that asks for what the test wants.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use tau_core::event::Event;
use tau_core::fault::IoFault;
use tau_core::hub::Output;
use tau_core::ids::OpId;
use tau_core::input::{Input, Reply};
use tau_core::now::{Mono, Now};
use tau_core::op::{Op, Outcome};
use tau_io_std::driver::Engine;
use tau_io_std::machine::{Machine, SinkFlow};
use tau_io_std::sys::clock::Clock;

use crate::handlers::handlers;

/// More than any step of a test takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Takes the replies of an op.
type Route = Box<dyn Fn(Reply) + Send>;

#[derive(Default)]
pub struct Script {
    outputs: VecDeque<Output>,
    routes: BTreeMap<OpId, Route>,
    deadlines: VecDeque<Mono>,
    ticks: Vec<Mono>,
    threads: BTreeMap<String, usize>,
}

/// A machine that does what a test puts into its script.
#[derive(Clone, Default)]
pub struct Scripted(Arc<Mutex<Script>>);

impl Scripted {
    fn lock(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap()
    }
}

impl Scripted {
    /// A machine that starts these as soon as it is looked at, and ignores what comes of them.
    pub fn starting(ops: impl IntoIterator<Item = Op>) -> Self {
        let script = Self::default();
        {
            let mut inner = script.lock();
            for (number, what) in (0..).zip(ops) {
                inner.routes.insert(OpId(number), Box::new(|_| ()));
                inner.outputs.push_back(Output::Start { op: OpId(number), what });
            }
        }
        script
    }
}

impl Scripted {
    /// A machine that says something as soon as it is looked at.
    pub fn saying(event: Event) -> Self {
        let script = Self::default();
        script.lock().outputs.push_back(Output::Event(event));
        script
    }
}

impl Machine for Scripted {
    fn handle(&mut self, now: Now, input: Input) {
        let mut script = self.lock();
        match input {
            Input::Reply { op, reply } => {
                *script.threads.entry(format!("{:?}", thread::current().id())).or_default() += 1;
                let last = reply.is_last();
                let route = script.routes.get(&op).expect("a reply of an op that is open");
                route(reply);
                if last {
                    script.routes.remove(&op);
                }
            }
            Input::Tick => {
                while script.deadlines.front().is_some_and(|at| *at <= now.mono) {
                    script.deadlines.pop_front();
                    script.ticks.push(now.mono);
                }
            }
            Input::Command(_) => {}
        }
    }

    fn poll(&mut self) -> Option<Output> {
        self.lock().outputs.pop_front()
    }

    fn poll_timeout(&self) -> Option<Mono> {
        self.lock().deadlines.front().copied()
    }

    fn is_idle(&self) -> bool {
        let script = self.lock();
        script.routes.is_empty() && script.deadlines.is_empty()
    }
}

/// One backend.
pub struct Backend {
    pub name: &'static str,
    script: Scripted,
    feed: Arc<dyn Fn(Input) + Send + Sync>,
    next: AtomicU64,
    clock: Clock,
    _keep: Box<dyn Any>,
}

/// An op that was started.
pub struct Running {
    op: OpId,
    script: Scripted,
    feed: Arc<dyn Fn(Input) + Send + Sync>,
    replies: Receiver<Reply>,
}

/// Makes a test of a function, for each backend.
macro_rules! on_each_backend {
    ($(#[$meta:meta])* $check:ident) => {
        mod $check {
            #[test]
            $(#[$meta])*
            fn io_std() {
                super::$check(&crate::backend::io_std());
            }

            #[test]
            $(#[$meta])*
            fn io_smol() {
                super::$check(&crate::backend::io_smol());
            }
        }
    };
}
pub(crate) use on_each_backend;

/// The backends.
pub fn all() -> Vec<Backend> {
    vec![io_std(), io_smol()]
}

/// The blocking backend.
pub fn io_std() -> Backend {
    struct Stop(Arc<AtomicBool>, Engine<Scripted>);
    impl Drop for Stop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
            self.1.waker().wake();
        }
    }
    let (script, clock) = (Scripted::default(), Clock::start());
    let sink = Box::new(|_: &_, _: &_| SinkFlow::Go);
    let engine = Engine::new(script.clone(), clock, handlers(), sink).unwrap();
    let stop = Stop(Arc::default(), engine.clone());
    let (stopped, waiting) = (Arc::clone(&stop.0), engine.clone());
    thread::spawn(move || {
        while !stopped.load(Ordering::SeqCst) {
            waiting.wait_unless(|_| stopped.load(Ordering::SeqCst));
        }
    });
    let feed = Arc::new(move |input| engine.input(input));
    Backend { name: "io-std", script, feed, next: AtomicU64::new(0), clock, _keep: Box::new(stop) }
}

/// The async backend.
pub fn io_smol() -> Backend {
    struct Stop(tau_io_smol::Control<Scripted>);
    impl Drop for Stop {
        fn drop(&mut self) {
            self.0.stop();
        }
    }
    let (script, clock) = (Scripted::default(), Clock::start());
    let sink = |_: &_, _: &_| SinkFlow::Go;
    let (control, driver) = tau_io_smol::drive(script.clone(), clock, handlers(), Arc::default(), sink);
    thread::spawn(move || tau_io_smol::block_on(driver));
    let stop = Stop(control.clone());
    let feed = Arc::new(move |input| control.input(input));
    Backend { name: "io-smol", script, feed, next: AtomicU64::new(0), clock, _keep: Box::new(stop) }
}

impl Backend {
    /// Runs an ignored test for this backend in a process with its own environment.
    pub fn alone(&self, test: &str, env: &[(&str, &str)]) {
        alone(&format!("{test}::{}", self.name.replace('-', "_")), env);
    }

    /// Starts an op.
    pub fn start(&self, what: Op) -> Running {
        let (sender, replies) = channel();
        let route = move |reply| {
            let _ = sender.send(reply);
        };
        self.start_to(what, Box::new(route), replies)
    }

    /// Starts an op whose replies wait until they are taken: the backend is held up meanwhile.
    pub fn start_slowly(&self, what: Op) -> Running {
        let (sender, replies) = sync_channel(1);
        let route = move |reply| {
            let _ = sender.send(reply);
        };
        self.start_to(what, Box::new(route), replies)
    }

    fn start_to(&self, what: Op, route: Route, replies: Receiver<Reply>) -> Running {
        let op = OpId(self.next.fetch_add(1, Ordering::SeqCst));
        {
            let mut script = self.script.lock();
            script.routes.insert(op, route);
            script.outputs.push_back(Output::Start { op, what });
        }
        (self.feed)(Input::Tick);
        Running { op, script: self.script.clone(), feed: Arc::clone(&self.feed), replies }
    }

    /// Runs an op to its end.
    pub fn run(&self, what: Op) -> Result<Outcome, IoFault> {
        self.start(what).finish().1
    }

    /// Sets deadlines (ms from now) and waits for their ticks; gives how late each came.
    pub fn ticks(&self, delays: &[u64]) -> Vec<u64> {
        let now = self.clock.mono();
        let due: Vec<Mono> = delays.iter().map(|ms| now.plus(*ms)).collect();
        self.script.lock().deadlines.extend(&due);
        (self.feed)(Input::Tick);
        for _ in 0..6000 {
            if self.script.lock().ticks.len() == due.len() {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        let ticks = self.script.lock().ticks.clone();
        assert_eq!(ticks.len(), due.len(), "{}: all ticks came", self.name);
        ticks.iter().zip(&due).map(|(tick, due)| tick.0.checked_sub(due.0).expect("not early")).collect()
    }

    /// How many threads have brought replies.
    pub fn threads(&self) -> usize {
        self.script.lock().threads.len()
    }
}

/// Runs one ignored test of this program in a process with its own environment.
pub fn alone(test: &str, env: &[(&str, &str)]) {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program)
        .args(["--exact", test, "--ignored", "--nocapture"])
        .envs(env.iter().copied())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("1 passed"), "there is no ignored test {test}: {told}");
}

impl Running {
    /// The next reply.
    pub fn next(&self) -> Reply {
        self.replies.recv_timeout(PATIENCE).expect("a reply")
    }

    /// Whether a reply comes within a time.
    pub fn within(&self, limit: Duration) -> Option<Reply> {
        match self.replies.recv_timeout(limit) {
            Ok(reply) => Some(reply),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => panic!("the op has ended"),
        }
    }

    /// Cancels.
    pub fn cancel(&self) {
        self.canceller()();
    }

    /// What cancels, for another thread.
    pub fn canceller(&self) -> impl FnOnce() + Send + 'static {
        let (op, script, feed) = (self.op, self.script.clone(), Arc::clone(&self.feed));
        move || {
            script.lock().outputs.push_back(Output::Cancel { op });
            feed(Input::Tick);
        }
    }

    /// All remaining replies but the last, and the last.
    pub fn finish(self) -> (Vec<Reply>, Result<Outcome, IoFault>) {
        let mut partial = Vec::new();
        let last = loop {
            match self.next() {
                Reply::Done(outcome) => break Ok(outcome),
                Reply::Failed(fault) => break Err(fault),
                other => partial.push(other),
            }
        };
        assert!(self.replies.recv_timeout(Duration::ZERO).is_err(), "nothing follows the last reply");
        (partial, last)
    }

    /// The bytes of all chunks, and the last reply.
    pub fn bytes(self) -> (Vec<u8>, Result<Outcome, IoFault>) {
        let (partial, last) = self.finish();
        let mut all = Vec::new();
        for reply in partial {
            if let Reply::Chunk { bytes, .. } = reply {
                all.extend(bytes);
            }
        }
        (all, last)
    }
}
