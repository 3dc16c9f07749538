//! Agents that are futures: the same options, the events as a stream.

#![allow(missing_docs)]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use smol::stream::StreamExt;
use tau_core::event::{Event, MessageUpdate};
use tau_io_smol::{Agent, block_on};
use tau_io_std::embed::{HostTool, Options};
use tau_tests::server::{Server, openai};

const ANYTHING: &str = r#"{"type":"object"}"#;

fn at(server: &Server) -> Options {
    Options::server(&format!("{}/v1", server.url()), "openai-completions", "scripted").key("k-1")
}

#[test]
fn events_are_a_stream_and_the_store_has_every_line() {
    let server = Server::start([openai::texts(&["a", "b"]), openai::text("two")]);
    let stored = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&stored);
    let options = at(&server).session_store(Vec::new(), move |lines| {
        own.lock().unwrap().extend_from_slice(lines);
        Ok(())
    });
    let lines = block_on(async {
        let agent = Agent::spawn(options).unwrap();
        let mut run = agent.run("hello").unwrap();
        assert_eq!(agent.run("too early").unwrap_err().code, "busy");
        let (mut text, mut last) = (String::new(), None);
        while let Some(event) = run.next().await {
            if let Event::MessageUpdate { update: MessageUpdate::TextDelta { delta, .. }, .. } = &event {
                text.push_str(delta);
            }
            last = Some(event);
        }
        assert!(run.next().await.is_none() && matches!(last, Some(Event::AgentSettled { aborted: false })));
        assert_eq!((text.as_str(), run.finish().await.unwrap().as_str()), ("ab", "ab"));
        drop(agent.run("again").unwrap());
        agent.wait().await;
        assert_eq!(agent.stats().assistant_messages, 2);
        let lines = agent.entries();
        agent.close().await;
        lines
    });
    assert_eq!(String::from_utf8(stored.lock().unwrap().clone()).unwrap(), lines.join("\n") + "\n");
    assert_eq!(server.requests()[1].users(), ["hello", "again"]);
}

#[test]
fn other_tasks_steer_and_abort() {
    let server = Server::start([
        openai::calls(&[("c1", "look", json!({}))]),
        openai::text("second"),
        openai::text("third"),
        openai::stalled("never ends"),
        openai::text("after"),
    ]);
    block_on(async {
        let (entered, gate) = (smol::channel::bounded::<()>(1), smol::channel::bounded::<()>(1));
        let (enter, go) = (entered.0, gate.1);
        let look = HostTool::new("look", "Looks", ANYTHING, move |call| {
            call.update("looking");
            enter.send_blocking(()).map_err(|e| e.to_string())?;
            go.recv_blocking().map_err(|e| e.to_string())?;
            Ok("seen".into())
        });
        let agent = Agent::spawn(at(&server).host_tool(look)).unwrap();
        let steer = async {
            entered.1.recv().await.unwrap();
            agent.steer("and this").unwrap();
            agent.follow_up("then that").unwrap();
            gate.0.send(()).await.unwrap();
        };
        let (answer, ()) = smol::future::zip(agent.prompt("first"), steer).await;
        assert_eq!(answer.unwrap(), "third");
        let abort = async {
            while server.requests().len() < 4 {
                smol::Timer::after(Duration::from_millis(2)).await;
            }
            agent.abort();
        };
        let (answer, ()) = smol::future::zip(agent.prompt("stop me"), abort).await;
        assert_eq!(answer.unwrap_err().code, "aborted");
        assert_eq!(agent.prompt("go on").await.unwrap(), "after");
        agent.close().await;
    });
    assert_eq!(server.requests()[1].users().last().unwrap(), "and this");
    assert_eq!(server.requests()[2].users().last().unwrap(), "then that");
}

#[test]
fn an_agent_that_is_dropped_ends_and_is_stored() {
    let server = Server::start([openai::stalled("begun")]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl").to_string_lossy().into_owned();
    block_on(async {
        let (agent, driver) = Agent::start(at(&server).session_file(&path), Arc::default()).unwrap();
        let prompting = async {
            let mut run = agent.run("hello").unwrap();
            while !matches!(run.next().await, Some(Event::MessageUpdate { .. })) {}
            drop(run);
            drop(agent);
        };
        // The driver's future ends by itself.
        smol::future::zip(driver, prompting).await;
    });
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"hello\""), "{text}");
}

/// Counts how often a task would be woken.
#[derive(Default)]
struct Calls(AtomicUsize);

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Calls {
    fn seen(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    fn demand(&self, what: &str) {
        let give_up = Instant::now() + Duration::from_secs(10);
        while self.seen() == 0 {
            assert!(Instant::now() < give_up, "nobody woke {what}");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn whoever_waits_is_woken_by_the_end_and_by_nothing_else() {
    let server = Server::start([openai::stalled("never ends"), openai::stalled("nor does this")]);
    let agent = Agent::spawn(at(&server)).unwrap();
    // An agent that does nothing is waited for at once.
    block_on(agent.wait());
    let begun = |run: &mut tau_io_smol::Run<'_>| {
        block_on(async { while !matches!(run.next().await, Some(Event::MessageUpdate { .. })) {} });
    };
    let calls = [(); 3].map(|()| Arc::new(Calls::default()));
    let wakers = calls.clone().map(Waker::from);
    let mut run = agent.run("hello").unwrap();
    begun(&mut run);
    let [mut first, mut second] = [(); 2].map(|()| Box::pin(agent.wait()));
    for (future, waker) in [&mut first, &mut second].into_iter().zip(&wakers) {
        assert!(future.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
    }
    while run.poll_next(&mut Context::from_waker(&wakers[2])).is_ready() {}
    drop(second);
    thread::sleep(Duration::from_millis(200));
    assert_eq!(calls.each_ref().map(|calls| calls.seen()), [0, 0, 0]);
    agent.abort();
    calls[0].demand("the one who waits");
    calls[2].demand("the one who reads");
    assert_eq!(block_on(run.finish()).unwrap_err().code, "aborted");
    block_on(first);
    assert!(calls[0].seen() <= 2 && calls[1].seen() == 0, "{} {}", calls[0].seen(), calls[1].seen());

    let mut run = agent.run("again").unwrap();
    begun(&mut run);
    drop(run);
    block_on(agent.close());
}

#[test]
fn an_idle_driver_is_not_polled() {
    let server = Server::start([openai::text("hi")]);
    let polls = AtomicUsize::new(0);
    block_on(async {
        let (agent, driver) = Agent::start(at(&server), Arc::default()).unwrap();
        let mut driver = Box::pin(driver);
        let counted = smol::future::poll_fn(|cx| {
            polls.fetch_add(1, Ordering::SeqCst);
            driver.as_mut().poll(cx)
        });
        let looking = async {
            assert_eq!(agent.prompt("hello").await.unwrap(), "hi");
            agent.wait().await;
            smol::Timer::after(Duration::from_millis(20)).await;
            let before = polls.load(Ordering::SeqCst);
            smol::Timer::after(Duration::from_millis(200)).await;
            // The timers of this test are seen by the same task.
            assert!(polls.load(Ordering::SeqCst) <= before + 1, "{before} {polls:?}");
            agent.close().await;
        };
        smol::future::zip(counted, looking).await;
    });
}

#[test]
fn without_its_driver_an_agent_refuses_and_nobody_waits_in_vain() {
    let server = Server::start([openai::stalled("never ends")]);
    block_on(async {
        let (agent, driver) = Agent::start(at(&server), Arc::default()).unwrap();
        let mut run = agent.run("hello").unwrap();
        let begun = async { while !matches!(run.next().await, Some(Event::MessageUpdate { .. })) {} };
        smol::future::or(driver, begun).await;
        // The driver was dropped there.
        assert_eq!(run.finish().await.unwrap_err().code, "closed");
        agent.wait().await;
        assert_eq!(agent.prompt("more").await.unwrap_err().code, "closed");
        assert_eq!(agent.steer("more").unwrap_err().code, "closed");
        agent.close().await;

        let (agent, driver) = Agent::start(Options::demo(), Arc::default()).unwrap();
        drop(driver);
        assert_eq!(agent.prompt("x").await.unwrap_err().code, "closed");
        agent.close().await;
    });
}

/// The least that can be called an executor.
fn drive_on_this_thread<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            std::task::Poll::Ready(value) => return value,
            std::task::Poll::Pending => thread::park_timeout(Duration::from_secs(20)),
        }
    }
}

#[test]
fn any_executor_will_do() {
    let calls = openai::calls(&[("c1", "look", json!({})), ("c2", "bash", json!({"command": "echo out"}))]);
    let server = Server::start([calls, openai::text("done")]);
    let look = HostTool::new("look", "Looks", ANYTHING, |_| Ok("seen".into()));
    let (agent, driver) = Agent::start(at(&server).tools(["bash"]).host_tool(look), Arc::default()).unwrap();
    let prompting = async {
        let answer = agent.prompt("x").await;
        agent.close().await;
        answer
    };
    let ((), answer) = drive_on_this_thread(smol::future::zip(driver, prompting));
    assert_eq!(answer.unwrap(), "done");
    assert_eq!(server.requests()[1].texts("tool"), ["seen", "out\n"]);
}
