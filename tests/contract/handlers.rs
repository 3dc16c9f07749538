//! Ops that the embedding program answers: host tools, hooks, credentials.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tau_core::agent::{HookCall, HookReply, ToolVerdict};
use tau_core::fault::FaultKind;
use tau_core::input::Reply;
use tau_core::message::ToolCall;
use tau_core::op::{HostCall, Op, Outcome, SecretOp};
use tau_core::tools::ToolOutput;
use tau_io_std::machine::{Exchange, Handlers};

use crate::backend::{Backend, on_each_backend};
use crate::http::request;
use crate::server::Server;

/// A tool that counts, or waits until it is cancelled; a hook that blocks calls of tools called `wait`.
pub fn handlers() -> Handlers {
    Handlers {
        secret: Box::new(|op| Outcome::Secret(Err(format!("nothing for {}", op.provider)))),
        host: Box::new(|call, update, cancel| {
            for step in 0..call.args["steps"].as_u64().unwrap_or(0) {
                update(ToolOutput::text(format!("step {step}")));
            }
            while call.tool == "wait" && !cancel.is_cancelled() {
                std::thread::sleep(Duration::from_millis(2));
            }
            // The same for those who are many.
            while call.tool == "rest" && !cancel.is_cancelled() {
                std::thread::sleep(Duration::from_millis(200));
            }
            Outcome::Host(ToolOutput::text(format!("{} is done", call.call_id)))
        }),
        hook: Box::new(|call, cancel| match call {
            HookCall::BeforeToolCall { index, call, .. } if call.name == "wait" => {
                while !cancel.is_cancelled() {
                    std::thread::sleep(Duration::from_millis(2));
                }
                HookReply::BeforeToolCall { index, verdict: ToolVerdict::Run(None) }
            }
            other => other.neutral(),
        }),
        append: None,
        exchange: Some(Box::new(|exchange| {
            let told = match exchange {
                Exchange::Request(request) => request.url.clone(),
                Exchange::Response { status, headers } => {
                    let mark = headers.iter().find(|(name, _)| name == "x-mark");
                    format!("{status} {}", mark.map_or("", |(_, mark)| mark))
                }
            };
            SEEN.lock().unwrap().push(told);
        })),
    }
}

/// What was seen of exchanges, by all tests.
static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

on_each_backend!(exchanges_are_looked_at);
fn exchanges_are_looked_at(b: &Backend) {
    let server = Server::new(|mut client, _| {
        let line = client.request().unwrap().line;
        let mark = line.split(' ').nth(1).unwrap();
        client.send(format!("HTTP/1.1 418 No\r\ncontent-length: 0\r\nx-mark: {mark}\r\n\r\n"));
    });
    let url = server.url(&format!("/{}", b.name));
    b.run(Op::Http(request(url.clone()))).unwrap();
    let seen = SEEN.lock().unwrap();
    let asked = seen.iter().position(|told| *told == url).unwrap();
    let answered = seen.iter().position(|told| *told == format!("418 /{}", b.name)).unwrap();
    assert!(asked < answered);
}

pub fn host(tool: &str, steps: u64) -> Op {
    let args = serde_json::from_value(serde_json::json!({ "steps": steps })).unwrap();
    Op::Host(HostCall { tool: tool.into(), call_id: "call-1".into(), args: Arc::new(args) })
}

fn text(output: &ToolOutput) -> String {
    format!("{output:?}")
}

on_each_backend!(host_tools_tell_how_far_they_are);
fn host_tools_tell_how_far_they_are(b: &Backend) {
    let (partial, last) = b.start(host("count", 100)).finish();
    assert_eq!(partial.len(), 100);
    for (step, reply) in partial.iter().enumerate() {
        let Reply::Update(output) = reply else { panic!("{reply:?}") };
        assert!(text(output).contains(&format!("step {step}")), "{output:?}");
    }
    let Ok(Outcome::Host(output)) = last else { panic!("{last:?}") };
    assert!(text(&output).contains("call-1 is done"), "{output:?}");
}

on_each_backend!(a_cancel_reaches_host_tools_and_hooks);
fn a_cancel_reaches_host_tools_and_hooks(b: &Backend) {
    let call = ToolCall { name: "wait".into(), ..ToolCall::default() };
    let hook = HookCall::BeforeToolCall { index: 3, call, args: Arc::default() };
    for what in [host("wait", 1), Op::Hook(Box::new(hook))] {
        let is_host = matches!(what, Op::Host(_));
        let running = b.start(what);
        if is_host {
            assert!(matches!(running.next(), Reply::Update(_)));
        }
        assert!(running.within(Duration::from_millis(30)).is_none());
        let start = Instant::now();
        running.cancel();
        let last = running.finish().1;
        assert!(
            match last {
                Ok(Outcome::Host(_)) => is_host,
                Ok(Outcome::Hook(reply)) =>
                    matches!(*reply, HookReply::BeforeToolCall { index: 3, .. }) && !is_host,
                other => panic!("{other:?}"),
            },
            "the handler's own answer"
        );
        assert!(start.elapsed() < Duration::from_secs(1));
    }
}

on_each_backend!(long_handlers_hold_nothing_up);
fn long_handlers_hold_nothing_up(b: &Backend) {
    let long: Vec<_> = (0..16).map(|_| b.start(host("wait", 0))).collect();
    let secret = SecretOp { provider: "p".into(), model: "m".into(), base_url: String::new() };
    let Ok(Outcome::Secret(Err(why))) = b.run(Op::Secret(secret)) else { panic!("no credentials") };
    assert_eq!(why, "nothing for p");
    let hook = b.run(Op::Hook(Box::new(HookCall::PrepareRequest))).unwrap();
    assert!(matches!(hook, Outcome::Hook(reply) if matches!(*reply, HookReply::PrepareRequest(_))));
    for running in &long {
        running.cancel();
    }
    for running in long {
        // One that had not begun is answered in its place.
        match running.finish().1 {
            Ok(Outcome::Host(_)) => {}
            Err(fault) => assert_eq!(fault.kind, FaultKind::Cancelled),
            other => panic!("{other:?}"),
        }
    }
}
