//! What an embedding program may expect of both agents alike, the one that blocks and the one that is a future.

#![allow(missing_docs)]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::json;
use smol::stream::StreamExt;
use tau_core::agent::{ResultChange, ToolVerdict, TurnChange};
use tau_core::event::Event;
use tau_core::fault::Fault;
use tau_core::input::Command;
use tau_core::message::{Block, Message};
use tau_core::model::ThinkingLevel;
use tau_core::op::Credential;
use tau_core::session::stats::Stats;
use tau_core::settings::{Scope, Source, load};
use tau_io_smol::block_on;
use tau_io_std::embed::{HostTool, Options, Prompt};
use tau_io_std::machine::Exchange;
use tau_tests::server::{Reply, Server, openai};

const CITY: &str = r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;
const ANYTHING: &str = r#"{"type":"object"}"#;

/// What both can. The names are those of both.
trait Face: Send + Sync + Sized + 'static {
    fn started(options: Options) -> Result<Self, Fault>;
    fn prompt(&self, prompt: impl Into<Prompt>) -> Result<String, Fault>;
    fn events(&self, command: Command) -> Result<(Vec<Event>, Result<String, Fault>), Fault>;
    fn steer(&self, message: &str) -> Result<(), Fault>;
    fn follow_up(&self, message: &str) -> Result<(), Fault>;
    fn command(&self, command: Command) -> Result<(), Fault>;
    fn set_thinking(&self, level: ThinkingLevel) -> Result<(), Fault>;
    fn abort(&self);
    fn wait(&self);
    fn is_idle(&self) -> bool;
    fn stats(&self) -> Stats;
    fn messages(&self) -> usize;
    fn entries(&self) -> Vec<String>;
    fn close(self);
}

macro_rules! face {
    ($agent:ty, $start:expr, $wait:expr, $events:expr) => {
        impl Face for $agent {
            fn started(options: Options) -> Result<Self, Fault> {
                $start(options)
            }
            fn prompt(&self, prompt: impl Into<Prompt>) -> Result<String, Fault> {
                $wait(Self::prompt(self, prompt))
            }
            fn events(&self, command: Command) -> Result<(Vec<Event>, Result<String, Fault>), Fault> {
                Ok($events(Self::run_command(self, command)?))
            }
            fn steer(&self, message: &str) -> Result<(), Fault> {
                Self::steer(self, message)
            }
            fn follow_up(&self, message: &str) -> Result<(), Fault> {
                Self::follow_up(self, message)
            }
            fn command(&self, command: Command) -> Result<(), Fault> {
                Self::command(self, command)
            }
            fn set_thinking(&self, level: ThinkingLevel) -> Result<(), Fault> {
                Self::set_thinking(self, level)
            }
            fn abort(&self) {
                Self::abort(self);
            }
            fn wait(&self) {
                $wait(Self::wait(self));
            }
            fn is_idle(&self) -> bool {
                Self::is_idle(self)
            }
            fn stats(&self) -> Stats {
                Self::stats(self)
            }
            fn messages(&self) -> usize {
                Self::messages(self).len()
            }
            fn entries(&self) -> Vec<String> {
                Self::entries(self)
            }
            fn close(self) {
                $wait(Self::close(self));
            }
        }
    };
}

face!(tau_io_std::Agent, tau_io_std::Agent::start, std::convert::identity, |mut run: tau_io_std::Run<'_>| {
    let events = run.by_ref().collect();
    (events, run.finish())
});
face!(tau_io_smol::Agent, tau_io_smol::Agent::spawn, block_on, |mut run: tau_io_smol::Run<'_>| block_on(
    async {
        let mut events = Vec::new();
        while let Some(event) = run.next().await {
            events.push(event);
        }
        (events, run.finish().await)
    }
));

/// One test for each of them.
macro_rules! both {
    ($($name:ident)*) => {
        mod blocking {
            $(#[test] fn $name() { super::$name::<tau_io_std::Agent>(); })*
        }
        mod futures {
            $(#[test] fn $name() { super::$name::<tau_io_smol::Agent>(); })*
        }
    };
}

both! {
    tools_update_fail_panic_and_take_turns
    hooks_look_change_and_panic
    credentials_and_exchanges_are_the_programs
    what_looks_on_may_panic
    a_store_of_the_program_fails_and_goes_on
    nothing_is_written_without_a_file
    an_abort_ends_what_goes_on_and_nothing_else
    an_abort_reaches_a_tool_and_a_hook
    messages_of_others_join
    what_is_queued_while_idle_waits_for_a_prompt
    commands_are_runs_too
    two_at_once_are_refused
    what_cannot_work_is_refused_at_the_start
    closing_ends_and_stores
}

fn at(server: &Server) -> Options {
    let settings = r#"{"retry": {"enabled": false}}"#;
    let source = Source { scope: Scope::Global, path: "settings.json", text: Ok(Some(settings)) };
    let base_url = format!("{}/v1", server.url());
    Options::server(&base_url, "openai-completions", "scripted").key("k-1").settings(load(&[source]).0)
}

fn results(server: &Server) -> Vec<String> {
    server.requests().last().map(|request| request.texts("tool")).unwrap_or_default()
}

fn weather(calls: &[(&str, &str)]) -> Reply {
    let calls: Vec<_> = calls.iter().map(|(id, city)| (*id, "weather", json!({"city": city}))).collect();
    openai::calls(&calls)
}

fn tools_update_fail_panic_and_take_turns<A: Face>() {
    let calls = [("c1", "Lisbon"), ("c2", "Nowhere"), ("c3", "Pompeii")];
    let server =
        Server::start([weather(&calls), openai::text("done"), weather(&calls), openai::text("done")]);
    let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let tool = || {
        let (inside, most) = (Arc::clone(&inside), Arc::clone(&most));
        HostTool::new("weather", "The weather", CITY, move |call| {
            most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            call.update(format!("looking for {}", call.text("city")));
            thread::sleep(Duration::from_millis(30));
            inside.fetch_sub(1, Ordering::SeqCst);
            match call.text("city") {
                "Nowhere" => Err("no such city".into()),
                "Pompeii" => panic!("the station is gone"),
                city => Ok(format!("rain in {city} ({})", call.id())),
            }
        })
    };
    for (options, side_by_side) in
        [(at(&server).host_tool(tool()), true), (at(&server).host_tool(tool()).sequential_tools(), false)]
    {
        most.store(0, Ordering::SeqCst);
        let agent = A::started(options).unwrap();
        let prompt = Command::Prompt { text: "weather?".into(), images: Vec::new() };
        let (events, answer) = agent.events(prompt).unwrap();
        assert_eq!(answer.unwrap(), "done");
        assert_eq!(events.iter().filter(|event| matches!(event, Event::ToolUpdate { .. })).count(), 3);
        assert!(matches!(events.last(), Some(Event::AgentSettled { aborted: false })));
        assert_eq!(
            results(&server),
            ["rain in Lisbon (c1)", "no such city", "the tool panicked: the station is gone"]
        );
        assert_eq!(most.load(Ordering::SeqCst) > 1, side_by_side);
    }
}

fn hooks_look_change_and_panic<A: Face>() {
    let calls = [("c1", "Rome"), ("c2", "Atlantis"), ("c3", "Bonn"), ("c4", "Pompeii")];
    let server = Server::start([weather(&calls), openai::text("done"), openai::text("after")]);
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let options = at(&server)
        .host_tool(HostTool::new("weather", "", CITY, |call| Ok(format!("sun in {}", call.text("city")))))
        .before_tool_call(|_, args, _| match args["city"].as_str() {
            Some("Atlantis") => ToolVerdict::Block { reason: Some("lost".into()), terminate: false },
            Some("Bonn") => ToolVerdict::Run(Some(Arc::new(json!({"city": "Berlin"})))),
            Some("Pompeii") => panic!("ashes"),
            _ => ToolVerdict::Run(None),
        })
        .after_tool_call(|call, output, _| {
            let text = output.content[0].as_text().unwrap_or_default().to_uppercase();
            let content = (call.id == "c1").then(|| vec![Block::text(text)]);
            ResultChange { content, ..ResultChange::default() }
        })
        .prepare_request(move || {
            assert!(counted.fetch_add(1, Ordering::SeqCst) != 2, "not the third time");
            TurnChange::default()
        })
        .transform_context(|mut messages| {
            messages.push(Arc::new(Message::user("a reminder", Vec::new(), 0)));
            messages
        });
    let agent = A::started(options).unwrap();
    assert_eq!(agent.prompt("weather?").unwrap(), "done");
    let told = results(&server);
    assert_eq!(told[..3], ["SUN IN ROME", "lost", "sun in Berlin"]);
    assert!(told[3].contains("ashes"), "{told:?}");
    assert!(server.requests().iter().all(|request| request.users().last().unwrap() == "a reminder"));
    assert!(!agent.entries().iter().any(|line| line.contains("a reminder")));
    // A hook that panics costs the run, not the agent.
    let failed = agent.prompt("again").unwrap_err();
    assert!(failed.message.contains("not the third time"), "{failed}");
    assert_eq!(agent.prompt("once more").unwrap(), "after");
}

fn credentials_and_exchanges_are_the_programs<A: Face>() {
    let server = Server::start([openai::text("one"), openai::text("two")]);
    let (log, keys) = (Arc::new(Mutex::new(Vec::new())), AtomicUsize::new(0));
    let seen = Arc::clone(&log);
    let options = at(&server)
        .credentials(move |op| match keys.fetch_add(1, Ordering::SeqCst) {
            0 => Ok(Credential { api_key: Some(format!("key-of-{}", op.provider)), ..Credential::default() }),
            1 => Err("the vault is locked".into()),
            2 => panic!("the vault fell down"),
            _ => Ok(Credential { api_key: Some("another".into()), ..Credential::default() }),
        })
        .on_exchange(move |exchange| {
            seen.lock().unwrap().push(match exchange {
                Exchange::Request(request) => request.method.to_owned(),
                Exchange::Response { status, .. } => status.to_string(),
            });
        });
    let agent = A::started(options).unwrap();
    assert_eq!(agent.prompt("a").unwrap(), "one");
    for said in ["the vault is locked", "the vault fell down"] {
        let failed = agent.prompt("b").unwrap_err();
        assert!(failed.code == "reply_failed" && failed.message.contains(said), "{failed}");
    }
    assert_eq!(agent.prompt("c").unwrap(), "two");
    assert_eq!(*log.lock().unwrap(), ["POST", "200", "POST", "200"]);
    let keys: Vec<String> =
        server.requests().iter().map(|request| request.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(keys, ["Bearer key-of-server", "Bearer another"]);
}

fn what_looks_on_may_panic<A: Face>() {
    let server = Server::start(["one", "two", "three"].map(openai::text));
    let (events, exchanges) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (own_events, own_exchanges) = (Arc::clone(&events), Arc::clone(&exchanges));
    let options = at(&server)
        .on_event(move |event| {
            own_events.fetch_add(1, Ordering::SeqCst);
            assert!(!matches!(event, Event::MessageUpdate { .. } | Event::AgentStart), "a bad look");
        })
        .on_exchange(move |_| {
            assert!(own_exchanges.fetch_add(1, Ordering::SeqCst) > 1, "another bad look");
        });
    let agent = A::started(options).unwrap();
    for answer in ["one", "two", "three"] {
        assert_eq!(agent.prompt("x").unwrap(), answer);
    }
    assert_eq!(exchanges.load(Ordering::SeqCst), 6);
    assert!(events.load(Ordering::SeqCst) > 20);
    agent.close();
}

fn a_store_of_the_program_fails_and_goes_on<A: Face>() {
    let server = Server::start(["one", "two", "three", "four"].map(openai::text));
    let stored = Arc::new(Mutex::new(Vec::new()));
    let store = |mut faults: u32| {
        let own = Arc::clone(&stored);
        let before = stored.lock().unwrap().clone();
        at(&server).session_store(before, move |lines: &[u8]| {
            assert!(faults != 2, "the database fell down");
            if faults > 0 {
                faults -= 1;
                return Err("the database is away".into());
            }
            own.lock().unwrap().extend_from_slice(lines);
            Ok(())
        })
    };
    let agent = A::started(store(1)).unwrap();
    let prompt = |text: &str| Command::Prompt { text: text.into(), images: Vec::new() };
    let (events, answer) = agent.events(prompt("a")).unwrap();
    assert_eq!(answer.unwrap(), "one");
    let told: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            Event::Error(fault) => Some(fault.message.as_str()),
            _ => None,
        })
        .collect();
    assert!(told.len() == 1 && told[0].contains("the database is away"), "{told:?}");
    assert_eq!(agent.prompt("b").unwrap(), "two");
    let lines = agent.entries();
    agent.close();
    let text = String::from_utf8(stored.lock().unwrap().clone()).unwrap();
    let written: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(written, lines);
    // Another one goes on from there, and one whose store panics lives too.
    let agent = A::started(store(0)).unwrap();
    assert_eq!(agent.prompt("c").unwrap(), "three");
    assert_eq!(server.requests()[2].users(), ["a", "b", "c"]);
    drop(agent);
    let agent = A::started(store(2)).unwrap();
    assert_eq!(agent.prompt("d").unwrap(), "four");
}

fn nothing_is_written_without_a_file<A: Face>() {
    let server = Server::start([openai::calls(&[("c1", "ls", json!({}))]), openai::text("done")]);
    let folder = tempfile::tempdir().unwrap();
    let options = at(&server).tools(["ls", "read"]).cwd(folder.path().to_string_lossy());
    let agent = A::started(options).unwrap();
    assert_eq!(agent.prompt("x").unwrap(), "done");
    // The system prompt, the message, the call, its result, the answer.
    assert_eq!((agent.messages(), agent.entries().len() > 5), (5, true));
    agent.close();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

fn an_abort_ends_what_goes_on_and_nothing_else<A: Face>() {
    let server = Server::start((0..40).map(|_| openai::text("fine")));
    let agent = A::started(at(&server)).unwrap();
    for _ in 0..40 {
        // Nothing goes on: the next prompt is none of its business.
        agent.abort();
        assert_eq!(agent.prompt("x").unwrap(), "fine");
    }
    assert!(agent.is_idle());
}

fn an_abort_reaches_a_tool_and_a_hook<A: Face>() {
    let call = || weather(&[("c1", "Rome")]);
    let server = Server::start([call(), call(), openai::text("after")]);
    let (entered, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let wait = |cancel: &tau_io_std::sys::CancelToken, entered: &AtomicUsize, ended: &AtomicUsize| {
        entered.fetch_add(1, Ordering::SeqCst);
        while !cancel.is_cancelled() {
            thread::sleep(Duration::from_millis(1));
        }
        ended.fetch_add(1, Ordering::SeqCst);
    };
    let (tool_entered, tool_ended) = (Arc::clone(&entered), Arc::clone(&ended));
    let (hook_entered, hook_ended, calls) = (Arc::clone(&entered), Arc::clone(&ended), AtomicUsize::new(0));
    let options = at(&server)
        .host_tool(HostTool::new("weather", "", CITY, move |call| {
            wait(call.cancel(), &tool_entered, &tool_ended);
            Ok("too late".into())
        }))
        .before_tool_call(move |_, _, cancel| {
            if calls.fetch_add(1, Ordering::SeqCst) == 1 {
                wait(cancel, &hook_entered, &hook_ended);
            }
            ToolVerdict::Run(None)
        });
    let agent = A::started(options).unwrap();
    for round in 1..=2 {
        thread::scope(|scope| {
            let prompting = scope.spawn(|| agent.prompt("x"));
            while entered.load(Ordering::SeqCst) < round {
                thread::sleep(Duration::from_millis(1));
            }
            agent.abort();
            assert_eq!(prompting.join().unwrap().unwrap_err().code, "aborted");
        });
        agent.wait();
        assert_eq!(ended.load(Ordering::SeqCst), round);
    }
    assert_eq!(agent.prompt("go on").unwrap(), "after");
}

fn messages_of_others_join<A: Face>() {
    let replies =
        [openai::calls(&[("c1", "pause", json!({}))]), openai::text("second"), openai::text("third")];
    let server = Server::start(replies);
    let (entered, gate) = (smol::channel::bounded::<()>(1), smol::channel::bounded::<()>(1));
    let (enter, go) = (entered.0, gate.1);
    let pause = HostTool::new("pause", "Waits", ANYTHING, move |_| {
        enter.send_blocking(()).map_err(|e| e.to_string())?;
        go.recv_blocking().map_err(|e| e.to_string())?;
        Ok(String::new())
    });
    let agent = A::started(at(&server).host_tool(pause)).unwrap();
    thread::scope(|scope| {
        let prompting = scope.spawn(|| agent.prompt("first"));
        entered.1.recv_blocking().unwrap();
        agent.steer("and this").unwrap();
        agent.follow_up("then that").unwrap();
        let waiting = scope.spawn(|| agent.wait());
        gate.0.send_blocking(()).unwrap();
        assert_eq!(prompting.join().unwrap().unwrap(), "third");
        waiting.join().unwrap();
    });
    assert_eq!(server.requests()[1].users().last().unwrap(), "and this");
    assert_eq!(server.requests()[2].users().last().unwrap(), "then that");
}

fn what_is_queued_while_idle_waits_for_a_prompt<A: Face>() {
    let server = Server::start(["one", "two"].map(openai::text));
    let agent = A::started(at(&server)).unwrap();
    agent.steer("by the way").unwrap();
    agent.follow_up("and then").unwrap();
    agent.wait();
    assert!(agent.is_idle() && server.requests().is_empty());
    assert_eq!(agent.prompt("first").unwrap(), "two");
    let said: Vec<Vec<String>> = server.requests().iter().map(|request| request.users()).collect();
    assert_eq!(said[0], ["first", "by the way"]);
    assert_eq!(said[1].last().unwrap(), "and then");
}

/// Both may be moved to and shared between threads, and what is awaited too.
#[test]
fn agents_cross_threads() {
    fn check<T: Send + Sync>() {}
    fn check_future<T: Send>(_: T) {}
    check::<tau_io_std::Agent>();
    check::<tau_io_smol::Agent>();
    check::<HostTool>();
    let agent = tau_io_smol::Agent::spawn(Options::demo()).unwrap();
    check_future(agent.prompt("x"));
    check_future(agent.wait());
    let mut run = agent.run("x").unwrap();
    check_future(run.next());
    drop(run);
    check_future(agent.close());
}

fn commands_are_runs_too<A: Face>() {
    let server = Server::start([Reply::error(400, "not now"), openai::text("now")]);
    let agent = A::started(at(&server)).unwrap();
    assert!(agent.prompt("x").unwrap_err().message.contains("not now"));
    agent.set_thinking(ThinkingLevel::High).unwrap();
    agent.command(Command::SetName("a name".into())).unwrap();
    assert!(agent.entries().iter().any(|line| line.contains("a name")));
    let refused = agent.events(Command::Compact { focus: None }).map(|(_, answer)| answer);
    assert!(refused.is_err() || refused.unwrap().is_ok());
    assert_eq!(agent.prompt("y").unwrap(), "now");
    assert_eq!((agent.stats().user_messages, agent.stats().assistant_messages), (2, 2));
}

fn two_at_once_are_refused<A: Face>() {
    let server = Server::start([openai::stalled("begun"), openai::text("after")]);
    let agent = A::started(at(&server)).unwrap();
    thread::scope(|scope| {
        let prompting = scope.spawn(|| agent.prompt("first"));
        server.wait(1);
        for _ in 0..3 {
            assert_eq!(agent.prompt("second").unwrap_err().code, "busy");
        }
        agent.abort();
        assert_eq!(prompting.join().unwrap().unwrap_err().code, "aborted");
    });
    assert_eq!(agent.prompt("third").unwrap(), "after");
    assert_eq!(server.requests()[1].users(), ["first", "third"]);
}

fn what_cannot_work_is_refused_at_the_start<A: Face>() {
    let tool = |name: &str, schema: &str| HostTool::new(name, "", schema, |_| Ok(String::new()));
    let long = "x".repeat(65);
    for (options, code) in [
        (Options::demo().tools(["reed"]), "unknown_tool"),
        (Options::demo().prompt_section("Big Name", "x"), "bad_section"),
        (Options::demo().host_tool(tool("t", "{")), "bad_schema"),
        (Options::demo().host_tool(tool("t", "[]")), "bad_schema"),
        // No service takes these.
        (Options::demo().host_tool(tool("t", r#"{"type": "string"}"#)), "bad_schema"),
        (Options::demo().host_tool(tool("t", "{}")), "bad_schema"),
        (Options::demo().host_tool(tool("", ANYTHING)), "bad_tool_name"),
        (Options::demo().host_tool(tool("my tool", ANYTHING)), "bad_tool_name"),
        (Options::demo().host_tool(tool("wetter\u{fc}", ANYTHING)), "bad_tool_name"),
        (Options::demo().host_tool(tool(&long, ANYTHING)), "bad_tool_name"),
        (Options::demo().session_store(b"no session\n".to_vec(), |_| Ok(())), "session_unreadable"),
    ] {
        let refused = A::started(options).map(|_| ()).unwrap_err();
        assert_eq!(refused.code, code, "{refused}");
    }
    assert!(A::started(Options::demo().host_tool(tool("My_tool-2", ANYTHING))).is_ok());
}

fn closing_ends_and_stores<A: Face>() {
    let server = Server::start([openai::stalled("begun")]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl").to_string_lossy().into_owned();
    let agent = A::started(at(&server).session_file(&path)).unwrap();
    agent.command(Command::Prompt { text: "hello".into(), images: Vec::new() }).unwrap();
    server.wait(1);
    assert!(!agent.is_idle());
    agent.close();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"hello\"") && text.ends_with('\n'), "{text}");
    let agent = A::started(Options::demo().session_file(&path)).unwrap();
    assert_eq!(agent.stats().user_messages, 1);
}
