//! What passes is tried again when it is time, what does not is not: the same over all protocols.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::thread;
use std::time::Duration;

use serde_json::json;
use tau_core::provider::APIS;
use tau_tests::answers::{broken, good, malformed, path};
use tau_tests::program::Sandbox;
use tau_tests::server::{Part, Reply, Server};

const TAU: &str = env!("CARGO_BIN_EXE_tau");

/// Looks like a token with the id of an account, which one protocol needs.
const KEY: &str =
    "h.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjdC0xMjMifX0.s";

/// Runs a prompt with the default number of retries, and waits of milliseconds: exit code, and when requests came.
fn run(api: &str, script: Vec<Reply>) -> (i32, Vec<Duration>, String) {
    let (place, server) = (Sandbox::new(TAU), Server::start(script));
    let models = json!({"providers": {"mock": {
        "baseUrl": format!("{}{}", server.url(), path(api)), "api": api, "apiKey": KEY,
        "models": [{"id": "m1", "contextWindow": 100_000, "maxTokens": 4096}],
    }}});
    place.put("agent/models.json", models.to_string());
    place.settings(&json!({"retry": {"baseDelayMs": 20}}));
    let run = place.run(&["-p", "x"]);
    let at: Vec<_> = server.requests().iter().map(|request| request.at).collect();
    let gaps = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(
        at.len() == 1 || run.code != Some(0) || run.out == "two words\n",
        "{api}: {}{}",
        run.out,
        run.err
    );
    assert!(
        server.requests().iter().all(|request| request.body == server.requests()[0].body),
        "{api}: another body"
    );
    (run.code.unwrap(), gaps, run.err)
}

fn wait(mut reply: Reply, name: &str, value: &str) -> Reply {
    reply.headers.push((name.into(), value.into()));
    reply
}

#[test]
fn faults_of_services() {
    let try_all = |api: &'static str| {
        let script = |faults: Vec<Reply>| faults.into_iter().chain([good(api)]).collect::<Vec<_>>();
        // What goes wrong, the exit code, and the least wait before each further request, ms.
        for (name, faults, code, waits) in [
            ("nothing", vec![], 0, &[][..]),
            ("asked to wait", vec![wait(Reply::error(429, "slow"), "retry-after-ms", "300")], 0, &[300]),
            (
                "asked to wait for seconds",
                vec![wait(Reply::error(503, "slow"), "retry-after", "1")],
                0,
                &[1000],
            ),
            ("truncated", vec![broken(api, None)], 0, &[20]),
            ("malformed", vec![broken(api, Some(malformed(api)))], 1, &[]),
            ("lost", vec![broken(api, Some(Part::Close))], 0, &[20]),
            ("not acceptable", vec![Reply::error(400, "no")], 1, &[]),
            ("busy twice", vec![Reply::error(503, "busy"), Reply::error(503, "busy")], 0, &[20, 40]),
            ("money", vec![Reply::error(429, "insufficient_quota")], 1, &[]),
        ] {
            // A client of AWS asks again whatever the words are.
            if (api, name) == ("bedrock-converse-stream", "money") {
                continue;
            }
            let (got, gaps, err) = run(api, script(faults));
            assert_eq!((got, gaps.len()), (code, waits.len()), "{api}, {name}: {err}");
            for (gap, least) in gaps.iter().zip(waits) {
                assert!(*gap >= Duration::from_millis(*least), "{api}, {name}: {gaps:?}");
            }
        }
    };
    thread::scope(|scope| {
        for api in APIS {
            scope.spawn(move || try_all(api));
        }
    });
}
