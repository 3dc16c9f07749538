//! Agents that are futures: the same options, the events as a stream.

#![allow(missing_docs)]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::{Arc, Mutex};

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
                smol::Timer::after(std::time::Duration::from_millis(2)).await;
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
