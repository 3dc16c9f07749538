//! The end of a driver, and of ops that no thread has begun.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use tau_core::event::Event;
use tau_core::fault::{FaultKind, IoFault};
use tau_core::input::Reply;
use tau_core::op::{HttpRequest, Op, Outcome};
use tau_core::tools::ToolOutput;
use tau_io_std::machine::{Handlers, Sink, SinkFlow};
use tau_io_std::sys::CancelToken;
use tau_io_std::sys::clock::Clock;

use crate::backend::{Backend, Scripted, on_each_backend};
use crate::handlers::{handlers, host};
use crate::http::request;
use crate::processes::spec;
use crate::server::{CLOSED, Server};

const SOON: Duration = Duration::from_secs(5);

fn sink() -> Sink<Scripted> {
    Box::new(|_: &_, _: &_| SinkFlow::Go)
}

/// One op of each kind; none ends by itself.
fn endless(silent: &Server) -> Vec<Op> {
    vec![host("wait", 0), Op::Http(request(silent.url("/"))), Op::Proc(spec("sleep 60"))]
}

fn silent() -> Server {
    Server::new(|mut client, _| client.drain())
}

/// Whether they have begun or not: a driver that is stopped ends.
#[test]
fn what_has_just_been_started_does_not_hold_up_the_end() {
    let silent = silent();
    for pause in [0, 0, 0, 0, 30] {
        let script = || Scripted::starting(endless(&silent));
        let engine = tau_io_std::driver::Engine::new(script(), Clock::start(), handlers(), sink()).unwrap();
        engine.with_mut(|_| ());
        thread::sleep(Duration::from_millis(pause));
        assert!(engine.shutdown(SOON), "io-std after {pause} ms");

        let engine = tau_io_smol::engine::Engine::new(script(), Clock::start(), handlers(), sink()).unwrap();
        engine.with_mut(|_| ());
        thread::sleep(Duration::from_millis(pause));
        assert!(engine.shutdown(SOON), "io-smol on a thread after {pause} ms");
    }
    let (ended, end) = channel();
    let script = Scripted::starting(endless(&silent));
    let (control, driver) =
        tau_io_smol::drive(script, Clock::start(), handlers(), Arc::default(), |_: &_, _: &_| SinkFlow::Go);
    control.with_mut(|_| ());
    control.stop();
    thread::spawn(move || {
        tau_io_smol::block_on(driver);
        let _ = ended.send(());
    });
    end.recv_timeout(SOON).expect("the future is ready");
}

/// A sink may be stuck in a pipe that nobody reads: the engine is locked meanwhile.
#[test]
fn a_sink_that_is_stuck_does_not_hold_up_the_end() {
    let stuck = || -> Sink<Scripted> {
        Box::new(|_: &_, _: &_| {
            thread::sleep(Duration::from_secs(3));
            SinkFlow::Go
        })
    };
    let script = || Scripted::saying(Event::AgentStart);
    let ends = |name: &str, saying: Box<dyn FnOnce() + Send>, shutdown: &dyn Fn(Duration) -> bool| {
        let saying = thread::spawn(saying);
        thread::sleep(Duration::from_millis(100));
        let start = Instant::now();
        assert!(!shutdown(Duration::from_millis(200)), "{name} has not ended");
        assert!(start.elapsed() < Duration::from_millis(1500), "{name}: {:?}", start.elapsed());
        saying.join().unwrap();
        assert!(shutdown(SOON), "{name} has ended");
    };
    let engine = tau_io_std::driver::Engine::new(script(), Clock::start(), handlers(), stuck()).unwrap();
    let says = engine.clone();
    ends("io-std", Box::new(move || says.with_mut(|_| ())), &|limit| engine.shutdown(limit));
    let engine = tau_io_smol::engine::Engine::new(script(), Clock::start(), handlers(), stuck()).unwrap();
    let says = engine.clone();
    ends("io-smol", Box::new(move || says.with_mut(|_| ())), &|limit| engine.shutdown(limit));
}

/// Work on other threads hears of it when a driver is dropped.
#[test]
fn work_ends_with_the_driver_that_is_dropped() {
    let handlers = |seen: &Arc<AtomicBool>| {
        let seen = Arc::clone(seen);
        let host: Box<dyn Fn(_, &mut dyn FnMut(_), &CancelToken) -> Outcome + Send + Sync> =
            Box::new(move |_, _, cancel| {
                while !cancel.is_cancelled() {
                    thread::sleep(Duration::from_millis(2));
                }
                seen.store(true, Ordering::SeqCst);
                Outcome::Host(ToolOutput::text(String::new()))
            });
        Handlers { host, ..Handlers::default() }
    };
    let within = |seen: &AtomicBool| {
        let start = Instant::now();
        while !seen.load(Ordering::SeqCst) {
            assert!(start.elapsed() < SOON, "the tool hears of it");
            thread::sleep(Duration::from_millis(2));
        }
    };
    let script = || Scripted::starting([host("any", 0)]);
    let seen = Arc::default();
    let engine = tau_io_std::driver::Engine::new(script(), Clock::start(), handlers(&seen), sink()).unwrap();
    engine.with_mut(|_| ());
    thread::sleep(Duration::from_millis(50));
    drop(engine);
    within(&seen);
    let seen = Arc::default();
    let (control, driver) =
        tau_io_smol::drive(script(), Clock::start(), handlers(&seen), Arc::default(), |_: &_, _: &_| {
            SinkFlow::Go
        });
    control.with_mut(|_| ());
    let for_a_while = async {
        smol::Timer::after(Duration::from_millis(100)).await;
    };
    tau_io_smol::block_on(smol::future::or(driver, for_a_while));
    within(&seen);
}

on_each_backend!(what_waits_for_a_thread_is_cancelled_at_once);
fn what_waits_for_a_thread_is_cancelled_at_once(b: &Backend) {
    b.alone("ends::six_hundred_tools", &[]);
}

on_each_backend!(
    #[ignore = "run by `what_waits_for_a_thread_is_cancelled_at_once` in a process of its own"]
    six_hundred_tools
);
/// More than there are threads for.
fn six_hundred_tools(b: &Backend) {
    let long: Vec<_> = (0..600).map(|_| b.start(host("rest", 0))).collect();
    thread::sleep(Duration::from_millis(500));
    for what in [host("rest", 0), Op::Proc(spec("sleep 60"))] {
        let waiting = b.start(what);
        thread::sleep(Duration::from_millis(20));
        let start = Instant::now();
        waiting.cancel();
        let last = waiting.finish().1;
        assert_eq!(last.unwrap_err().kind, FaultKind::Cancelled);
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }
    for running in &long {
        running.cancel();
    }
    let start = Instant::now();
    for running in long {
        let _ = running.finish();
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    let threads = std::fs::read_dir("/proc/self/task").unwrap().count();
    assert!(threads < 600, "{threads} threads");
}

on_each_backend!(descriptors_that_run_out_are_faults);
fn descriptors_that_run_out_are_faults(b: &Backend) {
    b.alone("ends::few_descriptors", &[]);
}

on_each_backend!(
    #[ignore = "run by `descriptors_that_run_out_are_faults` in a process of its own"]
    few_descriptors
);
/// Each op has an end, and afterwards everything is as before.
fn few_descriptors(b: &Backend) {
    let server = Server::new(|mut client, _| {
        client.request();
        thread::sleep(Duration::from_millis(100));
        client.answer("200 OK", "x");
    });
    let ask = || Op::Http(request(server.url("/")));
    b.run(ask()).unwrap();
    b.run(Op::Proc(spec("true"))).unwrap();
    let files = || std::fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    let limit = |most: u64| {
        let own = std::process::id().to_string();
        let mut program = std::process::Command::new("prlimit");
        program.args(["--pid", &own, &format!("--nofile={most}:")]).status().is_ok_and(|end| end.success())
    };
    let before = files();
    if !limit(before + 30) {
        return;
    }
    let running: Vec<_> =
        (0..60).map(|at| b.start(if at % 2 == 0 { ask() } else { Op::Proc(spec("sleep 0.2")) })).collect();
    let mut failed = 0;
    for running in running {
        if let Err(fault) = running.finish().1 {
            failed += 1;
            assert!(!fault.detail.is_empty());
        }
    }
    assert!(failed > 0, "descriptors did not run out");
    b.run(Op::Proc(spec("true"))).unwrap();
    b.run(ask()).unwrap();
    thread::sleep(Duration::from_millis(300));
    // Connections that are kept.
    assert!(files() < before + 30, "{} after {before}", files());
}

/// Clients without a driver, as programs use them that block.
#[test]
fn clients_of_their_own_are_cancelled() {
    type Run = Box<dyn Fn(&HttpRequest, &CancelToken) -> (Vec<Reply>, Result<Outcome, IoFault>)>;
    let std: Run = Box::new(|asked, cancel| {
        let mut replies = Vec::new();
        let last = tau_io_std::http::Client::new().run(asked, &mut |reply| replies.push(reply), cancel);
        (replies, last)
    });
    let smol: Run = Box::new(|asked, cancel| {
        let mut replies = Vec::new();
        let last = tau_io_smol::http::Client::new().run(asked, &mut |reply| replies.push(reply), cancel);
        (replies, last)
    });
    let server = Server::new(|mut client, _| {
        client.request();
        client.answer("200 OK", "x");
    });
    let (silent, closed) = (silent(), format!("http://127.0.0.1:{CLOSED}/"));
    for (name, run) in [("io-std", std), ("io-smol", smol)] {
        let (replies, last) = run(&request(server.url("/")), &CancelToken::new());
        assert!(matches!(last, Ok(Outcome::BodyEnd)), "{name}: {last:?}");
        let [Reply::Head { status: 200, .. }, Reply::Chunk { bytes, .. }] = replies.as_slice() else {
            panic!("{name}: {replies:?}")
        };
        assert_eq!(bytes, b"x");
        let (replies, last) = run(&request(&closed), &CancelToken::new());
        assert!(replies.is_empty() && last.unwrap_err().kind == FaultKind::Connect, "{name}");
        let cancel = CancelToken::new();
        let soon = cancel.clone();
        let cancelling = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            soon.cancel();
        });
        let start = Instant::now();
        // And again with a token that is cancelled from the beginning.
        for _ in 0..2 {
            let (_, last) = run(&request(silent.url("/")), &cancel);
            assert_eq!(last.unwrap_err().kind, FaultKind::Cancelled, "{name}");
        }
        assert!(start.elapsed() < SOON, "{name}");
        cancelling.join().unwrap();
    }
}
