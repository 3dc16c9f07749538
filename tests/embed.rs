//! Agents inside a program: options, tools, hooks, stores, and what happens when those fail.

#![allow(missing_docs)]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tau_core::agent::{ResultChange, ToolVerdict, TurnChange, TurnDecision};
use tau_core::event::{Event, MessageUpdate};
use tau_core::fault::Fault;
use tau_core::message::{Block, Message};
use tau_core::model::catalog::Catalog;
use tau_core::op::Credential;
use tau_core::settings::{Scope, Source, load};
use tau_io_std::embed::{HostTool, Options, Prompt};
use tau_io_std::machine::Exchange;
use tau_io_std::{Agent, Run};
use tau_tests::server::{Reply, Server, openai};

const CITY: &str = r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;
const ANYTHING: &str = r#"{"type":"object"}"#;

fn at(server: &Server) -> Options {
    let settings = r#"{"retry": {"enabled": false}}"#;
    let source = Source { scope: Scope::Global, path: "settings.json", text: Ok(Some(settings)) };
    let base_url = format!("{}/v1", server.url());
    Options::server(&base_url, "openai-completions", "scripted").key("k-1").settings(load(&[source]).0)
}

fn started(options: Options) -> Agent {
    Agent::start(options).unwrap()
}

fn weather(script: &[(&str, &str)]) -> [Reply; 2] {
    let calls: Vec<(&str, &str, Value)> =
        script.iter().map(|(id, city)| (*id, "weather", json!({"city": city}))).collect();
    [openai::calls(&calls), openai::text("done")]
}

fn results(server: &Server) -> Vec<String> {
    server.requests().last().map(|request| request.texts("tool")).unwrap_or_default()
}

#[test]
fn a_prompt_gives_the_answer_and_the_stream_its_events() {
    let server = Server::start([openai::text("hi"), openai::texts(&["a", "b"])]);
    let agent = started(at(&server).system_prompt("Be brief."));
    assert_eq!(agent.prompt("hello").unwrap(), "hi");
    let mut run = agent.run(Prompt::from("again").image("image/png", "aGk=")).unwrap();
    let mut text = String::new();
    for event in run.by_ref() {
        if let Event::MessageUpdate { update: MessageUpdate::TextDelta { delta, .. }, .. } = event {
            text.push_str(&delta);
        }
    }
    assert!(run.next().is_none());
    assert_eq!((text.as_str(), run.finish().unwrap().as_str()), ("ab", "ab"));
    let requests = server.requests();
    assert_eq!(requests[1].users().len(), 2);
    assert_eq!(requests[0].header("authorization"), Some("Bearer k-1"));
    assert!(requests[0].texts("system")[0].starts_with("Be brief."));
    let stats = agent.stats();
    assert_eq!((stats.user_messages, stats.assistant_messages), (2, 2));
    assert!(agent.with(|hub| hub.desk().session().path().is_none()));
}

#[test]
fn what_goes_wrong_has_a_code() {
    let server =
        Server::start([Reply::error(400, "no such thing"), openai::cut("half"), openai::text("after")]);
    let agent = started(at(&server));
    let code = |result: Result<String, Fault>| result.unwrap_err().code;
    let failed = agent.prompt("one").unwrap_err();
    assert!(failed.code == "reply_failed" && failed.message.contains("no such thing"), "{failed}");
    assert_eq!(code(agent.prompt("two")), "answer_cut");
    assert_eq!(agent.prompt("three").unwrap(), "after");
    let unkeyed = Options::server("http://127.0.0.1:9/v1", "openai-completions", "m");
    let failed = started(unkeyed).prompt("x").unwrap_err();
    assert!(failed.message.contains("Options::key"), "{failed}");
    let refused = |options: Options| Agent::start(options).unwrap_err().code;
    assert_eq!(refused(Options::demo().tools(["reed"])), "unknown_tool");
    assert_eq!(refused(Options::demo().prompt_section("Big Name", "x")), "bad_section");
    let tool = |schema| HostTool::new("t", "", schema, |_| Ok(String::new()));
    assert_eq!(refused(Options::demo().host_tool(tool("{"))), "bad_schema");
    assert_eq!(refused(Options::demo().host_tool(tool("[]"))), "bad_schema");
    assert_eq!(
        refused(Options::demo().session_store(b"no session\n".to_vec(), |_| Ok(()))),
        "session_unreadable"
    );
    assert_eq!(Options::named(&Catalog::default(), "nobody/nothing").unwrap_err().code, "unknown_model");
}

#[test]
fn host_tools_update_fail_and_panic_without_harm() {
    let [calls, done] = weather(&[("c1", "Lisbon"), ("c2", "Nowhere"), ("c3", "Pompeii")]);
    let server = Server::start([
        calls,
        done,
        openai::calls(&[("c4", "weather", json!({"town": 1}))]),
        openai::text("x"),
    ]);
    let tool = HostTool::new("weather", "The weather", CITY, |call| {
        call.update(format!("looking for {}", call.text("city")));
        match call.text("city") {
            "Nowhere" => Err("no such city".into()),
            "Pompeii" => panic!("the station is gone"),
            city => Ok(format!("rain in {city} ({})", call.id())),
        }
    });
    let agent = started(at(&server).host_tool(tool));
    let mut run = agent.run("weather?").unwrap();
    let updates = run.by_ref().filter(|event| matches!(event, Event::ToolUpdate { .. })).count();
    assert_eq!((updates, run.finish().unwrap().as_str()), (3, "done"));
    let told = results(&server);
    assert_eq!(told, ["rain in Lisbon (c1)", "no such city", "the tool panicked: the station is gone"]);
    // What does not agree with the schema never reaches the function.
    assert_eq!(agent.prompt("again").unwrap(), "x");
    assert!(results(&server)[3].contains("city"), "{:?}", results(&server));
}

#[test]
fn calls_run_side_by_side_unless_a_tool_is_sequential() {
    let meeting = Arc::new(Barrier::new(2));
    let [calls, done] = weather(&[("c1", "a"), ("c2", "b")]);
    let server = Server::start([calls.clone(), done.clone(), calls, done]);
    let met = Arc::clone(&meeting);
    let side_by_side = HostTool::new("weather", "", CITY, move |_| {
        met.wait();
        Ok(String::new())
    });
    // Would never end otherwise.
    assert_eq!(started(at(&server).host_tool(side_by_side)).prompt("go").unwrap(), "done");
    let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = (Arc::clone(&inside), Arc::clone(&most));
    let alone = HostTool::new("weather", "", CITY, move |_| {
        seen.1.fetch_max(seen.0.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(20));
        seen.0.fetch_sub(1, Ordering::SeqCst);
        Ok(String::new())
    });
    assert_eq!(started(at(&server).host_tool(alone.sequential())).prompt("go").unwrap(), "done");
    assert_eq!(most.load(Ordering::SeqCst), 1);
}

#[test]
fn other_threads_steer_and_abort() {
    let server = Server::start([
        openai::calls(&[("c1", "pause", json!({}))]),
        openai::text("second"),
        openai::text("third"),
        openai::calls(&[("c2", "pause", json!({}))]),
        openai::text("after"),
    ]);
    let (gate, entered) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (inner_gate, inner_entered) = (Arc::clone(&gate), Arc::clone(&entered));
    let count = AtomicUsize::new(0);
    let pause = HostTool::new("pause", "Waits", ANYTHING, move |call| {
        inner_entered.wait();
        if count.fetch_add(1, Ordering::SeqCst) == 0 {
            inner_gate.wait();
            return Ok("went on".into());
        }
        while !call.is_cancelled() {
            thread::sleep(Duration::from_millis(1));
        }
        Ok("too late".into())
    });
    let agent = started(at(&server).host_tool(pause));
    thread::scope(|scope| {
        let prompting = scope.spawn(|| agent.prompt("first"));
        entered.wait();
        assert_eq!(agent.prompt("too early").unwrap_err().code, "busy");
        agent.steer("and this").unwrap();
        agent.follow_up("then that").unwrap();
        // A second thread may wait too.
        let waiting = scope.spawn(|| agent.wait());
        gate.wait();
        assert_eq!(prompting.join().unwrap().unwrap(), "third");
        waiting.join().unwrap();
    });
    assert_eq!(server.requests()[1].users().last().unwrap(), "and this");
    assert_eq!(server.requests()[2].users().last().unwrap(), "then that");
    thread::scope(|scope| {
        let prompting = scope.spawn(|| agent.prompt("stop me"));
        entered.wait();
        agent.abort();
        assert_eq!(prompting.join().unwrap().unwrap_err().code, "aborted");
    });
    assert_eq!(agent.prompt("go on").unwrap(), "after");
}

#[test]
fn hooks_look_and_change() {
    let [calls, done] = weather(&[("c1", "Rome"), ("c2", "Atlantis"), ("c3", "Bonn")]);
    let server = Server::start([calls, done, openai::text("and more")]);
    let turns = Arc::new(AtomicUsize::new(0));
    let requests = Arc::new(AtomicUsize::new(0));
    let (own_turns, own_requests) = (Arc::clone(&turns), Arc::clone(&requests));
    let options = at(&server)
        .host_tool(HostTool::new("weather", "", CITY, |call| Ok(format!("sun in {}", call.text("city")))))
        .before_tool_call(|_, args, _| match args["city"].as_str() {
            Some("Atlantis") => ToolVerdict::Block { reason: Some("lost".into()), terminate: false },
            Some("Bonn") => ToolVerdict::Run(Some(Arc::new(json!({"city": "Berlin"})))),
            _ => ToolVerdict::Run(None),
        })
        .after_tool_call(|call, output, _| match call.id.as_str() {
            "c1" => {
                let text = output.content[0].as_text().unwrap_or_default().to_uppercase();
                ResultChange { content: Some(vec![Block::text(text)]), ..ResultChange::default() }
            }
            _ => ResultChange::default(),
        })
        .finish_turn(move |_, results| {
            let first_without = results.is_empty() && own_turns.fetch_add(1, Ordering::SeqCst) == 0;
            first_without.then_some(TurnDecision::Continue)
        })
        .prepare_request(move || {
            own_requests.fetch_add(1, Ordering::SeqCst);
            TurnChange::default()
        })
        .transform_context(|mut messages| {
            messages.push(Arc::new(Message::user("a reminder", Vec::new(), 0)));
            messages
        });
    let agent = started(options);
    assert_eq!(agent.prompt("weather?").unwrap(), "and more");
    assert_eq!(results(&server), ["SUN IN ROME", "lost", "sun in Berlin"]);
    assert_eq!(requests.load(Ordering::SeqCst), 3);
    assert!(server.requests().iter().all(|request| request.users().last().unwrap() == "a reminder"));
    assert!(!agent.entries().iter().any(|line| line.contains("a reminder")));
}

#[test]
fn a_hook_that_panics_ends_the_run_only() {
    let server = Server::start([openai::text("one"), openai::text("two")]);
    let first = Arc::new(AtomicUsize::new(0));
    let agent = started(at(&server).prepare_request(move || {
        assert!(first.fetch_add(1, Ordering::SeqCst) > 0, "not the first time");
        TurnChange::default()
    }));
    let failed = agent.prompt("x").unwrap_err();
    assert!(failed.message.contains("not the first time"), "{failed}");
    assert_eq!(agent.prompt("y").unwrap(), "one");
}

#[test]
fn exchanges_and_events_are_seen_and_keys_asked_for_each_time() {
    let server = Server::start([openai::text("one"), openai::text("two")]);
    let (log, keys, kinds) = (Arc::new(Mutex::new(Vec::new())), AtomicUsize::new(0), Arc::new(Mutex::new(0)));
    let (own_log, own_kinds) = (Arc::clone(&log), Arc::clone(&kinds));
    let options = at(&server)
        .credentials(move |op| {
            assert_eq!((op.provider.as_str(), op.model.as_str()), ("server", "scripted"));
            let key = format!("key-{}", keys.fetch_add(1, Ordering::SeqCst));
            Ok(Credential { api_key: Some(key), ..Credential::default() })
        })
        .on_exchange(move |exchange| {
            own_log.lock().unwrap().push(match exchange {
                Exchange::Request(request) => request.method.to_owned(),
                Exchange::Response { status, .. } => status.to_string(),
            });
        })
        .on_event(move |event| {
            *own_kinds.lock().unwrap() += usize::from(matches!(event, Event::AgentSettled { .. }))
        });
    let agent = started(options);
    agent.prompt("a").unwrap();
    agent.prompt("b").unwrap();
    assert_eq!(*log.lock().unwrap(), ["POST", "200", "POST", "200"]);
    assert_eq!(*kinds.lock().unwrap(), 2);
    let keys: BTreeSet<String> =
        server.requests().iter().map(|r| r.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(keys.into_iter().collect::<Vec<_>>(), ["Bearer key-0", "Bearer key-1"]);
}

#[test]
fn a_session_goes_on_from_a_store_of_the_program_and_from_a_file() {
    let server = Server::start(["one", "two", "three", "four"].map(openai::text));
    let stored = Arc::new(Mutex::new(Vec::new()));
    let store = |options: Options| {
        let own = Arc::clone(&stored);
        let before = stored.lock().unwrap().clone();
        options.session_store(before, move |lines| {
            own.lock().unwrap().extend_from_slice(lines);
            Ok(())
        })
    };
    let first = started(store(at(&server)));
    first.prompt("a").unwrap();
    let lines = first.entries();
    drop(first);
    assert_eq!(String::from_utf8(stored.lock().unwrap().clone()).unwrap(), lines.join("\n") + "\n");
    let second = started(store(at(&server)));
    second.prompt("b").unwrap();
    assert_eq!(server.requests()[1].users(), ["a", "b"]);
    assert_eq!(second.entries()[..lines.len()], lines);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl").to_string_lossy().into_owned();
    std::fs::write(&path, &*stored.lock().unwrap()).unwrap();
    let third = started(at(&server).session_file(&path));
    third.prompt("c").unwrap();
    assert_eq!(server.requests()[2].users(), ["a", "b", "c"]);
    assert_eq!(third.stats().user_messages, 3);
    drop(third);
    assert!(std::fs::read_to_string(&path).unwrap().contains("three"));
}

#[test]
fn a_store_that_fails_gets_the_lines_again() {
    let server = Server::start([openai::text("one"), openai::text("two")]);
    let stored = Arc::new(Mutex::new(Vec::new()));
    let (own, mut left) = (Arc::clone(&stored), 1);
    let options = at(&server).session_store(Vec::new(), move |lines| {
        if left > 0 {
            left -= 1;
            return Err("the database is away".into());
        }
        own.lock().unwrap().extend_from_slice(lines);
        Ok(())
    });
    let agent = started(options);
    let told = |run: Run<'_>| -> Vec<String> {
        run.filter_map(|event| match event {
            Event::Error(fault) => Some(fault.message),
            _ => None,
        })
        .collect()
    };
    let first = told(agent.run("a").unwrap());
    assert!(first.len() == 1 && first[0].contains("the database is away"), "{first:?}");
    assert!(told(agent.run("b").unwrap()).is_empty());
    let lines = agent.entries();
    drop(agent);
    let text = String::from_utf8(stored.lock().unwrap().clone()).unwrap();
    let written: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(written, lines);
}

#[test]
fn a_run_that_nobody_reads_goes_on() {
    let server = Server::start([openai::text("one"), openai::text("two")]);
    let agent = started(at(&server));
    drop(agent.run("a").unwrap());
    agent.wait();
    assert_eq!(agent.stats().assistant_messages, 1);
    agent.set_model(Options::demo().model().clone()).unwrap();
    assert!(agent.prompt("b").unwrap().contains("No tools are active"));
}
